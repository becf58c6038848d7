"""Files that cannot be opened, in words."""

from __future__ import annotations

import os

from tidelog.errors import Diagnostic
from tidelog.language.codes import suggest


def unreadable(path: str, error: OSError | ValueError) -> Diagnostic:
    """A file that cannot be opened; if there is none, one beside it may have been meant."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    help = None
    if isinstance(error, FileNotFoundError):
        folder, name = os.path.split(path)
        try:
            beside = sorted(os.listdir(folder or "."))
        except OSError:
            help = f"there is no folder {folder}; paths start from {os.getcwd()}"
        else:
            meant = suggest(name, beside)
            help = f"did you mean {os.path.join(folder, meant)}?" if meant else f"paths start from {os.getcwd()}"
    return Diagnostic("TL010", f"cannot read {path}: {reason}", help=help)
