"""Run functions in a second process, with a limit of time for each call.

The servers for editors and agents run rules that people are still writing. Such rules may run for long or need much
memory, and a thread cannot be stopped: the worker is a process, which is killed when a call takes too long, and started
again for the next one. Between calls it stays, so that the engine is loaded once.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from tidelog.errors import Diagnostic, TidelogError

T = TypeVar("T")


class WorkerProcess:
    """A process for calls one after another; `memory` limits its address space, in bytes.

    >>> with WorkerProcess() as worker:
    ...     worker.call(10, divmod, 7, 2)
    (3, 1)
    """

    def __init__(self, memory: int | None = None) -> None:
        self._memory = memory
        self._lock = threading.Lock()
        self._process: multiprocessing.process.BaseProcess | None = None
        self._connection: Connection | None = None

    def call(self, seconds: float, function: Callable[..., T], *args: Any) -> T:
        """Call an importable function in the worker.

        Raises TL913 if it takes more than `seconds` or the process ends, and the function's own `TidelogError`.
        """
        with self._lock:
            connection = self._connect()
            try:
                connection.send((function, args))
                if not connection.poll(seconds):
                    self._stop()
                    raise _limit_error(f"this took more than {seconds:g} s and was stopped")
                kind, value = connection.recv()
            except (EOFError, OSError):
                self._stop()
                raise _limit_error("the process that ran this ended, probably for lack of memory") from None
        if kind == "diagnostics":
            raise TidelogError(value)
        if kind == "failure":
            raise RuntimeError(value)
        result: T = value
        return result

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._stop()

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connect(self) -> Connection:
        if self._connection is not None and self._process is not None and self._process.is_alive():
            return self._connection
        self._stop()
        # A new interpreter rather than a fork: the servers have threads.
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=serve_calls, args=(theirs, self._memory), daemon=True)
        self._process.start()
        theirs.close()
        return self._connection

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._connection is not None:
            self._connection.close()
        self._process = self._connection = None


def serve_calls(connection: Connection, memory: int | None) -> None:
    """Answer calls until the other end closes. Runs in the worker."""
    # The standard streams of the server carry its protocol.
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    sys.stdin = open(os.devnull)  # noqa: SIM115
    if memory is not None:
        _limit_memory(memory)
    while True:
        try:
            function, args = connection.recv()
        except (EOFError, OSError):
            return
        try:
            answer: tuple[str, Any] = ("value", function(*args))
        except TidelogError as problem:
            answer = ("diagnostics", problem.diagnostics)
        except MemoryError:
            answer = ("diagnostics", _limit_error("this needs more memory than is allowed").diagnostics)
        except Exception as problem:
            answer = ("failure", f"{type(problem).__name__}: {problem}")
        connection.send(answer)


def _limit_memory(memory: int) -> None:
    import resource

    # Systems that cannot limit the address space, such as macOS, refuse it.
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _limit_error(message: str) -> TidelogError:
    return TidelogError(Diagnostic("TL913", message))
