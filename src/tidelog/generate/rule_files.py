"""The rules that ship with the generated data sets."""

from __future__ import annotations

from importlib.resources import files


def read_rules(name: str) -> str:
    """Read a rule file of this package, such as `traffic.dmtl`."""
    return files("tidelog.generate").joinpath(name).read_text(encoding="utf-8")
