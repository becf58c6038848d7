"""`tidelog stream`: a standing query over a stream of facts."""

from __future__ import annotations

import json
import sys
import tempfile
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from tidelog.cli.options import length, length_option, mistaken, not_a_time, rules_argument, timeline_option, write_out
from tidelog.cli.ui import ui_options, watched

if TYPE_CHECKING:
    from tidelog.cli.stopping import Stopping
    from tidelog.data.dataset import Dataset
    from tidelog.errors import TidelogError
    from tidelog.language.program import Program
    from tidelog.page.stream_report import StreamReport
    from tidelog.page.watching import Watching
    from tidelog.streaming.alerts import Alert, Alerting, AlertState
    from tidelog.streaming.answers import Answers, Step
    from tidelog.streaming.observing import Observer
    from tidelog.streaming.reasoner import Reasoner
    from tidelog.windows.assumed import Assumed


def _delays(context: click.Context, option: click.Parameter, value: tuple[str, ...]) -> dict[str | None, Fraction]:
    """`5s` for all predicates, `Temp=5s` for one; None stands for all others."""
    found: dict[str | None, Fraction] = {}
    for text in value:
        name, equals, rest = text.rpartition("=")
        predicate = name.strip() if equals else None
        if predicate in found or predicate == "":
            raise click.BadParameter(f"{text!r}: give one delay for all predicates, and one for each: 5s, Temp=10s")
        found[predicate] = length(rest)
    return found


