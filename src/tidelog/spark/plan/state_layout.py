"""The layout of a job's state: which changes of the split make an old state unusable."""

from __future__ import annotations

from typing import Any

from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.wording import plural


def require_same_layout(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> None:
    """Raise TL403 if a job with the new layout cannot continue from the state of a bucket with the old one."""
    other = explain_layout_change(old, new)
    if other is not None:
        raise TidelogError(
            Diagnostic(
                "TL403",
                f"the state was saved by a job with a different split: {other}",
                law="facts stay in the bucket that they were sent to, and later stages keep what they received",
                help="run the job with the rules and the number of buckets that it had, or start without the state",
            )
        )


def explain_layout_change(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> str | None:
    """Explain why a job with the new layout cannot continue from a state with the old one; None if it can.

    Facts stay in the bucket that they were sent to. What a stage has passed on stays with the stages after it, so only
    the rules of the last stage can change.
    """
    if len(old) != len(new):
        return f"it had {plural(len(old), 'stage')}, and now has {plural(len(new), 'stage')}"
    if old[0].get("stable") != new[0].get("stable"):
        was, now = (layout[0].get("stable") for layout in (old, new))
        return f"its answers were {_describe_answers(was)}, and now are {_describe_answers(now)}"
    for number, (was, now) in enumerate(zip(old, new, strict=True), 1):
        if was["buckets"] != now["buckets"]:
            return f"stage {number} had {was['buckets']} buckets, and now has {now['buckets']}"
        for name in was["key"].keys() & now["key"].keys():
            if was["key"][name] != now["key"][name]:
                before, after = _describe_key(was["key"][name]), _describe_key(now["key"][name], True)
                return f"in stage {number}, {name} {before}, and now it {after}"
        if was["rules"] != now["rules"]:
            return (
                f"the rules of stage {number} have changed, and later stages hold the facts that the old ones derived: "
                "only the rules of the last stage may change"
            )
    return None


def _describe_answers(stable: str | None) -> str:
    return "those of the one model" if stable is None else f"those of stable models ({stable})"


def _describe_key(position: int | None, now: bool = False) -> str:
    if position is None:
        return "is copied" if now else "was copied"
    return f"{'goes' if now else 'went'} by argument {position + 1}"
