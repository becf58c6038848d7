"""Stable models over the integer timeline, for programs with negation in cycles.

Start with `models` (`stable_models`), `entailment` (`stable_entails`) and `consequences` (`stable_consequences`). They
choose a solver in `solver_choice`:

- `forward_solver` follows the direction in which the rules propagate. `initial_windows` finds the windows that an
  infinite past may end with, `slice_machine` moves them from one time point to the next, and `window_paths` combines
  both into complete models, which continue for ever along `endless_paths`.
- `two_way_solver` handles rules that look both ways: it uses clingo (`clingo_encoding`, `clingo_control`) to search for
  models that repeat at both ends (`folded_interpretation`) and verifies each of them (`foundedness`).

`session` follows a stream, with the facts in `fact_stream` and the windows of `stream_components`; `held_intervals` are
for streams on Spark, whose answers are intervals. All of them start from `problem`, `normal_form`,
`grounding` and `time_bounds`; `given_atoms`, `atom_history`, `slice_models` and `question` are the data they pass on,
`weights` are what facts cost, `search_limits` bounds the search, and `stable_model` is what callers get.

Theorem numbers refer to Wałęga, Tena Cucala, Cuenca Grau and Kostylev, "The Stable Model Semantics of Datalog with
Metric Temporal Operators" (TPLP 2024).
"""

from tidelog.lazy_names import attach_lazy_names

__all__, __getattr__, __dir__ = attach_lazy_names(__name__)
