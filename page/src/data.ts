// The data of a page as Python wrote them (tidelog.page.timeline_data), and exact times as text.

import { Gaps, type PackedGaps } from "./gaps";

export const GIVEN = 1;
export const DERIVED = 2;
export const AWAITED = 4;
const NO_START = 8;
const NO_END = 16;

export interface Packed {
  type: "u1" | "u2" | "u4" | "i8";
  base: string;
  data: string;
}

export interface PackedSpans {
  of: Packed;
  lo: Packed;
  hi: Packed;
  flags: Packed;
}

export interface Repeat {
  atom: number;
  lo: string;
  hi: string;
  every: string;
  start: string;
  before: boolean;
}

export interface AwaitedAnswer {
  row: number | null;
  text: string;
  evidence: string[];
  hypotheses: string[];
  decided_by: string | null;
  confidence: number | null;
  conditions: string[];
}

export interface Series {
  t: string[];
  x: number[];
  steps: number[];
  facts_in: number[];
  held: number[];
  answers: number[];
  slowest: number[];
  seconds: number[];
}

// In columns of optional numbers, 0 means none and n + 1 stands for n.
interface PackedProofs {
  roots: { row: Packed; node: Packed };
  repeats: Packed;
  nodes: PackedSpans;
  rule: Packed;
  words: Record<string, string>;
  others: Record<string, string>;
  conditions: Packed;
  text: Packed;
  below: Packed;
  facts: Packed;
  texts: string[];
  gaps?: PackedGaps;
}

export interface Predicate {
  name: string;
  arity: number;
  // Query predicates come first, helpers are folded.
  role: "query" | "given" | "helper";
  // Whether rules derive it.
  derived: boolean;
  // The names of its arguments, if a schema has them, and the positions of those that are times.
  columns: string[] | null;
  times: number[];
}

export interface ReportData {
  kind: "report";
  title: string;
  version: string;
  about: [string, string][];
  command: string | null;
  rules: string[];
  notes: string[];
  timeline: {
    denominator: string;
    dates: boolean;
    predicates: Predicate[];
    constants: string[];
    atoms: { predicate: Packed; args: Packed };
    rows: PackedSpans;
    given: PackedSpans;
    repeats: Repeat[];
  };
  proofs: PackedProofs | null;
  awaited: AwaitedAnswer[];
  steps: Series | null;
}

export interface LiveData {
  kind: "live";
  title: string;
  version: string;
}

export class Column {
  readonly length: number;
  private readonly numbers: Uint8Array | Uint16Array | Uint32Array | BigInt64Array;
  private readonly base: bigint;
  private readonly near: number;

  constructor(packed: Packed) {
    const text = atob(packed.data);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    const kinds = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i8: BigInt64Array };
    this.numbers = new kinds[packed.type](bytes.buffer);
    this.base = BigInt(packed.base);
    this.near = Number(this.base);
    this.length = this.numbers.length;
  }

  exact(i: number): bigint {
    return BigInt(this.numbers[i]) + this.base;
  }

  at(i: number): number {
    return Number(this.numbers[i]) + this.near;
  }
}

// Intervals on the doubled grid: time n (in ticks) is 2n, the open gap after it 2n+1.
export class Spans {
  readonly length: number;
  readonly of: Column;
  private readonly lo: Column;
  private readonly hi: Column;
  private readonly flags: Column;

  constructor(packed: PackedSpans) {
    this.of = new Column(packed.of);
    this.lo = new Column(packed.lo);
    this.hi = new Column(packed.hi);
    this.flags = new Column(packed.flags);
    this.length = this.of.length;
  }

  kind(i: number): number {
    return this.flags.at(i) & (GIVEN | DERIVED | AWAITED);
  }

  span(i: number): Span {
    const flags = this.flags.at(i);
    return {
      lo: flags & NO_START ? null : this.lo.exact(i),
      hi: flags & NO_END ? null : this.hi.exact(i),
    };
  }

  // Ends in ticks, as floats, for drawing.
  ends(i: number, scale: number, into: Float64Array, at: number): void {
    const flags = this.flags.at(i);
    into[at] = flags & NO_START ? -Infinity : Math.floor(this.lo.at(i) / 2) * scale;
    into[at + 1] = flags & NO_END ? Infinity : Math.ceil(this.hi.at(i) / 2) * scale;
  }

  openLeft(i: number): boolean {
    return (this.flags.at(i) & NO_START) === 0 && (this.lo.exact(i) & 1n) === 1n;
  }

