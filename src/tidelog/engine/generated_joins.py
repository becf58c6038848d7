"""Write the joins of one program as the source of a kernel, in which the words of its plans are constants.

The plan machine finds out at each step of a join what it has to do: which operator, which range, which arguments. In
the source that `write_joins` returns, all of that is written out: a branch for each predicate whose new facts drive
plans, in it the levels of its plans as nested loops, and levels with which several plans begin only once.

Only what most streams need is written: joins of positive literals, each looked up by its arguments or by some of them.
For other programs `write_joins` returns None, and the plan machine runs them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tidelog.compiler import opcodes
from tidelog.compiler.opcodes import BOX, DEFER, DIAMOND, HOLDS, LEVEL_SIZE, LOOKUP, MERGE, PLAN_SIZE, STREAM, Code

#: Programs with more levels, in all plans together or in one of them, take too long to compile.
MOST_LEVELS, DEEPEST = 150, 8

_HEADER = """\
def drive(
    pred, atom, queue, position, new_lo, new_hi, merged_lo, merged_hi, horizon_hi, tables, words,
    following, following_end, later, later_end,
):
    preds, atoms, args, table, iv = tables.preds, tables.atoms, tables.args, tables.table, tables.iv
    entries, keys, index_table = tables.entries, tables.keys, tables.index_table
    meta, values, linked, links = tables.meta, tables.scratch[1], tables.linked, tables.links
    full = 0
