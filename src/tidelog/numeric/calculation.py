"""Run assignments and tests on rows, column by column.

Arithmetic that fits 62 bits above and below the line is compiled. All else is evaluated exactly, once for each distinct
combination of operands: text, larger numbers, and every operation whose result would not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tidelog.data.symbol_table import Symbols
from tidelog.language.comparisons import OPERATORS
from tidelog.language.core_rules import OR_ELSE, Assign, Test
from tidelog.language.syntax import Aggregate, Constant, Expression, Operation, Variable
from tidelog.numeric.calculation_kernels import (
    COLUMN,
    CONSTANT,
    ELSEWHERE,
    OPCODES,
    UNDEFINED,
    UNKNOWN,
    calculate,
    compare_columns,
)
from tidelog.numeric.constant_values import BoolArray, Column, ConstantValues, ResultCache
from tidelog.numeric.expressions import UndefinedError, evaluate, holds
from tidelog.numeric.numbers import Numbers
from tidelog.numeric.rows import Int32s, Int64s, Rows

#: Results of exact evaluations that are kept for each expression.
_MAX_REMEMBERED = 100_000
#: Rows that are calculated at once: few enough that their columns stay in the processor's cache.
_BLOCK = 1 << 15
#: Fewer rows than this are not searched for equal ones.
_FEW = 16
_OPERATOR_NUMBERS = {op: number for number, op in enumerate(OPERATORS)}
#: Constants with more digits are not computed with by compiled code.
_LARGEST = 10**18


@dataclass(frozen=True)
class Calculation:
    """Steps on rows: the columns of a row are `inputs`, its columns afterwards are `outputs`.

    The variables of a step are inputs or assigned by a step before it.
    """

    inputs: tuple[Variable, ...]
    steps: tuple[Assign | Test, ...]
    outputs: tuple[Variable | Constant, ...]


class Calculator:
    """Apply a calculation to rows. `undefined` counts the rows that had an undefined operation.

    >>> from tidelog.data.symbol_table import Symbols
    >>> from tidelog.numeric.numbers import Numbers
    >>> symbols, x, y = Symbols(), Variable("X"), Variable("Y")
    >>> double = Operation("*", (x, Constant(Fraction(2))))
    >>> calculator = Calculator(Calculation((x,), (Assign(y, double),), (y,)), Numbers(symbols))
    >>> ids = np.array([[symbols.intern(Fraction(1, 2)), symbols.intern("a")]], np.int32)
    >>> found = calculator.apply(Rows(ids, np.array([0, 1]), np.array([5, 6])))
    >>> [symbols.value(id) for id in found.args[0]], found.lo, calculator.undefined
    ([Fraction(1, 1)], array([0]), 1)
    """

    def __init__(self, calculation: Calculation, numbers: Numbers) -> None:
        self.calculation = calculation
        self.undefined = 0
        self._constants = constants = ConstantValues(numbers)
        self._steps = [(step, *_compile_step(step, constants)) for step in calculation.steps]
        self._tested: dict[str, ResultCache] = {}

    def apply(self, rows: Rows) -> Rows:
        """Return the rows for which every test holds and every operation is defined, with their outputs."""
        if len(rows) <= _BLOCK:
            return self._apply_to_block(rows)
        found: list[Rows] = []
        for start in range(0, len(rows), _BLOCK):
            block = slice(start, start + _BLOCK)
            found.append(self._apply_to_block(Rows(rows.args[:, block], rows.lo[block], rows.hi[block])))
        return Rows.concatenate(found, len(self.calculation.outputs))

    def _apply_to_block(self, rows: Rows) -> Rows:
        table = _Table(rows, self.calculation.inputs, self._constants)
        for step, left, right in self._steps:
            if not len(table.rows):
                break
            column = left.evaluate(table)
            if isinstance(step, Assign):
                self.undefined += table.keep(column.numbers[1] != UNDEFINED)
                table.columns[step.variable] = column.where(table.kept)
                continue
            assert right is not None
            other = right.evaluate(table)
            defined = (column.numbers[1] != UNDEFINED) & (other.numbers[1] != UNDEFINED)
            if not defined.all():
                self.undefined += table.keep(defined)
                column, other = column.where(defined), other.where(defined)
            self._test(step, column, other, table)
        return table.output(self.calculation.outputs)

    def _test(self, step: Test, left: Column, right: Column, table: _Table) -> None:
        """Drop the rows for which a test does not hold or is undefined."""
        found = np.full(len(left.ids), UNKNOWN, np.int8)
        if step.op in _OPERATOR_NUMBERS:
            # The layout that the kernel is compiled for.
            one, other = np.ascontiguousarray(left.numbers), np.ascontiguousarray(right.numbers)
            compare_columns(_OPERATOR_NUMBERS[step.op], one, other, found)
        unknown = found == UNKNOWN
        if unknown.any():
            sides = [self._constants.intern(column.where(unknown)) for column in (left, right)]
            found[unknown] = self._test_exactly(step.op, sides)
        self.undefined += int((found == UNKNOWN).sum())
        table.keep(found == 1)

    def _test_exactly(self, op: str, sides: Sequence[Int32s]) -> Int64s:
        if op in ("=", "!="):
            same: Int64s = ((sides[0] == sides[1]) == (op == "=")).astype(np.int64)
            return same
        value = self._constants.value

        def test(ids: tuple[int, ...]) -> int:
            try:
                return int(holds(op, value(ids[0]), value(ids[1])))
            except UndefinedError:
                return UNKNOWN

        cache = self._tested.setdefault(op, ResultCache())
        return _map_distinct(sides, test, cache, self._constants.symbols)


class _Table:
    """The columns of rows in the middle of a calculation; `kept` are the rows that the last step has kept."""

    def __init__(self, rows: Rows, inputs: tuple[Variable, ...], constants: ConstantValues) -> None:
        self.rows, self.constants = rows, constants
        self.inputs = {variable: number for number, variable in enumerate(inputs)}
        self.columns: dict[Variable, Column] = {}
        self.kept: BoolArray = np.ones(len(rows), np.bool_)

    def keep(self, which: BoolArray) -> int:
        """Drop all other rows; return how many."""
        self.kept = which
        dropped = len(which) - int(which.sum())
        if dropped:
            self.rows = self.rows.where(which)
            self.columns = {variable: column.where(which) for variable, column in self.columns.items()}
        return dropped

    def column(self, variable: Variable) -> Column:
        if variable not in self.columns:
            self.columns[variable] = self.constants.read(self.rows.args[self.inputs[variable]])
        return self.columns[variable]

    def output(self, terms: tuple[Variable | Constant, ...]) -> Rows:
        args = np.empty((len(terms), len(self.rows)), np.int32)
        for position, term in enumerate(terms):
            if isinstance(term, Constant):
                args[position] = self.constants.intern_values([term.value])[0]
            elif term in self.inputs:
                args[position] = self.rows.args[self.inputs[term]]
            elif len(self.rows):
                args[position] = self.constants.intern(self.columns[term])
        return Rows(args, self.rows.lo, self.rows.hi)


@dataclass(frozen=True)
class _Compiled:
    """An expression over the columns of its leaves, with the instructions of its arithmetic, if it is arithmetic."""

    expression: Expression
    leaves: tuple[_Compiled, ...]
    names: tuple[Variable, ...]
    code: Int64s
    numbers: Int64s
    constants: ConstantValues
    cache: ResultCache

    def evaluate(self, table: _Table) -> Column:
        """Return the values of the expression for all rows, some of which may be undefined."""
        if isinstance(self.expression, Variable):
            return table.column(self.expression)
        if isinstance(self.expression, Constant):
            return self.constants.repeat(self.expression.value, len(table.rows))
        columns = [leaf.evaluate(table) for leaf in self.leaves]
        if isinstance(self.expression, Operation) and self.expression.name == OR_ELSE:
            first, second = columns[0], columns[-1]
            defined = first.numbers[1] != UNDEFINED
            ids = np.where(defined, first.ids, second.ids)
            return Column(ids, np.where(defined, first.numbers, second.numbers))
        result = np.full((2, len(table.rows)), ELSEWHERE, np.int64)
        if len(self.code):
            empty = np.empty((0, result.shape[1]), np.int64)
            above = np.stack([column.numbers[0] for column in columns]) if columns else empty
            below = np.stack([column.numbers[1] for column in columns]) if columns else empty
            calculate(self.code, self.numbers, above, below, np.empty((len(self.code), 2), np.int64), result)
        else:
            for column in columns:
                result[1, column.numbers[1] == UNDEFINED] = UNDEFINED
        ids = np.full(result.shape[1], -1, np.int32)
        elsewhere = result[1] == ELSEWHERE
        if elsewhere.any():
            self._evaluate_exactly(elsewhere, columns, ids, result)
        return Column(ids, result)

    def _evaluate_exactly(self, which: BoolArray, columns: list[Column], ids: Int32s, result: Int64s) -> None:
        defined = which.copy()
        for column in columns:
            defined &= column.numbers[1] != UNDEFINED
        result[1, which & ~defined] = UNDEFINED
        operands = [self.constants.intern(column.where(defined)) for column in columns]

        def compute(operands: tuple[int, ...]) -> int:
            values = map(self.constants.value, operands)
            try:
                return self.constants.symbols.intern(
                    evaluate(self.expression, dict(zip(self.names, values, strict=True)))
                )
            except UndefinedError:
                return -1

        found = _map_distinct(operands, compute, self.cache, self.constants.symbols, int(defined.sum())).astype(
            np.int32
        )
        ids[defined] = found
        numbers = self.constants.read(np.maximum(found, 0)).numbers
        numbers[1, found < 0] = UNDEFINED
        result[:, defined] = numbers


def _map_distinct(
    columns: Sequence[Int32s],
    function: Callable[[tuple[int, ...]], int],
    cache: ResultCache,
    symbols: Symbols,
    count: int = 0,
) -> Int64s:
    """Apply a function to each row of some columns, once for all equal rows."""
    count = len(columns[0]) if columns else count
    first, inverse = _find_distinct(columns, count)
    known = cache.use(symbols, len(first), _MAX_REMEMBERED)
    results = np.empty(len(first), np.int64)
    rows: Iterator[tuple[int, ...]] = zip(*(column[first].tolist() for column in columns), strict=True)
    for position, row in enumerate(rows if columns else [()] * len(first)):
        found = known.get(row)
        if found is None:
            found = known[row] = function(row)
        results[position] = found
    return results[inverse]


def _find_distinct(columns: Sequence[Int32s], count: int) -> tuple[Int64s, Int64s]:
    """Return a row for each distinct one, and which of them each row equals."""
    if count <= _FEW:
        return np.arange(count), np.arange(count)
    key = np.zeros(count, np.int64)
    for column in columns:
        if key.any():
            key = np.unique(key, return_inverse=True)[1].astype(np.int64)
        key = key * (int(column.max()) + 1) + column
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    return first.astype(np.int64), inverse.astype(np.int64)


def _compile_step(step: Assign | Test, constants: ConstantValues) -> tuple[_Compiled, _Compiled | None]:
    if isinstance(step, Assign):
        return _compile(step.expression, constants), None
    return _compile(step.left, constants), _compile(step.right, constants)


def _compile(expression: Expression, constants: ConstantValues) -> _Compiled:
    """Take an expression apart: its arithmetic becomes instructions, and what is under it leaves."""
    builder = _Builder(constants)
    if isinstance(expression, Operation):
        arithmetic = (expression.name, len(expression.args)) in OPCODES
        kept = builder.take(expression) if arithmetic else builder.take_operands(expression)
    else:
        kept, arithmetic = expression, False
    code = np.array(builder.code if arithmetic else [], np.int64).reshape(-1, 2)
    numbers = np.array(builder.numbers, np.int64).reshape(-1, 2)
    return _Compiled(kept, tuple(builder.leaves), tuple(builder.names), code, numbers, constants, ResultCache())


class _Builder:
    """Instructions and leaves of one expression."""

    def __init__(self, constants: ConstantValues) -> None:
        self.constants = constants
        self.code: list[tuple[int, int]] = []
        self.numbers: list[tuple[int, int]] = []
        self.leaves: list[_Compiled] = []
        self.names: list[Variable] = []
        self._known: dict[Expression, Variable] = {}

    def take(self, expression: Expression) -> Expression:
        """Emit the instructions of an expression; return it with variables for its leaves."""
        match expression:
            case Operation(name, args) if (name, len(args)) in OPCODES:
                kept = tuple(map(self.take, args))
                self.code.append((OPCODES[name, len(args)], 0))
                return Operation(name, kept)
            case Constant(Fraction() as value) if max(abs(value.numerator), value.denominator) < _LARGEST:
                self.code.append((CONSTANT, len(self.numbers)))
                self.numbers.append((value.numerator, value.denominator))
                return expression
            case _:
                leaf = self.leaf(expression)
                self.code.append((COLUMN, self.names.index(leaf)))
                return leaf

    def take_operands(self, operation: Operation) -> Expression:
        """Return an operation on text, with variables for its operands."""
        return Operation(operation.name, tuple(map(self.leaf, operation.args)))

    def leaf(self, expression: Expression) -> Variable:
        assert not isinstance(expression, Aggregate)
        if expression not in self._known:
            self._known[expression] = Variable(f"#{len(self.names)}")
            self.names.append(self._known[expression])
            self.leaves.append(_compile(expression, self.constants))
        return self._known[expression]
