"""When a stream gets joins of its own: once it has run for a while, and a process beside it has compiled them.

Generating and compiling the joins of a program takes about half a minute. So a stream begins with the plan machine,
which is compiled already. Once the streams of a process that share plans have run for `HOT` seconds, a process of low
priority compiles their joins into the cache on disk, where all later runs find them; the next call of the stream kernel
then uses them.

`TIDELOG_JOINS` chooses: `auto` as above, `generated` from the start, even if they have to be compiled first, or
`machine`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from tidelog.compiler.opcodes import Code
from tidelog.engine import stream_kernel
from tidelog.engine.generated_kernel import generate_source, make_take
from tidelog.engine.store_tables import Array
from tidelog.engine.stream_kernel import Task
from tidelog.jit import generated_cache
from tidelog.jit.kernel_functions import is_compiled

#: Nanoseconds in compiled code after which joins are loaded, if they are in the cache: loading them takes less.
WARM = 200_000_000
#: Nanoseconds in compiled code after which a process is started that compiles joins.
HOT = 5_000_000_000
#: Nanoseconds in compiled code between two looks whether that process is done.
PAUSE = 1_000_000_000


class JoinTier:
    """The stream kernel for some plans: the common one, or one with joins that were generated for these plans."""

    def __init__(self) -> None:
        self._generated: Callable[..., Any] | None = None
        self._spent, self._next, self._decided = 0, WARM, False

    def __getstate__(self) -> dict[str, Any]:
        """Leave generated joins behind: another process takes them from the cache, at its next look."""
        if self._generated is None:
            return vars(self)
        return {**vars(self), "_generated": None, "_decided": False, "_next": 0}

    def choose(self, code: Code, task: Task, preds: Array) -> Callable[..., Any]:
        """Return the kernel to use now."""
        mode = _mode()
        if mode == "generated" and not self._decided:
            self._decided, source = True, generate_source(code, task, preds)
            self._generated = None if source is None else make_take(source)
        # The common kernel is looked up in its module at each call, since tests put others there.
        return stream_kernel.take if self._generated is None or mode == "machine" else self._generated

    def count(self, nanoseconds: int, code: Code, task: Task, preds: Array) -> None:
        """Count the time that a call of the kernel took, and prepare generated joins if it is worth it."""
        self._spent += nanoseconds
        if self._spent >= self._next and not self._decided and _mode() == "auto":
            self._look(generate_source(code, task, preds))

    def _look(self, source: str | None) -> None:
        """Use generated joins if they are in the cache; otherwise let them be compiled if this stream is hot."""
        self._next = self._spent + PAUSE
        if source is None:
            self._decided = True
        elif not is_compiled(stream_kernel.take):
            pass  # this process interprets kernels still, so it has little to do
        elif generated_cache.is_compiled(source):
            self._decided, self._generated = True, make_take(source)
        elif self._spent >= HOT:
            self._decided = not generated_cache.start_compiling(source)
        else:
            self._next = HOT


def _mode() -> str:
    return os.environ.get("TIDELOG_JOINS", "auto")
