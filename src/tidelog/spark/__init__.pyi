"""The public names of `tidelog.spark` and the modules that hold them; see `lazy_names`."""

__all__: list[str]

from tidelog.spark.job.build import awaited as awaited
from tidelog.spark.job.build import build_job as build_job
from tidelog.spark.job.build import reason as reason
from tidelog.spark.job.change_log_frames import current as current
from tidelog.spark.job.options import JobKeywords as JobKeywords
from tidelog.spark.job.options import JobOptions as JobOptions
from tidelog.spark.job.output import JobOutput as JobOutput
from tidelog.spark.job.session import session as session
from tidelog.spark.plan.job_plan import AwaitedStagePlan as AwaitedStagePlan
from tidelog.spark.plan.job_plan import Awaiting as Awaiting
from tidelog.spark.plan.job_plan import JobPlan as JobPlan
from tidelog.spark.plan.job_plan import Route as Route
from tidelog.spark.plan.job_plan import StableMode as StableMode
from tidelog.spark.plan.job_plan import StagePlan as StagePlan
from tidelog.spark.worker.answer_columns import AnswerColumns as AnswerColumns
