"""Errors for packages that belong to an extra and are not installed."""

from __future__ import annotations

from importlib import import_module

from tidelog.errors import Diagnostic, TidelogError


def require_package(package: str, extra: str, user: str) -> None:
    """Raise TL911, which names the extra, if a package cannot be imported.

    >>> require_package("json", "lsp", "`tidelog lsp`")
    """
    try:
        import_module(package)
    except ImportError as problem:
        message = f"{user} needs the package {package}, which cannot be imported: {problem}"
        raise TidelogError(Diagnostic("TL911", message, help=f"pip install 'tidelog[{extra}]'")) from None
