"""Saved states: what goes in comes out, anything damaged is refused, and a file is never half written."""

from __future__ import annotations

import doctest
import os
import random
import signal
import stat
import struct
import subprocess
import sys
import time
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tidelog
import tidelog.streaming.state_format as state
from locations import SOURCES
from tidelog.errors import TidelogError
from tidelog.streaming.state_format import pack, unpack, write_atomically

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**80), 2**80) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
DTYPES = st.sampled_from(["i1", "<i2", ">i4", "<i4", "<i8", ">i8", "u1", "<u8", "?", "<f8", ">f4", "S3"])
ARRAYS = DTYPES.flatmap(lambda kind: hnp.arrays(np.dtype(kind), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0)))

SMALL = pack(
    {"query": "Alarm", "program": "Größe(X) :- P(X)."},
    {"lo": np.array([1, -(2**62), 3]), "args": np.zeros((2, 3), np.int32), "none": np.zeros(0, np.int64)},
)


@pytest.mark.slow
@settings(max_examples=150)
@given(st.dictionaries(st.text(max_size=5), JSON, max_size=3), st.dictionaries(st.text(max_size=5), ARRAYS, max_size=4))
def test_what_goes_in_comes_out(meta: dict[str, object], arrays: dict[str, state.Array]) -> None:
    found, columns = unpack(pack(meta, arrays))
    assert found == {**meta, "tidelog": tidelog.__version__}
    assert list(columns) == list(arrays)
    for name, array in arrays.items():
        assert columns[name].shape == array.shape
        assert columns[name].dtype == array.dtype.newbyteorder("=")
        assert columns[name].tobytes() == array.astype(array.dtype.newbyteorder("=")).tobytes()


def test_arrays_of_any_layout_are_kept_and_may_be_written_to() -> None:
    array = np.arange(12).reshape(3, 4)
    _, columns = unpack(pack({}, {"sliced": array[:, ::2], "turned": array.T}))
    assert (columns["sliced"] == array[:, ::2]).all()
    assert (columns["turned"] == array.T).all()
    columns["turned"][0, 0] = 7


def test_a_state_does_not_depend_on_when_it_is_written() -> None:
    assert pack({"a": 1}, {"b": np.arange(5)}) == pack({"a": 1}, {"b": np.arange(5)})


def test_objects_are_no_arrays() -> None:
    with pytest.raises(TypeError, match="names holds Python objects"):
        pack({}, {"names": np.array(["a", None], object)})


def refused(data: bytes) -> str:
    with pytest.raises(TidelogError) as caught:
        unpack(data, "s.state")
    (found,) = caught.value.diagnostics
    assert found.message.startswith("s.state ")
    assert found.help
    return found.code


def test_every_truncation_is_refused() -> None:
    for size in range(len(SMALL)):
        assert refused(SMALL[:size]) == "TL401", size


def test_every_flipped_bit_is_refused() -> None:
    for place in range(len(SMALL)):
        for bit in range(8):
            damaged = bytearray(SMALL)
            damaged[place] ^= 1 << bit
            assert refused(bytes(damaged)) in ("TL401", "TL402"), (place, bit)


@pytest.mark.parametrize("data", [b"", b"P(a)@1\n", b"\0" * 100, SMALL + b"\0", SMALL + SMALL, b"\n" + SMALL])
def test_what_is_not_a_state_is_refused(data: bytes) -> None:
    assert refused(data) == "TL401"


def test_another_format_is_refused_as_such() -> None:
    sizes = struct.pack("<I", state.FORMAT + 1) + SMALL[12:28]
    rest = SMALL[60:]
    digest = blake2b(sizes + rest, digest_size=32).digest()
    data = SMALL[:8] + sizes + digest + rest
    assert refused(data) == "TL402"
    assert refused(SMALL[:8] + sizes + SMALL[28:]) == "TL402"
    assert refused(data[:-1]) == "TL401"


# Files


def test_a_file_is_replaced_and_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "s.state"
    write_atomically(path, b"old")
    assert path.read_bytes() == b"old"
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    path.chmod(0o640)
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [entry.name for entry in tmp_path.iterdir()] == ["s.state"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.state"
    write_atomically(path, b"old")

    def no_room(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_room)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["s.state"]


WRITER = """
import sys
import numpy as np
from tidelog.streaming.state_format import pack, write_atomically

number = int(sys.argv[2])
print("ready", flush=True)
while True:
    number += 1
    write_atomically(sys.argv[1], pack({"number": number}, {"column": np.full(200_000, number)}))
"""


@pytest.mark.slow
def test_a_kill_in_the_middle_of_a_save_leaves_a_whole_state(tmp_path: Path) -> None:
    path = tmp_path / "s.state"
    write_atomically(path, pack({"number": 0}, {"column": np.zeros(200_000, np.int64)}))
    env = {**os.environ, "PYTHONPATH": str(SOURCES.parent)}
    number, moments = 0, random.Random(7)
    # At least eight kills, and on a busy machine as many, ever later, as it takes for a save to come to its end.
    for kill in range(100):
        if kill >= 8 and number > 0:
            break
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(number)], env=env, stdout=subprocess.PIPE
        )
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        time.sleep(moments.uniform(0.001, 0.06) * (1 + kill // 8))
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait(60) == -signal.SIGKILL
        process.stdout.close()
        meta, arrays = unpack(path.read_bytes())
        assert meta["number"] >= number
        assert (arrays["column"] == meta["number"]).all()
        number = meta["number"]
    assert number > 0


def test_examples() -> None:
    assert doctest.testmod(state).failed == 0
