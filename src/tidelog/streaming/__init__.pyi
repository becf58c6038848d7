"""The public names of `tidelog.streaming` and the modules that hold them; see `lazy_names`."""

__all__: list[str]

from tidelog.session import Session as Session
from tidelog.session import Step as Step
from tidelog.streaming.alerts import Alert as Alert
from tidelog.streaming.alerts import AlertOptions as AlertOptions
from tidelog.streaming.alerts import Args as Args
from tidelog.streaming.alerts import Change as Change
from tidelog.streaming.answer_changes import AnswerChange as AnswerChange
from tidelog.streaming.answer_changes import AnswerChanges as AnswerChanges
from tidelog.streaming.answer_changes import ChangeStep as ChangeStep
from tidelog.streaming.answers import AnswerColumns as AnswerColumns
from tidelog.streaming.answers import AnswerList as AnswerList
from tidelog.streaming.answers import Answers as Answers
from tidelog.streaming.answers import FactGroup as FactGroup
from tidelog.streaming.answers import RuleCost as RuleCost
from tidelog.streaming.answers import StreamStep as StreamStep
from tidelog.streaming.output_times import DelayLike as DelayLike
from tidelog.streaming.output_times import OutputTimesLike as OutputTimesLike
from tidelog.streaming.output_times import PastLengths as PastLengths
from tidelog.streaming.reasoner import Reasoner as Reasoner
from tidelog.streaming.watch import AlertList as AlertList
from tidelog.streaming.watch import Watch as Watch
