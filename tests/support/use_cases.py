"""Three use cases on dirty tables, with answers that are computed here, by hand: nothing of tidelog is used.

Each case writes its rules, a schema, a pipeline and tables in CSV, JSON Lines and Parquet into a folder. It knows the
answers up to a time, and the file and line of every row that cannot be read.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
from pyarrow import parquet

BERLIN = ZoneInfo("Europe/Berlin")
HOUR, DAY = timedelta(hours=1), timedelta(days=1)

#: An answer: its arguments, its start and its end.
Answer = tuple[tuple[str, ...], datetime, datetime]


@dataclass
class UseCase:
    """A case that has been written to a folder."""

    folder: Path
    query: str
    until: datetime
    answers: set[Answer] = field(default_factory=set)
    #: The name of the file and the number of the line (of the row in Parquet) of every bad row.
    bad: set[tuple[str, int]] = field(default_factory=set)
    tables: list[str] = field(default_factory=list)
    background: list[str] = field(default_factory=list)

    def path(self, name: str) -> Path:
        """A table has a folder of its own, as streams of files on Spark need it."""
        path = self.folder / "data" / name.partition(".")[0] / name
        path.parent.mkdir(parents=True, exist_ok=True)
        self.tables.append(str(path.relative_to(self.folder)))
        return path

    def write_lines(self, name: str, header: str | None, rows: Sequence[tuple[str, bool]]) -> None:
        """Write a text table; each row says whether it is bad."""
        first = 1 if header is None else 2
        self.bad |= {(name, line) for line, (_, is_bad) in enumerate(rows, first) if is_bad}
        text = "".join(f"{row}\n" for row, _ in rows)
        self.path(name).write_text(text if header is None else f"{header}\n{text}", encoding="utf-8")

    def write_parquet(self, name: str, rows: Sequence[tuple[dict[str, Any], bool]]) -> None:
        self.bad |= {(name, line) for line, (_, is_bad) in enumerate(rows, 1) if is_bad}
        parquet.write_table(pa.Table.from_pylist([row for row, _ in rows]), self.path(name))


def insert_dirt(rows: list[tuple[Any, bool]], dirt: Sequence[Any], draw: random.Random) -> list[tuple[Any, bool]]:
    """Insert bad rows at random places."""
    for bad in dirt:
        rows.insert(draw.randrange(len(rows) + 1), (bad, True))
    return rows


def iso(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# Order deadlines

ORDER_RULES = """\
% An order has to be paid within two hours, and to be shipped within a day after its payment.
Unpaid(O) :- Diamondminus[2h,2h] Ordered(O), not Diamondminus[0,2h] Paid(O).
Waiting(O) :- Diamondminus[1d,1d] Paid(O), not Diamondminus[0,1d] Shipped(O).
Overdue(O, payment) :- Unpaid(O).
Overdue(O, shipment) :- Waiting(O).
"""
ORDER_SCHEMA = """\
[schema.Ordered]
file = "data/orders/orders.csv"
columns = { order = "text", placed = "time" }
time = "placed"
zone = "Europe/Berlin"

[schema.Paid]
file = "data/payments/payments.jsonl"
columns = { order = "text", ts = "time" }
time = "ts"
unit = "ms"

[schema.Shipped]
file = "data/shipments/shipments.parquet"
columns = { order = "text", left = "time" }
time = "left"

