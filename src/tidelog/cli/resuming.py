"""What a state keeps of the command that made it, so that the next run goes on with the same stream and no other."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidelog.data.dataset import Dataset
    from tidelog.errors import TidelogError
    from tidelog.streaming.alerts import Alerting
    from tidelog.timeline.interval import Time


@dataclass(frozen=True)
class Options:
    """What a standing query is, besides its rules. A state keeps them; None and {} stand for what is usual."""

    query: str
    timeline: str | None
    memory: str | None
    at: str | None
    delay: dict[str | None, Fraction]
    alerts: Alerting | None

    def to_json(self) -> dict[str, Any]:
        delay = {name or "": str(length) for name, length in self.delay.items()}
        told = self.alerts.to_json() if self.alerts else {}
        return {
            "query": self.query,
            "timeline": self.timeline,
            "memory": self.memory,
            "at": self.at,
            "delay": delay,
            **dict.fromkeys(("changes", "dedupe", "cooldown", "per")),
            **told,
        }

    def on(self, kept: dict[str, Any], state: str, changed: bool) -> Options:
        """The options of a state, which may be left out when it is resumed, but not changed; with other rules, the
        query may be another, too."""
        from tidelog.streaming.alerts import config_of

        for name, value in self.to_json().items():
            if value and value != kept.get(name) and not (changed and name == "query"):
                shown = _shown(kept.get(name)) or "not given"
                raise another(
                    f"{state} is of a stream with another --{name}: {shown}, not {_shown(value)}",
                    f"leave --{name} out or as it was, or start again with another --state",
                )
        delay = {name or None: Fraction(length) for name, length in kept["delay"].items()}
        return Options(self.query, kept["timeline"], kept["memory"], kept["at"], delay, config_of(kept))


def with_notes(saved: bytes, options: Options, background: str, last_words: tuple[Time, bytes] | None) -> bytes:
    """A state of the reasoner together with what the next run of the command has to know: the options, the digest of
    the background facts, and, where time stopped, when it did and what was printed then."""
    from tidelog.streaming.state import pack, unpack

    meta, arrays = unpack(saved)
    notes: dict[str, Any] = {"options": options.to_json(), "background": background}
    if last_words:
        stopped_at, lines = last_words
        notes["printed"] = lines.decode().splitlines()
        notes["stopped_at"] = str(stopped_at)
    return pack({**meta, "stream": notes}, arrays)


def digest_of(data: Dataset | None) -> str:
    """What identifies background facts, in whatever order they come; nothing for none."""
    from hashlib import blake2b

    from tidelog.data.render import render_rows

    if data is None or not len(data):
        return ""
    digest = blake2b(digest_size=16)
    for (name, _), r in sorted(data.relations.items()):
        lines = render_rows(data.symbols, name, r.args, r.lo, r.hi, data.denominator).splitlines()
        digest.update(b"\n".join(sorted(set(lines))) + b"\n")
    return digest.hexdigest()


def another(message: str, help: str) -> TidelogError:
    """What is refused: a state is that of another stream."""
    from tidelog.errors import Diagnostic, TidelogError

    law = "a state goes on with the rules, the query and the options that made it"
    return TidelogError(Diagnostic("TL403", message, law=law, help=help))


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={length}" if name else length for name, length in value.items())
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value or "")
