"""The public names of `tidelog.notebook` and the modules that hold them; see `lazy_names`."""

__all__: list[str]

from tidelog.notebook.live_view import LiveView as LiveView
