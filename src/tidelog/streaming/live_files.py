"""Files that grow, and pipes: inputs of a stream that give their lines as they are written.

A file that is replaced (rotated) is read to its end, then the new one from its beginning. A file that was truncated is
read from its beginning, too.
"""

from __future__ import annotations

import os
import select
import sys
from dataclasses import replace

from tidelog.data.data_files import strip_predicate
from tidelog.data.dataset import Dataset
from tidelog.errors import TidelogError
from tidelog.language.file_errors import describe_file_error, is_standard_input
from tidelog.streaming.line_decoder import LineDecoder
from tidelog.streaming.live_input import Position
from tidelog.streaming.stream_reader import StreamPiece

_BLOCK = 1 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class GrowingFile:
    """A file that grows."""

    ended = False
    wait_fd: int | None = None

    def __init__(self, decoder: LineDecoder, start: Position) -> None:
        self.name, self.key = decoder.name, decoder.path
        self._path, self._decoder = strip_predicate(decoder.path), decoder
        self.position = start
        self._open()
        size = os.fstat(self._file.fileno()).st_size
        if start.inode not in (0, self.position.inode) or size < start.offset:
            self.position = replace(self.position, offset=0, line=0)

    def _open(self) -> None:
        try:
            self._file = open(self._path, "rb", buffering=0)  # noqa: SIM115
        except OSError as error:
            raise TidelogError(describe_file_error(self._path, error)) from None
        self.position = replace(self.position, inode=os.fstat(self._file.fileno()).st_ino)

    def read(self) -> StreamPiece | None:
        """Read whole lines that have been added; None if there are none. A note says if the file was replaced."""
        if self._decoder.needs_header and self.position.line:
            self._read_header()
        self._file.seek(self.position.offset)
        text = self._file.read(_BLOCK)
        while len(text) and b"\n" not in text and (more := self._file.read(_BLOCK)):
            text += more
        text = text[: text.rfind(b"\n") + 1]
        if not text:
            return self._check_file()
        piece, text = decode_lines(self._decoder, text, self.position.line)
        self.position = replace(self.position, offset=self.position.offset + len(text), line=piece.line)
        return piece

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def describe_position(self) -> str:
        """Say up to where the file was read."""
        return f"line {self.position.line} of {self.name}"

    def _read_header(self) -> None:
        """Read the header of a table that an earlier run had read further."""
        self._file.seek(0)
        text = self._file.read(_BLOCK)
        self._decoder.decode(text[: text.find(b"\n") + 1], 1)

    def _check_file(self) -> StreamPiece | None:
        """Start again at the beginning of a file that was replaced or cut."""
        try:
            found = os.stat(self._path)
        except OSError:
            return None  # between the removal of the old file and the creation of the new one
        if found.st_ino != self.position.inode:
            self._file.close()
            self._open()
            change = "was replaced"
        elif found.st_size < self.position.offset:
            change = "was cut"
        else:
            return None
        self.position = replace(self.position, offset=0, line=0)
        return StreamPiece(Dataset(), 0, note=f"{self.name} {change}; it is read from its beginning")


class LivePipe:
    """Standard input or a named pipe, which ends when its last writer closes it."""

    def __init__(self, decoder: LineDecoder) -> None:
        self.name, self.key = decoder.name, ""
        self._decoder, self._rest, self._lines = decoder, b"", 0
        self.ended = False
        self.position = Position()
        path = strip_predicate(decoder.path)
        self._is_own = not is_standard_input(path)
        try:
            self._fd = os.open(path, os.O_RDONLY) if self._is_own else sys.stdin.buffer.fileno()
        except OSError as error:
            raise TidelogError(describe_file_error(path, error)) from None

    @property
    def wait_fd(self) -> int | None:
        """The file descriptor that becomes readable when there is more."""
        return None if self.ended else self._fd

    def read(self) -> StreamPiece | None:
        """Read the whole lines that have arrived; None if there are none. The last line need not be terminated."""
        if self.ended or not select.select([self._fd], [], [], 0)[0]:
            return None
        text = os.read(self._fd, _BLOCK)
        self.ended = not text
        whole = self._rest + text
        end = len(whole) if self.ended else whole.rfind(b"\n") + 1
        whole, self._rest = whole[:end], whole[end:]
        if not whole:
            return None
        piece, _ = decode_lines(self._decoder, whole, self._lines)
        self._lines = piece.line
        return piece

    def close(self) -> None:
        """Close a named pipe; standard input stays open."""
        if self._is_own:
            os.close(self._fd)

    def describe_position(self) -> str:
        """Say up to where the pipe was read."""
        return f"line {self._lines} of {self.name}"


def decode_lines(decoder: LineDecoder, text: bytes, before: int) -> tuple[StreamPiece, bytes]:
    """Decode whole lines that follow `before` others; return also the text that was used, up to the first error."""
    data, error = decoder.decode(text if before else text.removeprefix(_BYTE_ORDER_MARK), before + 1)
    if error and (place := error.diagnostics[0].place):
        text = b"".join(text.splitlines(keepends=True)[: place.line - before - 1])
    lines = text.count(b"\n") + (bool(text) and not text.endswith(b"\n"))
    return StreamPiece(data, before + lines, error), text
