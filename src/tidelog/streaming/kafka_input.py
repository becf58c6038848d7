"""Kafka topics as inputs of a stream: `kafka://broker:9092/topic`, with JSON records that a schema describes.

Every partition is an input of its own, merged with the others by time. Offsets are part of the saved state of a
stream, and are not committed to the broker: the facts and the answers of a state always belong together.
"""

from __future__ import annotations

import logging
import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tidelog.data.bad_rows import BadRow, BadRows, set_aside
from tidelog.data.dataset import Dataset
from tidelog.data.row_recovery import Row
from tidelog.data.table_lines import TableRecords
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.wording import plural, suggest
from tidelog.streaming.live_input import Position
from tidelog.streaming.stream_reader import StopSignal, StreamPiece

if TYPE_CHECKING:
    from tidelog.data.schema import Schema, TableSchema

_ADDRESS = re.compile(r"(?:([^=/\\]+)=)?kafka://([^/]+)/([A-Za-z0-9._-]+)/?")
#: Seconds in which a broker has to answer at the start.
_ANSWER = 10.0
#: Records that are fetched at once, and that may wait in a partition before it is paused.
_BATCH, _MOST_WAITING = 10_000, 50_000
#: Seconds between two looks at a topic that has not grown, when it is read to its end.
_PAUSE = 0.05


@dataclass(frozen=True)
class KafkaAddress:
    """A topic of a broker, as the user named it; `predicate` is the one in front of it, if any."""

    path: str
    predicate: str | None
    servers: str
    topic: str


@dataclass(frozen=True)
class KafkaOptions:
    """How topics are read: settings of the client, where partitions start, and whether they are followed."""

    settings: Mapping[str, str] = field(default_factory=dict)
    starts: Mapping[str, Position] = field(default_factory=dict)
    follow: bool = False


def is_topic(path: str) -> bool:
    """Whether an input is a Kafka topic."""
    return "kafka://" in path


def parse_address(path: str) -> KafkaAddress:
    """Parse `kafka://broker:9092/topic`, or `Paid=kafka://broker:9092/topic`; raise TL410 for anything else."""
    match = _ADDRESS.fullmatch(path)
    if match is None:
        law = "a topic is written kafka://broker:9092/topic; several brokers are separated by commas"
        raise TidelogError(Diagnostic("TL410", f"{path} is not the address of a topic", law=law))
    return KafkaAddress(path, match[1], match[2], match[3])


def read_settings(path: str) -> dict[str, str]:
    """Read a file of settings for the Kafka client: one `key=value` per line; `#` begins a comment."""
    from tidelog.language.file_errors import check_utf8, read_input

    data = read_input(path)
    check_utf8(data, path)
    lines = [line.strip() for line in data.decode().splitlines()]
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {key.strip(): value.strip() for key, _, value in pairs}


def _find_tables(address: KafkaAddress, schema: Schema | None) -> list[TableSchema]:
    """Find the schemas of a topic's records; raise TL410 if there is none."""
    predicate, topic = address.predicate, address.topic
    tables = schema.find_topic(topic) if schema and predicate is None else []
    if schema and predicate is not None and predicate in schema.tables:
        tables = [schema.tables[predicate]]
    if not tables:
        section = f"[schema.{predicate}]" if predicate else f'a section with topic = "{topic}"'
        where = schema.source if schema and schema.source else "tidelog.toml next to the rules"
        message = f"there is no schema for the topic {topic}"
        law = "a schema says which fields of the JSON records are arguments, and which is the time"
        raise TidelogError(Diagnostic("TL410", message, law=law, help=f"write {section} into {where}"))
    return tables


