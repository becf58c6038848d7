"""Rules over time, on files, tables and streams: every answer that follows, none that does not.

Read `batch.py` and `streaming/reasoner.py` first: they hold what users call most. The names are in `__init__.pyi`.
"""

from tidelog.lazy_names import attach_lazy_names
from tidelog.version import __version__ as __version__

__all__, __getattr__, __dir__ = attach_lazy_names(__name__)
