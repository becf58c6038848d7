"""What a saved state records of its command, so that the next run continues the same stream and no other."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tidelog.compiler.compiled_program import Memory
from tidelog.timeline.interval import TimelineName

if TYPE_CHECKING:
    from tidelog.data.dataset import Dataset
    from tidelog.errors import TidelogError
    from tidelog.streaming.alerts import AlertOptions
    from tidelog.streaming.live_input import Position
    from tidelog.streaming.reasoner import Reasoner
    from tidelog.timeline.interval import Time


@dataclass(frozen=True)
class QueryOptions:
    """The options of a standing query, which a state records; None and {} stand for defaults."""

    query: str
    timeline: TimelineName | None
    memory: Memory | None
    at: str | None
    delay: dict[str | None, Fraction]
    alerts: AlertOptions | None
    corrections: Fraction | None = None
    #: The times in the file that `at` names; a state has its own.
    times: list[Fraction] | None = None

    def to_json(self) -> dict[str, Any]:
        delay = {name or "": str(length) for name, length in self.delay.items()}
        alerts = self.alerts.to_json() if self.alerts else {}
        return {
            "query": self.query,
            "timeline": self.timeline,
            "memory": self.memory,
            "at": self.at,
            "delay": delay,
            "corrections": None if self.corrections is None else str(self.corrections),
            **dict.fromkeys(("changes", "dedupe", "cooldown", "per")),
            **alerts,
        }

    def resume(self, recorded: dict[str, Any], state: str, changed: bool) -> QueryOptions:
        """Return the options that a state recorded. An option may be left out when the stream is continued, but not
        be changed; only changed rules may come with another query."""
        from tidelog.streaming.alerts import alert_options_from_json

        for name, value in self.to_json().items():
            if value and value != recorded.get(name) and not (changed and name == "query"):
                before = _format_option(recorded.get(name)) or "not given"
                raise build_mismatch(
                    f"{state} belongs to a stream with another --{name}: {before}, not {_format_option(value)}",
                    f"leave --{name} out or as it was, or start again with another --state",
                )
        delay = {name or None: Fraction(length) for name, length in recorded["delay"].items()}
        alerts = alert_options_from_json(recorded)
        length = recorded.get("corrections")
        corrections = None if length is None else Fraction(length)
        kept = recorded["timeline"], recorded["memory"], recorded["at"]
        return QueryOptions(self.query, *kept, delay, alerts, corrections)


@dataclass(frozen=True)
class LastOutput:
    """The time where a stream stopped, and the lines that were printed then."""

    time: Time
    lines: bytes


def add_command_record(
    saved: bytes,
    options: QueryOptions,
    background: str,
    last: LastOutput | None,
    held: str = "",
    undelivered: dict[str, list[dict[str, Any]]] | None = None,
) -> bytes:
    """Add to a reasoner's state what the next run of the command needs.

    These are the options, the digest of the background facts, the facts that were read and not used, the alerts that
    were not delivered and, if time stopped, when it did and what was printed then.
    """
    from tidelog.streaming.state_format import pack, unpack

    meta, arrays = unpack(saved)
    record: dict[str, Any] = {"options": options.to_json(), "background": background}
    if held:
        record["held"] = held
    if undelivered:
        record["undelivered"] = undelivered
    if last:
        record["printed"] = last.lines.decode().splitlines()
        record["stopped_at"] = str(last.time)
    return pack({**meta, "stream": record}, arrays)


def add_positions(saved: bytes, positions: dict[str, Position]) -> bytes:
    """Add to the record of a command up to where it has read the files that it follows."""
    from dataclasses import astuple

    from tidelog.streaming.state_format import pack, unpack

    if not positions:
        return saved
    meta, arrays = unpack(saved)
    record = {**meta["stream"], "positions": {path: astuple(place) for path, place in positions.items()}}
    return pack({**meta, "stream": record}, arrays)


def render_in_order(data: Dataset) -> str:
    """Print facts as text in the order of their positions."""
    from tidelog.data.relation import to_facts
    from tidelog.language.fact_text import format_fact

    lines: dict[int, str] = {}
    for relation in data.relations.values():
        order = range(len(relation)) if relation.order is None else relation.order.tolist()
        for position, fact in zip(order, to_facts(data.symbols, data.denominator, relation), strict=True):
            lines[position] = format_fact(fact, iso=data.dates)
    return "".join(f"{lines[position]}\n" for position in sorted(lines))


def compute_digest(data: Dataset | None) -> str:
    """Compute a digest that identifies background facts in any order; empty for no facts."""
    from hashlib import blake2b

    from tidelog.data.fact_printer import render_rows
    from tidelog.timeline.grid import Grid

    if data is None or not len(data):
        return ""
    digest = blake2b(digest_size=16)
    for (name, _), r in sorted(data.relations.items()):
        lines = render_rows(data.symbols, name, r, Grid(True, data.denominator)).splitlines()
        digest.update(b"\n".join(sorted(set(lines))) + b"\n")
    return digest.hexdigest()


def require_same_times(options: QueryOptions, reasoner: Reasoner, state: str) -> None:
    """Refuse a file of output times that has changed: facts that the new times ask about may be forgotten."""
    output = reasoner.evaluation.output
    if options.times is not None and output is not None and output.listed != options.times:
        raise build_mismatch(
            f"{state} belongs to a stream with other times in --at {options.at}",
            "leave --at out to continue with the times of the state, or start again with another --state",
        )


def build_mismatch(message: str, help: str) -> TidelogError:
    """Build the error for a state of another stream."""
    from tidelog.errors import Diagnostic, TidelogError

    return TidelogError(Diagnostic("TL403", message, help=help))


def _format_option(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={length}" if name else length for name, length in value.items())
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value or "")
