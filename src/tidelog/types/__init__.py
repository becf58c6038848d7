"""Types that public signatures mention and that no other public namespace holds. The names are in `__init__.pyi`."""

from tidelog.lazy_names import attach_lazy_names

__all__, __getattr__, __dir__ = attach_lazy_names(__name__)