[schema.Overdue]
columns = { order = "text", step = "text" }
"""


def write_orders(folder: Path, draw: random.Random) -> UseCase:
    """Orders with local times around the change of clocks, ids with leading zeros, payments with numbers as ids."""
    begin = datetime(2026, 3, 28, 18, tzinfo=UTC)  # clocks are set forward at 1:00 UTC
    case = UseCase(folder, "Overdue", begin + timedelta(days=4))
    ids = [f"{n:04d}" if n < 1000 else str(n) for n in draw.sample(range(1, 3000), 120)]
    ordered = {o: begin + timedelta(seconds=draw.randrange(86400)) for o in ids}
    paid = {o: ordered[o] + timedelta(seconds=draw.randrange(4 * 3600)) for o in ids if draw.random() < 0.8}
    shipped = {o: paid[o] + timedelta(seconds=draw.randrange(2 * 86400)) for o in paid if draw.random() < 0.8}
    for o in ids:
        if not (o in paid and paid[o] - ordered[o] <= 2 * HOUR):
            case.answers.add(((o, "payment"), ordered[o] + 2 * HOUR, ordered[o] + 2 * HOUR))
        if o in paid and not (o in shipped and shipped[o] - paid[o] <= DAY):
            case.answers.add(((o, "shipment"), paid[o] + DAY, paid[o] + DAY))
    rows: list[tuple[Any, bool]] = [
        (f'{o},"Smith, {o}",{ordered[o].astimezone(BERLIN):%Y-%m-%dT%H:%M:%S}', False)
        for o in sorted(ids, key=lambda o: ordered[o])
    ]
    dirt = [
        "0017,nobody,2026-03-29T02:30:00",
        "18,x,yesterday",
        "19,x",
        '20,"x,2026-03-29T12:00:00',
        "21,x,",
        "22,x,2026-03-29T12:00:00,more",
    ]
    case.write_lines("orders.csv", "order,customer,placed", insert_dirt(rows, dirt, draw))
    rows = [
        (
            json.dumps(
                {
                    "order": o if o[0] == "0" or k % 2 else int(o),
                    "ts": round(paid[o].timestamp() * 1000),
                    "via": {"card": k},
                }
            ),
            False,
        )
        for k, o in enumerate(sorted(paid, key=lambda o: paid[o]))
    ]
    dirt = [
        '{"order": "17", "ts": ',
        '{"order": "18"}',
        '{"order": null, "ts": 1774800000000}',
        "[1]",
        '{"order": [1], "ts": 1774800000000}',
        '{"order": "19", "ts": "soon"}',
    ]
    case.write_lines("payments.jsonl", None, insert_dirt(rows, dirt, draw))
    rows = [({"order": o, "left": shipped[o]}, False) for o in sorted(shipped, key=lambda o: shipped[o])]
    case.write_parquet(
        "shipments.parquet", insert_dirt(rows, [{"order": None, "left": begin}, {"order": "17", "left": None}], draw)
    )
    _write_texts(
        case,
        ORDER_RULES,
        ORDER_SCHEMA,
        {"orders": ("csv", "Ordered"), "payments": ("json", "Paid"), "shipments": ("parquet", "Shipped")},
    )
    return case


# Silent devices

DEVICE_RULES = """\
% A device that was heard today is silent if it sends nothing for ten minutes, unless it is being repaired.
Heard(D) :- Beat(D).
Heard(D) :- Radio(D).
Silent(D, S) :- Device(D, S), Diamondminus[0,1d] Heard(D), not Diamondminus[0,10min] Heard(D), not Repair(D).
"""
DEVICE_SCHEMA = """\
[schema.Device]
file = "data/devices/devices.csv"
columns = { id = "text", site = "text" }

[schema.Beat]
file = "data/beats/beats.csv"
columns = { device = "text", at = "time" }
time = "at"

[schema.Radio]
file = "data/radio/radio.jsonl"
columns = { dev = "text", t = "time" }
time = "t"
unit = "s"

[schema.Repair]
file = "data/repairs/repairs.parquet"
columns = { device = "text", begin = "time", finish = "time" }
start = "begin"
end = "finish"
closed = "left"

