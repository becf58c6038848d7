"""The declaration of a diagnostic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: What the text of an example is. Tests run all kinds but situations, which are described in words.
ExampleKind = Literal["dmtl", "tdl", "facts", "csv", "pipeline", "test", "command", "situation"]


@dataclass(frozen=True, slots=True)
class Example:
    """Input that triggers a diagnostic, and what to write or do instead."""

    kind: ExampleKind
    text: str
    correction: str


@dataclass(frozen=True, slots=True)
class DiagnosticEntry:
    """One diagnostic. A code, once released, keeps its meaning.

    `law` and `help` are the defaults that a `Diagnostic` shows; they are None where they depend on the case. `note`
    appears only on the page of the code, `tidelog explain-code`.
    """

    code: str
    title: str
    example: Example
    law: str | None = None
    help: str | None = None
    note: str | None = None
