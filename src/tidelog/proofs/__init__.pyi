"""The public names of `tidelog.proofs` and the modules that hold them; see `lazy_names`."""

__all__: list[str]

from tidelog.proofs.explainer import Explainer as Explainer
from tidelog.proofs.explanation import Explanation as Explanation
from tidelog.proofs.explanation import explain as explain
from tidelog.proofs.formula_evaluation import GroundAtom as GroundAtom
from tidelog.proofs.numeric_conditions import FailingValue as FailingValue
from tidelog.proofs.proof_step import AggregateValue as AggregateValue
from tidelog.proofs.proof_step import Condition as Condition
from tidelog.proofs.proof_step import CountedRow as CountedRow
from tidelog.proofs.proof_step import ProofStep as ProofStep
from tidelog.proofs.proof_tree import Proof as Proof
from tidelog.proofs.why_not import BlockedRule as BlockedRule
from tidelog.proofs.why_not import WhyNot as WhyNot
from tidelog.timeline.time_sets import Pair as Pair
