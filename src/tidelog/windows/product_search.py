"""Decide whether the left query ever has an answer that the right query lacks: reachability in the product automaton.

A state of the product records what both queries still know of the past: for each atom and each lag at which it is read,
whether it held, and the rigid facts. A step chooses the input of one time point and derives what follows.

Reachable states are never listed. The search is property-directed reachability (PDR): frame i contains every state that
is reachable in i steps, and is given by the cubes (partial states) that it excludes. A state from which one more step
loses an answer is traced back frame by frame. Either the trace reaches the beginning of time, and is a stream; or some
cube on it has no predecessor in the previous frame, and is generalised and excluded. Once two frames are equal, they
are an invariant: no stream of any length loses an answer.

Traces never go beyond the last frame, so the first stream found is a shortest one.

Interchangeable objects may be permuted in any stream. So excluding a cube excludes all its images under these
permutations at once: frames consist of whole orbits of cubes.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

from tidelog.windows.incremental_solver import Deadline, IncrementalSolver
from tidelog.windows.product_program import GroundAtom, ProductProgram

#: A partial state: literals over the variables of a state, in ascending order of variables.
Cube = tuple[int, ...]
#: A cube and its images under permutations of objects, each as a set; the first represents all of them.
Orbit = tuple[frozenset[int], ...]

#: At most this many objects are permuted: a cube has a factorial number of images.
_MAX_PERMUTED = 5

#: Called with the number of time points within which no answer is lost, and the number of excluded partial states.
SearchCallback = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Invariant:
    """Partial states that no stream reaches, each as atoms with their lags and truth values.

    A state outside of all of them loses no answer and does not lead into any of them."""

    cubes: tuple[tuple[tuple[GroundAtom, int, bool], ...], ...]


def search_product(
    product: ProductProgram, deadline: Deadline = None, report: SearchCallback | None = None
) -> int | Invariant:
    """Return the least number of time points after which an answer is lost, or an invariant that excludes a loss.

    Raise `DeadlineExceeded` if time runs out."""
    if not product.goals:
        return Invariant(())
    with IncrementalSolver(deadline) as solver:
        return _ReachabilitySearch(product, solver, report).run()


def is_invariant(product: ProductProgram, invariant: Invariant, deadline: Deadline = None) -> bool:
    """Return whether an invariant holds and excludes losses. The check shares only `ProductStep` with the search."""
    with IncrementalSolver(deadline) as solver:
        step = ProductStep(product, solver)
        named = {variable: literal for literal, variable in step.variables.items()}
        cubes = [
            [named[atom, lag] if true else -named[atom, lag] for atom, lag, true in cube] for cube in invariant.cubes
        ]
        if any(not any(literal > 0 and literal not in step.rigid for literal in cube) for cube in cubes):
            return False
        solver.add_rules((0, cube) for cube in cubes)
        broken = solver.add_atoms(1)[0]
        solver.add_rules([(broken, [step.lost])])
        solver.add_rules((broken, [step.after(literal) for literal in cube]) for cube in cubes)
        return solver.solve([broken])[0] is None


class ProductStep:
    """One step of the product as a program: choices for state and input, and what follows from them.

    `rigid` is the rigid part of the state, `inputs` the input of the step. `variables` maps each variable of the state
    to its atom and lag."""

    def __init__(self, product: ProductProgram, solver: IncrementalSolver) -> None:
        chosen = set(product.inputs)
        free = [atom for atom in product.atoms if atom in chosen]
        self.now = dict(zip(free, solver.add_atoms(len(free), choice=True), strict=True))
        rest = [atom for atom in product.atoms if atom not in chosen]
        self.now |= dict(zip(rest, solver.add_atoms(len(rest)), strict=True))
        past = [(atom, lag) for atom, longest in product.longest.items() for lag in range(1, longest + 1)]
        self.past = dict(zip(past, solver.add_atoms(len(past), choice=True), strict=True))
        self.lost = solver.add_atoms(1)[0]
        solver.add_rules((self.now[atom], []) for atom in product.facts)
        solver.add_rules(
            (self.now[rule.head], [*map(self._literal, rule.body), *(-self._literal(part) for part in rule.negated)])
            for rule in product.rules
        )
        for left, right in product.goals:
            solver.add_rules([(self.lost, [self.now[left], *([-self.now[right]] if right else [])])])
        rigid = {(atom, 0): self.now[atom] for atom in free if atom in product.rigid}
        self.rigid = frozenset(rigid.values())
        self.inputs = [self.now[atom] for atom in free if atom not in product.rigid]
        self.variables = {literal: part for part, literal in (*self.past.items(), *rigid.items())}
        self._after = {literal: literal for literal in rigid.values()}
        for (atom, lag), literal in self.past.items():
            self._after[literal] = self.now[atom] if lag == 1 else self.past[atom, lag - 1]

    def _literal(self, part: tuple[GroundAtom, int]) -> int:
        return self.past[part] if part[1] else self.now[part[0]]

    def after(self, literal: int) -> int:
        """Return the literal whose value now is the value of a state literal after the step."""
        return self._after[literal] if literal > 0 else -self._after[-literal]


class _ReachabilitySearch:
    def __init__(self, product: ProductProgram, solver: IncrementalSolver, report: SearchCallback | None) -> None:
        self.solver = solver
        self.report = report
        self.step = ProductStep(product, solver)
        self.state = sorted(self.step.variables)
        #: For each frame, the literal that activates its exclusions; frame 0 is the beginning of time.
        self.switches = solver.add_atoms(1, choice=True)
        solver.add_rules((0, [self.switches[0], past]) for past in self.step.past.values())
        #: The cubes that each frame excludes, except those that later frames exclude too.
        self.frames: list[list[Orbit]] = [[]]
        self.permutations = list(_permutations(product, self.step))

    def run(self) -> int | Invariant:
        if self._find_losing_state(0) is not None:
            return 1
        while True:
            self._open_frame()
            last = len(self.frames) - 1
            while (cube := self._find_losing_state(last)) is not None:
                if not self._block(cube, last):
                    return last + 1
            if (proved := self._propagate()) is not None:
                return self._build_invariant(proved)
            if self.report:
                cubes = sum(len(orbit) for frame in self.frames for orbit in frame)
                self.report(last + 1, cubes)

    def _open_frame(self) -> None:
        self.frames.append([])
        self.switches += self.solver.add_atoms(1, choice=True)

    def _frame_assumptions(self, number: int) -> list[int]:
        """Return the assumptions that restrict the state to a frame."""
        return self.switches[:1] if number == 0 else self.switches[number:]

    def _find_losing_state(self, frame: int) -> Cube | None:
        """Return a cube of states of the frame from which one step loses an answer."""
        model, _ = self.solver.solve([*self._frame_assumptions(frame), self.step.lost], self.state + self.step.inputs)
        return None if model is None else self._lift(model, [self.step.lost])

    def _lift(self, model: Sequence[int], target: Sequence[int]) -> Cube:
        """Return the part of a state that suffices to reach the target with the same input.

        A step is a function of state and input, so assuming both and excluding the target is unsatisfiable. The
        literals in the core are those that matter."""
        switch = self.solver.add_switch(target)
        _, core = self.solver.solve([switch, *model])
        self.solver.release_switch(switch)
        blamed = set(core)
        return tuple(literal for literal in model[: len(self.state)] if literal in blamed)

    def _block(self, cube: Cube, frame: int) -> bool:
        """Exclude a cube from a frame; return False if it is reachable from the beginning of time."""
        count = 0
        pending = [(frame, count, cube)]
        while pending:
            frame, _, cube = heapq.heappop(pending)
            if frame == 0:
                return False
            if self._is_excluded(cube, frame):
                continue
            model, core = self._find_predecessor(cube, frame)
            if model is None:
                self._exclude(self._generalise(core, frame), frame)
            else:
                earlier = self._lift(model, [self.step.after(literal) for literal in cube])
                count += 1
                heapq.heappush(pending, (frame - 1, count, earlier))
                count += 1
                heapq.heappush(pending, (frame, count, cube))
        return True

    def _is_excluded(self, cube: Cube, frame: int) -> bool:
        literals = set(cube)
        return any(literals.issuperset(image) for later in self.frames[frame:] for orbit in later for image in orbit)

    def _find_predecessor(self, cube: Cube, frame: int) -> tuple[list[int] | None, Cube]:
        """Return a state of the previous frame, outside of the cube, with an input that leads into the cube.

        If there is none, return None and a part of the cube that has no such predecessor either, and that excludes the
        beginning of time."""
        switch = self.solver.add_switch(cube)
        after = {self.step.after(literal): literal for literal in cube}
        assumptions = [*self._frame_assumptions(frame - 1), switch, *after]
        model, core = self.solver.solve(assumptions, self.state + self.step.inputs)
        self.solver.release_switch(switch)
        if model is not None:
            return model, cube
        blamed = {after[literal] for literal in core if literal in after}
        if not any(map(self._excludes_start, blamed)):
            blamed.add(next(filter(self._excludes_start, cube)))
        return None, tuple(literal for literal in cube if literal in blamed)

    def _excludes_start(self, literal: int) -> bool:
        """Return whether a literal is false at the beginning of time: it says that something has happened."""
        return literal > 0 and literal not in self.step.rigid

    def _generalise(self, cube: Cube, frame: int) -> Cube:
        """Return a part of the cube, with literals removed as long as it has no predecessor in the previous frame."""
        for literal in cube:
            if literal not in cube:
                continue
            smaller = tuple(other for other in cube if other != literal)
            if any(map(self._excludes_start, smaller)):
                model, core = self._find_predecessor(smaller, frame)
                if model is None:
                    cube = core
        return cube

    def _exclude(self, cube: Cube, frame: int) -> None:
        """Exclude a cube and its images from a frame and all earlier ones, or from a later frame where possible."""
        last = len(self.frames) - 1
        while frame < last and self._find_predecessor(cube, frame + 1)[0] is None:
            frame += 1
        orbit = self._build_orbit(cube)
        for number in range(1, frame + 1):
            # If an image of one cube subsumes a member of an orbit, its other images subsume the other members.
            self.frames[number] = [
                other for other in self.frames[number] if not any(image <= other[0] for image in orbit)
            ]
        self._add(orbit, frame)

    def _build_orbit(self, cube: Cube) -> Orbit:
        moved = (
            frozenset(moves[literal] if literal > 0 else -moves[-literal] for literal in cube)
            for moves in self.permutations
        )
        return tuple(dict.fromkeys(moved))

    def _add(self, orbit: Orbit, frame: int) -> None:
        self.frames[frame].append(orbit)
        self.solver.add_rules((0, [self.switches[frame], *image]) for image in orbit)

    def _propagate(self) -> list[Orbit] | None:
        """Move cubes to later frames where they have no predecessor either; return the cubes of an invariant if two
        frames have become equal."""
        for frame in range(1, len(self.frames) - 1):
            for orbit in list(self.frames[frame]):
                if self._find_predecessor(tuple(sorted(orbit[0], key=abs)), frame + 1)[0] is None:
                    self.frames[frame].remove(orbit)
                    self._add(orbit, frame + 1)
            if not self.frames[frame]:
                return [orbit for later in self.frames[frame + 1 :] for orbit in later]
        return None

    def _build_invariant(self, orbits: Sequence[Orbit]) -> Invariant:
        def name_literal(literal: int) -> tuple[GroundAtom, int, bool]:
            return *self.step.variables[abs(literal)], literal > 0

        return Invariant(tuple(tuple(map(name_literal, image)) for orbit in orbits for image in orbit))


def _permutations(product: ProductProgram, step: ProductStep) -> Iterator[dict[int, int]]:
    """Yield how permutations of interchangeable objects move the variables of a state; the first is the identity."""
    permuted = product.interchangeable[:_MAX_PERMUTED]
    named = {part: literal for literal, part in step.variables.items()}
    for images in permutations(permuted):
        moves = dict(zip(permuted, images, strict=True))
        yield {
            literal: named[replace(atom, args=tuple(moves.get(value, value) for value in atom.args)), lag]
            for literal, (atom, lag) in step.variables.items()
        }
