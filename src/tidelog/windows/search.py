"""Whether the left query ever has an answer that the right one lacks: reachability in the product automaton.

A state of the product is what both queries still know of the past: for each atom and each lag at which it is read,
whether it held, and the rigid facts. A step chooses the input of one time point and derives what follows. Which states
can be reached is never listed. Instead, what is called property-directed reachability: frame i is a set of states,
given by the cubes (partial states) that it excludes, which contains every state that can be reached in i steps. A state
from which an answer is lost in one more step is traced back frame by frame. Either the trace reaches the beginning of
time and is a stream, or some cube on it has no predecessor in the frame before; then the cube is made as general as it
can be and excluded. Once two frames are equal they are an invariant: no stream loses an answer, however long.

Traces are not followed beyond the last frame, so that the first stream that is found is a shortest one.

Objects that are alike may be permuted in any stream, so with a cube all its images under these permutations are
excluded at once: frames are made of whole orbits of cubes.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

from tidelog.windows.ground import GroundAtom, Product
from tidelog.windows.solver import Solver

#: A partial state: literals over the state's variables, in ascending order of their variables.
Cube = tuple[int, ...]
#: A cube with its images under permutations of objects; each is a set, and the first stands for all of them.
Orbit = tuple[frozenset[int], ...]

#: So many objects that are alike are permuted at most: their factorial is the number of images of a cube.
_PERMUTED = 5


#: Is told within how many time points no answer is lost, and how many partial states are excluded.
Report = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Invariant:
    """The partial states that no stream reaches, each as the atoms and lags that hold and do not hold; every state
    outside of them loses nothing and leads to none of them."""

    cubes: tuple[tuple[tuple[GroundAtom, int, bool], ...], ...]


def search(product: Product, deadline: float | None = None, report: Report | None = None) -> int | Invariant:
    """The least number of time points after which an answer is lost, or an invariant that excludes that.

    Raises `OutOfTime`."""
    if not product.goals:
        return Invariant(())
    with Solver(deadline) as solver:
        return _Search(product, solver, report).run()


def holds(product: Product, invariant: Invariant, deadline: float | None = None) -> bool:
    """Whether an invariant proves what it says: a check that shares nothing with the search but the step itself."""
    with Solver(deadline) as solver:
        step = Step(product, solver)
        named = {variable: literal for literal, variable in step.variables.items()}
        cubes = [
            [named[atom, lag] if true else -named[atom, lag] for atom, lag, true in cube] for cube in invariant.cubes
        ]
        if any(not any(literal > 0 and literal not in step.rigid for literal in cube) for cube in cubes):
            return False
        solver.rules((0, cube) for cube in cubes)
        broken = solver.atoms(1)[0]
        solver.rules([(broken, [step.lost]), *((broken, [step.after(literal) for literal in cube]) for cube in cubes)])
        return solver.solve([broken])[0] is None


class Step:
    """One step of the product as a program: choices for state and input, and what follows from them."""

    def __init__(self, product: Product, solver: Solver) -> None:
        chosen = set(product.inputs)
        free = [atom for atom in product.atoms if atom in chosen]
        self.now = dict(zip(free, solver.atoms(len(free), choice=True), strict=True))
        rest = [atom for atom in product.atoms if atom not in chosen]
        self.now |= dict(zip(rest, solver.atoms(len(rest)), strict=True))
        past = [(atom, lag) for atom, longest in product.longest.items() for lag in range(1, longest + 1)]
        self.past = dict(zip(past, solver.atoms(len(past), choice=True), strict=True))
        self.lost = solver.atoms(1)[0]
        solver.rules((self.now[atom], []) for atom in product.facts)
        solver.rules(
            (self.now[rule.head], [self.past[part] if part[1] else self.now[part[0]] for part in rule.body])
            for rule in product.rules
        )
        for left, right in product.goals:
            solver.rules([(self.lost, [self.now[left], *([-self.now[right]] if right else [])])])
        rigid = {(atom, 0): self.now[atom] for atom in free if atom in product.rigid}
        #: The rigid part of the state, and the input of a step.
        self.rigid = frozenset(rigid.values())
        self.inputs = [self.now[atom] for atom in free if atom not in product.rigid]
        #: What each variable of the state stands for, and the literal that is its value after the step.
        self.variables = {literal: part for part, literal in (*self.past.items(), *rigid.items())}
        self._after = {literal: literal for literal in rigid.values()}
        for (atom, lag), literal in self.past.items():
            self._after[literal] = self.now[atom] if lag == 1 else self.past[atom, lag - 1]

    def after(self, literal: int) -> int:
        return self._after[literal] if literal > 0 else -self._after[-literal]


class _Search:
    def __init__(self, product: Product, solver: Solver, report: Report | None) -> None:
        self.solver = solver
        self.report = report
        self.step = Step(product, solver)
        self.state = sorted(self.step.variables)
        #: For each frame, the literal that switches on what it excludes; frame 0 is the beginning of time.
        self.switches = solver.atoms(1, choice=True)
        solver.rules((0, [self.switches[0], past]) for past in self.step.past.values())
        #: The cubes that each frame excludes besides those of the frames after it.
        self.frames: list[list[Orbit]] = [[]]
        self.permutations = list(_permutations(product, self.step))

    def run(self) -> int | Invariant:
        if self._lost(0) is not None:
            return 1
        while True:
            self._open_frame()
            last = len(self.frames) - 1
            while (cube := self._lost(last)) is not None:
                if not self._block(cube, last):
                    return last + 1
            if (proved := self._push()) is not None:
                return self._invariant(proved)
            if self.report:
                cubes = sum(len(orbit) for frame in self.frames for orbit in frame)
                self.report(last + 1, cubes)

    def _open_frame(self) -> None:
        self.frames.append([])
        self.switches += self.solver.atoms(1, choice=True)

    def _frame(self, number: int) -> list[int]:
        """The assumptions that restrict the state to a frame."""
        return self.switches[:1] if number == 0 else self.switches[number:]

    def _lost(self, frame: int) -> Cube | None:
        """States of the frame from which one step loses an answer."""
        model, _ = self.solver.solve([*self._frame(frame), self.step.lost], self.state + self.step.inputs)
        return None if model is None else self._lifted(model, [self.step.lost])

    def _lifted(self, model: Sequence[int], target: Sequence[int]) -> Cube:
        """The part of a state that suffices to reach the target with the same input: the step is a function, so under
        state and input the target cannot be missed, and the assumptions to blame for that are what matters."""
        switch = self.solver.switch(target)
        _, core = self.solver.solve([switch, *model])
        self.solver.release(switch)
        blamed = set(core)
        return tuple(literal for literal in model[: len(self.state)] if literal in blamed)

    def _block(self, cube: Cube, frame: int) -> bool:
        """Excludes a cube from a frame; False if it can be reached from the beginning of time."""
        count = 0
        pending = [(frame, count, cube)]
        while pending:
            frame, _, cube = heapq.heappop(pending)
            if frame == 0:
                return False
            if self._excluded(cube, frame):
                continue
            model, core = self._before(cube, frame)
            if model is None:
                self._exclude(self._generalised(core, frame), frame)
            else:
                earlier = self._lifted(model, [self.step.after(literal) for literal in cube])
                count += 1
                heapq.heappush(pending, (frame - 1, count, earlier))
                count += 1
                heapq.heappush(pending, (frame, count, cube))
        return True

    def _excluded(self, cube: Cube, frame: int) -> bool:
        literals = set(cube)
        return any(literals.issuperset(image) for later in self.frames[frame:] for orbit in later for image in orbit)

    def _before(self, cube: Cube, frame: int) -> tuple[list[int] | None, Cube]:
        """A state of the frame before, outside of the cube, and an input that lead into it; or the part of the cube
        that already has no such predecessor, and that excludes the beginning of time."""
        switch = self.solver.switch(cube)
        after = {self.step.after(literal): literal for literal in cube}
        model, core = self.solver.solve([*self._frame(frame - 1), switch, *after], self.state + self.step.inputs)
        self.solver.release(switch)
        if model is not None:
            return model, cube
        blamed = {after[literal] for literal in core if literal in after}
        if not any(map(self._later, blamed)):
            blamed.add(next(filter(self._later, cube)))
        return None, tuple(literal for literal in cube if literal in blamed)

    def _later(self, literal: int) -> bool:
        """Whether a literal does not hold at the beginning of time: something has happened."""
        return literal > 0 and literal not in self.step.rigid

    def _generalised(self, cube: Cube, frame: int) -> Cube:
        """The cube with as few literals as still have no predecessor in the frame before."""
        for literal in cube:
            if literal not in cube:
                continue
            smaller = tuple(other for other in cube if other != literal)
            if any(map(self._later, smaller)):
                model, core = self._before(smaller, frame)
                if model is None:
                    cube = core
        return cube

    def _exclude(self, cube: Cube, frame: int) -> None:
        """Excludes a cube and its images from a frame and all before it; from as late a frame as it can be."""
        last = len(self.frames) - 1
        while frame < last and self._before(cube, frame + 1)[0] is None:
            frame += 1
        orbit = self._images(cube)
        for number in range(1, frame + 1):
            # Images of a cube are subsumed by images of the other, so that one of each orbit tells.
            self.frames[number] = [
                other for other in self.frames[number] if not any(image <= other[0] for image in orbit)
            ]
        self._add(orbit, frame)

    def _images(self, cube: Cube) -> Orbit:
        moved = (
            frozenset(moves[literal] if literal > 0 else -moves[-literal] for literal in cube)
            for moves in self.permutations
        )
        return tuple(dict.fromkeys(moved))

    def _add(self, orbit: Orbit, frame: int) -> None:
        self.frames[frame].append(orbit)
        self.solver.rules((0, [self.switches[frame], *image]) for image in orbit)

    def _push(self) -> list[Orbit] | None:
        """Moves cubes on to later frames where they have no predecessor either; the cubes of an invariant, if two
        frames have become equal."""
        for frame in range(1, len(self.frames) - 1):
            for orbit in list(self.frames[frame]):
                if self._before(tuple(sorted(orbit[0], key=abs)), frame + 1)[0] is None:
                    self.frames[frame].remove(orbit)
                    self._add(orbit, frame + 1)
            if not self.frames[frame]:
                return [orbit for later in self.frames[frame + 1 :] for orbit in later]
        return None

    def _invariant(self, orbits: Sequence[Orbit]) -> Invariant:
        def named(literal: int) -> tuple[GroundAtom, int, bool]:
            return *self.step.variables[abs(literal)], literal > 0

        return Invariant(tuple(tuple(map(named, image)) for orbit in orbits for image in orbit))


def _permutations(product: Product, step: Step) -> Iterator[dict[int, int]]:
    """What permutations of objects that are alike do to the variables of a state; the first one does nothing."""
    alike = product.alike[:_PERMUTED]
    named = {part: literal for literal, part in step.variables.items()}
    for images in permutations(alike):
        moves = dict(zip(alike, images, strict=True))
        yield {
            literal: named[replace(atom, args=tuple(moves.get(value, value) for value in atom.args)), lag]
            for literal, (atom, lag) in step.variables.items()
        }
