"""A Kafka broker of one node in KRaft mode, on loopback, that can be killed and started again."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from maven import UnreachableError, broker_jars, java

#: Seconds until a broker has to listen, on a busy machine.
_PATIENCE = 180


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Broker:
    """Its data and its port stay the same from start to start."""

    def __init__(self, folder: Path, jars: Path) -> None:
        self.folder, self._jars = folder, jars
        self.port, controller = free_ports(2)
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True)
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": folder / "logs",
            "num.partitions": 1,
            "auto.create.topics.enable": "true",
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
        }
        self._settings = folder / "server.properties"
        self._settings.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        identity = "MkU3OEVBNTcwNTJENDM2Qg"
        self._run("kafka.tools.StorageTool", "format", "-t", identity, "-c", str(self._settings))

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        with (self.folder / "printed.txt").open("ab") as printed:
            command = self._command("kafka.Kafka", str(self._settings))
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT
            )
        deadline = time.monotonic() + _PATIENCE
        while True:
            assert self._process.poll() is None, (self.folder / "printed.txt").read_text()[-2000:]
            assert time.monotonic() < deadline, f"the broker does not listen after {_PATIENCE} s"
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.2)

    def kill(self) -> None:
        """Ends the broker with no time to clear up."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _run(self, *arguments: str) -> None:
        done = subprocess.run(self._command(*arguments), capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    def _command(self, *arguments: str) -> list[str]:
        return [java(), "-Xmx256m", "-cp", f"{self._jars}/*", *arguments]


@contextmanager
def running_broker(folder: Path) -> Iterator[Broker]:
    """A broker that runs; the test is skipped where Maven Central cannot be reached."""
    try:
        jars = broker_jars()
    except UnreachableError as problem:
        pytest.skip(f"Maven Central cannot be reached: {problem}")
    made = Broker(folder, jars)
    try:
        made.start()
        yield made
    finally:
        made.kill()
