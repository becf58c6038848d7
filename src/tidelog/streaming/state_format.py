"""The format of saved states: versioned and checksummed bytes, in files that are replaced as a whole.

A state is a fixed front and two parts behind it, a header in JSON and the arrays as raw little-endian buffers:

    magic (8 bytes) | format (4) | length of the header (8) | length of the arrays (8) | checksum (32) | header | arrays

The header holds the session's own JSON values (`meta`), the version of tidelog that wrote it, and the name, type, shape
and offset of every array. A state that was truncated or changed by a single bit is refused.
"""

from __future__ import annotations

import fcntl
import glob
import json
import os
import struct
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tidelog.errors import Diagnostic, TidelogError
from tidelog.version import __version__

#: The number of this format; another number is another format.
FORMAT = 4

Array = npt.NDArray[Any]
Meta = dict[str, Any]

# Bytes that no text begins with, and line ends that a transfer as text would change.
_MAGIC = b"\x93TIDE\r\n\n"
_SIZES = struct.Struct("<IQQ")
_DIGEST = 32
_FRONT = len(_MAGIC) + _SIZES.size + _DIGEST
_ALIGN = 64


def pack(meta: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """Return a state as bytes; `meta` are JSON values, `arrays` hold numbers of any type and shape.

    >>> meta, arrays = unpack(pack({"query": "Alarm"}, {"lo": np.arange(3)}))
    >>> meta["query"], arrays["lo"]
    ('Alarm', array([0, 1, 2]))
    """
    buffers: list[bytes] = []
    table: dict[str, tuple[str, list[int], int]] = {}
    at = 0
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise TypeError(f"{name} holds Python objects")
        plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        data = plain.tobytes()
        table[name] = (plain.dtype.str, list(array.shape), at)
        padding = -len(data) % _ALIGN
        buffers += [data, bytes(padding)]
        at += len(data) + padding
    header = json.dumps({"tidelog": __version__, "meta": dict(meta), "arrays": table}).encode()
    sizes = _SIZES.pack(FORMAT, len(header), at)
    digest = blake2b(sizes, digest_size=_DIGEST)
    for part in (header, *buffers):
        digest.update(part)
    return b"".join([_MAGIC, sizes, digest.digest(), header, *buffers])


def unpack(data: bytes, source: str = "the state") -> tuple[Meta, dict[str, Array]]:
    """Return the `meta` and `arrays` of a state. `meta` also has `tidelog`, the version that wrote it.

    The arrays are writable. Raises a TidelogError for anything that is not a complete state of this format.
    """
    if not data.startswith(_MAGIC):
        raise _damaged_state_error(
            f"{source} is not a saved state of tidelog", "name a file that `tidelog stream --state` wrote"
        )
    if len(data) < _FRONT:
        raise _damaged_state_error(f"{source} is cut off: it ends after {len(data)} bytes")
    sizes = data[len(_MAGIC) : len(_MAGIC) + _SIZES.size]
    number, header_size, arrays_size = _SIZES.unpack(sizes)
    digest = blake2b(sizes, digest_size=_DIGEST)
    digest.update(memoryview(data)[_FRONT:])
    if digest.digest() != data[_FRONT - _DIGEST : _FRONT]:
        whole = _FRONT + header_size + arrays_size
        if number != FORMAT and len(data) == whole:
            raise _other_format(source, number)
        cut = f"is cut off: {len(data)} of {whole} bytes are there" if len(data) < whole else "is damaged"
        raise _damaged_state_error(f"{source} {cut}")
    if number != FORMAT:
        raise _other_format(source, number)
    if len(data) != _FRONT + header_size + arrays_size:
        raise _damaged_state_error(f"{source} is damaged")
    header = json.loads(data[_FRONT : _FRONT + header_size])
    start = _FRONT + header_size
    found = {}
    for name, (kind, shape, at) in header["arrays"].items():
        flat = np.frombuffer(data, np.dtype(kind), prod(shape), start + at)
        found[name] = flat.reshape(shape).astype(flat.dtype.newbyteorder("="))
    return {**header["meta"], "tidelog": header["tidelog"]}, found


def write_atomically(path: str | Path, data: bytes) -> None:
    """Replace a file as a whole: at every moment, also after a kill or a power cut, it holds the old or the new bytes.

    A link is followed, and the permissions of an existing file are kept. Leftovers of a killed save are removed.
    """
    target = Path(os.path.realpath(path))
    _remove_leftovers(target)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # while this process lives, no other takes the file for a leftover
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), _mode(target))
            os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _remove_leftovers(target: Path) -> None:
    """Remove the partial files of saves whose process is gone: those that nobody holds a lock on."""
    for part in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
        with suppress(OSError), part.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            part.unlink(missing_ok=True)


def _mode(target: Path) -> int:
    """Return the permissions of a file, or those that a new one gets."""
    try:
        return target.stat().st_mode & 0o7777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def _damaged_state_error(message: str, help: str = "start again without it, or from an older copy") -> TidelogError:
    return TidelogError(Diagnostic("TL401", message, help=help))


def _other_format(source: str, number: int) -> TidelogError:
    return TidelogError(
        Diagnostic("TL402", f"{source} has format {number}, but this version of tidelog reads format {FORMAT}")
    )
