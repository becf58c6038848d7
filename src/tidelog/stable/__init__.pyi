"""The public names of `tidelog.stable` and the modules that hold them; see `lazy_names`."""

__all__: list[str]

from tidelog.stable.consequences import Consequences as Consequences
from tidelog.stable.consequences import stable_consequences as stable_consequences
from tidelog.stable.entailment import stable_entails as stable_entails
from tidelog.stable.models import StableModels as StableModels
from tidelog.stable.models import stable_models as stable_models
from tidelog.stable.search_limits import Progress as Progress
from tidelog.stable.session import StableAnswers as StableAnswers
from tidelog.stable.session import StableReasoner as StableReasoner
from tidelog.stable.session import StableStep as StableStep
from tidelog.stable.stable_model import StableModel as StableModel
from tidelog.stable.weights import WeightsLike as WeightsLike