"""


@dataclass(frozen=True)
class Level:
    """A level of a plan, decoded; its words tell equal levels of plans apart from others."""

    words: tuple[int, ...]
    kind: int
    predicate: int
    op: int
    range: tuple[int, int]
    index: int
    same: int
    key: tuple[int, ...]
    binds: tuple[tuple[int, int], ...]
    checks: tuple[tuple[int, int], ...]
    compares: bool


@dataclass(frozen=True)
class Join:
    """A plan, decoded: where its words begin, its levels, and the head with the range of its times."""

    place: int
    levels: tuple[Level, ...]
    head: int
    range: tuple[int, int]
    cut: int
    args: tuple[int, ...]
    stands: int


@dataclass
class _Node:
    """A level with which plans begin: those that end with it, and the levels that follow in others."""

    level: Level
    ends: list[Join] = field(default_factory=list)
    followers: list[_Node] = field(default_factory=list)

    def joins(self) -> Iterator[Join]:
        yield from self.ends
        for node in self.followers:
            yield from node.joins()


def write_joins(code: Code, dense: bool) -> str | None:
    """Write the plans that new facts drive as a kernel `drive`; return None if they are not of the supported kind."""
    n_preds = len(code.trigger_start) - 1
    driven = [
        [_decode(code, int(place)) for place in code.triggers[first:last, opcodes.PLAN]]
        for first, last in zip(code.trigger_start[:-1], code.trigger_start[1:], strict=True)
    ]
    joins = [join for group in driven for join in group]
    if not joins or sum(len(join.levels) for join in joins) > MOST_LEVELS or not all(map(_is_supported, joins)):
        return None
    writer = _Writer(dense)
    for pred in range(n_preds):
        if driven[pred]:
            writer.write(1, f"{'if' if not writer.lines else 'elif'} pred == {pred}:")
            for root in _share_levels(driven[pred]):
                writer.write_root(root)
    return _HEADER + "\n".join([*writer.lines, "    return following_end, later_end, full", ""])


def _decode(code: Code, place: int) -> Join:
    """Decode the plan whose words begin at a place."""
    words: list[int] = code.words[place:].tolist()
    n_levels, n_head = words[opcodes.N_LEVELS], words[opcodes.N_HEAD]
    offsets = words[PLAN_SIZE + n_head : PLAN_SIZE + n_head + n_levels]
    return Join(
        place,
        tuple(_decode_level(words[at - place :]) for at in offsets),
        words[opcodes.HEAD],
        (words[opcodes.H_LO], words[opcodes.H_HI]),
        words[opcodes.CUT],
        tuple(words[PLAN_SIZE : PLAN_SIZE + n_head]),
        words[opcodes.STANDS],
    )


def _decode_level(words: Sequence[int]) -> Level:
    n_key, n_bind, n_check = words[opcodes.N_KEY], words[opcodes.N_BIND], words[opcodes.N_CHECK]
    at = LEVEL_SIZE + n_key
    pairs = [(words[i], words[i + 1]) for i in range(at, at + 2 * (n_bind + n_check), 2)]
    size = at + 2 * len(pairs) + 3 * words[opcodes.N_COMPARE]
    return Level(
        tuple(words[:size]),
        words[opcodes.KIND],
        words[opcodes.PREDICATE],
        words[opcodes.OP],
        (words[opcodes.R_LO], words[opcodes.R_HI]),
        words[opcodes.INDEX],
        words[opcodes.SAME],
        tuple(words[LEVEL_SIZE:at]),
        tuple(pairs[:n_bind]),
        tuple(pairs[n_bind:]),
        words[opcodes.N_COMPARE] > 0,
    )


def _is_supported(join: Join) -> bool:
    """Return whether a plan is a join of positive literals, each but the first looked up by its arguments.

    By an index, those that are not part of its key are bound or compared.
    """
    known = all(
        level.kind == LOOKUP and level.op in (HOLDS, DIAMOND, BOX) and not level.compares for level in join.levels
    )
    whole = all(_has_index(level) or not (level.binds or level.checks) for level in join.levels[1:])
    cut = join.cut & ~(STREAM | DEFER | MERGE)
    return known and whole and join.levels[0].index < 0 and len(join.levels) <= DEEPEST and not (join.stands or cut)


def _has_index(level: Level) -> bool:
    """Return whether atoms are found by an index, instead of the only one that is possible."""
    return level.index >= 0 and level.same < 0


def _share_levels(joins: Sequence[Join]) -> list[_Node]:
    """Arrange plans by the levels with which they begin."""
    roots: list[_Node] = []
    for join in joins:
        nodes = roots
        for level in join.levels:
            if not nodes or nodes[-1].level.words != level.words:
                nodes.append(_Node(level))
            node = nodes[-1]
            nodes = node.followers
        node.ends.append(join)
    return roots


def _may_be_linked(node: _Node) -> bool:
    """Return whether a plan ends with a level and may derive the same facts from many facts that an index finds there.

    Where those always hold, they say nothing about the times of what follows.
    """
    level = node.level
    alone = len(node.ends) == 1 and not node.followers
    return alone and bool(node.ends[0].cut & MERGE) and level.op == HOLDS and _has_index(level)


class _Writer:
    """Writes lines of source, each with its depth."""

    def __init__(self, dense: bool) -> None:
        self.dense = dense
        self.lines: list[str] = []

    def write(self, depth: int, *lines: str) -> None:
        self.lines += ["    " * depth + line for line in lines]

    def write_root(self, root: _Node) -> None:
        """Write what a new piece drives through one literal."""
        level, dense = root.level, self.dense
        r_lo, r_hi = level.range
        binds = [f"r{register} = queue[position + {3 + place}]" for place, register in level.binds]
        checks = [f"queue[position + {3 + place}] == {_term(source)}" for place, source in level.checks]
        if level.op == HOLDS:
            times = ["lo1, hi1 = new_lo, new_hi"]
        elif level.op == DIAMOND:
            times = [f"lo1, hi1 = add_left(new_lo, {r_lo}, {dense}), add_right(new_hi, {r_hi}, {dense})"]
        else:
            times = [
                f"lo1, hi1 = value({BOX}, merged_lo, merged_hi, {r_lo}, {r_hi}, {dense})",
                f"lo1 = max(lo1, add_left(new_lo, {r_lo}, {dense}))",
                f"hi1 = min(hi1, add_right(new_hi, {r_hi}, {dense}))",
            ]
        holds = f"if {' and '.join(['lo1 <= hi1', *checks])}:"
        if root.ends:
            self.write(2, *times, *binds, holds)
            self._write_ends(3, 1, root.ends)
        linked = next(filter(_may_be_linked, root.followers), None) if level.op == HOLDS else None
        for node in root.followers:
            # Most new facts of a stream wait for others that arrive later: it costs little to see that.
            self.write(2, *times)
            latest, op, (reach_lo, reach_hi) = f"preds[{node.level.predicate}, LATEST]", node.level.op, node.level.range
            if op == DIAMOND:
                latest = f"add_right({latest}, {reach_hi}, {dense})"
            elif op == BOX:
                latest = f"erode_right({latest}, {reach_lo}, {dense})"
            self.write(2, f"if lo1 <= hi1 and {latest} >= lo1:")
            self.write(3, *binds)
            depth = 3
            if checks:
                self.write(3, f"if {' and '.join(checks)}:")
                depth = 4
            if node is linked:
                self._write_linked(depth, node)
            else:
                self._write_node(depth, 1, node)

    def _write_linked(self, depth: int, node: _Node) -> None:
        """Write a join with facts that may always hold, such as the edges of a network.

        Where they do, an atom derives the same atoms each time that more is known about it. These are kept as links,
        which are good until the joined predicate has more atoms.
        """
        (join,) = node.ends
        size = f"preds[{node.level.predicate}, SIZE] + 1"
        h_lo, h_hi = join.range
        self.write(
            depth,
            f"lo, hi = add_left(lo1, {h_lo}, {self.dense}), add_right(hi1, {h_hi}, {self.dense})",
            f"if linked[1 + atom, LINKED_SIZE] == {size} and lo <= hi and lo <= horizon_hi:",
            f"    words[{join.place + opcodes.WORK}] += 1 + linked[1 + atom, N_LINKS]",
            "    first_link = linked[1 + atom, LINKS]",
            "    for link in range(first_link, first_link + linked[1 + atom, N_LINKS]):",
            f"        end = merge_into(links[link], {join.head}, {len(join.args)}, lo, hi, "
            "following, following_end, tables)",
            "        following_end, full = max(end, following_end), max(-end, full)",
            "else:",
            "    first_link, steady = np.int64(linked[0, LINKS]), True",
            "    last_link = first_link",
        )
        self._write_node(depth + 1, 1, node, linked=True)
        self.write(
            depth + 1,
            "if steady and last_link <= len(links):",
            "    linked[0, LINKS], linked[1 + atom, LINKS] = last_link, first_link",
            f"    linked[1 + atom, N_LINKS], linked[1 + atom, LINKED_SIZE] = last_link - first_link, {size}",
        )

    def _write_node(self, depth: int, number: int, node: _Node, linked: bool = False) -> None:
        """Write a level: go through the times at which its atom makes it true, among those of the levels before it.

        With `linked`, collect the atoms that follow if those of the level hold always.
        """
        level, n = node.level, number
        self.write(depth, *(f"words[{join.place + opcodes.WORK}] += 1" for join in node.joins()))
        if level.same >= 0:
            self.write(depth, f"a{n} = {'atom' if level.same == 0 else f'a{level.same}'}")
            self._write_times(depth, n, node)
            return
        self.write(depth, *(f"values[{i}] = {_term(source)}" for i, source in enumerate(level.key)))
        if not _has_index(level):
            atom = f"table[find_atom({level.predicate}, values, 0, {len(level.key)}, atoms, args, table)]"
            self.write(depth, f"a{n} = {atom}")
            self._write_times(depth, n, node)
            return
        key = f"{level.index}, values, {len(level.key)}, index_table, atoms, args, entries, keys"
        self.write(depth, f"entry{n} = keys[find_key({key}), 1]", f"while entry{n} >= 0:")
        self.write(
            depth + 1, f"a{n}, entry{n} = entries[entry{n}, 0], entries[entry{n}, 1]", f"p{n} = atoms[a{n}, ARGS]"
        )
        self.write(depth + 1, *(f"r{register} = args[p{n} + {place}]" for place, register in level.binds))
        checks = [f"args[p{n} + {place}] == {_term(source)}" for place, source in level.checks]
        if linked:
            self.write(depth + 1, f"steady = steady and holds_always(a{n}, atoms, iv)")
        if checks:
            self.write(depth + 1, f"if {' and '.join(checks)}:")
        self._write_times(depth + 2 if checks else depth + 1, n, node, linked)

    def _write_times(self, depth: int, n: int, node: _Node, linked: bool = False) -> None:
        """Write the loop over the times at which the atom of a level makes it true."""
        level = node.level
        within = f"{level.op}, {level.range[0]}, {level.range[1]}, lo{n}, hi{n}, {self.dense}"
        self.write(
            depth,
            f"i{n}, end{n}, lo{n + 1}, hi{n + 1} = first_times(a{n}, {within}, atoms, iv)",
            f"while i{n} < end{n}:",
        )
        self._write_ends(depth + 1, n + 1, node.ends, linked)
        for follower in node.followers:
            self._write_node(depth + 1, n + 1, follower)
        # Later intervals add nothing to one that reaches the end.
        self.write(depth + 1, f"if hi{n + 1} == hi{n}:", "    break")
        self.write(depth + 1, f"i{n}, lo{n + 1}, hi{n + 1} = next_times(i{n} + 1, end{n}, {within}, iv)")

    def _write_ends(self, depth: int, number: int, joins: Sequence[Join], linked: bool = False) -> None:
        """Write the facts that plans derive where their last level holds."""
        for join in joins:
            (h_lo, h_hi), size = join.range, 3 + len(join.args)
            self.write(
                depth,
                f"words[{join.place + opcodes.WORK}] += 1",
                f"lo = add_left(lo{number}, {h_lo}, {self.dense})",
                f"hi = add_right(hi{number}, {h_hi}, {self.dense})",
            )
            branch = "if"
            if join.cut & DEFER:
                self.write(depth, "if lo > horizon_hi:")
                if linked:
                    self.write(depth + 1, "steady = False")
                self.write(depth + 1, f"if later_end + {size} > len(later):", "    full = NO_ROOM_LATER", "else:")
                self.write(depth + 2, "meta[NEXT_DUE] = min(meta[NEXT_DUE], lo)")
                self._write_record(depth + 2, join, "later", size)
                branch = "elif"
            self.write(depth, f"{branch} lo <= hi:")
            if join.cut & MERGE:
                self.write(depth + 1, *(f"values[{i}] = {_term(source)}" for i, source in enumerate(join.args)))
                head = f"{join.head}, {len(join.args)}, lo, hi"
                self.write(depth + 1, f"end = merge_record({head}, following, following_end, tables)")
                self.write(depth + 1, "following_end, full = max(end, following_end), max(-end, full)")
                if linked:
                    target = f"values[{len(join.args)}]"
                    self.write(depth + 1, "steady = steady and end >= 0")
                    self.write(depth + 1, f"last_link = add_link({target}, links, last_link)")
            else:
                self.write(depth + 1, f"if following_end + {size} > len(following):", "    full = NO_ROOM", "else:")
                self._write_record(depth + 2, join, "following", size)

    def _write_record(self, depth: int, join: Join, queue: str, size: int) -> None:
        words = [str(join.head), "lo", "hi", *map(_term, join.args)]
        self.write(depth, *(f"{queue}[{queue}_end + {i}] = {word}" for i, word in enumerate(words)))
        self.write(depth, f"{queue}_end += {size}")


def _term(source: int) -> str:
    """Write an argument: a register, or a constant."""
    return f"r{source}" if source >= 0 else str(-1 - source)
