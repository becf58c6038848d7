"""Makes `reports.facts`: generated traffic, in the order in which it reached us rather than in which it happened.

    python examples/traffic/generate.py > examples/traffic/reports.facts

Most reports take up to two seconds. Vehicle v4 has bad reception: what it says between seconds 30 and 45 comes 8
seconds late.
"""

from random import Random

from tidelog.generate import traffic
from tidelog.language.facts import parse_fact

VEHICLES, SECONDS = 6, 75


def arrivals() -> list[str]:
    rng = Random(1)
    lines = [(parse_fact(line)[0], line) for line in traffic.facts(VEHICLES, SECONDS, roads=3, seed=29)]
    background = [line for fact, line in lines if fact.predicate == "Feeds"]
    came = []
    for fact, line in lines:
        if fact.predicate == "Feeds":
            continue
        begin = fact.interval.lo
        unheard = fact.args[0] == "v4" and 30 <= begin < 45 and fact.predicate != "On"
        came.append((begin + (8 if unheard else rng.choice((0, 0, 0, 1, 2))), line))
    return [*background, *(line for _, line in sorted(came, key=lambda item: item[0]))]


if __name__ == "__main__":
    print("\n".join(arrivals()))
