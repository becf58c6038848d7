"""Runs of `spark_job.py` in processes of their own, one after the other in one folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import TracebackType

import spark_job
from processes import kill_all, wait_for

#: Seconds until something has to have happened, on a busy machine.
PATIENCE = 1800


class Runs:
    """While this lasts; what still runs then is killed."""

    def __init__(self, folder: Path, master: str, corrected: bool = False) -> None:
        self.folder, self.master, self.corrected = folder, master, corrected
        self._started: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Runs:
        spark_job.write_input(self.folder, self.corrected)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        for running in self._started:
            if running.poll() is None:
                kill_all(running)

    def start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, spark_job.__file__, str(self.folder), self.master]
        with (self.folder / "printed.txt").open("ab") as printed:
            running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT)
        self._started.append(running)
        return running

    def until(self, running: subprocess.Popen[bytes], moment: str) -> None:
        """Waits until a file is there."""
        wait_for((self.folder / moment).exists, PATIENCE, moment, running)

    def finish(self, running: subprocess.Popen[bytes]) -> None:
        """Waits for the end, and compares the answers with those of a local run."""
        code = running.wait(PATIENCE)
        assert code == 0, (self.folder / "printed.txt").read_text(errors="replace")[-3000:]
        found = spark_job.answers(self.folder)
        for query in spark_job.QUERIES:
            assert found[query] == spark_job.compute_by_stream(query, corrected=self.corrected)
