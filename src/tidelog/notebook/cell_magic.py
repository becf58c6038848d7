"""`%%tidelog` cells: the rules are the cell, the data are variables of the notebook, and the result is a model."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tidelog.analysis.query_names import known_predicates
from tidelog.batch import materialise
from tidelog.data.data_frames import ArrowStream, SchemaLike, to_dataset, to_schema
from tidelog.data.dataset import Dataset
from tidelog.data.input_warnings import find_warnings
from tidelog.data.schema import SCHEMA_FILE, Schema
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.program import Program
from tidelog.model import Model


class CellMagic:
    """The cell magic of one shell."""

    def __init__(self, shell: Any) -> None:
        from IPython.core.magic_arguments import MagicArgumentParser

        self._shell = shell
        parser = self._parser = MagicArgumentParser("%%tidelog", description=_DESCRIPTION)
        parser.add_argument("data", nargs="*", help="Reading=frame, the name of a dataset, or a data file")
        parser.add_argument("--query", action="append", help="show this predicate instead of all that rules derive")
        parser.add_argument("--between", help="show the answers in a range of time: LO,HI")
        parser.add_argument("--until", help="stop time here, as at the end of a stream")
        parser.add_argument("--timeline", choices=("rational", "integer"), help="the timeline of the rules")
        parser.add_argument("--schema", help="a schema: a file or a variable; tidelog.toml here unless given")
        parser.add_argument("--to", metavar="NAME", help="keep the model in this variable")

    def describe(self) -> str:
        """Return the help text of the magic."""
        text: str = self._parser.format_help()
        return text

    def run(self, line: str, cell: str) -> Model | None:
        """Run a cell and return its model, which the notebook shows; None if `--to` keeps it."""
        from IPython.core.error import UsageError

        options = self._parser.parse_argstring(line)
        try:
            model = self._materialise(options, cell)
        except TidelogError as error:
            # Without a traceback: the mistake is in the rules or in the data.
            raise UsageError(str(error)) from None
        if options.to is None:
            return model
        self._shell.user_ns[options.to] = model
        return None

    def _materialise(self, options: Any, cell: str) -> Model:
        program = Program.parse(cell, source="<cell>")
        schema = self._find_schema(options.schema)
        data = self._collect(program, options.data, schema)
        for warning in find_warnings(program, data, options.query):
            print(warning.render(), file=sys.stderr)
        between = _split_range(options.between)
        return materialise(
            program,
            data,
            query=options.query,
            between=between,
            until=options.until,
            timeline=options.timeline,
            schema=schema,
        )

    def _find_schema(self, name: str | None) -> Schema | None:
        if name is None:
            return to_schema(SCHEMA_FILE) if Path(SCHEMA_FILE).is_file() else None
        found: SchemaLike = self._shell.user_ns.get(name, name)
        return to_schema(found)

    def _collect(self, program: Program, given: Iterable[str], schema: Schema | None) -> Dataset:
        """Collect the data that a cell names, and the tables with the names of its predicates."""
        frames: dict[str, ArrowStream] = {}
        whole: list[Dataset] = []
        for text in given:
            predicate, _, name = text.rpartition("=")
            value = self._shell.user_ns.get(name)
            if isinstance(value, Dataset) and not predicate:
                whole.append(value)
            elif hasattr(value, "__arrow_c_stream__"):
                frames[predicate or name] = value
            elif isinstance(value, dict) and not predicate:
                frames |= value
            elif value is None and Path(name).is_file():
                whole.append(Dataset.load(text, schema=schema))
            else:
                raise _unknown_data(text, name, value)
        if not frames and not whole:
            frames = self.find_frames(known_predicates(program))
        data = to_dataset(frames, schema)
        for part in whole:
            data = data | part
        return data

    def find_frames(self, names: Iterable[str]) -> dict[str, ArrowStream]:
        """Find the variables of the notebook that are tables and have one of some names."""
        spaces = {name: self._shell.user_ns.get(name) for name in names}
        return {name: value for name, value in spaces.items() if hasattr(value, "__arrow_c_stream__")}


def _split_range(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    lo, comma, hi = text.partition(",")
    if not comma:
        raise TidelogError(Diagnostic("TL305", f"`--between {text}` is not a range", help="write --between LO,HI"))
    return lo, hi


def _unknown_data(text: str, name: str, value: object) -> TidelogError:
    if value is None:
        problem = f"there is no variable and no file `{name}`"
    else:
        problem = f"`{name}` is an object of type {type(value).__name__}, which is no table"
    help = "name a dataframe, as in Reading=frame, a dataset, or a file"
    return TidelogError(Diagnostic("TL207", f"{problem}, in `%%tidelog {text}`", help=help))


_DESCRIPTION = """\
Derive what follows from rules, which are the cell. Data are dataframes of the notebook: `Reading=frame` reads the
facts of a predicate from a variable, and without any of these, variables that have the name of a predicate are read.
"""
