"""Sort the lines of generated facts by time, in constant memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

#: The number of lines in memory. Others wait on disk, in one file per time.
_BUFFER = 8_000


def sort_by_time(lines: Iterable[str], buffer: int = _BUFFER) -> Iterator[str]:
    """Sort facts by the time at which they begin, a whole number; facts of one time keep their order.

    >>> list(sort_by_time(["A(a)@7", "B(b)@[3,9]", "A(c)@3"], buffer=2))
    ['B(b)@[3,9]', 'A(c)@3', 'A(a)@7']
    """
    lines = iter(lines)
    with TemporaryDirectory(prefix="tidelog-") as folder:
        times: set[int] = set()
        while some := _group_by_time(islice(lines, buffer)):
            times |= some.keys()
            for time, group in some.items():
                with (Path(folder) / str(time)).open("a", encoding="utf-8") as file:
                    file.writelines(f"{line}\n" for line in group)
        for time in sorted(times):
            with (Path(folder) / str(time)).open(encoding="utf-8") as file:
                yield from (line.rstrip("\n") for line in file)


def _group_by_time(lines: Iterable[str]) -> dict[int, list[str]]:
    groups: dict[int, list[str]] = {}
    for line in lines:
        start = int(line.rpartition("@")[2].lstrip("[").partition(",")[0])
        groups.setdefault(start, []).append(line)
    return groups
