"""TL0xx: the syntax of rules, and files that cannot be read. TL1xx: what rules mean."""

from __future__ import annotations

from tidelog.diagnostics.entry import DiagnosticEntry, Example

_OPERATORS_LAW = (
    "the operators are Always, Boxminus, Boxplus, Diamondminus, Diamondplus, Since, Sometime, Until, "
    "each with a range: Diamondminus[0,5] P(X)"
)
_TIME_ARGUMENT_LAW = "the time of a temporal predicate is its last argument: T, T+k, T-k or a natural number"

RULE_CODES = (
    DiagnosticEntry(
        "TL001",
        "unexpected input in a rule",
        Example("dmtl", "Alarm(X) :- Smoke(X) Hot(X).", "Alarm(X) :- Smoke(X), Hot(X)."),
        note="The message says what was found and what would have been accepted in its place.",
    ),
    DiagnosticEntry(
        "TL002",
        "a character that the language does not have",
        Example("dmtl", "Alarm(X) :- Smoke(X) & Hot(X).", "Alarm(X) :- Smoke(X), Hot(X)."),
    ),
    DiagnosticEntry(
        "TL003",
        "an unclosed quote",
        Example("dmtl", 'Alarm("hall) :- Smoke(hall).', 'Alarm("hall") :- Smoke(hall).'),
        law='a string ends on its line; inside it, \\" is a quote and \\n a line break',
    ),
    DiagnosticEntry(
        "TL004",
        "an unknown operator",
        Example("dmtl", "Alarm(X) :- Diamonminus[0,5] Smoke(X).", "Alarm(X) :- Diamondminus[0,5] Smoke(X)."),
        law=_OPERATORS_LAW,
    ),
    DiagnosticEntry(
        "TL005",
        "an operator without a range",
        Example("dmtl", "Alarm(X) :- Diamondminus Smoke(X).", "Alarm(X) :- Diamondminus[0,5] Smoke(X)."),
        law=_OPERATORS_LAW,
    ),
    DiagnosticEntry(
        "TL006",
        "Since or Until in a chain without brackets",
        Example(
            "dmtl",
            "A(X) :- B(X) Since[0,1] C(X) Since[0,2] D(X).",
            "A(X) :- (B(X) Since[0,1] C(X)) Since[0,2] D(X).",
        ),
        law="Since and Until do not chain; brackets say which operands belong together",
    ),
    DiagnosticEntry(
        "TL007",
        "an unreadable number",
        Example("dmtl", "A(X) :- Diamondminus[0,5sec] B(X).", "A(X) :- Diamondminus[0,5s] B(X)."),
        law="numbers are written 3, 0.5 or 1/3; durations have one of the units ms, s, min, h, d, w: 10min",
    ),
    DiagnosticEntry(
        "TL008",
        "too many operators in one literal",
        Example(
            "situation",
            "a generated rule nests more than 200 operators inside each other.",
            "define the inner formula by a rule of its own, and use its predicate.",
        ),
        help="define the inner formula by a rule of its own",
    ),
    DiagnosticEntry(
        "TL009",
        "an unknown directive",
        Example("tdl", "#temporl P/2.\nP(X, T) :- Q(X, T).", "#temporal P/2.\nP(X, T) :- Q(X, T)."),
        law="the directives are `#temporal P/3.` and `#rigid Succ/2.`",
    ),
    DiagnosticEntry(
        "TL010",
        "an unreadable file",
        Example("command", "tidelog check rulse.dmtl", "tidelog check rules.dmtl"),
        note="The file does not exist, may not be read, is a directory, is damaged, or is not UTF-8 text.",
    ),
    DiagnosticEntry(
        "TL101",
        "an unsafe variable",
        Example("dmtl", "Alarm(X, Y) :- Smoke(X).", "Alarm(X, Y) :- Smoke(X), Floor(X, Y)."),
        law=(
            "each variable of the head, of a negated literal and of a comparison occurs in a positive body atom, "
            "elsewhere than in a left operand of Since or Until, or is computed from such variables: V = X + 1"
        ),
        note="A left operand binds its variables if the range begins after 0, over the integers after 1.",
    ),
    DiagnosticEntry(
        "TL102",
        "a predicate with two arities",
        Example("dmtl", "Alarm(X) :- Smoke(X), not Smoke(X, low).", "Alarm(X) :- Smoke(X, high)."),
        law="a predicate has the same number of arguments everywhere",
    ),
    DiagnosticEntry(
        "TL103",
        "an operator that is not allowed in a head",
        Example("dmtl", "Diamondplus[0,5] Alarm(X) :- Smoke(X).", "Boxplus[0,5] Alarm(X) :- Smoke(X)."),
        law="a head may carry only Boxminus and Boxplus: what is true at some unknown time cannot be derived",
    ),
    DiagnosticEntry(
        "TL104",
        "a negative range",
        Example("dmtl", "Alarm(X) :- Diamondminus[-5,0] Smoke(X).", "Alarm(X) :- Diamondminus[0,5] Smoke(X)."),
        law="a range counts away from now, [a,b] with 0 <= a <= b; the operator says in which direction",
    ),
    DiagnosticEntry(
        "TL105",
        "an empty range",
        Example("dmtl", "Alarm(X) :- Diamondminus[5,0] Smoke(X).", "Alarm(X) :- Diamondminus[0,5] Smoke(X)."),
        law="a range holds at least one number, and its first end is not after its second",
    ),
    DiagnosticEntry(
        "TL106",
        "a range that spans past and future",
        Example(
            "dmtl",
            "Alarm(X) :- Always[-5,5] Smoke(X).",
            "Alarm(X) :- Boxminus[0,5] Smoke(X), Boxplus[0,5] Smoke(X).",
        ),
        law="the range of Sometime, Always or Until lies in the past (up to 0) or in the future (from 0), not in both",
    ),
    DiagnosticEntry(
        "TL107",
        "a predicate used both with and without a time",
        Example("tdl", "Malf(X, T+1) :- Shdn(X, T).\nMalf(a, b).", "Malf(X, T+1) :- Shdn(X, T).\nMalf(a, 3)."),
        law="a predicate either takes a time as its last argument everywhere, or nowhere",
    ),
    DiagnosticEntry(
        "TL108",
        "a time used as an object",
        Example(
            "tdl", "Malf(X, T+1) :- Shdn(X, T), T < 5.", "Malf(X, T+1) :- Shdn(X, T), Early(T).\n#temporal Early/1."
        ),
        law=_TIME_ARGUMENT_LAW,
    ),
    DiagnosticEntry(
        "TL109",
        "a negated literal with a time variable of its own",
        Example(
            "tdl",
            "Malf(X, T+1) :- Shdn(X, T), not Fixed(X, S+1).",
            "Malf(X, T+1) :- Shdn(X, T), not Ever(X).\nEver(X) :- Fixed(X, S+1).",
        ),
        law="the time variable of a negated literal is that of the head or occurs in a positive body atom",
        help="give it the time of another literal, or name `at some time` with a rule: Ever(X) :- P(X, T).",
    ),
    DiagnosticEntry(
        "TL110",
        "a time argument that is not a time",
        Example("tdl", "Malf(X, T+0.5) :- Shdn(X, T).", "Malf(X, T+1) :- Shdn(X, T)."),
        law=_TIME_ARGUMENT_LAW,
    ),
    DiagnosticEntry(
        "TL111",
        "a variable that occurs only once",
        Example(
            "situation",
            "the rule Done(X) :- Paid(X, Card). holds for every way of paying, though the constant card was meant.",
            "write Done(X) :- Paid(X, card)., or Done(X) :- Paid(X, _Card). if any value will do.",
        ),
        law="a variable that occurs once in a rule stands for any value; names that start upper-case are variables",
        note="A warning: the command continues, unless --strict is given.",
    ),
    DiagnosticEntry(
        "TL112",
        "a predicate with neither rules nor facts",
        Example(
            "situation",
            "a rule reads Payed, the facts are called Paid, and so the rule never fires.",
            "use one name in rules and data.",
        ),
        law="a literal whose predicate has neither rules nor facts never holds, and its negation always does",
        note=(
            "A warning: the command continues, unless --strict is given. Pipelines and rule tests refuse it by "
            "default. A stream is checked at its end, since facts may come late."
        ),
    ),
    DiagnosticEntry(
        "TL113",
        "facts that no rule reads",
        Example(
            "situation",
            "the file Shiped.csv gives facts of Shiped, and the rules are about Shipped.",
            "rename the file, or name the predicate: Shipped=Shiped.csv.",
        ),
        law="facts are used if their predicate occurs in a rule or is asked for",
        help="correct the name, or leave these facts out",
        note="A warning: the command continues, unless --strict is given.",
    ),
    DiagnosticEntry(
        "TL114",
        "facts of a rigid predicate that end with a number",
        Example(
            "situation",
            "no rule shows that Wet is temporal, so that Wet(a, 3) says nothing about time 3.",
            "write #temporal Wet/2. if 3 is a time, and #rigid Wet/2. if not.",
        ),
        law="a predicate is temporal if its last argument is a T+k, or shares a variable with a time",
        note="A warning: the command continues, unless --strict is given.",
    ),
    DiagnosticEntry(
        "TL115",
        "temporal Datalog in which nothing is temporal",
        Example(
            "tdl",
            "Alarm(X, T) :- Hot(X, T), Wet(X, T).",
            "#temporal Alarm/2.\nAlarm(X, T) :- Hot(X, T), Wet(X, T).",
        ),
        law="a predicate is temporal if its last argument is a T+k, or shares a variable with a time",
    ),
    DiagnosticEntry(
        "TL116",
        "an unknown function, or one with the wrong number of arguments",
        Example("dmtl", "Near(X) :- Distance(X, D), sqrt(D) < 3.", "Near(X) :- Distance(X, D), D < 9."),
        law=(
            "the functions are abs, ceil, floor, length, lower, upper with one argument, and max, min with two; "
            "the tests of text are contains, ends_with, matches, starts_with"
        ),
    ),
    DiagnosticEntry(
        "TL117",
        "an expression inside an atom of a body",
        Example("dmtl", "Next(X) :- Step(X), not Step(X + 1).", "Next(X) :- Step(X), Y = X + 1, not Step(Y)."),
        law="the arguments of body atoms are variables and constants; only a head may have expressions as arguments",
    ),
    DiagnosticEntry(
        "TL118",
        "a malformed aggregate",
        Example("dmtl", "Total(C, S) :- S = sum{ Open(C, A) }.", "Total(C, S) :- S = sum{ A : Open(C, A) }."),
        law=(
            "count{ body }, sum{ V : body }, min, max and avg alike, each also over a range, count[0,1h]{ body }; "
            "last[0,1h]{ V : body } and first alike; duration[0,1h]{ body } and start{ body }"
        ),
    ),
    DiagnosticEntry(
        "TL119",
        "a recursion that creates values without end",
        Example("dmtl", "Level(N) :- Level(M), N = M + 1.", "Level(N) :- Level(M), N = M + 1, N <= 10."),
        law=(
            "a value that is computed in a recursion is bounded in the same rule, by a comparison with a constant on "
            "each side towards which it may grow"
        ),
    ),
    DiagnosticEntry(
        "TL120",
        "a pattern that is not RE2",
        Example("dmtl", 'Odd(X) :- Name(X), matches(X, "a(?!b).*").', 'Odd(X) :- Name(X), matches(X, "a[^b].*|a").'),
        law="patterns have the syntax of RE2, without backreferences and lookaround, and match the whole text",
        help="see https://github.com/google/re2/wiki/Syntax; inside quotes, a backslash is written twice",
    ),
    DiagnosticEntry(
        "TL121",
        "numbers in temporal Datalog",
        Example(
            "tdl",
            "Load(N, T) :- N = count{ Job(X, T) }.",
            "Busy(T+1) :- Job(X, T), Job(Y, T), X != Y.",
        ),
        law="temporal Datalog (.tdl) compares values, but has no arithmetic and no aggregates",
        help="write these rules as DatalogMTL, in a .dmtl file",
    ),
    DiagnosticEntry(
        "TL122",
        "a choice or a condition in a head",
        Example("dmtl", "(Up(X) or Down(X)) :- Node(X).", "Up(X), Known(X) :- Node(X)."),
        law="all atoms of a head follow from the body: a head has no `or`, no `not` and no comparisons",
    ),
    DiagnosticEntry(
        "TL123",
        "too many combinations of alternatives",
        Example(
            "dmtl",
            "P :- A or B, A or C, A or D, A or E, B or C, B or D, B or E.",
            "P :- AB, A or C, A or D, A or E, B or C, B or D.\nAB :- A or B, B or E.",
        ),
        law="a rule with alternatives stands for one rule per combination of them, at most 64",
        help="define some of the alternatives by rules of their own, and use their predicates here",
    ),
    DiagnosticEntry(
        "TL124",
        "a calendar predicate without a known unit, zone or name",
        Example(
            "dmtl",
            "Rest(X) :- Stopped(X), calendar:weekday(berlin, sunday).",
            'Rest(X) :- Stopped(X), calendar:weekday("Europe/Berlin", sunday).',
        ),
        law=(
            "tidelog generates calendar:year, calendar:quarter, calendar:month, calendar:month_end, calendar:week, "
            "calendar:day, calendar:weekday and calendar:hour, each with a time zone that the rule names and the year, "
            "month, day or hour"
        ),
    ),
    DiagnosticEntry(
        "TL125",
        "a constant that is in no fact, and may be a variable or misspelt",
        Example(
            "situation",
            "a rule says `Hot(t) :- High(t).`, and no fact mentions a constant t.",
            "Hot(T) :- High(T).",
        ),
        law="names that start upper-case are variables, and others are constants",
        note="A warning. It is given for names that several atoms of a rule share, for constants in equations such as "
        "`T = turbine1`, and for arguments that are spelt nearly like a value of the data.",
    ),
    DiagnosticEntry(
        "TL126",
        "a pattern that loses a backslash",
        Example(
            "situation",
            r'a rule says `Code(X) :- Name(X), matches(X, "\d+").`, with one backslash.',
            r'Code(X) :- Name(X), matches(X, "\\d+").',
        ),
        law=r"inside quotes, \n, \r and \t are control characters, and \ before any other character is that character",
        note="A warning.",
    ),
    DiagnosticEntry(
        "TL127",
        "rules that are no program",
        Example(
            "situation",
            'Python code calls tl.materialise("Hot(X) :- High(X).", data): the rules are text.',
            'tl.materialise(tl.Program.parse("Hot(X) :- High(X)."), data)',
        ),
        law="rules come first, as a program, and data after them",
        help="read text with tl.Program.parse(text), and a file with tl.Program.load(path)",
    ),
)
