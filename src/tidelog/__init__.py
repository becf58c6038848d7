"""Rules over time, on files, tables and streams: every answer that follows, none that does not."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidelog.analysis.report import Report, check
    from tidelog.data.dataset import Dataset
    from tidelog.errors import TidelogError
    from tidelog.hypothetical.entries import Moment, SupportedAnswer
    from tidelog.hypothetical.online import Hypotheses, hypotheses
    from tidelog.language.program import Program
    from tidelog.language.syntax import Fact
    from tidelog.model import Model, Repeat
    from tidelog.proofs.explainer import Explainer
    from tidelog.proofs.explanation import Explanation, explain
    from tidelog.reasoning import Answer, Inconsistent, Undecided, entails, materialise
    from tidelog.stable.answers import StableModels, stable_entails, stable_models
    from tidelog.stable.models import StableModel
    from tidelog.stable.stream import StableReasoner, StableStep
    from tidelog.streaming.reasoner import Reasoner
    from tidelog.timeline.interval import Interval
    from tidelog.windows.validity import Containment, WindowReport, contained, window

__version__ = "0.1.0"

#: Where each public name lives; modules are imported when a name is first used, so that the import stays light.
_HOME = {
    "Answer": "tidelog.reasoning",
    "Containment": "tidelog.windows.validity",
    "Dataset": "tidelog.data.dataset",
    "Explainer": "tidelog.proofs.explainer",
    "Explanation": "tidelog.proofs.explanation",
    "Fact": "tidelog.language.syntax",
    "Hypotheses": "tidelog.hypothetical.online",
    "Inconsistent": "tidelog.reasoning",
    "Interval": "tidelog.timeline.interval",
    "Model": "tidelog.model",
    "Moment": "tidelog.hypothetical.entries",
    "Program": "tidelog.language.program",
    "Reasoner": "tidelog.streaming.reasoner",
    "Repeat": "tidelog.model",
    "Report": "tidelog.analysis.report",
    "SupportedAnswer": "tidelog.hypothetical.entries",
    "StableModel": "tidelog.stable.models",
    "StableModels": "tidelog.stable.answers",
    "StableReasoner": "tidelog.stable.stream",
    "StableStep": "tidelog.stable.stream",
    "TidelogError": "tidelog.errors",
    "Undecided": "tidelog.reasoning",
    "WindowReport": "tidelog.windows.validity",
    "check": "tidelog.analysis.report",
    "contained": "tidelog.windows.validity",
    "entails": "tidelog.reasoning",
    "explain": "tidelog.proofs.explanation",
    "hypotheses": "tidelog.hypothetical.online",
    "materialise": "tidelog.reasoning",
    "window": "tidelog.windows.validity",
    "stable_entails": "tidelog.stable.answers",
    "stable_models": "tidelog.stable.answers",
}

__all__ = [
    "Answer",
    "Containment",
    "Dataset",
    "Explainer",
    "Explanation",
    "Fact",
    "Hypotheses",
    "Inconsistent",
    "Interval",
    "Model",
    "Moment",
    "Program",
    "Reasoner",
    "Repeat",
    "Report",
    "StableModel",
    "StableModels",
    "StableReasoner",
    "StableStep",
    "SupportedAnswer",
    "TidelogError",
    "Undecided",
    "WindowReport",
    "check",
    "contained",
    "entails",
    "explain",
    "hypotheses",
    "materialise",
    "stable_entails",
    "stable_models",
    "window",
]


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'tidelog' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
