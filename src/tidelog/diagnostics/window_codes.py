"""TL6xx: windows of stream queries."""

from __future__ import annotations

from tidelog.diagnostics.entry import DiagnosticEntry, Example

WINDOW_CODES = (
    DiagnosticEntry(
        "TL601",
        "a rule that is not forward-propagating",
        Example(
            "command",
            "printf 'Alarm(X, T) :- Smoke(X, T+1).' > rules.tdl\ntidelog window rules.tdl --query Alarm",
            "printf 'Alarm(X, T+1) :- Smoke(X, T).' > rules.tdl\ntidelog window rules.tdl --query Alarm",
        ),
        law=(
            "a window is defined for forward-propagating rules: one time variable, in the head and in a body atom "
            "that is not negated, no time points, no body atom later than the head"
        ),
    ),
    DiagnosticEntry(
        "TL602",
        "unreadable objects, or none",
        Example(
            "command",
            "printf 'Alarm(X, T+1) :- Smoke(X, T).' > rules.tdl\ntidelog window rules.tdl --query Alarm --objects ''",
            "tidelog window rules.tdl --query Alarm --objects hall,attic",
        ),
        law="objects are one or more names or numbers, separated by commas: a,b,c",
    ),
    DiagnosticEntry(
        "TL603",
        "a window that is not a natural number",
        Example(
            "situation",
            "window(program, 'Alarm', check=-1) is called.",
            "pass check=0, 1, 2, ...",
        ),
        law="a window is a natural number: 0, 1, 2, ...",
    ),
    DiagnosticEntry(
        "TL604",
        "two queries that cannot be compared",
        Example(
            "situation",
            "containment is asked of two programs in which Smoke has one argument and two arguments.",
            "rename one of the two predicates.",
        ),
        law="both queries read the same input and have answers of the same kind",
        help="rename one of them",
    ),
    DiagnosticEntry(
        "TL605",
        "a window analysis without clingo",
        Example(
            "situation",
            "`tidelog window --objects` runs in an environment without clingo.",
            "run `pip install 'tidelog[stable]'`, or leave --objects out.",
        ),
        help="pip install 'tidelog[stable]', or leave out --objects: radius and uniform window need no clingo",
    ),
    DiagnosticEntry(
        "TL606",
        "a fact outside the objects that a window was proved for",
        Example(
            "situation",
            "a stream runs with the window of --objects hall,attic, and a fact about the cellar arrives.",
            "name all the objects of the stream, or use a window that holds for every object.",
        ),
        law=(
            "a window that is proved for some input needs such input: facts of predicates that no rule derives and, "
            "with --objects, about these objects only"
        ),
    ),
    DiagnosticEntry(
        "TL607",
        "a window that is not proved valid",
        Example(
            "situation",
            "`tidelog stream --window 1` runs rules that look back 2, and no proof says that these are not needed.",
            "use the window that `tidelog window` prints, or name all objects with --objects.",
        ),
        law="a window is valid if no answer needs facts, given or derived, that it forgets",
        help="choose the uniform window that `tidelog window` prints, or accept that answers may be missing",
        note="A warning: the command continues, unless --strict is given.",
    ),
    DiagnosticEntry(
        "TL608",
        "a containment that is undecided for all data",
        Example(
            "situation",
            "contained(q1, q2) is called without objects, and q1 is recursive.",
            "name all the objects: contained(q1, q2, ['hall', 'attic']).",
        ),
        law=(
            "without known objects, containment is decided if the first query is not recursive and no rule compares "
            "objects by order; for recursive queries it is undecidable"
        ),
        help="name all objects",
    ),
)
