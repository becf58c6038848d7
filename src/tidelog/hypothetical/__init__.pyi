"""The public names of `tidelog.hypothetical` and the modules that hold them; see `lazy_names`."""

__all__: list[str]

from tidelog.hypothetical.answer_changes import AnswerChange as AnswerChange
from tidelog.hypothetical.answer_changes import ChangeTracker as ChangeTracker
from tidelog.hypothetical.general_hypotheses import AnswerValues as AnswerValues
from tidelog.hypothetical.general_hypotheses import OpenHypothesis as OpenHypothesis
from tidelog.hypothetical.ground_facts import GroundFact as GroundFact
from tidelog.hypothetical.ground_facts import Scalar as Scalar
from tidelog.hypothetical.key_split import KeySplit as KeySplit
from tidelog.hypothetical.moments import AnyArrival as AnyArrival
from tidelog.hypothetical.moments import changes as changes
from tidelog.hypothetical.moments import hypotheses as hypotheses
from tidelog.hypothetical.schemas import Query as Query
from tidelog.hypothetical.session import AnyFact as AnyFact
from tidelog.hypothetical.session import Hypotheses as Hypotheses
from tidelog.hypothetical.session import HypothesisStep as HypothesisStep
from tidelog.hypothetical.session_options import HypothesisOptions as HypothesisOptions
from tidelog.hypothetical.session_options import Rejected as Rejected
from tidelog.hypothetical.session_options import RejectReason as RejectReason
from tidelog.hypothetical.session_origin import DelayByPattern as DelayByPattern
from tidelog.hypothetical.supported_answers import Moment as Moment
from tidelog.hypothetical.supported_answers import SupportedAnswer as SupportedAnswer
