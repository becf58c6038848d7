"""Rules over time, on files, tables and streams: every answer that follows, none that does not."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidelog.analysis.report import Report, check
    from tidelog.data.dataset import Dataset
    from tidelog.errors import TidelogError
    from tidelog.language.program import Program
    from tidelog.language.syntax import Fact
    from tidelog.model import Model, Repeat
    from tidelog.reasoning import Answer, Inconsistent, Undecided, entails, materialise
    from tidelog.stable.answers import StableModels, stable_entails, stable_models
    from tidelog.stable.models import StableModel
    from tidelog.stable.stream import StableReasoner, StableStep
    from tidelog.streaming.reasoner import Reasoner
    from tidelog.timeline.interval import Interval

__version__ = "0.1.0"

#: Where each public name lives; modules are imported when a name is first used, so that the import stays light.
_HOME = {
    "Answer": "tidelog.reasoning",
    "Dataset": "tidelog.data.dataset",
    "Fact": "tidelog.language.syntax",
    "Inconsistent": "tidelog.reasoning",
    "Interval": "tidelog.timeline.interval",
    "Model": "tidelog.model",
    "Program": "tidelog.language.program",
    "Reasoner": "tidelog.streaming.reasoner",
    "Repeat": "tidelog.model",
    "Report": "tidelog.analysis.report",
    "StableModel": "tidelog.stable.models",
    "StableModels": "tidelog.stable.answers",
    "StableReasoner": "tidelog.stable.stream",
    "StableStep": "tidelog.stable.stream",
    "TidelogError": "tidelog.errors",
    "Undecided": "tidelog.reasoning",
    "check": "tidelog.analysis.report",
    "entails": "tidelog.reasoning",
    "materialise": "tidelog.reasoning",
    "stable_entails": "tidelog.stable.answers",
    "stable_models": "tidelog.stable.answers",
}

__all__ = [
    "Answer",
    "Dataset",
    "Fact",
    "Inconsistent",
    "Interval",
    "Model",
    "Program",
    "Reasoner",
    "Repeat",
    "Report",
    "StableModel",
    "StableModels",
    "StableReasoner",
    "StableStep",
    "TidelogError",
    "Undecided",
    "check",
    "entails",
    "materialise",
    "stable_entails",
    "stable_models",
]


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'tidelog' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
