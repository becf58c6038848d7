"""The rule language: text to syntax trees and back, and the checks that every program must pass.

Read `syntax` first: the trees are frozen data, and every other module is about them. `program` reads a whole rule file
and is what the rest of tidelog uses. Text passes through, in order:

- `table_parser` (runs the tables that `grammar_tables` makes of the grammars `grammar.lark` and `tdl.lark`),
  `tokenizer` (tokens, cut into rules) and `expression_tokens` (which of them are arithmetic),
- `parser` (DatalogMTL) and `groups` (the rules that groups and alternatives stand for)
  with `left_operands` (what binds variables under Since and Until), or `tdl_parser`,
  `tdl_time_arguments` and `tdl_translation` (temporal Datalog, translated),
- `rule_checks` (all checks), with `bindings` (which variables are bound where), `validation` (heads, arities),
  `aggregate_checks`, `calendar_predicates` and `patterns` (the syntax of RE2); messages for typical mistakes come from
  `syntax_errors`, `expression_errors` and, for words of other languages, `foreign_words`,
- `desugar` (rules with numbers in the core form of `core_rules`), with `conjunction_steps` and `substitution`;
  `time_arguments` finds the arguments that are times.

`queries` reads what is asked for. `printer` and `formatter` print rules, `fact_text` and `time_text` read and print
facts and times, `time_like` accepts times of other Python types and `value_like` facts with them, and `syntax_json` and
`program_json` store rules in saved states. `pygments_lexers` highlights them. `toml_tables` and `toml_places` read
pipeline and schema files.
`rule_heads`, `hidden_predicates`, `comparisons`, `wording` and `file_errors` are small helpers that all packages share.
"""