def _output_times(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    if value is None or value == "input":
        return value
    kind, _, step = value.partition(":")
    if kind != "every" or not step:
        raise click.BadParameter(f"{value!r} is neither input nor every:S, like every:5 or every:10min")
    if length(step) == 0:
        raise click.BadParameter(f"{value!r}: 0 is no distance")
    return value


def _positions(context: click.Context, option: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    """`1,3`: arguments, counted from 1."""
    if value is None:
        return None
    parts = [part.strip() for part in value.split(",")]
    if not all(part.isdecimal() and part.isascii() for part in parts):
        raise click.BadParameter(f"{value!r} is not a list of arguments, counted from 1, like 1 or 1,2")
    return tuple(map(int, parts))


def _until(context: click.Context, option: click.Parameter, value: str | None) -> Fraction | None:
    from tidelog.errors import TidelogError
    from tidelog.language.times import parse_time

    if value is None:
        return None
    try:
        time, _ = parse_time(value)
    except TidelogError as problem:
        raise click.BadParameter(not_a_time(problem)) from None
    if isinstance(time, float):
        raise click.BadParameter("a stream cannot be awaited for ever: name a time")
    return time


@click.command(short_help="Answer a standing query over a stream of facts.")
@rules_argument
@click.option("--query", metavar="Q", required=True, help="The predicate whose facts are the answers.")
@click.option("--input", "source", metavar="FILE", required=True, help="The stream, in order of arrival; - is live.")
@click.option("--step", metavar="S", callback=length_option, help="Reason in steps of S. Default: at every new time.")
@click.option(
    "--at",
    metavar="input|every:S",
    callback=_output_times,
    help="Answers at the stream's own time points, or at multiples of S. Default: maximal intervals, once they ended.",
)
@click.option(
    "--memory",
    type=click.Choice(["generic", "bounded"]),
    help="How the past is kept. Default: bounded where it applies and holds less.",
)
@click.option("--background", metavar="FILE", multiple=True, help="Facts that are there before the stream begins.")
@click.option(
    "--delay",
    metavar="D",
    multiple=True,
    callback=_delays,
    help="Facts may come so late and in any order, like 5s; of one predicate: Temp=5s. May be repeated.",
)
@click.option(
    "--objects",
    metavar="A,B,...",
    help="All objects that facts mention (.tdl): remember no more than the least window that is proved for them.",
)
@click.option("--late", metavar="FILE", help="Write the facts that came too late to FILE.")
@click.option("--until", metavar="T", callback=_until, help="Time stops at T. Default: at the last time in the input.")
@click.option("--state", metavar="FILE", help="Go on from FILE if it exists, and save the state to it at the end.")
@click.option("--continues", is_flag=True, help="With --state: more will come, so print nothing that is still open.")
@click.option(
    "--changed-rules", "changed", is_flag=True, help="With --state: the rules are others now; keep what can be kept."
)
@click.option("--changes", is_flag=True, help="Print when answers start and end, each as soon as it is certain.")
@click.option(
    "--dedupe", metavar="D", callback=length_option, help="An answer that comes again within D is not printed again."
)
@click.option("--cooldown", metavar="D", callback=length_option, help="After an answer, be silent for D.")
@click.option(
    "--per", metavar="N,...", callback=_positions, help="With --cooldown: silent for all with the same Nth argument."
)
@click.option("--stats", metavar="FILE", help="Write one JSON object a step to FILE.")
@click.option("--report", metavar="FILE", help="Write a page with timelines, proofs and charts to FILE at the end.")
@ui_options
@timeline_option
@click.option("--format", "form", type=click.Choice(["text", "jsonl"]), default="text", help="Default: text.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format jsonl.")
@click.option("--time", "times", type=click.Choice(["number", "iso"]), help="How times print. Default: as in the data.")
def stream(
    rules: str,
    query: str,
    source: str,
    step: Fraction | None,
    at: str | None,
    memory: str | None,
    background: tuple[str, ...],
    delay: dict[str | None, Fraction],
    objects: str | None,
    late: str | None,
    until: Fraction | None,
    state: str | None,
    continues: bool,
    changed: bool,
    changes: bool,
    dedupe: Fraction | None,
    cooldown: Fraction | None,
    per: tuple[int, ...] | None,
    stats: str | None,
    report: str | None,
    ui: str | None,
    ui_host: str,
    timeline: str | None,
    form: str,
    as_json: bool,
    times: str | None,
) -> int:
    """Read a stream of facts and print the facts of Q as they become certain, in the order of time.

    An answer is printed once its interval has ended. Time stops at the last time in the input (or at --until), where
    what is still open is printed with a closed end. Facts without a time before the first fact with one are background.

    \b
    Example:
      echo 'Down(X) :- Node(X), not Diamondminus[0,5] Beat(X).' > rules.dmtl
      printf 'Node(a)\\nBeat(a)@0\\nBeat(a)@3\\nBeat(a)@12\\n' > beats.facts
      tidelog stream rules.dmtl --query Down --input beats.facts
      tidelog stream rules.dmtl --query Down --input - --at every:2 < beats.facts
      tidelog stream rules.dmtl --query Down --input beats.facts --changes
    """
    from tidelog.cli.stopping import stopping
    from tidelog.errors import TidelogError
    from tidelog.language.program import Program
    from tidelog.streaming.alerts import alerting
    from tidelog.streaming.reading import is_live

    if [rules, source, *background].count("-") > 1:
        raise click.UsageError("standard input (-) can be read only once")
    if continues and state is None:
        raise click.UsageError("--continues needs --state FILE, which keeps what is open")
    inputs = [("RULES", rules), ("--input", source), *(("--background", file) for file in background)]
    _refuse_shared(inputs, late, stats, state, report)
    for option, written in (("--state", state), ("--report", report)):
        if written:
            _refuse_unwritable(option, written)
    program = Program.load(rules)
    _refuse_unknown(delay, program)
    alerts = alerting(
        changes=changes,
        dedupe=dedupe,
        cooldown=cooldown,
        per=per,
        arity=program.predicates.get(query),
        points=at is not None,
    )
    options = Options(query, timeline, memory, at, delay, alerts)
    assumed = None
    if objects is not None:
        from tidelog.cli.window import progress_bar
        from tidelog.windows.assumed import PROOF, assuming

        with progress_bar(PROOF) as progress:
            assumed = assuming(program, query, objects, progress)
        program = assumed.program
    with ExitStack() as files:
        session = Session(
            program, options, step, until, "jsonl" if as_json else form, None if times is None else times == "iso"
        )
        session.assumed = assumed
        session.begin(background, state, changed)
        mode = "ab" if session.resumed else "wb"
        session.late = files.enter_context(open(late, mode)) if late else None
        session.stats = files.enter_context(open(stats, mode)) if stats else None
        session.live = is_live(source)
        stop = files.enter_context(stopping() if state else nullcontext())
        _observe(session, files, report, rules, source, background, ui, ui_host)
        try:
            return _run(session, source, state, continues, stop)
        except TidelogError:
            session.flush()  # what was answered comes before what is wrong
            raise


def _observe(
    session: Session,
    files: ExitStack,
    report: str | None,
    rules: str,
    source: str,
    background: tuple[str, ...],
    ui: str | None,
    ui_host: str,
) -> None:
    """Who looks on: a report that is written at the end, and a page of the running stream."""
    o = session.options
    title = f"{Path(rules).name}: {o.query}"
    if report:
        from tidelog.page.stream_report import StreamReport

        points, whole = o.at is not None, not session.resumed
        looking = StreamReport(session.program, o.query, o.timeline, points=points, whole=whole)
        session.observers.append(looking)
        files.callback(_write_report, report, looking, title, rules, [*background, source], o.timeline)
    board = files.enter_context(watched(ui, ui_host, title))
    if board is not None:
        from tidelog.page.watching import Watching

        watching = Watching(board, session.iso)
        session.observers.append(watching)
        files.callback(_last_look, session, watching)


def _last_look(session: Session, watching: Watching) -> None:
    if session.reasoner is not None:
        watching.look(session.reasoner)


def _write_report(
    file: str, looking: StreamReport, title: str, rules: str, read: list[str], timeline: str | None
) -> None:
    """Also of a stream that ended early, by an error or a signal: what there is up to then."""
    from tidelog.cli.report import explaining
    from tidelog.page.document import page
    from tidelog.page.report import PROOFS, Heading

    heading = Heading(title, (("Rules", rules), ("Input", ", ".join(read))), explaining(rules, read, timeline))
    Path(file).write_text(page(looking.data(heading, PROOFS)), encoding="utf-8")


def _refuse_unknown(delay: dict[str | None, Fraction], program: Program) -> None:
    """A delay of a predicate that is misspelt would make facts late that are not."""
    from tidelog.analysis.queries import known_predicates
    from tidelog.errors import Diagnostic, TidelogError
    from tidelog.language.codes import suggest

    known = known_predicates(program)
    unknown = [name for name in delay if name is not None and name not in known]
    if unknown:
        raise TidelogError(
            Diagnostic(
                "TL302",
                f"--delay {name}={delay[name]}: no rule mentions {name}",
                help=f"did you mean {close}?" if (close := suggest(name, known)) else "name a predicate of the rules",
            )
            for name in unknown
        )


def _refuse_shared(
    read: list[tuple[str, str]], late: str | None, stats: str | None, state: str | None, report: str | None
) -> None:
    """A file that is written to is used for nothing else."""
    written = [("--late", late), ("--stats", stats), ("--state", state), ("--report", report)]
    seen = {Path(file.partition("=")[2] or file).resolve(): option for option, file in read if file != "-"}
    for option, file in written:
        if file:
            other = seen.setdefault(Path(file).resolve(), option)
            if other != option:
                raise click.UsageError(f"{option} {file}: this is the file of {other}, too, and would be overwritten")


def _refuse_unwritable(option: str, file: str) -> None:
    """Whether something can be written at the end is better known before hours of work than after them."""
    folder = Path(file).resolve().parent
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as problem:
        reason = "there is no such folder" if not folder.is_dir() else f"cannot write there: {problem.strerror}"
        raise click.UsageError(f"{option} {file}: {reason}") from None


def _run(session: Session, source: str, state: str | None, continues: bool, stop: Stopping | None) -> int:
    """Read to the end, to a bad line, to `--until`, or until a signal comes; then save, and end what is open."""
    from tidelog.reasoning import Inconsistent
    from tidelog.streaming.reading import pieces

    error: TidelogError | None = None
    line = 0
    given: set[str] = {name for name, _ in session.background.relations} if session.background else set()
    for piece in pieces(source, stop):
        given |= {name for name, _ in piece.data.relations}
        try:
            more = session.take(piece.data)
        except Inconsistent as violated:
            error = violated
            break
        line, error = piece.line, piece.error
        if not more or (stop and stop.asked):
            break
    stopped = stop.signal if stop else 0
    saved = session.save() if state else b""
    if isinstance(error, Inconsistent) and state:
        click.echo(
            f"the state in {state} is that of the step at {session.ready().stats.t}; no more was taken", err=True
        )
    if not (error or stopped or continues):
        try:
            session.end()
        except Inconsistent as violated:
            error = violated
    if state:
        from tidelog.streaming.state import write_atomically

        write_atomically(state, session.with_notes(saved))
    session.flush()
    if session.late_facts:
        are = "it is" if session.late_facts == 1 else "they are"
        where = f"{are} in {session.late.name}" if session.late else "--late FILE keeps such facts"
        click.echo(f"{_counted(session.late_facts, 'fact')} came too late; {where}", err=True)
    if session.silenced:
        were = "was" if session.silenced == 1 else "were"
        click.echo(f"{_counted(session.silenced, 'answer')} {were} silenced", err=True)
    if not session.resumed:
        for note in mistaken(session.program, given):
            click.echo(note, err=True)
    if stopped:
        name = "<stdin>" if source == "-" else source
        click.echo(f"stopped after line {line} of {name}; the state is in {state}", err=True)
    if error:
        raise error
    return 128 + stopped if stopped else 0


@dataclass(frozen=True)
class Options:
    """What a standing query is, besides its rules. A state keeps them; None and {} stand for what is usual."""

    query: str
    timeline: str | None
    memory: str | None
    at: str | None
    delay: dict[str | None, Fraction]
    alerts: Alerting | None

    def to_json(self) -> dict[str, Any]:
        delay = {name or "": str(length) for name, length in self.delay.items()}
        told = self.alerts.to_json() if self.alerts else {}
        return {
            "query": self.query,
            "timeline": self.timeline,
            "memory": self.memory,
            "at": self.at,
            "delay": delay,
            **dict.fromkeys(("changes", "dedupe", "cooldown", "per")),
            **told,
        }

    def on(self, kept: dict[str, Any], state: str, changed: bool) -> Options:
        """The options of a state, which may be left out when it is resumed, but not changed; with other rules, the
        query may be another, too."""
        for name, value in self.to_json().items():
            if value and value != kept.get(name) and not (changed and name == "query"):
                shown = _shown(kept.get(name)) or "not given"
                raise _other(
                    f"{state} is of a stream with another --{name}: {shown}, not {_shown(value)}",
                    f"leave --{name} out or as it was, or start again with another --state",
                )
        from tidelog.streaming.alerts import config_of

        delay = {name or None: Fraction(length) for name, length in kept["delay"].items()}
        return Options(self.query, kept["timeline"], kept["memory"], kept["at"], delay, config_of(kept))


@dataclass
class Session:
    """A reasoner at work: what it is fed, and where its answers go."""

    program: Program
    options: Options
    step: Fraction | None
    until: Fraction | None
    form: str
    iso: bool | None
    #: What is known of the objects of the stream.
    assumed: Assumed | None = None
    late: IO[bytes] | None = None
    stats: IO[bytes] | None = None
    live: bool = False
    late_facts: int = 0
    reasoner: Reasoner | None = None
    resumed: bool = False
    #: Background facts, as long as no fact with a time has come; and what identifies those of the state.
    heading: bool = True
    background: Dataset | None = None
    digest: str = ""
    #: What the run before printed as it ended, and where its time stopped: it is not printed again.
    printed: frozenset[bytes] = frozenset()
    stopped_at: Fraction = Fraction(0)
    last_words: tuple[Step, bytes] | None = None
    #: What is remembered for the sake of alerts, where they are asked for; and how many answers this run has silenced.
    alerts: AlertState | None = None
    silenced: int = 0
    told: int = 0
    observers: list[Observer] = field(default_factory=list)
    #: Whether figures of a step have been written; the first ones also say what leaving rules out saves.
    counted: bool = False

    def begin(self, background: tuple[str, ...], state: str | None, changed: bool) -> None:
        """Load background facts, and go on from a state if there is one."""
        from tidelog.data.dataset import Dataset

        if background:
            self.background = self._timed(Dataset.load(*background))
        if state is not None and Path(state).exists():
            self._resume(Path(state).read_bytes(), state, changed)

    def take(self, data: Dataset) -> bool:
        """Feed facts, and print what follows; whether more are wanted."""
        from tidelog.streaming.reading import background_first, up_to

        data = self._timed(data)
        wanted = True
        if self.until is not None:
            data, over = up_to(data, self.until, max(self.options.delay.values(), default=Fraction(0)))
            wanted = not over
        if self.heading:
            early, data = background_first(data)
            if len(early):
                self.background = early if self.background is None else self.background | early
        if len(data):
            reasoner = self.ready()
            for observer in self.observers:
                observer.facts(data)
            for step in reasoner.feed(data, step=self.step, until=self.until):
                self._note(step)
            for observer in self.observers:
                observer.pause(reasoner)
        if self.live:
            self.flush()
        return wanted

    def ready(self) -> Reasoner:
        """The reasoner, which exists once all background facts are there."""
        from tidelog.data.dataset import Dataset
        from tidelog.streaming.reasoner import Reasoner

        digest = _digest(self.background) if self.heading else self.digest
        self.heading = False
        if self.reasoner is None:
            o = self.options
            self.reasoner = Reasoner(
                self.program,
                o.query,
                timeline=o.timeline,
                background=self.background,
                delay=o.delay if None in o.delay else {**o.delay, None: Fraction(0)},
                memory=o.memory,
                at=o.at,
            )
            self.digest = digest
            for observer in self.observers:
                observer.facts(self.background or Dataset())
            if o.alerts:
                from tidelog.streaming.alerts import AlertState

                self.alerts = AlertState(o.alerts, o.query)
        elif digest not in ("", self.digest):
            raise _other(
                "the background facts are not those of the state",
                "leave them out or as they were, or start again with another --state",
            )
        self.background = None
        return self.reasoner

    def end(self) -> None:
        """Time stops: print the last answers, and what is still open."""
        from tidelog.reasoning import Inconsistent

        try:
            step = self.ready().end(self.until)
        except Inconsistent as violated:
            if violated.step:
                self._note(violated.step, last=True)
            raise
        self.last_words = step, self._note(step, last=True)

    def save(self) -> bytes:
        """The state of the reasoner, and of its alerts."""
        from tidelog.streaming.watch import saved

        return saved(self.ready(), self.alerts)

    def flush(self) -> None:
        sys.stdout.flush()
        for file in (self.late, self.stats):
            if file:
                file.flush()

    def with_notes(self, saved: bytes) -> bytes:
        """A state of the reasoner together with what the next run of the command has to know."""
        from tidelog.streaming.state import pack, unpack

        meta, arrays = unpack(saved)
        notes: dict[str, Any] = {"options": self.options.to_json(), "background": self.digest}
        if self.last_words:
            step, lines = self.last_words
            notes["printed"] = lines.decode().splitlines()
            notes["stopped_at"] = str(step.t)
        return pack({**meta, "stream": notes}, arrays)

    def _resume(self, data: bytes, state: str, changed: bool) -> None:
        from tidelog.streaming.reasoner import Reasoner
        from tidelog.streaming.state import unpack

        meta, _ = unpack(data, state)
        notes = meta.get("stream")
        if notes:
            self.options = self.options.on(notes["options"], state, changed)
            self.digest = notes["background"]
            self.printed = frozenset(line.encode() for line in notes.get("printed", []))
            self.stopped_at = Fraction(notes.get("stopped_at", 0))
        self.reasoner = Reasoner.load(data, self.program, query=self.options.query, changed=changed)
        if self.options.alerts:
            from tidelog.streaming.watch import restored

            self.alerts = restored(self.reasoner, meta, changed)
        came = self.reasoner.stats.t
        if self.until is not None and self.until < came:
            raise _other(
                f"--until {self.until} is before the time of {state}, which has come to {came}",
                "name a later time, or start again with another --state",
            )
        for note in self.reasoner.notes:
            click.echo(f"{state}: {note}", err=True)
        self.resumed = True

    def _timed(self, data: Dataset) -> Dataset:
        if self.program.temporal:
            data = data.timed(self.program.temporal.temporal)
        if self.assumed:
            from tidelog.windows.assumed import refuse_others

            refuse_others(self.assumed, data)
        return data

    def _note(self, step: Step, last: bool = False) -> bytes:
        """Write what a step gave; what it said, in plain form."""
        for observer in self.observers:
            observer.step(step)
        said = self._answer(step, last)
        if len(step.late):
            self.late_facts += len(step.late)
            if self.late:
                self.late.write(step.late.render("text", self._dates()))
        if self.stats:
            self.stats.write(self._figures(step))
        return said

    def _answer(self, step: Step, last: bool) -> bytes:
        """Print the answers of a step, or its alerts; they are returned in plain form if they are the last."""
        if self.alerts is None:
            if len(step.answers):
                write_out(self._new(step.answers, step.answers.render(self.form, self._dates())))
            return step.answers.render() if last else b""
        from tidelog.streaming.alerts import render
        from tidelog.streaming.watch import alerts_of, last_alerts

        reasoner = self.ready()
        before = self.alerts.silenced
        found = (
            last_alerts(self.alerts, step.answers, reasoner.stopped)
            if last
            else alerts_of(reasoner, self.alerts, step.answers)
        )
        self.told = len(found)
        self.silenced += self.alerts.silenced - before
        if found:
            write_out(self._new(found, render(found, self.form, self._dates())))
        return render(found) if last else b""

    def _new(self, told: Answers | list[Alert], lines: bytes) -> bytes:
        """Lines without those that the run before has printed as it ended."""
        if not self.printed:
            return lines
        from tidelog.streaming.alerts import render, time_of

        alerts = list(told)
        shown = zip(render(alerts).splitlines(), lines.splitlines(keepends=True), strict=True)
        lines = b"".join(line for text, line in shown if text not in self.printed)
        # Answers come in the order of time, so that none of the others comes again.
        if max(time_of(alert) for alert in alerts) > self.stopped_at:
            self.printed = frozenset()
        return lines

    def _dates(self) -> bool:
        if self.iso is not None:
            return self.iso
        return self.reasoner is not None and self.reasoner.dates

    def _figures(self, step: Step) -> bytes:
        from tidelog.language.times import format_iso
        from tidelog.timeline.interval import format_time

        figures: dict[str, Any] = {
            "t": format_iso(step.t) if self._dates() else format_time(step.t),
            "facts_in": step.facts_in,
            "window_facts": step.window_facts,
            "history_atoms": step.history_atoms,
            "answers": len(step.answers),
            "seconds": round(step.seconds, 9),
        }
        if self.alerts is not None:
            figures |= {"alerts": self.told, "silenced": self.alerts.silenced}
        if not self.counted:
            from tidelog.windows.memory import saved

            self.counted = True
            o, original = self.options, self.assumed.original if self.assumed else self.program
            less = saved(original, self.program, o.query, o.timeline)
            if self.assumed:
                windows = {"radius": self.assumed.query.radius, "window": self.assumed.window}
                less = {**(less or {"rules": [], "retention": {}}), **windows}
            if less:
                figures["saved"] = less
        return json.dumps(figures).encode() + b"\n"


def _digest(data: Dataset | None) -> str:
    """What identifies background facts, in whatever order they come; nothing for none."""
    from hashlib import blake2b

    from tidelog.data.render import render_rows

    if data is None or not len(data):
        return ""
    digest = blake2b(digest_size=16)
    for (name, _), r in sorted(data.relations.items()):
        lines = render_rows(data.symbols, name, r.args, r.lo, r.hi, data.denominator).splitlines()
        digest.update(b"\n".join(sorted(set(lines))) + b"\n")
    return digest.hexdigest()


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={length}" if name else length for name, length in value.items())
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value or "")


def _other(message: str, help: str) -> TidelogError:
    from tidelog.errors import Diagnostic, TidelogError

    law = "a state goes on with the rules, the query and the options that made it"
    return TidelogError(Diagnostic("TL403", message, law=law, help=help))


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
