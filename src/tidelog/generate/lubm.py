"""Facts in the style of LUBM: universities with departments, people, courses and publications, each with a time.

The proportions are those of the Lehigh University Benchmark (a department has 7 to 10 full professors, 8 to 14
undergraduates per faculty member, and so on), so most facts are about students, and few rules read most of the thirty
predicates. Every fact holds at a random time point up to the horizon, except for universities, which hold over an
interval.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from random import Random

from tidelog.generate.table_writer import join_lines
from tidelog.generate.time_order import sort_by_time

#: The number of universities that people have degrees from, as in LUBM.
UNIVERSITIES = 1000

_FACULTY = (
    ("FullProfessor", 7, 10, 15, 20),
    ("AssociateProfessor", 10, 14, 10, 18),
    ("AssistantProfessor", 8, 11, 5, 10),
    ("Lecturer", 5, 7, 0, 5),
)


def generate_facts(count: int, *, seed: int = 0, horizon: int = 300) -> Iterator[str]:
    """Generate exactly `count` facts as text, without line ends, with as many departments as that takes.

    They are in the order of time, so that they can be read as a stream.

    >>> len(list(generate_facts(5000)))
    5000
    """
    rng = Random(seed)
    facts = itertools.chain(_generate_universities(rng, horizon), _generate_departments(rng, horizon))
    return sort_by_time(itertools.islice(facts, count))


def write_facts(path: str | Path, count: int, *, seed: int = 0, horizon: int = 300) -> None:
    """Write `count` facts to a file, in chunks, so that memory stays small."""
    lines = generate_facts(count, seed=seed, horizon=horizon)
    with Path(path).open("w", encoding="utf-8") as out:
        out.writelines(join_lines(lines))


def _generate_universities(rng: Random, horizon: int) -> Iterator[str]:
    for number in range(UNIVERSITIES):
        start = rng.randrange(horizon)
        yield f"University(ID{number})@[{start},{rng.randint(start, horizon)}]"


def _generate_departments(rng: Random, horizon: int) -> Iterator[str]:
    ids = map("ID{}".format, itertools.count(UNIVERSITIES))
    for number in itertools.count():
        # A university of LUBM has 15 to 25 departments.
        for line in _generate_department(rng, f"ID{number // 20 % UNIVERSITIES}", number, ids):
            yield f"{line}@{int(rng.random() * (horizon + 1))}"


def _generate_department(rng: Random, university: str, number: int, ids: Iterator[str]) -> Iterator[str]:
    """Generate the facts of one department, about 6,500, without their times."""
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
            yield from _generate_person(person, kind, place)
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
        yield from _generate_person(person, "UndergraduateStudent", place)
        yield f"memberOf({person},{department})"
        for course in rng.sample(courses, rng.randint(2, 4)):
            yield f"takesCourse({person},{course})"
        if place % 5 == 0:
            yield f"advisor({person},{rng.choice(faculty)})"
    for place in range(len(faculty) * rng.randint(3, 4)):
        person = next(ids)
        yield from _generate_person(person, "GraduateStudent", place)
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


def _generate_person(person: str, kind: str, place: int) -> Iterator[str]:
    """Generate the facts that every person has; names repeat from department to department, as in LUBM."""
    yield f"{kind}({person})"
    yield f"name({person},{kind}{place})"
    yield f"emailAddress({person},{person}_mail)"
    yield f"telephone({person},xxx_xxx_xxxx)"
