"""Run kernels in a chosen way: interpreted, compiled, or changing from one to the other in the middle."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from tidelog.jit import background_compiler, interpreter
from tidelog.jit.kernel_functions import Kernel


@contextmanager
def run_kernels(way: str) -> Iterator[None]:
    """Run all kernels `interpreted`, `compiled`, or as `auto` chooses in a process that has done nothing yet."""
    kernels = [value for module in [*sys.modules.values()] for value in vars(module).values() if type(value) is Kernel]
    before = [(kernel, kernel._call) for kernel in kernels]
    for kernel in kernels:
        kernel._call = kernel._choose
    fresh = mock.patch.multiple(
        interpreter._Effort, spent=0.0, next_look=0.0, ticks=0, started=False, largest=interpreter.LARGEST, over=False
    )
    try:
        with fresh, mock.patch.dict(os.environ, TIDELOG_KERNELS=way):
            yield
    finally:
        for kernel, call in before:
            kernel._call = call


@contextmanager
def change_after(looks: int) -> Iterator[list[int]]:
    """Interpret kernels up to this many turns of loops that may run long, and then compiled ones.

    Gives a list with the number of turns so far.
    """
    seen = [0]

    def is_too_much(spent: float) -> bool:
        seen[0] += 1
        return seen[0] > looks

    with (
        mock.patch.object(interpreter, "TICKS", 0),
        mock.patch.object(interpreter, "_is_too_much", is_too_much),
        mock.patch.object(background_compiler, "start"),
        run_kernels("auto"),
    ):
        yield seen
