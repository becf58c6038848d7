"""The words of encoded plans: numbers that the compiler writes and the plan machine reads.

A plan is PLAN_SIZE words, the sources of the head's arguments, the offsets of its levels, and the levels. A level is
LEVEL_SIZE words, then its keys, bindings, checks and comparisons. A source is the number of a register, or `-1 - c` for
the constant c.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

Array = NDArray[Any]

#: Kinds of levels: look up a positive literal; subtract a negated one; the left or right operand of Since and Until; an
#: atom that arrives with the record (it binds variables, but says nothing about time).
LOOKUP, NEGATION, LEFT_OPERAND, RIGHT_OPERAND, GIVEN = range(5)

#: Words of a level. SAME is an earlier level about the same atom, or -1; INDEX is -1 where the whole atom is the key.
KIND, PREDICATE, OP, R_LO, R_HI, INDEX, SAME, N_KEY, N_BIND, N_CHECK, N_COMPARE, LEVEL_SIZE = range(12)

#: Words of a plan. KEEPER is the level whose atom goes on the agenda where the body still holds at the end of the times
#: asked for, or -1. STANDS says how its facts stand, or NOT_STANDING. WORK counts how often the plan was driven, plus
#: the levels and atoms that it went through.
N_LEVELS, HEAD, H_LO, H_HI, CUT, KEEPER, STANDS, N_HEAD, WORK, PLAN_SIZE = range(10)

#: How facts stand (see `standing_facts`), as bits. VISITS: the plan is for an atom that has changed, and its times
#: begin at the last position evaluated before: a body that holds there may end now. PUSHES: an interval of the body
#: that has ended gives all that follows from it.
NOT_STANDING, STANDING, VISITS, PUSHES = 0, 1, 2, 4

#: What happens at the horizon: bits of CUT. Finite intervals are always cut there; CUT_LEFT and CUT_RIGHT cut infinite
#: ones, too. On a STREAM nothing is cut, and with DEFER facts that lie wholly beyond the horizon wait for their time.
#: With MERGE, a derived record that touches an earlier one of the same atom in the queue becomes part of that one.
CUT_LEFT, CUT_RIGHT, STREAM, DEFER, MERGE = 1, 2, 4, 8, 16

#: The operators of a level: the values of `flat_rules.Op`.
HOLDS, DIAMOND, BOX, SINCE, UNTIL = range(5)


#: Columns of a trigger: where its plan begins, with how many levels it begins as the trigger before it does, and a test
#: of new pieces that is cheaper than running the plan: it derives nothing from a piece that begins at `lo` if facts of
#: the predicate AWAITED (-1: no test) have not held at or after `lo + LEAD` yet.
PLAN, SHARED, AWAITED, LEAD = range(4)


class Code(NamedTuple):
    """Encoded plans: `plans[p]` is where plan p begins in `words`.

    The triggers of predicate p are the rows of `triggers` from `trigger_start[p]` on. `width` is the largest number of
    registers, levels or arguments.
    """

    plans: Array
    words: Array
    trigger_start: Array
    triggers: Array
    width: int
