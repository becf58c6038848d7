"""A program of 85 rules over the facts of universities: hierarchies of classes and roles, and recursion in time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

#: The classes of each class of people and things, from the narrowest on.
_CLASSES = (
    "FullProfessor Professor Faculty Employee Person Agent",
    "AssociateProfessor Professor",
    "AssistantProfessor Professor",
    "VisitingProfessor Professor",
    "Chair Professor",
    "Dean Professor",
    "Lecturer Faculty",
    "PostDoc Faculty",
    "AdministrativeStaff Employee",
    "SystemsStaff AdministrativeStaff",
    "GraduateStudent Student Person",
    "UndergraduateStudent Student",
    "TeachingAssistant Student",
    "ResearchAssistant Student",
    "Director Person",
    "University Organization Agent",
    "Department Organization",
    "ResearchGroup Organization",
    "Institute Organization",
    "Program Organization",
    "GraduateCourse Course Work",
    "Research Work",
    "Publication Document",
    "Article Publication",
    "Book Publication",
)
_ROLES = (
    "headOf worksFor memberOf affiliatedWith",
    "doctoralDegreeFrom degreeFrom",
    "mastersDegreeFrom degreeFrom",
    "undergraduateDegreeFrom degreeFrom",
    "teachingAssistantOf involvedIn",
    "teacherOf involvedIn",
    "takesCourse involvedIn",
)
#: The classes of the first and the second argument of each role.
_ARGUMENTS = {
    "affiliatedWith": ("Agent", "Organization"),
    "advisor": ("Student", "Faculty"),
    "degreeFrom": ("Person", "University"),
    "headOf": ("Chair", "Department"),
    "involvedIn": ("Person", "Work"),
    "publicationAuthor": ("Publication", "Person"),
    "subOrganizationOf": ("Organization", "Organization"),
    "takesCourse": ("Student", "Course"),
    "teacherOf": ("Faculty", "Course"),
    "teachingAssistantOf": ("TeachingAssistant", "Course"),
    "worksFor": ("Employee", "Organization"),
}
_TEMPORAL = """\
Active(X) :- Diamondminus[0,10] involvedIn(X, _Y).
Boxplus[0,5] Busy(X) :- teacherOf(X, _Y).
Busy(X) :- Boxminus[0,3] Active(X).
Known(X) :- publicationAuthor(_Y, X).
Known(X) :- Diamondminus[5,5] Known(X), Diamondminus[0,20] Active(X).
Idle(X) :- Employee(X), not Busy(X).
Senior(X) :- Professor(X), Diamondminus[0,100] Known(X).
Mentor(X) :- Diamondminus[0,30] advisor(_Y, X), Known(X).
ScientistCandidate(X) :- Diamondminus[1,1] doctoralDegreeFrom(X, _Y).
Scientist(X) :- Boxminus[1,1] ScientistCandidate(X).
Scientist(X) :- Diamondminus[20,20] Scientist(X), Diamondminus[0,20] Active(X).
partOf(X, Y) :- Diamondminus[0,300] subOrganizationOf(X, Y).
partOf(X, Z) :- partOf(X, Y), Diamondminus[0,300] subOrganizationOf(Y, Z).
Colleague(X, Y) :- headOf(X, Z), Diamondminus[0,300] worksFor(Y, Z).
Alumnus(X) :- degreeFrom(X, Y), Diamondminus[0,300] affiliatedWith(X, Y).
Published(X) :- Diamondminus[0,50] Document(X), publicationAuthor(X, _Y).
Teaching(X) :- Boxminus[0,1] Busy(X), Faculty(X).
Assisted(X) :- Course(X), Diamondminus[0,40] teachingAssistantOf(_Y, X).
Retired(X) :- Diamondminus[1,inf) Employee(X), not Diamondminus[0,100] Busy(X).
Boxplus[0,20] Invited(X) :- Senior(X), Mentor(X).
Host(X, Y) :- Invited(X), headOf(X, Y).
Overworked(X) :- TeachingAssistant(X), Diamondminus[0,40] takesCourse(X, _Y).
"""


def list_rules() -> list[str]:
    """Return the rules, one per item."""
    return [*_list_hierarchies(), *_list_argument_rules(), *_TEMPORAL.splitlines()]


def _list_hierarchies() -> Iterator[str]:
    for chain, variables in (*((c, "X") for c in _CLASSES), *((r, "X, Y") for r in _ROLES)):
        names = chain.split()
        for narrow, wide in pairwise(names):
            yield f"{wide}({variables}) :- {narrow}({variables})."


def _list_argument_rules() -> Iterator[str]:
    for role, (first, second) in _ARGUMENTS.items():
        yield f"{first}(X) :- {role}(X, _Y)."
        yield f"{second}(Y) :- {role}(_X, Y)."
