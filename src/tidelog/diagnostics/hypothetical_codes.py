"""TL7xx: hypothetical answers, over facts that may still arrive."""

from __future__ import annotations

from tidelog.diagnostics.entry import DiagnosticEntry, Example

HYPOTHETICAL_CODES = (
    DiagnosticEntry(
        "TL701",
        "a resolution that does not terminate",
        Example(
            "command",
            "printf 'Hot(X, T+1) :- Hot(X, T), Temp(X, T).\\nHot(X, T) :- Fire(X, T).' > rules.tdl\n"
            "tidelog hypothesise rules.tdl --query 'Hot(X, T)' --delay 2 --input -",
            "tidelog hypothesise rules.tdl --query 'Hot(X, T)' --delay 2 --depth 5 --input -",
        ),
        law="a query is resolved into the facts that it awaits, so recursion must end: at time 0 for a query about one "
        "time, or after a few rounds that add nothing new",
    ),
    DiagnosticEntry(
        "TL702",
        "a program without hypothetical answers",
        Example(
            "command",
            "printf 'Hot(X) :- Diamondminus[0,inf) Temp(X).' > rules.dmtl\n"
            "tidelog hypothesise rules.dmtl --timeline integer --query 'Hot(X, T)' --delay 2 --input -",
            "printf 'Hot(X) :- Diamondminus[0,60] Temp(X).' > rules.dmtl\n"
            "tidelog hypothesise rules.dmtl --timeline integer --query 'Hot(X, T)' --delay 2 --input -",
        ),
        note="Arithmetic, most aggregates, ranges without an end, the rational timeline and some uses of `not` are not "
        "supported.",
    ),
    DiagnosticEntry(
        "TL703",
        "an unreadable delay",
        Example(
            "command",
            "printf 'Hot(X, T+1) :- Temp(X, T).' > rules.tdl\n"
            "tidelog hypothesise rules.tdl --query 'Hot(X, T)' --delay soon --input -",
            "tidelog hypothesise rules.tdl --query 'Hot(X, T)' --delay Temp=2 --input -",
        ),
        law="a delay is a natural number of time points: 5, Temp=5, or Temp(wt4,_)=5 for the facts that match",
    ),
    DiagnosticEntry(
        "TL704",
        "an unreadable arrival",
        Example(
            "command",
            "printf 'Hot(X, T+1) :- Temp(X, T).' > rules.tdl\n"
            "printf 'Temp(wt2,0)' > arrivals.jsonl\n"
            "tidelog hypothesise rules.tdl --query 'Hot(X, T)' --delay 2 --input arrivals.jsonl",
            'printf \'{"arrival": 0, "fact": "Temp(wt2,0)"}\' > arrivals.jsonl',
        ),
        law='an arrival is {"arrival": 0, "fact": "Temp(wt2,high,0)"}, where `arrival` is a natural number',
    ),
    DiagnosticEntry(
        "TL705",
        "a query with too many ways to an answer",
        Example(
            "situation",
            "a rule reads several facts over long ranges, and every combination is a way to derive the query.",
            "use shorter ranges, or a smaller --depth or --horizon.",
        ),
    ),
    DiagnosticEntry(
        "TL706",
        "an unreadable probability",
        Example(
            "command",
            "printf 'Hot(X, T+1) :- Temp(X, T).' > rules.tdl\n"
            "tidelog hypothesise rules.tdl --query 'Hot(X, T)' --delay 2 --probability Temp=2 --input -",
            "tidelog hypothesise rules.tdl --query 'Hot(X, T)' --delay 2 --probability Temp=0.9 --input -",
        ),
        law="a probability is a number from 0 to 1: 0.5, Temp=0.9, or Temp(wt4,_)=0.2 for the facts that match",
    ),
)