  openRight(i: number): boolean {
    return (this.flags.at(i) & NO_END) === 0 && (this.hi.exact(i) & 1n) === 1n;
  }
}

// Positions on the doubled grid; null is an infinite end.
export interface Span {
  lo: bigint | null;
  hi: bigint | null;
}

const floorDiv = (a: bigint, b: bigint): bigint => (a % b !== 0n && a < 0n !== b < 0n ? a / b - 1n : a / b);

export class Clock {
  constructor(
    readonly denominator: bigint,
    readonly dates: boolean,
  ) {}

  // A number of ticks as the command line prints it: an integer, a reduced fraction, or a date.
  text(ticks: bigint): string {
    let a = ticks < 0n ? -ticks : ticks;
    let b = this.denominator;
    while (b) [a, b] = [b, a % b];
    const numerator = ticks / a;
    const denominator = this.denominator / a;
    if (this.dates) {
      const date = this.date(numerator, denominator);
      if (date !== null) return date;
    }
    return denominator === 1n ? `${numerator}` : `${numerator}/${denominator}`;
  }

  private date(numerator: bigint, denominator: bigint): string | null {
    let decimals = 0;
    let power = 1n;
    let rest = denominator;
    while (rest % 2n === 0n || rest % 5n === 0n) rest /= rest % 2n === 0n ? 2n : 5n;
    if (rest !== 1n) return null;
    while (power % denominator !== 0n) {
      power *= 10n;
      decimals += 1;
    }
    const whole = floorDiv(numerator, denominator);
    // From the year 1 to the year 9999.
    if (whole < -62135596800n || whole > 253402300799n) return null;
    const fraction = ((numerator - whole * denominator) * power) / denominator;
    const date = new Date(Number(whole) * 1000).toISOString().slice(0, 19);
    return `${date}${decimals ? `.${`${fraction}`.padStart(decimals, "0")}` : ""}Z`;
  }

  left(span: Span): string {
    return span.lo === null ? "-inf" : this.text(floorDiv(span.lo, 2n));
  }

  right(span: Span): string {
    return span.hi === null ? "inf" : this.text(floorDiv(span.hi + 1n, 2n));
  }

  interval(span: Span): string {
    if (span.lo !== null && span.lo === span.hi && (span.lo & 1n) === 0n) return this.left(span);
    const left = span.lo !== null && (span.lo & 1n) === 0n ? "[" : "(";
    const right = span.hi !== null && (span.hi & 1n) === 0n ? "]" : ")";
    return `${left}${this.left(span)},${this.right(span)}${right}`;
  }

  spoken(span: Span): string {
    if (span.lo !== null && span.lo === span.hi) return `at ${this.left(span)}`;
    const from = span.lo === null ? "from the beginning of time" : `from ${this.left(span)}${span.lo & 1n ? ", excluded," : ""}`;
    const to = span.hi === null ? "for ever" : `to ${this.right(span)}${span.hi & 1n ? ", excluded" : ""}`;
    return `${from} ${to}`;
  }
}

// A condition of a rule: its text, unless it is a plain fact, and the facts that make it hold.
export interface Condition {
  text: string | null;
  facts: number[];
}

// The graph of proofs: nodes are facts, each with the proof step that derives it.
export class Proofs {
  readonly nodes: Spans;
  private readonly roots = new Map<number, number>();
  private readonly repeats: Column;
  private readonly rules: Column;
  private readonly conditions: Column;
  private readonly text: Column;
  private readonly below: Column;
  private readonly facts: Column;

  constructor(private readonly packed: PackedProofs) {
    this.nodes = new Spans(packed.nodes);
    this.repeats = new Column(packed.repeats);
    this.rules = new Column(packed.rule);
    this.conditions = new Column(packed.conditions);
    this.text = new Column(packed.text);
    this.below = new Column(packed.below);
    this.facts = new Column(packed.facts);
    const [rows, nodes] = [new Column(packed.roots.row), new Column(packed.roots.node)];
    for (let i = 0; i < rows.length; i++) this.roots.set(rows.at(i), nodes.at(i));
  }

  root(row: number): number | undefined {
    return this.roots.get(row);
  }

  // The node of the first occurrence of a repetition.
  repeatRoot(number: number): number {
    return this.repeats.at(number);
  }

  // How a node is proved: not shown, given, by a rule, or explained in words.
  kind(node: number): "unknown" | "given" | "rule" | "words" {
    return (["unknown", "given", "rule", "words"] as const)[this.nodes.kind(node)];
  }

  rule(node: number): number {
    return this.rules.at(node) - 1;
  }

  words(node: number): string {
    return this.packed.words[node] ?? "";
  }

