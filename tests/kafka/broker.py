"""A Kafka broker of one node in KRaft mode, on loopback, that can be killed and started again."""

from __future__ import annotations

import random
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from maven import UnreachableError, broker_jars, java, logger_jar

#: Seconds until a broker has to listen, on a busy machine.
_PATIENCE = 180
#: How often a broker is set up anew, with other ports, if it ends while it starts.
_ATTEMPTS = 3
#: Outside the ranges from which Linux and macOS take ports for outgoing connections: a port of a broker that has not
#: started yet, or was killed, is not given to another process.
_PORTS = range(20_000, 32_000)


class BrokerEndedError(Exception):
    """The broker ended while it started; the text is what it printed."""


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on."""
    found: list[int] = []
    for port in random.sample(_PORTS, len(_PORTS)):
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        found.append(port)
        if len(found) == count:
            return found
    raise AssertionError(f"no {count} free ports between {_PORTS.start} and {_PORTS.stop}")


class Broker:
    """A broker whose data and port stay the same from start to start."""

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
            if self._process.poll() is not None:
                raise BrokerEndedError((self.folder / "printed.txt").read_text()[-2000:])
            assert time.monotonic() < deadline, f"the broker does not listen after {_PATIENCE} s"
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.2)

    def kill(self) -> None:
        """End the broker with no time to clear up."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _run(self, *arguments: str) -> None:
        done = subprocess.run(self._command(*arguments), capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    def _command(self, *arguments: str) -> list[str]:
        logging = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        return [java(), "-Xmx256m", logging, "-cp", f"{self._jars}/*:{logger_jar()}", *arguments]


@contextmanager
def running_broker(folder: Path) -> Iterator[Broker]:
    """Run a broker; the test is skipped where Maven Central cannot be reached."""
    try:
        jars = broker_jars()
        logger_jar()
    except UnreachableError as problem:
        pytest.skip(f"Maven Central cannot be reached: {problem}")
    made = _start_broker(folder, jars)
    try:
        yield made
    finally:
        made.kill()


def _start_broker(folder: Path, jars: Path, attempts: int = _ATTEMPTS) -> Broker:
    made = Broker(folder / str(attempts), jars)
    try:
        made.start()
    except BrokerEndedError:
        if attempts == 1:
            raise
        return _start_broker(folder, jars, attempts - 1)
    except BaseException:
        made.kill()
        raise
    return made
