"""Every type that a public signature mentions can be imported from a public place."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from types import ModuleType
from typing import Any

import pytest

import tidelog as tl

#: Results: tidelog constructs them, so that the parameters of their constructors are its own business.
RESULTS = ("Answers", "JobOutput", "Model", "StableModel", "StableModels", "StreamStep")

#: Columns of numbers inside datasets and models: what is in them may change.
OPAQUE = ("Columns", "Relation", "Rows", "Sheet", "Symbols", "ValueColumn")

#: Names in annotations that come from elsewhere.
FOREIGN = frozenset(
    {
        "Any",
        "Callable",
        "ClassVar",
        "Collection",
        "DataFrame",
        "False",
        "Fraction",
        "Generator",
        "IO",
        "Iterable",
        "Iterator",
        "Literal",
        "Mapping",
        "None",
        "Path",
        "Self",
        "Sequence",
        "SparkSession",
        "StreamingQuery",
        "True",
        "Unpack",
    }
)

NAMESPACES: dict[str, ModuleType] = {
    "tidelog": tl,
    **{name: value for name in tl.__all__ if isinstance(value := getattr(tl, name), ModuleType)},
}


def list_names(space: ModuleType) -> list[str]:
    return list(getattr(space, "__all__", [name for name in vars(space) if not name.startswith("_")]))


PUBLIC = {name for space in NAMESPACES.values() for name in list_names(space)}


def find_callables(name: str, value: object) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield a function, or the public methods and properties of a class."""
    if inspect.isfunction(value):
        yield name, value
    if not inspect.isclass(value):
        return
    for method, member in vars(value).items():
        function = getattr(member, "__func__", None) or getattr(member, "fget", None) or member
        is_public = not method.startswith("_") or (method == "__init__" and name not in RESULTS)
        if is_public and inspect.isfunction(function):
            yield f"{name}.{method}", function


def find_annotations(space: ModuleType) -> Iterator[tuple[str, str]]:
    """Yield the annotations of all public signatures and fields of a namespace."""
    for name in list_names(space):
        value = getattr(space, name)
        if name in OPAQUE or not str(getattr(value, "__module__", "")).startswith("tidelog"):
            continue
        for place, function in find_callables(name, value):
            for annotation in inspect.get_annotations(function).values():
                yield place, str(annotation)
        if inspect.isclass(value) and is_dataclass(value) and name not in RESULTS:
            for field in fields(value):
                yield f"{name}.{field.name}", str(field.type)


def find_own_types(annotation: str) -> Iterator[str]:
    """Yield the names in an annotation that look like types of tidelog."""
    plain = re.sub(r"'[^']*'|\"[^\"]*\"", "", annotation)
    for name in re.findall(r"\b[A-Z]\w*", plain):
        if name not in FOREIGN:
            yield name


@pytest.mark.parametrize("space", NAMESPACES)
def test_types_in_signatures_are_public(space: str) -> None:
    hidden = {
        (name, place)
        for place, annotation in find_annotations(NAMESPACES[space])
        for name in find_own_types(annotation)
        if name not in PUBLIC
    }
    assert not hidden
