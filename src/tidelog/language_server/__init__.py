"""The language server of `tidelog lsp`: what editors show about rules, their tests and their schema.

Read `project` first: it knows the files, their texts as the editor has them, and which files belong together.
`occurrences` finds the names of predicates in a text, `diagnosis` everything that is wrong with it. `rename`, `hover`,
`completion` and `lenses` answer the editor's questions, and `rule_runs` runs tests and explains facts in a process of
its own. None of these knows the protocol: `server` does, with pygls.
"""
