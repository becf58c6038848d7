"""The decorators that make kernels of functions, and how a call chooses between interpreting and compiled code.

Compiled code is fast, but importing numba and loading machine code takes longer than a small task does, and compiling
takes a minute. So a kernel is interpreted at first. Compiled code takes over, for all kernels of the process, once the
arrays of a call are large or interpreting has taken a while. A call under way is then abandoned and repeated: kernels
change nothing but the arrays that they get, and these are restored.

`TIDELOG_KERNELS` chooses: `auto` as above, `compiled`, or `interpreted`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import RLock
from types import CodeType, FunctionType
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., object])
T = TypeVar("T")

#: The arrays that kernels work on.
Array = NDArray[Any]
#: A number in compiled code, where mypy cannot distinguish numpy's integers from Python's.
Number = Any

#: numpy's conversions, typed as Python integers: that is how the code outside of kernels sees their results.
#: Interpreted kernels compute with Python's integers, and these conversions wrap around as compiled code does.
int64: Callable[[Any], int] = cast("Callable[[Any], int]", np.int64)
uint64: Callable[[Any], int] = cast("Callable[[Any], int]", np.uint64)


class Kernel:
    """A function that runs interpreted or compiled; `options` are those of `numba.njit`."""

    def __init__(self, function: FunctionType, options: dict[str, bool]) -> None:
        self.py_func = function
        self.options = options
        self.__doc__, self.__name__, self.__module__ = function.__doc__, function.__name__, function.__module__
        self.__wrapped__ = function
        self._call: Callable[..., Any] = self._choose
        self._interpreted: Callable[..., Any] | None = None
        self._dispatcher: Any = None

    def __call__(self, *args: Any) -> Any:
        return self._call(*args)

    @property
    def dispatcher(self) -> Any:
        """numba's dispatcher, which compiles the function for the types of its arguments."""
        with _binding:
            if self._dispatcher is None:
                from tidelog.jit.numba_compiler import make_dispatcher

                copy = copy_function(self.py_func, _compiled_scopes)
                self._dispatcher = make_dispatcher(copy, self.options)
                bind_names(copy, self.py_func, _to_compiled)
            return self._dispatcher

    @property
    def interpreted(self) -> Callable[..., Any]:
        """The function itself, calling other kernels interpreted too. It takes memoryviews instead of arrays."""
        with _binding:
            if self._interpreted is None:
                from tidelog.jit.interpreter import STAND_INS

                copy = copy_function(self.py_func, _interpreted_scopes)
                self._interpreted = copy
                bind_names(copy, self.py_func, lambda value: _to_interpreted(value, STAND_INS))
            return self._interpreted

    def interpret_as(self, function: Callable[..., Any]) -> None:
        """Let another function stand for this one where it is interpreted."""
        self._interpreted = function

    def _choose(self, *args: Any) -> Any:
        """Run the kernel as `TIDELOG_KERNELS` and the work done so far say."""
        mode = os.environ.get("TIDELOG_KERNELS", "auto")
        if mode != "compiled":
            from tidelog.jit import interpreter

            if mode == "interpreted":
                return interpreter.run(self.interpreted, args)
            done, result = interpreter.try_to_run(self.interpreted, args)
            if done:
                return result
        self._call = self.dispatcher
        return self._call(*args)


def is_compiled(made: Callable[..., Any]) -> bool:
    """Return whether calls of a kernel run compiled code by now."""
    return isinstance(made, Kernel) and made._call is made._dispatcher


def kernel(function: F) -> F:
    """Make a kernel, which compiled code runs without the interpreter's lock.

    A kernel works on the arrays it gets and allocates none. So references need not be counted: counting them, with
    atomic operations in every inner loop, made the byte scanner four times as slow.
    """
    return _make(function, nogil=True, _nrt=False)


def allocating_kernel(function: F) -> F:
    """Make a kernel that allocates arrays."""
    return _make(function, nogil=True)


def inlined_kernel(function: F) -> F:
    """Make a small part of a kernel, which is always inlined into its callers."""
    return _make(function, nogil=True, forceinline=True, _nrt=False)


def interpret_as(function: Callable[..., Any]) -> Callable[[F], F]:
    """Let a function stand for a kernel where it is interpreted: one that is faster, or needs no numba."""

    def apply(made: F) -> F:
        cast(Any, made).interpret_as(function)
        return made

    return apply


def read_by_rows(*fields: str) -> Callable[[type[T]], type[T]]:
    """Say which arrays of a named tuple kernels read row by row, as `array[i]` of two dimensions."""

    def apply(kind: type[T]) -> type[T]:
        cast(Any, kind).BY_ROWS = fields
        return kind

    return apply


def _make(function: F, **options: bool) -> F:
    return cast(F, Kernel(cast(FunctionType, function), options))


# Kernels refer to each other by the names of their modules. Each way of running has copies of the functions, whose
# globals name the kernels of that way.
Scopes = dict[int, dict[str, Any]]
_compiled_scopes: Scopes = {}
_interpreted_scopes: Scopes = {}
#: Held while a copy is made: no other thread may call one whose names are not bound yet.
_binding = RLock()


def copy_function(function: FunctionType, scopes: Scopes) -> FunctionType:
    """Copy a function, with globals that it shares with the other copies of its module."""
    scope = scopes.setdefault(id(function.__globals__), dict(function.__globals__))
    copy = FunctionType(function.__code__, scope, function.__name__, function.__defaults__, function.__closure__)
    copy.__module__, copy.__qualname__, copy.__doc__ = function.__module__, function.__qualname__, function.__doc__
    return copy


def bind_names(copy: FunctionType, function: FunctionType, convert: Callable[[Any], Any]) -> None:
    """Convert the globals that a function names, in the globals of its copy."""
    for name in list_names(function.__code__):
        if name in function.__globals__:
            copy.__globals__[name] = convert(function.__globals__[name])


def list_names(code: CodeType) -> list[str]:
    """List the global names in a function's code, also in functions within it."""
    inner = [name for part in code.co_consts if isinstance(part, CodeType) for name in list_names(part)]
    return [*code.co_names, *inner]


def _to_compiled(value: Any) -> Any:
    if isinstance(value, Kernel):
        return value.dispatcher
    return value.declare() if isinstance(value, SystemFunction) else value


def _to_interpreted(value: Any, stand_ins: list[tuple[object, object]]) -> Any:
    if isinstance(value, Kernel):
        return value.interpreted
    return next((stand_in for known, stand_in in stand_ins if known is value), value)


class SystemFunction:
    """A function of the C library that compiled code calls; `declare` returns its declaration for numba."""

    def __init__(self, declare: Callable[[], Any]) -> None:
        self.declare = declare