class KafkaTopic:
    """A topic with all its partitions, read by one consumer."""

    def __init__(
        self, address: KafkaAddress, schema: Schema | None, bad_rows: BadRows | None, options: KafkaOptions
    ) -> None:
        self.address, self._bad_rows = address, bad_rows
        self.tables = _find_tables(address, schema)
        self.takes_changes = schema is not None and schema.takes_changes
        self.notes: list[str] = []
        self._client = client = _import_client()
        codes = client.KafkaError
        self._passing_errors = (codes._TRANSPORT, codes._ALL_BROKERS_DOWN, codes._TIMED_OUT, codes._RESOLVE)
        self._consumer = self._connect(options.settings)
        self._paused: set[int] = set()
        self._closed = False
        self.partitions = [self._open_partition(number, options) for number in self._find_partitions()]
        places = [self._place(partition.number, partition.position.offset) for partition in self.partitions]
        self._consumer.assign(places)

    def _connect(self, settings: Mapping[str, str]) -> Any:
        logger = logging.getLogger("tidelog.kafka")
        logger.addHandler(logging.NullHandler())
        logger.propagate = False
        own = {
            "bootstrap.servers": self.address.servers,
            "group.id": "tidelog",
            "enable.auto.commit": "false",
            "auto.offset.reset": "error",
            "enable.partition.eof": "true",
        }
        try:
            return self._client.Consumer({**settings, **own, "error_cb": self._note_error}, logger=logger)
        except (self._client.KafkaException, ValueError, TypeError) as problem:
            raise self._error(f"the Kafka client refuses its settings: {_describe(problem)}") from None

    def _find_partitions(self) -> list[int]:
        try:
            topics = self._consumer.list_topics(timeout=_ANSWER).topics
        except self._client.KafkaException:
            help = "check the address, and that the broker is running and reachable from here"
            raise self._error(f"the Kafka broker {self.address.servers} does not answer", help) from None
        found = topics.get(self.address.topic)
        if found is None or found.error is not None or not found.partitions:
            close = suggest(self.address.topic, [name for name in topics if not name.startswith("__")])
            help = f"did you mean {close}?" if close else "create the topic first"
            raise self._error(f"the broker {self.address.servers} has no topic {self.address.topic}", help)
        return sorted(found.partitions)

    def _open_partition(self, number: int, options: KafkaOptions) -> KafkaPartition:
        key = f"{self.address.path}[{number}]"
        try:
            low, high = self._consumer.get_watermark_offsets(self._place(number), timeout=_ANSWER)
        except self._client.KafkaException as problem:
            raise self._error(f"cannot read the topic {self.address.topic}: {_describe(problem)}") from None
        start = options.starts.get(key, Position(offset=low))
        name = f"{self.address.topic}[{number}]"
        if start.offset < low:
            gone = plural(low - start.offset, "record")
            self.notes.append(f"{name}: the broker has deleted {gone} since the state was saved; reading goes on after")
            start = replace(start, offset=low)
        if start.offset > high:
            message = f"{name} ends at offset {high}, but the state has read up to {start.offset}"
            raise self._error(message, "the topic was created anew: start again with another --state")
        return KafkaPartition(self, number, key, name, start, None if options.follow else high)

    def _place(self, number: int, offset: int | None = None) -> Any:
        if offset is None:
            return self._client.TopicPartition(self.address.topic, number)
        return self._client.TopicPartition(self.address.topic, number, offset)

    def fetch(self) -> None:
        """Move the records that have arrived to the queues of their partitions."""
        by_number = {partition.number: partition for partition in self.partitions}
        try:
            messages = self._consumer.consume(_BATCH, timeout=0)
        except self._client.KafkaException as problem:
            raise self._error(f"cannot read the topic {self.address.topic}: {_describe(problem)}") from None
        for message in messages:
            error, partition = message.error(), by_number.get(message.partition())
            if error is None and partition:
                partition.queue.append((message.offset(), message.value()))
            elif error and error.code() == self._client.KafkaError._PARTITION_EOF and partition:
                partition.caught_up = True
            elif error and error.code() not in self._passing_errors:
                raise self._error(f"cannot read the topic {self.address.topic}: {error.str()}")
        for number, partition in by_number.items():
            waiting = len(partition.queue)
            if waiting > _MOST_WAITING and number not in self._paused:
                self._consumer.pause([self._place(number)])
                self._paused.add(number)
            elif waiting < _BATCH and number in self._paused:
                self._consumer.resume([self._place(number)])
                self._paused.discard(number)

    def read_records(self, records: Sequence[tuple[int, bytes | None]], partition: KafkaPartition) -> StreamPiece:
        """Turn records into facts; those without a value, or that are no facts, are bad rows."""
        rows, empty = [], []
        for offset, value in records:
            if value is None:
                reason = "the record has no value"
                empty.append(BadRow(partition.name, offset, reason, "", "TL207", "a record is a JSON object"))
            else:
                rows.append(Row(offset, value.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"))
        set_aside(empty, self._bad_rows)
        return StreamPiece(partition.table.read(rows, self._bad_rows), records[-1][0])

    def close(self) -> None:
        """Leave the broker."""
        if not self._closed:
            self._closed = True
            self._consumer.close()

    def _note_error(self, error: Any) -> None:
        """Say once that no broker answers; the client keeps trying."""
        if error.code() == self._client.KafkaError._ALL_BROKERS_DOWN:
            note = f"the Kafka broker {self.address.servers} does not answer; waiting for it"
            if note not in self.notes:
                self.notes.append(note)

    def _error(self, message: str, help: str | None = None) -> TidelogError:
        return TidelogError(Diagnostic("TL410", message, help=help))


class KafkaPartition:
    """A partition of a topic. `end` is the offset where reading stops; None if it never does."""

    wait_fd: int | None = None

    def __init__(self, topic: KafkaTopic, number: int, key: str, name: str, start: Position, end: int | None) -> None:
        self.topic, self.number, self.key, self.name = topic, number, key, name
        self.position, self._end = start, end
        #: Whether the consumer has seen the end of the partition; records of transactions may stand before it.
        self.caught_up = False
        self.queue: deque[tuple[int, bytes | None]] = deque()
        self.table = TableRecords(name, topic.tables, topic.takes_changes)

    @property
    def ended(self) -> bool:
        """Whether the partition was read up to its end."""
        return self._end is not None and (self.position.offset >= self._end or (self.caught_up and not self.queue))

    def read(self) -> StreamPiece | None:
        """Read the records that have arrived; None if there are none."""
        note = self.topic.notes.pop() if self.topic.notes else ""
        if not self.queue and not self.ended:
            self.topic.fetch()
        records = [self.queue.popleft() for _ in range(min(len(self.queue), _BATCH))]
        if not records:
            return StreamPiece(Dataset(), -1, note=note) if note else None
        piece = _read_to_first_error(lambda part: self.topic.read_records(part, self), records)
        self.position = replace(self.position, offset=piece.line + 1, line=self.position.line + 1)
        return replace(piece, note=note)

    def close(self) -> None:
        """Leave the broker, together with the other partitions."""
        self.topic.close()

    def describe_position(self) -> str:
        """Say which record is the next one."""
        return f"offset {self.position.offset} of {self.name}"


def _read_to_first_error(
    read: Callable[[Sequence[tuple[int, bytes | None]]], StreamPiece], records: list[tuple[int, bytes | None]]
) -> StreamPiece:
    """Read records; if some are bad and have no place, read those before the first one, and return the error."""
    before = records[0][0] - 1
    error: TidelogError | None = None
    while records:
        try:
            piece = read(records)
            return replace(piece, error=error)
        except TidelogError as found:
            if not all(d.place for d in found.diagnostics):
                return StreamPiece(Dataset(), before, found)
            error = error or found
            first = min(d.place.line for d in found.diagnostics if d.place)
            records = [record for record in records if record[0] < first]
    return StreamPiece(Dataset(), before, error)


def read_partition(partition: KafkaPartition, stop: StopSignal | None) -> Iterator[StreamPiece]:
    """Yield the records of a partition up to its end."""
    while not partition.ended and not (stop and stop.requested):
        piece = partition.read()
        if piece is None:
            time.sleep(_PAUSE)
        else:
            yield piece
            if piece.error:
                return


def _describe(problem: Exception) -> str:
    """Describe an error of the client in its own words."""
    error = problem.args[0] if problem.args else problem
    return error.str() if hasattr(error, "str") else str(problem)


def _import_client() -> Any:
    try:
        import confluent_kafka
    except ImportError:
        message = "reading Kafka topics needs the package confluent-kafka"
        raise TidelogError(Diagnostic("TL410", message, help="pip install 'tidelog[kafka]'")) from None
    return confluent_kafka
