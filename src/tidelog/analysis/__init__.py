"""Analyses of programs that need no data.

Read `predicate_graph` first: components, strata and the rules that a query needs. `tidelog.check_report` puts the
analyses together for `tidelog check`:

- `fragments` (which fragments of DatalogMTL a program belongs to), `time_reach` (how far rules look back and ahead),
  `memory_bounds` (how many facts a stream reasoner holds at most), `query_names` (which predicates may be asked for),
  `rule_ranges` (the ranges of operators), `temporal_dependencies` (the rules that a temporal Datalog query needs);
- `temporal_recursion` (negation and aggregates in a cycle that goes back in time), `value_flow` and `value_growth`
  (recursion that computes values, and whether it comes to an end);
- `program_warnings` and `value_types` find what is allowed but probably a mistake, such as joins of numbers with text;
  `value_columns` describes what columns hold, and `expression_types` follows that through the expressions of rules;
- how a program is split over the buckets of a cluster, in reading order: `rule_locality` (when a rule can be evaluated
  bucket by bucket), `split_search` (the cheapest split into stages), `unit_choices` and `stage_placement` (its two
  halves), `distribution` (the plan, and its description in words), `split_rules` (rules with numbers, rewritten so that
  they split), `stage_programs` (the program that one bucket of a stage runs); `key_stages` (parts of a program that
  split without any of this, for views and threads).
"""

from tidelog.lazy_names import attach_lazy_names

__all__, __getattr__, __dir__ = attach_lazy_names(__name__)