  // The atom of a node; -1 if it is not on the timeline, so that only its text is known.
  atom(node: number): number {
    return this.nodes.of.at(node) - 1;
  }

  other(node: number): string {
    return this.packed.others[node] ?? "";
  }

  conditionsOf(node: number): Condition[] {
    const found: Condition[] = [];
    for (let c = this.conditions.at(node); c < this.conditions.at(node + 1); c++) {
      const text = this.text.at(c);
      const facts = [];
      for (let f = this.below.at(c); f < this.below.at(c + 1); f++) facts.push(this.facts.at(f));
      found.push({ text: text ? this.packed.texts[text - 1] : null, facts });
    }
    return found;
  }
}

export class Report {
  readonly clock: Clock;
  readonly rows: Spans;
  readonly given: Spans;
  readonly atoms: number;
  readonly atomTexts: string[] = [];
  readonly predicateOf: Column;
  // Rows of atom a are firstRow[a] to firstRow[a + 1]; x has both ends of every row.
  readonly firstRow: Int32Array;
  readonly x: Float64Array;
  readonly givenX: Float64Array;
  readonly scale: number;
  readonly counts: { given: number; derived: number; mixed: number; awaited: number };
  readonly rowsOfPredicate: number[];
  readonly repeatsOfAtom = new Map<number, Repeat[]>();
  private readonly firstGiven = new Map<number, [number, number]>();
  private readonly awaitedByRow = new Map<number, AwaitedAnswer[]>();
  private readonly argsFirst: Int32Array;
  private readonly args: Column;
  readonly proofs: Proofs | null;
  readonly gaps: Gaps | null;

  constructor(readonly data: ReportData) {
    const timeline = data.timeline;
    this.clock = new Clock(BigInt(timeline.denominator), timeline.dates);
    this.scale = (timeline.dates ? 1000 : 1) / Number(timeline.denominator);
    this.rows = new Spans(timeline.rows);
    this.given = new Spans(timeline.given);
    this.predicateOf = new Column(timeline.atoms.predicate);
    this.args = new Column(timeline.atoms.args);
    this.atoms = this.predicateOf.length;
    this.argsFirst = new Int32Array(this.atoms + 1);
    for (let a = 0; a < this.atoms; a++) {
      const { name, arity } = timeline.predicates[this.predicateOf.at(a)];
      this.argsFirst[a + 1] = this.argsFirst[a] + arity;
      this.atomTexts.push(arity ? `${name}(${this.argsOf(a).join(",")})` : name);
    }
    this.firstRow = new Int32Array(this.atoms + 1);
    this.x = new Float64Array(2 * this.rows.length);
    this.counts = { given: 0, derived: 0, mixed: 0, awaited: 0 };
    this.rowsOfPredicate = timeline.predicates.map(() => 0);
    for (let r = 0; r < this.rows.length; r++) {
      const atom = this.rows.of.at(r);
      this.firstRow[atom + 1] = r + 1;
      this.rowsOfPredicate[this.predicateOf.at(atom)] += 1;
      this.rows.ends(r, this.scale, this.x, 2 * r);
      const kind = this.rows.kind(r);
      if (kind === (GIVEN | DERIVED)) this.counts.mixed += 1;
      else if (kind === GIVEN) this.counts.given += 1;
      else if (kind === DERIVED) this.counts.derived += 1;
      else this.counts.awaited += 1;
    }
    for (let a = 0; a < this.atoms; a++) this.firstRow[a + 1] = Math.max(this.firstRow[a + 1], this.firstRow[a]);
    this.givenX = new Float64Array(2 * this.given.length);
    for (let i = 0; i < this.given.length; i++) {
      this.given.ends(i, this.scale, this.givenX, 2 * i);
      grow(this.firstGiven, this.given.of.at(i), i);
    }
    for (const repeat of timeline.repeats) {
      const known = this.repeatsOfAtom.get(repeat.atom);
      if (known) known.push(repeat);
      else this.repeatsOfAtom.set(repeat.atom, [repeat]);
    }
    for (const entry of data.awaited) {
      if (entry.row === null) continue;
      const known = this.awaitedByRow.get(entry.row);
      if (known) known.push(entry);
      else this.awaitedByRow.set(entry.row, [entry]);
    }
    this.proofs = data.proofs && new Proofs(data.proofs);
    this.gaps = data.proofs?.gaps ? new Gaps(data.proofs.gaps) : null;
  }

  predicate(atom: number): Predicate {
    return this.data.timeline.predicates[this.predicateOf.at(atom)];
  }

