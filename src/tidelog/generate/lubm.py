"""A LUBM-like set of facts: universities with departments, people, courses and publications, each at a time.

The proportions are those of the Lehigh University Benchmark (a department has 7 to 10 full professors, 8 to 14
undergraduates for each of its faculty, and so on), so that most facts concern students and most of the thirty
predicates are read by few rules. Every fact holds at a random time point of the horizon, except for universities,
which hold over an interval.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from random import Random

#: Universities that people have degrees from, as in LUBM.
UNIVERSITIES = 1000

_FACULTY = (
    ("FullProfessor", 7, 10, 15, 20),
    ("AssociateProfessor", 10, 14, 10, 18),
    ("AssistantProfessor", 8, 11, 5, 10),
    ("Lecturer", 5, 7, 0, 5),
)


def program() -> str:
    """The rules that come with the universities."""
    return files("tidelog.generate").joinpath("lubm.dmtl").read_text(encoding="utf-8")


def facts(count: int, *, seed: int = 0, horizon: int = 300) -> Iterator[str]:
    """Exactly `count` facts as text, one a line without line ends; as many departments as that takes.

    >>> len(list(facts(5000)))
    5000
    """
    rng = Random(seed)
    return itertools.islice(itertools.chain(_universities(rng, horizon), _departments(rng, horizon)), count)


def write(path: str | Path, count: int, *, seed: int = 0, horizon: int = 300) -> None:
    """Write `count` facts to a file, in pieces, so that memory stays small."""
    lines = facts(count, seed=seed, horizon=horizon)
    with Path(path).open("w", encoding="utf-8") as out:
        while piece := list(itertools.islice(lines, 50_000)):
            out.write("\n".join(piece))
            out.write("\n")


def _universities(rng: Random, horizon: int) -> Iterator[str]:
    for number in range(UNIVERSITIES):
        start = rng.randrange(horizon)
        yield f"University(ID{number})@[{start},{rng.randint(start, horizon)}]"


def _departments(rng: Random, horizon: int) -> Iterator[str]:
    ids = map("ID{}".format, itertools.count(UNIVERSITIES))
    for number in itertools.count():
        # A university of LUBM has 15 to 25 departments.
        for line in _department(rng, f"ID{number // 20 % UNIVERSITIES}", number, ids):
            yield f"{line}@{int(rng.random() * (horizon + 1))}"


def _department(rng: Random, university: str, number: int, ids: Iterator[str]) -> Iterator[str]:
    """The facts of one department without their times: about 6,500 of them."""
    department = next(ids)
    yield f"Department({department})"
    yield f"name({department},Department{number})"
    yield f"subOrganizationOf({department},{university})"
    for group in itertools.islice(ids, rng.randint(10, 20)):
        yield f"ResearchGroup({group})"
        yield f"subOrganizationOf({group},{department})"

    faculty: list[str] = []
    courses: list[str] = []
    graduate_courses: list[str] = []
    publications: list[str] = []
    for kind, fewest, most, fewest_papers, most_papers in _FACULTY:
        for place in range(rng.randint(fewest, most)):
            person = next(ids)
            faculty.append(person)
            yield from _person(person, kind, place)
            yield f"worksFor({person},{department})"
            yield f"researchInterest({person},Research{rng.randrange(30)})"
            for degree in ("undergraduateDegreeFrom", "mastersDegreeFrom", "doctoralDegreeFrom"):
                yield f"{degree}({person},ID{rng.randrange(UNIVERSITIES)})"
            for taught, course_kind in ((courses, "Course"), (graduate_courses, "GraduateCourse")):
                for course in itertools.islice(ids, rng.randint(1, 2)):
                    taught.append(course)
                    yield f"{course_kind}({course})"
                    yield f"name({course},{course_kind}{len(taught)})"
                    yield f"teacherOf({person},{course})"
            for paper in itertools.islice(ids, rng.randint(fewest_papers, most_papers)):
                publications.append(paper)
                yield f"Publication({paper})"
                yield f"name({paper},Publication{len(publications)})"
                yield f"publicationAuthor({paper},{person})"
    yield f"headOf({faculty[0]},{department})"

    for place in range(len(faculty) * rng.randint(8, 14)):
        person = next(ids)
        yield from _person(person, "UndergraduateStudent", place)
        yield f"memberOf({person},{department})"
        for course in rng.sample(courses, rng.randint(2, 4)):
            yield f"takesCourse({person},{course})"
        if place % 5 == 0:
            yield f"advisor({person},{rng.choice(faculty)})"
    for place in range(len(faculty) * rng.randint(3, 4)):
        person = next(ids)
        yield from _person(person, "GraduateStudent", place)
        yield f"memberOf({person},{department})"
        yield f"undergraduateDegreeFrom({person},ID{rng.randrange(UNIVERSITIES)})"
        yield f"advisor({person},{rng.choice(faculty)})"
        for course in rng.sample(graduate_courses, rng.randint(1, 3)):
            yield f"takesCourse({person},{course})"
        for paper in rng.sample(publications, rng.randint(0, 5)):
            yield f"publicationAuthor({paper},{person})"
        if place % 5 == 0:
            yield f"TeachingAssistant({person})"
            yield f"teachingAssistantOf({person},{rng.choice(courses)})"
        elif place % 4 == 0:
            yield f"ResearchAssistant({person})"


def _person(person: str, kind: str, place: int) -> Iterator[str]:
    """What is known of everybody; names repeat from department to department, as in LUBM."""
    yield f"{kind}({person})"
    yield f"name({person},{kind}{place})"
    yield f"emailAddress({person},{person}_mail)"
    yield f"telephone({person},xxx_xxx_xxxx)"
