"""Generate `reports.facts`: simulated traffic, in order of arrival rather than in the order in which it happened.

    python examples/traffic/generate.py > examples/traffic/reports.facts

Most reports take up to two seconds to arrive. Vehicle v4 has bad reception: its reports from seconds 30 to 45 arrive 8
seconds late.
"""

from random import Random

from tidelog.generate import traffic
from tidelog.language.fact_text import parse_fact

VEHICLES, SECONDS = 6, 75


def generate_reports() -> list[str]:
    """Return the lines of `reports.facts`: background facts first, then reports in order of arrival."""
    rng = Random(1)
    facts = [(parse_fact(line)[0], line) for line in traffic.generate_facts(VEHICLES, SECONDS, roads=3, seed=29)]
    background = [line for fact, line in facts if fact.predicate == "Feeds"]
    reports = []
    for fact, line in facts:
        if fact.predicate == "Feeds":
            continue
        begin = fact.interval.lo
        has_bad_reception = fact.args[0] == "v4" and 30 <= begin < 45 and fact.predicate != "On"
        delay = 8 if has_bad_reception else rng.choice((0, 0, 0, 1, 2))
        reports.append((begin + delay, line))
    return [*background, *(line for _, line in sorted(reports, key=lambda report: report[0]))]


if __name__ == "__main__":
    print("\n".join(generate_reports()))
