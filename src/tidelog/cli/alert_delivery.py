"""Deliver alerts to web hooks and commands, at least once: each in a thread of its own, in order, until it is accepted.

A web hook accepts an alert with a 2xx status, a command with exit code 0. Everything else is tried again, with growing
pauses. An alert carries an `id`, the same for every attempt and every run, so that a receiver can drop repetitions.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import threading
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from time import monotonic
from typing import IO, Any

import click

from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.wording import plural
from tidelog.version import __version__

#: An alert as JSON.
Message = dict[str, Any]
#: Seconds: the first pause after a failure, the longest one, how long one attempt may take, and how long the end of a
#: stream waits for alerts that are not delivered yet.
FIRST_PAUSE, LONGEST_PAUSE, ATTEMPT, LAST_CHANCE = 0.2, 30.0, 30.0, 10.0
#: How many alerts may wait for one receiver; a stream that is faster waits for it.
MOST_WAITING = 10_000


@dataclass
class DeliveryError(Exception):
    """The reason why an attempt failed."""

    reason: str


class Receiver:
    """A web hook or a command, with the alerts that wait for it."""

    def __init__(self, name: str, is_command: bool) -> None:
        self.name = name
        self.reason = ""
        self._is_command = is_command
        self._waiting: deque[Message] = deque()
        self._changed = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"alerts to {name}")
        self._thread.start()

    def add(self, message: Message) -> None:
        """Add an alert; wait while too many others do."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._waiting) < MOST_WAITING)
            self._waiting.append(message)
            self._changed.notify_all()

    def finish(self, deadline: float) -> list[Message]:
        """Wait until all alerts are delivered, at most to the deadline; return the others."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting, max(0.0, deadline - monotonic()))
            self._stopped = True
            self._changed.notify_all()
        self._thread.join(max(0.1, deadline - monotonic()))
        with self._changed:
            return list(self._waiting)

    def _run(self) -> None:
        pause = FIRST_PAUSE
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._stopped)
                if self._stopped:
                    return
                message = self._waiting[0]
            try:
                _run_command(self.name, message) if self._is_command else _post(self.name, message)
            except DeliveryError as failure:
                with self._changed:
                    if failure.reason != self.reason:
                        click.echo(f"{self.name}: {failure.reason}; trying again", err=True)
                    self.reason = failure.reason
                    self._changed.wait_for(lambda: self._stopped, pause)
                pause = min(2 * pause, LONGEST_PAUSE)
                continue
            pause = FIRST_PAUSE
            with self._changed:
                self._waiting.popleft()
                self._changed.notify_all()


class AlertDelivery:
    """All receivers of a stream's alerts."""

    def __init__(self, addresses: Sequence[str], commands: Sequence[str]) -> None:
        self._receivers = [Receiver(name, is_command=False) for name in dict.fromkeys(addresses)]
        self._receivers += [Receiver(name, is_command=True) for name in dict.fromkeys(commands)]
        #: Whether the end of the stream has said what is not delivered.
        self.described = False
        self._undelivered: dict[str, list[Message]] | None = None

    def send(self, alert: Message) -> None:
        """Deliver an alert to every receiver, with an `id` that identifies it."""
        text = json.dumps(alert, ensure_ascii=False, sort_keys=True)
        message = {"id": blake2b(text.encode(), digest_size=12).hexdigest(), **alert}
        for receiver in self._receivers:
            receiver.add(message)

    def resend(self, undelivered: Mapping[str, Sequence[Message]]) -> None:
        """Deliver the alerts that the previous run could not; those of a receiver that is gone go to all others."""
        known = {receiver.name for receiver in self._receivers}
        for name, messages in undelivered.items():
            for receiver in self._receivers:
                if receiver.name == name or name not in known:
                    for message in messages:
                        receiver.add(message)

    def finish(self) -> dict[str, list[Message]]:
        """Wait a short while for alerts that are not delivered yet; return the rest by receiver."""
        if self._undelivered is None:
            deadline = monotonic() + LAST_CHANCE
            rest = {receiver.name: receiver.finish(deadline) for receiver in self._receivers}
            self._undelivered = {name: messages for name, messages in rest.items() if messages}
        return self._undelivered

    def describe_undelivered(self, state: str | None) -> TidelogError | None:
        """Return an error for alerts that are lost; only say so where a state keeps them."""
        self.described = True
        reasons = {receiver.name: receiver.reason for receiver in self._receivers}
        problems = [
            Diagnostic(
                "TL406",
                f"{plural(len(messages), 'alert')} not delivered to {name}: {reasons[name] or 'there was no time'}",
            )
            for name, messages in self.finish().items()
        ]
        if state is None:
            return TidelogError(problems) if problems else None
        for problem in problems:
            click.echo(f"{problem.message}; kept in {state} for the next run", err=True)
        return None


@contextmanager
def deliver_alerts(addresses: Sequence[str], commands: Sequence[str]) -> Iterator[AlertDelivery]:
    """Deliver alerts while a stream runs; if it ends in any other way than by its end, say what is not delivered."""
    delivery = AlertDelivery(addresses, commands)
    try:
        yield delivery
    except BaseException:
        for name, messages in ({} if delivery.described else delivery.finish()).items():
            click.echo(f"{plural(len(messages), 'alert')} not delivered to {name}", err=True)
        raise


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuse redirections: a POST would become a GET, and its alert would be lost."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirect)


def _post(address: str, message: Message) -> None:
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"tidelog/{__version__}",
        "Idempotency-Key": str(message["id"]),
    }
    body = json.dumps(message, ensure_ascii=False).encode()
    request = urllib.request.Request(address, body, headers, method="POST")
    try:
        with _OPENER.open(request, timeout=ATTEMPT) as answer:
            if not 200 <= answer.status < 300:
                raise DeliveryError(f"status {answer.status}")
    except urllib.error.HTTPError as problem:
        raise DeliveryError(f"status {problem.code}") from None
    except (OSError, ValueError, http.client.HTTPException) as problem:
        raise DeliveryError(str(getattr(problem, "reason", problem)) or type(problem).__name__) from None


def _run_command(command: str, message: Message) -> None:
    body = json.dumps(message, ensure_ascii=False).encode() + b"\n"
    try:
        done = subprocess.run(command, shell=True, input=body, stdout=2, timeout=ATTEMPT, check=False)
    except subprocess.TimeoutExpired:
        raise DeliveryError(f"no end after {ATTEMPT:g} seconds") from None
    except OSError as problem:
        raise DeliveryError(str(problem)) from None
    if done.returncode:
        raise DeliveryError(f"exit code {done.returncode}")
