"""What a question needs: the facts that can matter for an answer, and the rules that find it among them.

A question is a set of goals (atoms with constants, or predicates as a whole) and, perhaps, a range of time. Read
`demand` first: it follows the constants of the goals through rules and facts to the atoms that can matter. This is the
idea of magic sets, with time left out: an atom that matters at some time matters at all times. `time_windows` follows
the range of time through the rules. `focused_problem` then leaves out facts that do not matter, and guards the rules
where they would derive atoms that do not. `given_columns` looks facts up by their constants, column by column.
`fact_source` answers requests for facts in the same way, one after the other, for explanations of why a fact does not
hold; `endless_recursion` says where facts may repeat for ever, which takes the whole model to know.

What is left out changes no answer. Goals and windows are closed: with an atom, they contain everything that a rule
reads to derive it, also through a negation or an aggregate. So whatever is left of the program decides the atoms inside
in the same way, and nothing inside is read off an atom outside.
"""
