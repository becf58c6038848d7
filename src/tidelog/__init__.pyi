"""The public names of `tidelog` and the modules that hold them; see `lazy_names`."""

__all__: list[str]

from tidelog import analysis as analysis
from tidelog import errors as errors
from tidelog import hypothetical as hypothetical
from tidelog import notebook as notebook
from tidelog import proofs as proofs
from tidelog import spark as spark
from tidelog import stable as stable
from tidelog import streaming as streaming
from tidelog import testing as testing
from tidelog import types as types
from tidelog import windows as windows
from tidelog.batch import entails as entails
from tidelog.batch import materialise as materialise
from tidelog.check_report import check as check
from tidelog.corrections.view import View as View
from tidelog.data.dataset import Dataset as Dataset
from tidelog.errors import Diagnostic as Diagnostic
from tidelog.errors import TidelogError as TidelogError
from tidelog.hypothetical.moments import hypotheses as hypotheses
from tidelog.language.program import Program as Program
from tidelog.language.syntax import Fact as Fact
from tidelog.model import Model as Model
from tidelog.notebook.extension import load_ipython_extension as load_ipython_extension
from tidelog.notebook.extension import unload_ipython_extension as unload_ipython_extension
from tidelog.proofs.explanation import explain as explain
from tidelog.session import Step as Step
from tidelog.stable.models import stable_models as stable_models
from tidelog.streaming.alerts import Alert as Alert
from tidelog.streaming.reasoner import Reasoner as Reasoner
from tidelog.timeline.interval import Interval as Interval
from tidelog.version import __version__ as __version__
from tidelog.windows.validity import window as window
