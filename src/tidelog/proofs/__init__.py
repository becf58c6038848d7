"""Explanations: proofs of facts that hold, and reasons why other facts do not hold.

Start with `explanation` (`explain`, what users call) and `explainer` (one step of a proof at a time). The engine
computes the model once (`explained_model`); everything else looks up in it:

- `encoded_rules` has the rules as the user wrote them, on the engine's grid; `rule_instances` and `formula_evaluation`
  find where they apply, using `timeline.time_sets` and `fact_index`.
- `aggregate_values` computes aggregates of one group, and `numeric_conditions` describes them with the rows that count.
- `derivations` orders the facts of recursive components, so that no proof is circular.
- `why_not` finds the first failing condition of each rule. It needs no model if facts are found when it looks at them
  (`asked_facts`).
- `proof_step` and `proof_tree` are what is returned; `decoder` and `why_not_text` turn it into text.
"""

from tidelog.lazy_names import attach_lazy_names

__all__, __getattr__, __dir__ = attach_lazy_names(__name__)
