"""Look for programs on which the engine is wrong: `make fuzz`.

    python tests/support/fuzz.py --seconds 600 --seed 7
    python tests/support/fuzz.py --seconds 600 --streaming
    python tests/support/fuzz.py --seconds 600 --numbers
    python tests/support/fuzz.py --seconds 600 --numbers --streaming
    python tests/support/fuzz.py --seconds 600 --view
    python tests/support/fuzz.py --seconds 600 --corrections
    python tests/support/fuzz.py --seconds 600 --goals

With `--streaming`, programs run over streams that are fed in all ways, and are compared with batch reasoning. With
`--corrections`, streams have late facts and deletions, and are compared with runs from scratch; half of them fall apart
by keys. With `--numbers`, programs have arithmetic and aggregates, and both kinds of runs are compared with the oracle
for them. With `--view`, facts are inserted and deleted, with and without numbers, and after each update the view is
compared with what is computed from scratch. With `--goals`, questions about single atoms and ranges of time are
compared with an evaluation of everything. The smallest failing program is printed as a file for `tests/behaviour/`,
with exit code 1.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import random
import re
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from types import FrameType

sys.path.insert(0, str(Path(__file__).parents[1] / "property"))

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky

import tidelog as tl
from corrected_streams import describe_history, examine_corrections
from examine import examine, examine_restrictions, format_as_behaviour
from goals_random import examine_goals
from keyed_corrections import describe_keyed_history, examine_keyed_corrections
from keyed_programs import keyed_cases
from numeric_examine import format_numeric_case, judge_batch, judge_stream
from numeric_random import Numbers, numeric_case, shrink_case
from strategies import Case, Features, cases
from streams import Plan, choose_plan, plans
from streams_random import describe, examine_stream
from test_batch import PARTS
from test_corrections import PARTS as CORRECTED_PARTS
from test_numbers import PARTS as NUMERIC_PARTS
from test_numbers import stream_features
from test_streaming import PARTS as STREAMING_PARTS
from views_random import History, choose_history, examine_history

#: Programs of one part of the language that are tried before the next part has its turn.
PROGRAMS_PER_ROUND = 50
#: Seconds of CPU time after which a program counts as hanging; the oracle takes some of them.
TIMEOUT_SECONDS = 60
#: Seconds for which a failing program is made smaller.
SHRINK_SECONDS = 60.0
#: Updates of a view in one history.
UPDATES = 5
#: How Hypothesis tries programs.
ROUND = settings(
    max_examples=PROGRAMS_PER_ROUND,
    database=None,
    deadline=None,
    derandomize=False,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
    verbosity=Verbosity.quiet,
    report_multiple_bugs=False,
)
#: Begins the report of an exception.
UNEXPECTED = "unexpected "


class WrongError(Exception):
    """A case on which the engine is wrong."""


def hunt(part: Features, start: int, deadline: float, *, streaming: bool) -> str | None:
    """Run one round; return the smallest failing case as text, or None."""
    smallest = ""
    enough = deadline

    @seed(start)
    @ROUND
    @given(cases(part), st.data())
    def search(case: Case, data: st.DataObject) -> None:
        nonlocal smallest, enough
        if time.monotonic() > enough:
            return
        plan = data.draw(plans(("A", "B", "C"), integer=part.integer)) if streaming else None
        signal.setitimer(signal.ITIMER_PROF, TIMEOUT_SECONDS)
        try:
            if plan:
                found = next(examine_stream(tl.Reasoner, case, plan), None)
            else:
                found = next(examine(case), None) or next(examine_restrictions(case, -2, 9), None)
        except Exception as error:  # every exception is a finding
            found = f"{type(error).__name__}: {error}"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        if found:
            text = describe(found, case, plan) if plan else format_as_behaviour(found.splitlines()[0], case)
            if not smallest:
                enough = time.monotonic() + SHRINK_SECONDS
            if not smallest or len(text) < len(smallest):
                smallest = text
            raise WrongError(found)

    # A search that is stopped while it shrinks looks flaky.
    with contextlib.suppress(WrongError, Flaky):
        search()
    return smallest or None


def hunt_views(part: Features, start: int, deadline: float, seen: Counter[str]) -> str | None:
    """Run one round of views; return the smallest failing history as text, or None."""
    if isinstance(part, Numbers):
        for number in range(start * PROGRAMS_PER_ROUND, (start + 1) * PROGRAMS_PER_ROUND):
            if time.monotonic() > deadline:
                return None
            history = choose_history(numeric_case(number, replace(part, keyed=number % 2 == 0)), number, UPDATES)
            found = find_view_complaint(history, seen)
            if found:
                return f"{history}\n{found}"
        return None
    smallest, enough = "", deadline

    @seed(start)
    @ROUND
    @given(keyed_cases(part) if start % 2 else cases(part), st.integers(0, 2**32))
    def search(case: Case, number: int) -> None:
        nonlocal smallest, enough
        if time.monotonic() > enough:
            return
        history = choose_history(case, number, UPDATES)
        found = find_view_complaint(history, seen)
        if found:
            text = f"{history}\n{found}"
            if not smallest:
                enough = time.monotonic() + SHRINK_SECONDS
            if not smallest or len(text) < len(smallest):
                smallest = text
            raise WrongError(found)

    with contextlib.suppress(WrongError, Flaky):
        search()
    return smallest or None


def find_first_complaint(complaints: Iterator[str]) -> str:
    """Return the first complaint, or an empty text. Exceptions and too long a search are complaints, too."""
    signal.setitimer(signal.ITIMER_PROF, TIMEOUT_SECONDS)
    try:
        return next(complaints, "")
    except Exception as error:  # every exception is a finding
        return f"{UNEXPECTED}{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def find_view_complaint(history: History, seen: Counter[str]) -> str:
    """Return what is wrong with a view that lives through a history, or an empty text."""
    return find_first_complaint(examine_history(history, seen))


def hunt_goals(part: Features, start: int, deadline: float, seen: Counter[str]) -> str | None:
    """Run one round of questions; return the smallest program with a wrong answer as text, or None."""
    if isinstance(part, Numbers):
        for number in range(start * PROGRAMS_PER_ROUND, (start + 1) * PROGRAMS_PER_ROUND):
            if time.monotonic() > deadline:
                return None
            case = numeric_case(number, replace(part, keyed=number % 2 == 0))
            if found := find_goal_complaint(case, number, seen):
                return format_numeric_case(f"{found}, number {number}", case)
        return None
    smallest = ""

    @seed(start)
    @settings(ROUND, phases=[Phase.generate])
    @given(keyed_cases(part) if start % 2 else cases(part), st.integers(0, 2**32))
    def search(case: Case, number: int) -> None:
        nonlocal smallest
        if time.monotonic() > deadline:
            return
        if found := find_goal_complaint(case, number, seen):
            text = format_as_behaviour(f"{found.splitlines()[0]}, number {number}", case)
            smallest = text if not smallest or len(text) < len(smallest) else smallest

    search()
    return smallest or None


def find_goal_complaint(case: Case, number: int, seen: Counter[str]) -> str:
    """Return what is wrong with the answers to some questions, or an empty text."""
    return find_first_complaint(examine_goals(case, number, seen))


def hunt_corrections(part: Features, start: int, deadline: float) -> str | None:
    """Run one round of streams with corrections; return the smallest failing case as text, or None."""
    smallest = ""

    @seed(start)
    @settings(
        max_examples=PROGRAMS_PER_ROUND,
        database=None,
        deadline=None,
        derandomize=False,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
    )
    @given(cases(part), st.integers(0, 10**6))
    def search(case: Case, number: int) -> None:
        nonlocal smallest
        if time.monotonic() > deadline:
            return
        signal.setitimer(signal.ITIMER_PROF, TIMEOUT_SECONDS)
        try:
            found = next(examine_corrections(case, number), None)
        except Exception as error:  # every exception is a finding
            found = f"{type(error).__name__}: {error}"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        if found:
            text = describe_history(found, case, number)
            smallest = text if not smallest or len(text) < len(smallest) else smallest

    search()
    return smallest or None


def hunt_keyed_corrections(start: int, deadline: float) -> str | None:
    """Run one round of streams whose keys are corrected apart; return the first failing case as text, or None."""
    for number in range(start * PROGRAMS_PER_ROUND, (start + 1) * PROGRAMS_PER_ROUND):
        if time.monotonic() > deadline:
            return None
        numeric = number % 2 == 1
        signal.setitimer(signal.ITIMER_PROF, TIMEOUT_SECONDS)
        try:
            found = examine_keyed_corrections(number, numeric=numeric)
        except Exception as error:  # every exception is a finding
            found = f"{type(error).__name__}: {error}"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        if found:
            return describe_keyed_history(found, number, numeric=numeric)
    return None


def hunt_numbers(part: Numbers, start: int, deadline: float, *, streaming: bool) -> str | None:
    """Run one round of programs with numbers; return the smallest failing case as text, or None."""
    for number in range(start * PROGRAMS_PER_ROUND, (start + 1) * PROGRAMS_PER_ROUND):
        case, plan = numeric_case(number, part), None
        if streaming:
            plan = choose_plan(random.Random(number).choice, ("A", "B", "C"), integer=part.integer)
        if time.monotonic() > deadline:
            return None
        if find_numeric_complaint(case, plan):
            return describe_smallest(case, plan)
    return None


def describe_smallest(case: Case, plan: Plan | None) -> str:
    """Make a failing program with numbers smaller, and return it as text."""
    enough = time.monotonic() + SHRINK_SECONDS
    whole = case
    case = shrink_case(case, lambda small: time.monotonic() < enough and fails_alike(whole, small, plan))
    found = find_numeric_complaint(case, plan)
    return describe(found, case, plan) if plan else format_numeric_case(found.splitlines()[0], case)


def fails_alike(case: Case, smaller: Case, plan: Plan | None) -> bool:
    """Return whether a smaller case fails too, with the same exception if it is one: it may be unsafe."""
    found = find_numeric_complaint(smaller, plan)
    return bool(found) and name_exception(found) == name_exception(find_numeric_complaint(case, plan))


def name_exception(found: str) -> str:
    """Return the type of the exception that a complaint reports, and its code; an empty text for other complaints."""
    named = re.match(rf"{UNEXPECTED}(\w+)(?:.*?(\[TL\d+\]))?", found, re.DOTALL)
    return f"{named[1]}{named[2]}" if named else ""


def find_numeric_complaint(case: Case, plan: Plan | None) -> str:
    """Return what is wrong with the answers to a program with numbers, or an empty text."""
    signal.setitimer(signal.ITIMER_PROF, TIMEOUT_SECONDS)
    try:
        outcome = judge_stream(tl.Reasoner, case, plan) if plan else judge_batch(case)
    except TimeoutError as error:
        # Programs that take the oracle too long cannot be judged.
        hangs = any("tidelog" in Path(frame.filename).parts for frame in traceback.extract_tb(error.__traceback__))
        return f"{UNEXPECTED}{type(error).__name__}: {error}" if hangs else ""
    except Exception as error:  # every other exception is a finding
        return f"{UNEXPECTED}{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return outcome.complaint or ""


def give_up(_signal: int, _frame: FrameType | None) -> None:
    raise TimeoutError(f"no answer within {TIMEOUT_SECONDS} seconds")


def main() -> int:
    parser = argparse.ArgumentParser(description="Look for programs on which the engine is wrong.")
    parser.add_argument("--seconds", type=float, default=60, help="how long to look (default 60)")
    parser.add_argument("--seed", type=int, default=None, help="the first seed (default: random)")
    parser.add_argument("--streaming", action="store_true", help="run programs over streams instead of in batch")
    parser.add_argument("--corrections", action="store_true", help="run programs over streams with corrections")
    parser.add_argument("--numbers", action="store_true", help="run programs with arithmetic and aggregates")
    parser.add_argument(
        "--view", action="store_true", help="insert and delete facts, and keep a view of all that holds"
    )
    parser.add_argument("--goals", action="store_true", help="ask about single atoms and ranges of time")
    names = sorted({*PARTS, *STREAMING_PARTS, *NUMERIC_PARTS, *CORRECTED_PARTS})
    parser.add_argument("--part", choices=names, help="only this part of the language")
    options = parser.parse_args()
    first = options.seed if options.seed is not None else random.randrange(10**6)
    signal.signal(signal.SIGPROF, give_up)
    deadline = time.monotonic() + options.seconds
    parts: Mapping[str, Features] = STREAMING_PARTS if options.streaming else PARTS
    if options.numbers:
        choose = stream_features if options.streaming else attrgetter("features")
        parts = {name: choose(part) for name, part in NUMERIC_PARTS.items()}
    seen = Counter[str]()
    if options.view or options.goals:
        numeric = {f"numbers: {name}": part.features for name, part in NUMERIC_PARTS.items()}
        parts = {**PARTS, **numeric}
    if options.corrections:
        parts = CORRECTED_PARTS
    if options.part:
        parts = {options.part: parts[options.part]}
    for number in itertools.count(first):
        for place, (name, part) in enumerate(parts.items()):
            # Half of the rounds go without unbounded facts, which hide much of what rules derive.
            part = replace(part, endless_data=number % 2 == 0)
            if options.view:
                found = hunt_views(part, number, deadline, seen)
            elif options.goals:
                found = hunt_goals(part, number, deadline, seen)
            elif options.corrections:
                found = hunt_corrections(part, number, deadline)
                found = found or hunt_keyed_corrections(number * len(parts) + place, deadline)
            else:
                search = partial(hunt_numbers, part) if isinstance(part, Numbers) else partial(hunt, part)
                found = search(number, deadline, streaming=options.streaming)
            if found:
                print(f"% seed {number}, {name}\n{found}")
                return 1
            if time.monotonic() > deadline:
                if options.view or options.goals:
                    print(", ".join(f"{what}: {count}" for what, count in sorted(seen.items())))
                print(f"nothing found, seeds {first} to {number}, {PROGRAMS_PER_ROUND} programs per seed and part")
                return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
