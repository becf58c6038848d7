"""Opening input files, with errors that say what is wrong and which file may have been meant."""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.language.wording import suggest


def is_standard_input(path: str) -> bool:
    """Whether a path stands for standard input: `-`, or a form like `-.csv`, whose suffix says how it is read."""
    return path == "-" or (path.startswith("-.") and not os.path.exists(path))


@contextmanager
def open_input(path: str, buffering: int = -1) -> Iterator[BinaryIO]:
    """Open a file to read its bytes. `-` is standard input, and a file that ends with `.gz` is unpacked.

    Raises TL010 if the file cannot be opened, or is found to be damaged while it is read.
    """
    try:
        if is_standard_input(path):
            file = sys.stdin.buffer
        elif path.lower().endswith(".gz"):
            file = cast(BinaryIO, gzip.open(path))  # noqa: SIM115
        else:
            file = open(path, "rb", buffering=buffering)  # noqa: SIM115
    except (OSError, ValueError) as error:
        raise TidelogError(describe_file_error(path, error)) from None
    try:
        yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        if str(error).startswith("Not a gzipped file"):
            help = f"rename it to {path[:-3]}"
            raise TidelogError(Diagnostic("TL010", f"{path} is not compressed with gzip", help=help)) from None
        help = "the file is damaged, or was not written to its end"
        raise TidelogError(Diagnostic("TL010", f"cannot unpack {path}: {error}", help=help)) from None
    finally:
        if not is_standard_input(path):
            file.close()


def read_input(path: str) -> bytes:
    """Read all of a file, or of standard input; a file that ends with `.gz` is unpacked."""
    with open_input(path) as file:
        try:
            return file.read()
        except gzip.BadGzipFile:
            raise
        except OSError as error:
            raise TidelogError(describe_file_error(path, error)) from None


def describe_file_error(path: str, error: OSError | ValueError) -> Diagnostic:
    """Describe why a file cannot be read. If it does not exist, suggest a file beside it that may have been meant."""
    if isinstance(error, IsADirectoryError):
        help = f"name the files in it, for example {path.rstrip('/')}/*"
        return Diagnostic("TL010", f"cannot read {path}: it is a directory", help=help)
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return Diagnostic("TL010", f"cannot read {path}: {reason}", help=_suggest_file(path, error))


def _suggest_file(path: str, error: Exception) -> str | None:
    if not isinstance(error, FileNotFoundError):
        return None
    folder, name = os.path.split(path)
    try:
        beside = sorted(os.listdir(folder or "."))
    except OSError:
        return f"there is no folder {folder}; paths start from {os.getcwd()}"
    meant = suggest(name, beside)
    return f"did you mean {os.path.join(folder, meant)}?" if meant else f"paths start from {os.getcwd()}"


def check_utf8(data: bytes, path: str, line: int = 1) -> None:
    """Raise TL010 at the first byte that is not UTF-8. `line` is the number of the first line of `data`."""
    if data.isascii():
        return
    try:
        data.decode()
    except UnicodeDecodeError as error:
        start = data.rfind(b"\n", 0, error.start) + 1
        column = len(data[start : error.start].decode()) + 1
        place = Place(path, data.count(b"\n", 0, start) + line, column)
        help = _suggest_form(data, path) if line == 1 else None
        problem = Diagnostic("TL010", "this file is not UTF-8 text", place, help=help or "save it as UTF-8")
        raise TidelogError(problem) from None


def _suggest_form(data: bytes, path: str) -> str | None:
    """Say what a file seems to be that is no text, by its first bytes."""
    forms = {
        b"\x1f\x8b": f"it is compressed with gzip: rename it to {path}.gz",
        b"PK\x03\x04": "it is a zip archive or a spreadsheet: unpack it, or save it as CSV",
        b"PAR1": "it is a Parquet file: let its name end with .parquet",
        b"\xff\xfe": "it is UTF-16 text: save it as UTF-8",
        b"\xfe\xff": "it is UTF-16 text: save it as UTF-8",
    }
    return next((help for magic, help in forms.items() if data.startswith(magic)), None)
