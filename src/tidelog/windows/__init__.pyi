"""The public names of `tidelog.windows` and the modules that hold them; see `lazy_names`."""

__all__: list[str]

from tidelog.windows.forward_query import ForwardRule as ForwardRule
from tidelog.windows.forward_query import LaggedAtom as LaggedAtom
from tidelog.windows.loss_search import ProgressCallback as ProgressCallback
from tidelog.windows.object_names import Objects as Objects
from tidelog.windows.pointwise_evaluation import Facts as Facts
from tidelog.windows.retention_search import LosingStream as LosingStream
from tidelog.windows.retention_search import Retention as Retention
from tidelog.windows.retention_search import RetentionReport as RetentionReport
from tidelog.windows.retention_search import retention as retention
from tidelog.windows.validity import Containment as Containment
from tidelog.windows.validity import WindowCheck as WindowCheck
from tidelog.windows.validity import WindowReport as WindowReport
from tidelog.windows.validity import contained as contained
from tidelog.windows.validity import window as window
from tidelog.windows.witness import TimedFact as TimedFact
from tidelog.windows.witness import Witness as Witness
