"""TL3xx: reasoning, and stable models (TL321 to TL332)."""

from __future__ import annotations

from tidelog.diagnostics.entry import DiagnosticEntry, Example

REASONING_CODES = (
    DiagnosticEntry(
        "TL301",
        "negation in a cycle",
        Example(
            "dmtl",
            "Open(X) :- Door(X), not Shut(X).\nShut(X) :- Door(X), not Open(X).",
            "Open(X) :- Door(X), not Shut(X).",
        ),
        law="a program is stratified if no predicate depends on its own negation",
        help="break the cycle, or ask for its stable models with `tidelog stable`",
    ),
    DiagnosticEntry(
        "TL302",
        "an unknown predicate",
        Example(
            "command",
            "tidelog materialise rules.dmtl data.facts --query Alrm",
            "tidelog materialise rules.dmtl data.facts --query Alarm",
        ),
        law="a query names a predicate of the rules or of the data; `materialise` also takes an atom, Alarm(t1, X)",
        note="An empty answer would hide a misspelt name, so it is an error.",
    ),
    DiagnosticEntry(
        "TL303",
        "a violated constraint",
        Example(
            "command",
            "printf 'Bottom :- Smoke(X), Quiet(X).' > rules.dmtl\n"
            "printf 'Smoke(hall)@3\\nQuiet(hall)@[0,9]' > data.facts\n"
            "tidelog materialise rules.dmtl data.facts",
            "printf 'Smoke(hall)@3\\nQuiet(hall)@[0,2]' > data.facts\ntidelog materialise rules.dmtl data.facts",
        ),
        law="where the body of a rule with head Bottom holds, program and data contradict each other",
        help="correct the facts, or the constraint",
    ),
    DiagnosticEntry(
        "TL304",
        "an undecided model",
        Example(
            "situation",
            "recursive rules derive facts forever, and no repetition was proved within the bounds of the search.",
            "ask for a range of time, `--between 0,100`, or simplify the recursion.",
        ),
        law="a model is printed once its infinite parts are proved to repeat, and the search for that is bounded",
    ),
    DiagnosticEntry(
        "TL305",
        "a range of time that is empty, or infinite where it must not be",
        Example(
            "command",
            "tidelog stable rules.dmtl data.facts --between 0,inf",
            "tidelog stable rules.dmtl data.facts --between 0,9",
        ),
        help="write the earlier time first",
    ),
    DiagnosticEntry(
        "TL306",
        "something that the timeline does not have",
        Example(
            "command",
            "printf 'Alarm(X) :- Diamondminus[0,0.5] Smoke(X).' > rules.dmtl\n"
            "tidelog materialise rules.dmtl data.facts --timeline integer",
            "tidelog materialise rules.dmtl data.facts --timeline rational",
        ),
    ),
    DiagnosticEntry(
        "TL307",
        "an unreadable length of time",
        Example(
            "situation",
            "a session is created with delay='soon'.",
            "pass a number or a duration: delay=5, delay='10min'.",
        ),
        help="write a number or a duration: 5, 0.5, 10min",
    ),
    DiagnosticEntry(
        "TL308",
        "a look-ahead without a bound",
        Example(
            "command",
            "printf 'Alarm(X) :- Diamondplus[0,inf) Smoke(X).' > rules.dmtl\n"
            "tidelog stream rules.dmtl --query Alarm --input data.facts",
            "printf 'Alarm(X) :- Diamondplus[0,60] Smoke(X).' > rules.dmtl\n"
            "tidelog stream rules.dmtl --query Alarm --input data.facts",
        ),
        law="on a stream, rules may look ahead by bounded ranges that do not add up along a recursion",
        help="use operators of the past in recursive rules, or reason over all data with `tidelog materialise`",
    ),
    DiagnosticEntry(
        "TL309",
        "an unsupported memory mode",
        Example(
            "command",
            "printf 'Alarm(X) :- Diamondminus[5,5] Smoke(X).' > rules.dmtl\n"
            "tidelog stream rules.dmtl --query Alarm --input data.facts --memory bounded",
            "tidelog stream rules.dmtl --query Alarm --input data.facts --memory generic",
        ),
    ),
    DiagnosticEntry(
        "TL310",
        "a question about a fact without a time",
        Example(
            "command",
            "tidelog entails rules.dmtl data.facts 'Alarm(hall)' --strict",
            "tidelog entails rules.dmtl data.facts 'Alarm(hall)@3' --strict",
        ),
        law="a question about a fact says when the fact should hold",
        note="A warning: in data, such a fact holds at all times; in a question, the time may have been forgotten.",
    ),
    DiagnosticEntry(
        "TL311",
        "a recursion through time without a beginning",
        Example(
            "situation",
            "Alert(X) :- Bad(X), not Diamondminus[1,3] Alert(X). over the fact Bad(a), which has always held",
            "give Bad(a) a first time: Bad(a)@[0,inf)",
        ),
        law="a recursion through negation or an aggregate is computed forward in time, from a time before which it is "
        "empty",
        help="add a condition that begins at some time; without aggregates, `tidelog stable` decides the rules over "
        "the integers",
    ),
    DiagnosticEntry(
        "TL312",
        "a sum that does not fit into 63 bits",
        Example(
            "situation",
            "sum{ A : Payment(Id, A) } adds two payments of 4000000000000000000.",
            "measure in a larger unit: thousands instead of single units.",
        ),
        law="sums and averages are exact, on a common denominator, in 63 bits; they are computed for every group that "
        "the atoms of the rule bind, whatever its other conditions",
        help="use a larger unit, or round the values first: floor(A * 100) / 100 has the denominator 100",
    ),
    DiagnosticEntry(
        "TL313",
        "an aggregate over a stream that cannot look back",
        Example(
            "situation",
            "E(X) :- A(X), count[0,inf){ B(Y), Y < X } > 3 runs over a stream, and A(5) arrives after some B.",
            "give the window an end, or give the facts of A as background.",
        ),
        law="values that braces only compare with, or deny with, are known before the first fact unless the window has "
        "an end and no `not` in the braces reads them",
        help="bind the variable by an atom in the braces, give the window an end, or give these values as background",
    ),
    DiagnosticEntry(
        "TL314",
        "a duration over a stream with corrections that is compared with a finer computed value",
        Example(
            "situation",
            "E(X) :- Limit(X, M), V = M / 3, duration[0,1h]{ Hot(X) } >= V takes corrections, and gets Limit(a,1).",
            "compute V as floor(M / 3), or give a background fact with the number 1/3.",
        ),
        law="while a stream can be corrected, times are multiples of one unit, which comes from the times and numbers "
        "that have arrived; so they are for a calendar",
        help="round the value with floor or ceil, or give a number with that denominator in a background fact",
    ),
    DiagnosticEntry(
        "TL315",
        "a calendar that cannot be generated",
        Example(
            "command",
            "printf 'Rest(X) :- Stopped(X), calendar:weekday(\"UTC\", sunday).' > rules.dmtl\n"
            "printf 'Stopped(press)@7' > data.facts\n"
            "tidelog materialise rules.dmtl data.facts",
            "printf 'Stopped(press)@2026-11-22' > data.facts\ntidelog materialise rules.dmtl data.facts",
        ),
        law=(
            "calendar predicates hold at dates of the years 1900 to 2199, and are generated for as long as the data "
            "and the range asked for reach"
        ),
    ),
    DiagnosticEntry(
        "TL316",
        "a model that was cut because a calendar has no end",
        Example(
            "situation",
            'a rule `Weekend :- calendar:weekday("UTC", sunday).` needs no data, so Weekend holds again and again '
            "for ever.",
            "say which range of time you want, `--between 2026-01-01,2026-12-31`, or ask for other predicates with "
            "`--query`.",
        ),
        law="what follows from a calendar alone is given for the range of the data, from its first to its last time",
        help="ask for another range with --between LO,HI, or for the predicates that you need with --query",
    ),
    DiagnosticEntry(
        "TL317",
        "a calendar predicate where none is supported",
        Example(
            "command",
            "printf 'Rest(X) :- Stopped(X), calendar:weekday(\"UTC\", sunday).' > rules.dmtl\n"
            "tidelog stable rules.dmtl data.facts",
            "tidelog materialise rules.dmtl data.facts",
        ),
        law="calendars are generated in batch reasoning, streams, Spark jobs, proofs, reports and rule tests",
        help="write the days or months that matter as facts of another predicate",
    ),
    DiagnosticEntry(
        "TL321",
        "stable models over the rationals",
        Example(
            "command",
            "tidelog stable rules.dmtl data.facts --timeline rational",
            "tidelog stable rules.dmtl data.facts",
        ),
        law=(
            "over the rationals it is undecidable whether a program with negation has a stable model, "
            "even if its rules only look back"
        ),
        help="use the integers: leave --timeline out, and choose a unit of time that makes all times integers",
    ),
    DiagnosticEntry(
        "TL322",
        "a fact without a beginning, for stable models of a stream",
        Example(
            "command",
            "printf 'Smoke(hall)@(-inf,3]' > past.facts\ntidelog stable rules.dmtl past.facts --input data.facts",
            "printf 'Smoke(hall)@[0,3]' > past.facts\ntidelog stable rules.dmtl past.facts --input data.facts",
        ),
    ),
    DiagnosticEntry(
        "TL323",
        "undecided stable models",
        Example(
            "situation",
            "ranges are so long, or so many atoms depend on each other, that the search exceeds its bounds.",
            "measure time in a larger unit, or ask about fewer constants that depend on each other.",
        ),
        law="the search for stable models is bounded",
        help=(
            "choose a larger unit of time, use operators with shorter ranges, "
            "or ask about fewer constants that depend on each other"
        ),
    ),
    DiagnosticEntry(
        "TL324",
        "stable models without clingo",
        Example(
            "situation",
            "`tidelog stable` runs in an environment without clingo.",
            "run `pip install 'tidelog[stable]'`.",
        ),
        help="pip install 'tidelog[stable]'",
    ),
    DiagnosticEntry(
        "TL325",
        "a time that is not an integer",
        Example(
            "command",
            "printf 'Smoke(hall)@0.5' > data.facts\ntidelog stable rules.dmtl data.facts",
            "printf 'Smoke(hall)@5' > data.facts\ntidelog stable rules.dmtl data.facts",
        ),
        law="over the integer timeline, all times and ranges are integers",
        help="choose a smaller unit of time",
    ),
    DiagnosticEntry(
        "TL326",
        "a stream that leaves no stable model",
        Example(
            "situation",
            "a fact arrives that contradicts every model that the facts before it allowed.",
            "correct the facts, or the rules that they violate.",
        ),
        law="a stable model satisfies every rule and every constraint at all times",
        help="correct the facts, or the rules",
    ),
    DiagnosticEntry(
        "TL327",
        "a program whose stable models cannot follow a stream",
        Example(
            "situation",
            "a session of stable models is created for rules that look ahead: Alarm(X) :- Diamondplus[0,5] Smoke(X).",
            "use past operators, or ask for the stable models of a file.",
        ),
        law="along a stream, stable models are those of forward-propagating programs",
        help="use past operators only, or ask for the stable models of a file",
    ),
    DiagnosticEntry(
        "TL328",
        "a fact that is too late for the stable models of a stream",
        Example(
            "situation",
            "a session has advanced to time 9, and a fact that holds from 3 on is pushed.",
            "sort the stream by time.",
        ),
        law="the facts of a stream arrive in the order in which they begin to hold",
        help="sort the stream by time; facts that always hold are background",
    ),
    DiagnosticEntry(
        "TL329",
        "numbers in a program for stable models",
        Example(
            "command",
            "printf 'Load(N) :- N = count{ Smoke(X) }.' > rules.dmtl\ntidelog stable rules.dmtl data.facts",
            "printf 'Load(N) :- N = count{ Smoke(X) }.' > rules.dmtl\ntidelog materialise rules.dmtl data.facts",
        ),
        law="stable models are computed for rules without arithmetic, aggregates and tests of text",
        help="compute values with `tidelog materialise` first and give its output as data, or leave these rules out",
    ),
    DiagnosticEntry(
        "TL330",
        "unreadable weights for stable models",
        Example(
            "situation",
            "`tidelog stable --optimise Late=soon`: `soon` is no number.",
            "write the weight as a number, `Late=5`, or name the argument that has it, `Fare(_,W)=W`.",
        ),
        law="weights are written P, P=W or P(a,_,W)=W, with a predicate of the rules or of the data; W is a number, or "
        "the name of an argument that is a number in all facts",
    ),
    DiagnosticEntry(
        "TL331",
        "a job over stable models that has none",
        Example(
            "situation",
            '`tidelog.spark.reason(..., stable="brave")` over rules and facts that contradict each other.',
            "correct the facts or the rules that it names, or leave them out: `tidelog stable` on them shows the same. "
            "A stream also says from when on there is none.",
        ),
        law="a stable model of a program is one of each of its parts, so one part without a model leaves none",
        help="correct the facts, or the rules",
    ),
    DiagnosticEntry(
        "TL332",
        "a range with too many facts of stable models",
        Example(
            "situation",
            "something repeats in a gap of a billion between two facts, and the range of the data is asked for.",
            "ask for a part of it: `tidelog stable rules.dmtl data.facts --between 0,100`.",
        ),
        law="what repeats is listed one by one in the range that is asked for, for at most 10,000,000 time points",
        help="ask for a shorter range, with --between LO,HI (in Python between=)",
    ),
)
