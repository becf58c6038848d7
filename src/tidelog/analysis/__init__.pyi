"""The public names of `tidelog.analysis` and the modules that hold them; see `lazy_names`."""

__all__: list[str]

from tidelog.analysis.distribution import Distribution as Distribution
from tidelog.analysis.distribution import Stage as Stage
from tidelog.analysis.memory_bounds import MemoryBounds as MemoryBounds
from tidelog.analysis.memory_bounds import NormalFormSize as NormalFormSize
from tidelog.analysis.memory_bounds import StreamProfile as StreamProfile
from tidelog.analysis.program_warnings import find_data_warnings as find_data_warnings
from tidelog.analysis.program_warnings import find_program_warnings as find_program_warnings
from tidelog.analysis.program_warnings import make_strict as make_strict
from tidelog.analysis.time_reach import LookAhead as LookAhead
from tidelog.check_report import CheckReport as CheckReport
from tidelog.check_report import check as check
