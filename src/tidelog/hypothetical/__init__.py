"""Hypothetical answers: what is certain, and what may still become true while facts are late.

Start with `session`: `Hypotheses` is a query over a stream of arrivals. `moments` (`hypotheses`) runs one over all its
arrivals. The other modules, in the order in which a session uses them:

- Before any data, the query is resolved into schemas, sets of facts that together make an answer: `background`,
  `dmtl_translation` and `threshold_translation` prepare the program, `resolution` resolves the query (`schemas`,
  `unification`, `subsumption`, `comparison_constraints`, `recursion`), `compiled_schemas` makes the result fast.
- Arrivals (`arrival_input`, `ground_facts`) within their `delays` fill in the premises of schemas: `regular_hypotheses`
  where each fact binds all variables, `general_hypotheses` otherwise. `minimality` selects the hypotheses to show.
- `supported_answers` is what a caller gets, with the likelihood of `confidence`; `answer_builder` makes it, helped by
  `answer_templates` for simple schemas. `answer_changes` reports only changes,
  `unsupported_answers` adds those without evidence.
- With negation, `absence_hypotheses` holds what waits for facts not to arrive, `absence_answers` shows it, and
  `absence_checks` says what can be decided exactly.
- `session_options` and `fact_patterns` are the settings of a session, `session_origin` is what it was created with,
  `session_state` saves and loads it, and `key_split` says how the work can be distributed.

Terms and definitions follow Cruz-Filipe, Gaspar and Nunes on hypothetical answers to continuous queries over data
streams, in the version with communication delays. This package calls it "the paper".
"""

from tidelog.lazy_names import attach_lazy_names

__all__, __getattr__, __dir__ = attach_lazy_names(__name__)