[schema.Silent]
columns = { device = "text", site = "text" }
"""


def write_devices(folder: Path, draw: random.Random) -> UseCase:
    """Devices that are heard by two ways, and repairs as intervals without their end."""
    begin = datetime(2026, 1, 31, 8, tzinfo=UTC)
    last = begin + timedelta(hours=6)
    case = UseCase(folder, "Silent", last)
    sites = {f"{n:03d}": draw.choice(["north", "south hall", "7"]) for n in range(12)}
    heard = {d: sorted({draw.randrange(5 * 3600) for _ in range(draw.randrange(5, 40))}) for d in sites}
    repairs = {d: (a := draw.randrange(4 * 3600), a + draw.randrange(60, 3600)) for d in sites if draw.random() < 0.5}
    for d, times in heard.items():
        ends = [*times[1:], 6 * 3600]
        for k, (time, end) in enumerate(zip(times, ends, strict=True)):
            # Silent in (time + 600, end), and at the end, too, where the stream stops; cut by the repair [a, b).
            for lo, hi in _subtract((time + 600, end), repairs.get(d)):
                if lo < hi or (k == len(times) - 1 and lo == hi == end and lo != time + 600):
                    case.answers.add(((d, sites[d]), begin + timedelta(seconds=lo), begin + timedelta(seconds=hi)))
    rows: list[tuple[Any, bool]] = [(f"{d},{site}", False) for d, site in sites.items()]
    case.write_lines("devices.csv", "id,site", rows)
    case.background = [case.tables.pop()]
    events = sorted((t, d) for d, times in heard.items() for t in times)
    by_cable = [(t, d) for t, d in events if int(d) % 2]
    by_radio = [(t, d) for t, d in events if not int(d) % 2]
    rows = [(f"{iso(begin + timedelta(seconds=t))},{d},{draw.random():.3f}", False) for t, d in by_cable]
    dirt = ["2026-01-31T25:00:00Z,001,0", ",001,0", "2026-01-31T09:00:00Z", "x", '2026-01-31T09:00:00Z,"001,0']
    case.write_lines("beats.csv", "at,device,signal", insert_dirt(rows, dirt, draw))
    epoch = int(begin.timestamp())
    rows = [(json.dumps({"t": epoch + t, "dev": d}), False) for t, d in by_radio]
    dirt = ["{", '{"t": 1769846400}', '"beat"', '{"t": {}, "dev": "001"}']
    case.write_lines("radio.jsonl", None, insert_dirt(rows, dirt, draw))
    spans = sorted((a, b, d) for d, (a, b) in repairs.items())
    rows = [
        ({"device": d, "begin": begin + timedelta(seconds=a), "finish": begin + timedelta(seconds=b)}, False)
        for a, b, d in spans
    ]
    dirt_rows = [{"device": "001", "begin": last, "finish": begin}, {"device": "001", "begin": begin, "finish": None}]
    case.write_parquet("repairs.parquet", insert_dirt(rows, dirt_rows, draw))
    sources = {"beats": ("csv", "Beat"), "radio": ("json", "Radio"), "repairs": ("parquet", "Repair")}
    _write_texts(case, DEVICE_RULES, DEVICE_SCHEMA, sources)
    return case


def _subtract(span: tuple[int, int], hole: tuple[int, int] | None) -> list[tuple[int, int]]:
    """The parts of an interval outside of another."""
    lo, hi = span
    if lo > hi:
        return []
    if hole is None or hole[1] <= lo or hole[0] > hi:
        return [(lo, hi)]
    return [(a, b) for a, b in ((lo, min(hi, hole[0])), (max(lo, hole[1]), hi)) if a < b or (a == b == hi)]


# Card payments

CARD_RULES = """\
% Payments come from shops, from a web page and from machines.
Pay(C, A, L) :- Shop(C, A, L).
Pay(C, A, L) :- Web(C, A, L).
Pay(C, A, L) :- Machine(C, A, L).
Small(C) :- Pay(C, A, L), A < 2, L != "".
Suspicious(C, places) :- Pay(C, A, L), Diamondminus[0,1h] Pay(C, B, M), L != M, A > 0, B > 0.
Suspicious(C, amounts) :- Pay(C, A, L), A >= 1000, L != "", Diamondminus[0,10min] Small(C).
"""
CARD_SCHEMA = """\
[schema.Shop]
file = "data/shops/shops.csv"
columns = { card = "text", amount = "number", country = "text", time = "time" }

[schema.Web]
file = "data/web/web.jsonl"
columns = { card = "text", amount = "number", country = "text", time = "time" }

[schema.Machine]
file = "data/machines/machines.parquet"
columns = { card = "text", amount = "number", country = "text", time = "time" }
unit = "s"

