"""Kernels: functions over arrays of numbers that run interpreted at first, and compiled where there is much to do.

Start with `kernel_functions`: it holds the decorators, and the choice between the two ways of running. `interpreter`
runs a kernel as the Python function that it is, without importing numba. `numba_compiler` compiles one, and keeps the
machine code in a cache on disk. `compiled_cache` knows whether that cache is complete for this machine, and
`background_compiler` fills it in a process of its own. `generated_cache` does the same for kernels that were generated
for one program.
"""

from tidelog.jit.interpreter import tick
from tidelog.jit.kernel_functions import (
    Array,
    Number,
    SystemFunction,
    allocating_kernel,
    inlined_kernel,
    int64,
    interpret_as,
    kernel,
    read_by_rows,
    uint64,
)

__all__ = [
    "Array",
    "Number",
    "SystemFunction",
    "allocating_kernel",
    "inlined_kernel",
    "int64",
    "interpret_as",
    "kernel",
    "read_by_rows",
    "tick",
    "uint64",
]