  // The arguments of an atom as text; those that are times are dates if the data has dates.
  argsOf(atom: number): string[] {
    const first = this.argsFirst[atom];
    const { times } = this.predicate(atom);
    const found = [];
    for (let i = first; i < this.argsFirst[atom + 1]; i++) {
      const text = this.data.timeline.constants[this.args.at(i)];
      found.push(this.clock.dates && times.includes(i - first) ? timeText(text) : text);
    }
    return found;
  }

  // Whether an atom has an interval, or one that repeats, at a position.
  holds(atom: number, at: bigint): boolean {
    for (let row = this.firstRow[atom]; row < this.firstRow[atom + 1]; row++) {
      const { lo, hi } = this.rows.span(row);
      if ((lo === null || lo <= at) && (hi === null || at <= hi)) return true;
    }
    return false;
  }

  givenParts(row: number): [number, number] {
    return this.firstGiven.get(row) ?? [0, 0];
  }

  awaitedOf(row: number): AwaitedAnswer[] {
    return this.awaitedByRow.get(row) ?? [];
  }

  interval(row: number): string {
    return this.clock.interval(this.rows.span(row));
  }

  fact(row: number): string {
    return `${this.atomTexts[this.rows.of.at(row)]}@${this.interval(row)}`;
  }

  kindText(row: number): string {
    const kind = this.rows.kind(row);
    if (kind === AWAITED) return "awaited";
    return kind === (GIVEN | DERIVED) ? "given and derived" : kind === GIVEN ? "given" : "derived";
  }

  // The range of all finite ends, slightly widened; a single point gets some room on both sides.
  extent(): [number, number] {
    let lo = Infinity;
    let hi = -Infinity;
    const see = (value: number) => {
      if (!Number.isFinite(value)) return;
      if (value < lo) lo = value;
      if (value > hi) hi = value;
    };
    for (const value of this.x) see(value);
    for (const repeat of this.data.timeline.repeats) {
      const start = (Number(repeat.start) / 2) * this.scale;
      const room = 3 * (Number(repeat.every) / 2) * this.scale;
      see(start);
      see(repeat.before ? start - room : start + room);
    }
    if (lo > hi) return this.clock.dates ? [Date.now() - 1000, Date.now()] : [0, 1];
    const room = hi > lo ? (hi - lo) * 0.03 : this.clock.dates ? 5000 : 1;
    return [lo - room, hi + room];
  }

  // The first interval of an atom that ends at a time or later; intervals of an atom do not overlap.
  firstEnding(atom: number, time: number): number {
    let lo = this.firstRow[atom];
    let hi = this.firstRow[atom + 1];
    while (lo < hi) {
      const middle = (lo + hi) >> 1;
      if (this.x[2 * middle + 1] < time) lo = middle + 1;
      else hi = middle;
    }
    return lo;
  }

  // The row that contains the fact of a proof node, if it is on the timeline.
  rowOf(node: number): number | null {
    const proofs = this.proofs;
    const atom = proofs ? proofs.atom(node) : -1;
    if (!proofs || atom < 0) return null;
    const { lo, hi } = proofs.nodes.span(node);
    const near = lo === null ? -Infinity : Number(lo / 2n) * this.scale;
    for (let row = this.firstEnding(atom, near - Math.abs(near) * 1e-9 - this.scale); row < this.firstRow[atom + 1]; row++) {
      const span = this.rows.span(row);
      if (lo !== null && span.lo !== null && span.lo > lo) return null;
      const before = span.lo === null || (lo !== null && span.lo <= lo);
      if (before && (span.hi === null || (hi !== null && span.hi >= hi))) return row;
    }
    return null;
  }

  nodeText(node: number): string {
    const proofs = this.proofs;
    if (!proofs) return "";
    const atom = proofs.atom(node);
    return atom < 0 ? proofs.other(node) : `${this.atomTexts[atom]}@${this.clock.interval(proofs.nodes.span(node))}`;
  }
}

// A number in an argument as a date.
function timeText(text: string): string {
  const number = text.match(/^(-?\d+)(?:\.(\d+)|\/(\d+))?$/);
  if (!number) return text;
  const [, whole, decimals = "", denominator] = number;
  const scale = denominator ? BigInt(denominator) : 10n ** BigInt(decimals.length);
  return new Clock(scale, true).text(BigInt(denominator ? whole : whole + decimals));
}

function grow(ranges: Map<number, [number, number]>, key: number, i: number): void {
  const known = ranges.get(key);
  if (known) known[1] = i + 1;
  else ranges.set(key, [i, i + 1]);
}