[schema.Suspicious]
columns = { card = "text", reason = "text" }
"""


def write_cards(folder: Path, draw: random.Random) -> UseCase:
    """Payments of cards whose numbers are text in one table and numbers in others, with exact amounts."""
    begin = datetime(2026, 1, 31, 8, tzinfo=UTC)
    case = UseCase(folder, "Suspicious", begin + timedelta(hours=12))
    cards = [str(draw.randrange(10**9, 10**10)) for _ in range(15)]
    pays = sorted(
        (
            draw.randrange(10 * 3600),
            draw.choice(cards),
            draw.choice(["0.99", "1.99", "2", "40.1", "999.99", "1000", "2500.5"]),
            draw.choice(["de", "de", "de", "fr", "us"]),
        )
        for _ in range(400)
    )
    for t, card, amount, country in pays:
        moment = begin + timedelta(seconds=t)
        earlier = [(u, float(a), m) for u, c, a, m in pays if c == card and u <= t]
        if any(t - u <= 3600 and m != country for u, _, m in earlier):
            case.answers.add(((card, "places"), moment, moment))
        if float(amount) >= 1000 and any(t - u <= 600 and a < 2 for u, a, _ in earlier):
            case.answers.add(((card, "amounts"), moment, moment))
    shops, web, machines = ([pay for k, pay in enumerate(pays) if k % 3 == part] for part in range(3))
    rows: list[tuple[Any, bool]] = [
        (f"{iso(begin + timedelta(seconds=t))},{card},{amount},{country}", False) for t, card, amount, country in shops
    ]
    dirt = [f"{iso(begin)},{cards[0]},a lot,us", f"{iso(begin)},{cards[0]},,us", f"never,{cards[0]},1,us", "\u00e9;1;2"]
    case.write_lines("shops.csv", "time,card,amount,country", insert_dirt(rows, dirt, draw))
    rows = [
        (
            f'{{"card": {card}, "amount": {amount}, "country": "{country}", '
            f'"time": "{iso(begin + timedelta(seconds=t))}"}}',
            False,
        )
        for t, card, amount, country in web
    ]
    dirt = [
        '{"card": 1}',
        "not json",
        f'{{"card": {cards[0]}, "amount": "x", "country": "us", "time": "{iso(begin)}"}}',
    ]
    case.write_lines("web.jsonl", None, insert_dirt(rows, dirt, draw))
    epoch = int(begin.timestamp())
    rows = [
        ({"card": int(card), "amount": float(amount), "country": country, "time": epoch + t}, False)
        for t, card, amount, country in machines
    ]
    missing = [{"card": int(cards[0]), "amount": None, "country": "us", "time": epoch}]
    case.write_parquet("machines.parquet", insert_dirt(rows, missing, draw))
    sources = {"shops": ("csv", "Shop"), "web": ("json", "Web"), "machines": ("parquet", "Machine")}
    _write_texts(case, CARD_RULES, CARD_SCHEMA, sources)
    return case


USE_CASES: dict[str, Callable[[Path, random.Random], UseCase]] = {
    "orders": write_orders,
    "devices": write_devices,
    "cards": write_cards,
}


def _write_texts(case: UseCase, rules: str, schema: str, sources: dict[str, tuple[str, str]]) -> None:
    """Write the rules, the schema, and a pipeline that reads all tables and sets bad rows aside."""
    (case.folder / "rules.dmtl").write_text(rules)
    (case.folder / "tidelog.toml").write_text(schema)
    background = f"background = {json.dumps(case.background)}\n" if case.background else ""
    job = f'rules = "rules.dmtl"\nquery = "{case.query}"\ncheckpoint = "checkpoint"\ntrigger = "available-now"\n'
    parts = [f"{job}buckets = 2\n{background}"]
    parts += [
        f'[sources.{name}]\nformat = "{form}"\npath = "data/{name}"\npredicate = "{predicate}"\n'
        for name, (form, predicate) in sources.items()
    ]
    parts += [f'[sinks.{sink}]\nformat = "json"\npath = "run/{sink}"\n' for sink in ("answers", "aside", "late")]
    (case.folder / "pipeline.toml").write_text("\n".join(parts))


def read_time(text: str) -> datetime:
    return datetime.fromisoformat(text)
