"""The engines that a Python worker keeps between two batches, and how the workers of a machine pass them on.

Spark gives a task any worker that is idle, so the next batch of a bucket often meets another worker than the last one.
That worker asks for the engine at the one that has it. Copying an engine takes much less time than restoring it from
Spark's state, which is the way where this fails, and the only one between machines.

A version of an engine has a token, which Spark's state keeps: the address of the worker that has the engine, and a
number that nobody can guess. Workers listen on sockets without a file, which Linux has; both sides make sure that the
other one belongs to the same user, since an engine is sent as a pickle.
"""

from __future__ import annotations

import json
import os
import pickle
import socket
import struct
from contextlib import suppress
from threading import Lock, Thread
from time import monotonic
from typing import Any, NamedTuple
from uuid import uuid4

#: A run, a stage and a bucket.
Place = tuple[str, int, int]

#: Seconds after which an idle engine is dropped: its query may have ended.
IDLE = 600.0
#: Seconds that a worker waits for the next bytes of an engine; the other one may be busy.
PATIENCE = 10.0

#: Sockets whose names begin with a zero byte have no file.
_PREFIX = "\0tidelog-engines-"
_NAME_LENGTH = len(uuid4().hex)
_TOKEN_LENGTH = 2 * _NAME_LENGTH
_NUMBER = struct.Struct("<q")
_CREDENTIALS = struct.Struct("3i")


class _Kept(NamedTuple):
    token: str
    engine: Any
    since: float


class EngineCache:
    """The engines of one worker, the last version of each."""

    def __init__(self) -> None:
        self._kept: dict[Place, _Kept] = {}
        self._lock = Lock()
        self._address: str | None = None

    @property
    def places(self) -> set[Place]:
        """The buckets whose engines are here."""
        return set(self._kept)

    def make_token(self) -> str:
        """Make the token of a new version that this worker is going to keep."""
        if self._address is None:  # not when it is created: workers are forked from a process that has it already
            self._address = uuid4().hex
            self._listen(self._address)
        return self._address + uuid4().hex

    def keep(self, place: Place, token: str, engine: Any) -> None:
        """Keep an engine for the next step, and drop idle ones."""
        now = monotonic()
        with self._lock:
            self._kept[place] = _Kept(token, engine, now)
            for idle in [other for other, kept in self._kept.items() if now - kept.since > IDLE]:
                del self._kept[idle]

    def take(self, place: Place, token: str) -> Any | None:
        """Take an engine out of this cache, or out of that of another worker; None if it is in neither.

        An engine that is taken is in no cache any more, so nobody meets one that a failed step has touched.
        """
        with self._lock:
            kept = self._kept.pop(place, None)
        return kept.engine if kept is not None and kept.token == token else fetch_engine(place, token)

    def clear(self) -> None:
        """Drop all engines."""
        with self._lock:
            self._kept.clear()

    # Other workers

    def _listen(self, address: str) -> None:
        """Wait for other workers in a thread; where there are no such sockets, they restore engines themselves."""
        with suppress(OSError, AttributeError):
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(_PREFIX + address)
            listener.listen()
            Thread(target=self._serve, args=(listener,), name="tidelog engines", daemon=True).start()

    def _serve(self, listener: socket.socket) -> None:
        """Answer other workers one after another; whatever goes wrong, they notice the end of the connection."""
        while True:
            connection, _ = listener.accept()
            with connection, suppress(Exception):
                connection.settimeout(PATIENCE)
                if _is_same_user(connection):
                    self._give(connection)

    def _give(self, connection: socket.socket) -> None:
        """Send the engine that another worker asks for; it is no longer here."""
        run, stage, bucket, token = json.loads(connection.makefile("rb").readline())
        place = (run, stage, bucket)
        with self._lock:
            found = self._kept.get(place)
            kept = self._kept.pop(place) if found is not None and found.token == token else None
        if kept is not None:
            _send(connection, kept.engine)


def fetch_engine(place: Place, token: str) -> Any | None:
    """Ask the worker that made a token for its engine; None if it has it no more, or is on another machine."""
    if len(token) != _TOKEN_LENGTH:  # made by a version that did not pass engines on
        return None
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE)
            connection.connect(_PREFIX + token[:_NAME_LENGTH])
            if not _is_same_user(connection):
                return None
            connection.sendall(json.dumps([*place, token]).encode() + b"\n")
            return _receive(connection)
    except (OSError, EOFError, AttributeError):
        return None


def _is_same_user(connection: socket.socket) -> bool:
    """Return whether the process at the other end belongs to the user of this one."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return bool(_CREDENTIALS.unpack(found)[1] == os.getuid())


def _send(connection: socket.socket, engine: Any) -> None:
    """Send an engine: the number of parts, their lengths, and the parts; all but the first are arrays."""
    arrays: list[pickle.PickleBuffer] = []
    first = pickle.dumps(engine, protocol=5, buffer_callback=arrays.append)
    parts = [memoryview(first), *(array.raw() for array in arrays)]
    connection.sendall(b"".join(map(_NUMBER.pack, (len(parts), *(part.nbytes for part in parts)))))
    for part in parts:
        connection.sendall(part)


def _receive(connection: socket.socket) -> Any:
    """Receive an engine; raises EOFError if the connection ends before."""
    stream = connection.makefile("rb")

    def read(size: int) -> bytearray:
        data = bytearray(size)
        if stream.readinto(data) < size:
            raise EOFError
        return data

    def read_number() -> int:
        return int(_NUMBER.unpack(read(_NUMBER.size))[0])

    sizes = [read_number() for _ in range(read_number())]
    first, *arrays = map(read, sizes)
    return pickle.loads(first, buffers=arrays)
