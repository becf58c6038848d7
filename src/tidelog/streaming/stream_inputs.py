"""The inputs of a stream: one or several, read in turn and merged by time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from tidelog.analysis.value_columns import ValueColumn, merge_columns
from tidelog.data.bad_rows import BadRows
from tidelog.data.data_files import find_table_predicates, name_source, strip_predicate
from tidelog.data.dataset import Dataset
from tidelog.data.schema import Schema
from tidelog.data.statistics import describe_columns
from tidelog.data.time_units import TimeUnits
from tidelog.streaming.followed_inputs import Patience, follow_inputs
from tidelog.streaming.kafka_input import (
    KafkaOptions,
    KafkaPartition,
    KafkaTopic,
    is_topic,
    parse_address,
    read_partition,
)
from tidelog.streaming.line_decoder import LineDecoder, require_line_form
from tidelog.streaming.live_files import GrowingFile, LivePipe
from tidelog.streaming.live_input import LiveInput, Position
from tidelog.streaming.merged_input import InputMerger, merge_files
from tidelog.streaming.stream_reader import StopSignal, StreamPiece, is_live, read_pieces

#: Seconds after which a silent input no longer holds the others back, unless there is a heartbeat.
SILENCE = 10.0


@dataclass(frozen=True)
class Following:
    """How live inputs are read: from the positions of a state, whether they are followed, and with which heartbeat.

    `kafka` are settings of the Kafka client.
    """

    positions: Mapping[str, Position] = field(default_factory=dict)
    follow: bool = False
    heartbeat: Fraction | None = None
    kafka: Mapping[str, str] = field(default_factory=dict)


class StreamInputs:
    """The inputs of a stream, in the order in which the user named them.

    `prepare` finds the times of facts, where these are arguments. `held` are facts that an earlier run had read and
    not used; they come first. Rows that cannot be read go to `bad_rows`, if given.
    """

    def __init__(
        self,
        paths: Sequence[str],
        prepare: Callable[[Dataset], Dataset],
        stop: StopSignal | None = None,
        held: Dataset | None = None,
        bad_rows: BadRows | None = None,
        following: Following | None = None,
        schema: Schema | None = None,
    ) -> None:
        self.paths = tuple(paths)
        self._following = following or Following()
        self._prepare, self._stop, self._bad_rows, self._schema = prepare, stop, bad_rows, schema
        #: The types of the values of each column, per input.
        self.columns: list[ValueColumn] = []
        #: Called with the facts of each piece and the types of their columns, before the piece is given out.
        self.inspect: Callable[[Dataset], None] | None = None
        self._units = TimeUnits()
        self._held = held or Dataset()
        self.heartbeat = self._following.heartbeat
        #: Files that are read to their end, and inputs that are not files or are followed.
        self._sources: list[str | LiveInput] = [source for path in paths for source in self._open(path)]
        self.live = any(not isinstance(s, str) or is_live(strip_predicate(s)) for s in self._sources)
        #: The number of the last line that was read, per input.
        self.lines = [0] * len(self._sources)
        self._merger = InputMerger(len(self._sources) + 1)

    def _open(self, path: str) -> list[str] | Sequence[LiveInput]:
        """Open a live input, which may have several parts; a file that is not followed is opened when it is read."""
        options = self._following
        if is_topic(path):
            how = KafkaOptions(options.kafka, options.positions, options.follow)
            return KafkaTopic(parse_address(path), self._schema, self._bad_rows, how).partitions
        if not options.follow:
            return [path]
        require_line_form(path)
        decoder = LineDecoder(path, self._schema, self._bad_rows)
        if is_live(strip_predicate(path)):
            return [LivePipe(decoder)]
        return [GrowingFile(decoder, options.positions.get(path, Position()))]

    @property
    def _live_inputs(self) -> list[LiveInput]:
        return [source for source in self._sources if not isinstance(source, str)]

    def read(self) -> Iterator[StreamPiece]:
        """Yield the facts of all inputs in order of arrival."""
        for piece in self._read_inputs():
            if piece.line >= 0:
                self.lines[piece.input] = piece.line
            yield piece

    def find_table_predicates(self) -> set[str]:
        """Return the predicates of all tables, also of those without rows."""
        return {name for path in self.paths for name in find_table_predicates(path, self._schema)}

    def close(self) -> None:
        """Close all live inputs."""
        for source in self._live_inputs:
            source.close()

    def held_facts(self) -> Dataset:
        """Return the facts that were read and not given out, because they wait for other inputs."""
        return self._merger.held_facts()

    def positions(self) -> dict[str, Position]:
        """Return up to where inputs were read whose positions can be found again."""
        return {source.key: source.position for source in self._live_inputs if source.key}

    def describe_position(self) -> str:
        """Say up to where the inputs were read."""
        return ", ".join(
            f"line {line} of {name_source(source)}" if isinstance(source, str) else source.describe_position()
            for line, source in zip(self.lines, self._sources, strict=True)
        )

    def _check(self, data: Dataset, source: str) -> Dataset:
        """Refuse times in another unit than before, and note the types of the columns; return the data."""
        facts = data.as_columns()
        self._units.add(data.symbols, facts, source)
        described = data.sources or tuple(describe_columns(data.symbols, facts, source))
        self.columns = merge_columns([*self.columns, *described])
        if self.inspect:
            self.inspect(Dataset(data.symbols, facts, described))
        return data

    def check_until(self, until: Fraction) -> None:
        """Note where time stops, so that a stream of dates is refused if that is a number of another unit."""
        self._units.ask(f"--until {until}", until)

    def check_background(self, background: Dataset) -> None:
        """Note the unit of the times of background facts, so that the stream is refused if it has another."""
        self._units.add(background.symbols, background.as_columns(), "the background")

    def _read_checked(self, source: str | LiveInput) -> Iterator[StreamPiece]:
        """Read one input to its end."""
        name = name_source(source) if isinstance(source, str) else source.name
        if isinstance(source, KafkaPartition):
            pieces = read_partition(source, self._stop)
        else:
            assert isinstance(source, str)
            pieces = read_pieces(source, self._stop, self._bad_rows, self._schema)
        for piece in pieces:
            self._check(piece.data, name)
            yield piece

    def _read_inputs(self) -> Iterator[StreamPiece]:
        if self._following.follow:
            self._add_held()
            inputs = self._live_inputs
            heartbeat = None if self.heartbeat is None else float(self.heartbeat)
            patience = Patience(SILENCE if heartbeat is None else heartbeat, heartbeat)

            def prepare(number: int, data: Dataset) -> Dataset:
                return self._prepare(self._check(data, inputs[number].name))

            yield from follow_inputs(self._merger, inputs, prepare, self._stop, patience)
            return
        readers = [self._read_checked(source) for source in self._sources]
        if len(readers) == 1 and not len(self._held):
            yield from readers[0]
            return
        self._add_held()
        yield from merge_files(self._merger, readers, self._prepare)

    def _add_held(self) -> None:
        """Add the facts of an earlier run, which have no more to follow."""
        earlier = len(self._sources)
        self._merger.add(earlier, self._prepare(self._held))
        self._merger.end(earlier)
