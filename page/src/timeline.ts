// The timeline: one row per atom. Only the visible part is drawn on a canvas, so the cost depends on the view alone.

import { scaleLinear, scaleUtc, type ScaleLinear, type ScaleTime } from "d3-scale";
import { select } from "d3-selection";
import { zoom, zoomIdentity, type D3ZoomEvent, type ZoomBehavior, type ZoomTransform } from "d3-zoom";
import { DERIVED, GIVEN, type Repeat, type Report, type Span } from "./data";
import { color, counted, h, onThemeChange, shortTime } from "./dom";
import { drawBar, drawRing, type Bar, type Ink } from "./shapes";

export const ROW = 26;
const AXIS = 30;
const HUES = 8;
const NEAR = 6;

type Scale = ScaleLinear<number, number> | ScaleTime<number, number>;

// An interval, an occurrence of one that repeats, or a position at which an atom does not hold.
export type Selection = { row: number } | { atom: number; repeat: Repeat; turn: bigint } | { atom: number; at: bigint };

// The height of the title of an image, its resolution, and the most rows on it.
const TITLE = 34;
const SHARP = 2;
const MOST_ROWS = 300;

export interface View {
  // The atoms to show, and which of their intervals.
  atoms: Int32Array;
  shows: (row: number) => boolean;
}

export class Timeline {
  readonly element: HTMLElement;
  private readonly canvas: HTMLCanvasElement;
  private readonly scroller: HTMLElement;
  private readonly spacer: HTMLElement;
  private readonly tip: HTMLElement;
  private readonly spoken: HTMLElement;
  private readonly base: Scale;
  private readonly behavior: ZoomBehavior<HTMLCanvasElement, unknown>;
  private readonly nearest: number;
  private transform: ZoomTransform = zoomIdentity;
  private view: View = { atoms: new Int32Array(0), shows: () => true };
  private placeOf = new Map<number, number>();
  private width = 0;
  private height = 0;
  private labels = 160;
  private cursor: Selection | null = null;
  private marked = new Set<number>();
  private waiting = false;
  // While an image is made: its height. It begins with the first row.
  private image: number | null = null;

  constructor(
    private readonly report: Report,
    private readonly onSelect: (selection: Selection) => void,
  ) {
    this.base = report.clock.dates ? scaleUtc() : scaleLinear();
    const [first, last] = report.extent();
    this.base.domain([first, last]);
    // Zooming in further shows nothing between two neighbouring times.
    this.nearest = Math.min(Math.max((last - first) / (2 * report.scale), 8), 1e10);
    this.canvas = h("canvas", {
      tabindex: 0,
      role: "application",
      "aria-roledescription": "timeline",
      "aria-label": "Timeline. Up and down arrows choose an atom, left and right an interval, Enter shows its proof, N says why it does not hold afterwards, plus and minus zoom, 0 shows all.",
    });
    this.spacer = h("div", { class: "spacer" }, this.canvas);
    this.scroller = h("div", { class: "scroller" }, this.spacer);
    this.tip = h("div", { class: "tip", hidden: true, "aria-hidden": "true" });
    this.spoken = h("div", { class: "visually-hidden", role: "status", "aria-live": "polite" });
    this.element = h("div", { class: "timeline" }, this.scroller, this.tip, this.spoken);
    this.behavior = zoom<HTMLCanvasElement, unknown>()
      .scaleExtent([1, this.nearest])
      .clickDistance(4)
      .filter((event: Event) => this.mayZoom(event))
      .on("zoom", (event: D3ZoomEvent<HTMLCanvasElement, unknown>) => {
        this.transform = event.transform;
        this.draw();
      });
    select(this.canvas).call(this.behavior);
    this.canvas.addEventListener("click", (event) => this.click(event));
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => this.hideTip());
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("focus", () => this.draw());
    this.canvas.addEventListener("blur", () => this.draw());
    this.scroller.addEventListener("scroll", () => {
      this.hideTip();
      this.draw();
    });
    new ResizeObserver(() => this.resize()).observe(this.scroller);
    onThemeChange(() => this.draw());
  }

  show(view: View): void {
    this.view = view;
    this.placeOf = new Map();
    view.atoms.forEach((atom, place) => this.placeOf.set(atom, place));
    this.resize();
  }

  zoomBy(factor: number): void {
    const middle: [number, number] = [(this.labels + this.width) / 2, 0];
    select(this.canvas).call(this.behavior.scaleBy, factor, middle);
  }

  fit(): void {
    select(this.canvas).call(this.behavior.transform, zoomIdentity);
  }

  // Show the range from lo to hi.
  zoomTo(lo: number, hi: number): void {
    const [first, last] = this.base.range();
    const [a, b] = [this.base(lo), this.base(hi)];
    const k = Math.min((last - first) / Math.max(b - a, 1e-9), this.nearest);
    select(this.canvas).call(this.behavior.transform, zoomIdentity.translate(first - k * a, 0).scale(k));
  }

  // The visible range, in the numbers of the scale.
  visible(): [number, number] {
    const scale = this.scale();
    return [Number(scale.invert(this.labels)), Number(scale.invert(this.width))];
  }

  // Choose an interval, bring it into view and announce it; other intervals may be marked with it.
  choose(selection: Selection, marked: number[] = []): void {
    this.cursor = selection;
    this.marked = new Set(marked);
    this.reveal(selection);
    this.spoken.textContent = this.describe(selection);
    this.draw();
  }

  focus(): void {
    this.canvas.focus();
  }

  describe(selection: Selection): string {
    if ("row" in selection) {
      const { rows, clock, atomTexts } = this.report;
      const atom = atomTexts[rows.of.at(selection.row)];
      return `${atom} ${clock.spoken(rows.span(selection.row))}, ${this.report.kindText(selection.row)}`;
    }
    const atom = this.report.atomTexts[selection.atom];
    if ("at" in selection) return `${atom} does not hold here`;
    return `${atom} ${this.report.clock.spoken(turnOf(selection.repeat, selection.turn))}, repeats for ever`;
  }

  private scale(): Scale {
    return this.transform.rescaleX(this.base as ScaleLinear<number, number>);
  }

  private mayZoom(event: Event): boolean {
    if (event instanceof WheelEvent) {
      const onAxis = event.offsetY < AXIS;
      return event.ctrlKey || event.metaKey || onAxis || this.scroller.scrollHeight <= this.scroller.clientHeight + 1;
    }
    return !(event instanceof MouseEvent) || event.button === 0;
  }

  private resize(): void {
    const wide = this.scroller.clientWidth;
    const high = this.scroller.clientHeight;
    if (!wide || !high) return;
    this.hideTip();
    const ratio = devicePixelRatio || 1;
    this.spacer.style.height = `${Math.max(AXIS + this.view.atoms.length * ROW + 8, high)}px`;
    if (wide !== this.width || high !== this.height || this.canvas.width !== Math.round(wide * ratio)) {
      this.width = wide;
      this.height = high;
      this.canvas.width = Math.round(wide * ratio);
      this.canvas.height = Math.round(high * ratio);
      this.canvas.style.width = `${wide}px`;
      this.canvas.style.height = `${high}px`;
    }
    this.labels = this.labelWidth();
    this.base.range([this.labels, this.width - 8]);
    this.behavior.extent([
      [this.labels, 0],
      [this.width, this.height],
    ]);
    const beyond = this.width / 2;
    this.behavior.translateExtent([
      [this.labels - beyond, 0],
      [this.width + beyond, this.height],
    ]);
    this.draw();
  }

  private labelWidth(): number {
    let longest = 12;
    for (const atom of this.view.atoms) longest = Math.max(longest, this.report.atomTexts[atom].length);
    return Math.min(longest * this.letter() + 30, this.width * 0.34, 320);
  }

  // The width of a letter of the labels, whose font is monospaced.
  private letter(): number {
    const g = this.canvas.getContext("2d");
    if (!g) return 8;
    g.font = labelFont();
    return g.measureText("m").width;
  }

  private draw(): void {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.paint();
    });
  }

  private ink(atom: number): Ink {
    const hue = this.report.predicateOf.at(atom) % HUES;
    return { color: color(`hue-${hue}`), background: color("surface"), focus: color("focus") };
  }

  // The timeline as an image: all rows that are shown, up to a number, in the visible range of time.
  async toImage(title: string): Promise<Blob> {
    const height = AXIS + Math.min(this.view.atoms.length, MOST_ROWS) * ROW + 8;
    const canvas = h("canvas", { width: Math.round(this.width * SHARP), height: Math.round((height + TITLE) * SHARP) });
    const g = canvas.getContext("2d");
    if (!g) throw new Error("no canvas");
    g.scale(SHARP, SHARP);
    g.fillStyle = color("surface");
    g.fillRect(0, 0, this.width, height + TITLE);
    g.fillStyle = color("text");
    g.font = `600 15px ${color("sans")}`;
    g.textBaseline = "middle";
    g.fillText(title, 12, TITLE / 2 + 2, this.width - 24);
    g.translate(0, TITLE);
    this.image = height;
    this.paintOn(g);
    this.image = null;
    return new Promise((done, fail) => canvas.toBlob((blob) => (blob ? done(blob) : fail(new Error("no image"))), "image/png"));
  }

  private get top(): number {
    return this.image === null ? this.scroller.scrollTop : 0;
  }

  private get high(): number {
    return this.image ?? this.height;
  }

  private paint(): void {
    const g = this.canvas.getContext("2d");
    if (!g || !this.width) return;
    const ratio = this.canvas.width / this.width;
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, this.width, this.height);
    this.paintOn(g);
  }

  private paintOn(g: CanvasRenderingContext2D): void {
    g.font = labelFont();
    g.textBaseline = "middle";
    const scale = this.scale();
    const [first, last] = this.visiblePlaces();
    const chosen = this.cursor ? this.placeOf.get(this.atomOf(this.cursor)) : undefined;
    for (let place = first; place < last; place++) {
      const y = this.yOf(place);
      if (place === chosen) {
        g.fillStyle = color("row-chosen");
        g.fillRect(0, y - ROW / 2, this.width, ROW);
      }
      g.fillStyle = color("line-soft");
      g.fillRect(0, y + ROW / 2 - 1, this.width, 1);
    }
    this.paintGrid(g, scale);
    g.save();
    g.beginPath();
    g.rect(this.labels, AXIS, this.width - this.labels, this.high - AXIS);
    g.clip();
    for (let place = first; place < last; place++) this.paintRow(g, scale, place);
    g.restore();
    this.paintLabels(g, first, last);
    this.paintAxis(g, scale);
  }

  private visiblePlaces(): [number, number] {
    const top = this.top;
    const first = Math.max(0, Math.floor(top / ROW));
    return [first, Math.min(this.view.atoms.length, Math.ceil((top + this.high - AXIS) / ROW) + 1)];
  }

  private yOf(place: number): number {
    return AXIS + place * ROW + ROW / 2 - this.top;
  }

  private ticks(scale: Scale): { at: number; text: string }[] {
    const count = Math.max(2, Math.floor((this.width - this.labels) / 110));
    if (this.report.clock.dates) {
      const times = scale as ScaleTime<number, number>;
      return times.ticks(count).map((tick) => ({ at: times(tick), text: shortTime(tick) }));
    }
    const numbers = scale as ScaleLinear<number, number>;
    const format = numbers.tickFormat(count);
    return numbers.ticks(count).map((tick) => ({ at: numbers(tick), text: format(tick).replace("\u2212", "-") }));
  }

  private paintGrid(g: CanvasRenderingContext2D, scale: Scale): void {
    g.fillStyle = color("line-soft");
    for (const { at } of this.ticks(scale)) if (at >= this.labels) g.fillRect(Math.round(at), AXIS, 1, this.high);
  }

  private paintAxis(g: CanvasRenderingContext2D, scale: Scale): void {
    g.fillStyle = color("surface");
    g.fillRect(0, 0, this.width, AXIS);
    g.fillStyle = color("line");
    g.fillRect(0, AXIS - 1, this.width, 1);
    g.fillStyle = color("muted");
    g.font = `12px ${color("sans")}`;
    g.textAlign = "center";
    for (const { at, text } of this.ticks(scale)) {
      const half = g.measureText(text).width / 2;
      if (at - half >= this.labels && at + half <= this.width) g.fillText(text, at, AXIS / 2);
    }
    g.textAlign = "left";
    const corner = this.report.clock.dates ? `${dateAt(scale.invert(this.labels))} UTC` : counted(this.view.atoms.length, "atom");
    g.fillText(corner, 12, AXIS / 2);
  }

  private paintLabels(g: CanvasRenderingContext2D, first: number, last: number): void {
    g.save();
    g.beginPath();
    g.rect(0, AXIS, this.labels - 8, this.high);
    g.clip();
    g.textAlign = "left";
    const room = Math.floor((this.labels - 28) / this.letter());
    for (let place = first; place < last; place++) {
      const atom = this.view.atoms[place];
      const text = this.report.atomTexts[atom];
      const y = this.yOf(place);
      g.fillStyle = this.ink(atom).color;
      g.fillRect(4, y - 7, 3, 14);
      g.fillStyle = color("text");
      g.fillText(shorten(text, room), 13, y);
    }
    g.restore();
    g.fillStyle = color("line");
    g.fillRect(this.labels - 6, AXIS, 1, this.high);
  }

  private paintRow(g: CanvasRenderingContext2D, scale: Scale, place: number): void {
    const { report } = this;
    const atom = this.view.atoms[place];
    const ink = this.ink(atom);
    const y = this.yOf(place);
    const [from, to] = [Number(scale.invert(this.labels - 20)), Number(scale.invert(this.width + 20))];
    const last = report.firstRow[atom + 1];
    let row = this.report.firstEnding(atom, from);
    let filled = -Infinity;
    while (row < last && report.x[2 * row] <= to) {
      const bar = this.bar(scale, row, y);
      if (!this.view.shows(row)) {
        row += 1;
      } else if (bar.x1 - bar.x0 < 1 && bar.x0 < filled) {
        // Several intervals in one pixel look like one: continue with the first that ends beyond it.
        row = Math.max(row + 1, this.report.firstEnding(atom, Number(scale.invert(filled))));
      } else {
        drawBar(g, bar, this.labels, this.width, ink);
        if (bar.kind === (GIVEN | DERIVED)) this.paintGiven(g, scale, row, y, ink);
        filled = bar.x1 - bar.x0 < 1 ? bar.x0 + 1 : filled;
        if (this.marked.has(row)) drawRing(g, bar, this.labels, this.width, ink, 1.5);
        if (this.cursor && "row" in this.cursor && this.cursor.row === row)
          drawRing(g, bar, this.labels, this.width, ink, 2.5);
        row += 1;
      }
    }
    for (const repeat of report.repeatsOfAtom.get(atom) ?? []) this.paintRepeat(g, scale, repeat, y, ink, from, to);
    this.paintElsewhere(g, scale, atom, y);
    this.paintGap(g, scale, atom, y);
  }

  // A mark around the part of a gap that was chosen, or around the spot if its part is not known.
  private paintGap(g: CanvasRenderingContext2D, scale: Scale, atom: number, y: number): void {
    const { cursor, report } = this;
    if (!cursor || !("at" in cursor) || cursor.atom !== atom) return;
    const part = report.gaps?.find(atom, cursor.at) ?? null;
    const { lo, hi } = part === null || !report.gaps ? { lo: cursor.at, hi: cursor.at } : report.gaps.span(part);
    const x0 = lo === null ? this.labels : Math.max(pixel(scale, Math.floor(Number(lo) / 2) * report.scale), this.labels);
    const x1 = hi === null ? this.width : Math.min(pixel(scale, Math.ceil(Number(hi) / 2) * report.scale), this.width);
    g.save();
    g.strokeStyle = color("focus");
    g.lineWidth = 2;
    g.setLineDash([5, 4]);
    g.strokeRect(Math.min(x0, x1 - 6) + 1, y - 9, Math.max(x1 - x0, 6) - 2, 18);
    g.restore();
  }

  // Small marks at the edges for intervals outside of the view.
  private paintElsewhere(g: CanvasRenderingContext2D, scale: Scale, atom: number, y: number): void {
    const { report } = this;
    const [first, last] = [report.firstRow[atom], report.firstRow[atom + 1] - 1];
    if (first > last) return;
    g.fillStyle = color("muted");
    g.textAlign = "left";
    if (pixel(scale, report.x[2 * first + 1]) < this.labels - 6) g.fillText("‹", this.labels, y);
    if (pixel(scale, report.x[2 * last]) > this.width + 6) g.fillText("›", this.width - 9, y);
  }

  private paintGiven(g: CanvasRenderingContext2D, scale: Scale, row: number, y: number, ink: Ink): void {
    const { report } = this;
    const [first, last] = report.givenParts(row);
    for (let i = first; i < last; i++) {
      const [x0, x1] = [pixel(scale, report.givenX[2 * i]), pixel(scale, report.givenX[2 * i + 1])];
      const open = { openLeft: report.given.openLeft(i), openRight: report.given.openRight(i) };
      drawBar(g, { x0, x1, y, ...open, kind: GIVEN }, this.labels, this.width, ink);
    }
  }

  private paintRepeat(
    g: CanvasRenderingContext2D, scale: Scale, repeat: Repeat, y: number, ink: Ink, from: number, to: number,
  ): void {
    const [first, last] = this.turns(repeat, from, to);
    const every = pixel(scale, (Number(repeat.every) / 2) * this.report.scale) - pixel(scale, 0);
    if (every < 3) {
      const ends = this.repeatBar(scale, repeat, first, y);
      const other = this.repeatBar(scale, repeat, last, y);
      const band = { ...ends, x0: Math.min(ends.x0, other.x0), x1: Math.max(ends.x1, other.x1) };
      drawBar(g, band, this.labels, this.width, ink);
      return;
    }
    for (let turn = first; turn <= last; turn++) {
      const bar = this.repeatBar(scale, repeat, turn, y);
      drawBar(g, bar, this.labels, this.width, ink);
      const cursor = this.cursor;
      if (cursor && "repeat" in cursor && cursor.repeat === repeat && cursor.turn === turn)
        drawRing(g, bar, this.labels, this.width, ink, 2.5);
    }
  }

  // The occurrences of a repetition that are visible between two times, none of them below 0.
  private turns(repeat: Repeat, from: number, to: number): [bigint, bigint] {
    const { scale } = this.report;
    const every = (Number(repeat.every) / 2) * scale;
    const lo = (Number(repeat.lo) / 2) * scale;
    const hi = (Number(repeat.hi) / 2) * scale;
    const [a, b] = repeat.before ? [(lo - to) / every, (hi - from) / every] : [(from - hi) / every, (to - lo) / every];
    return [BigInt(Math.max(0, Math.ceil(a))), BigInt(Math.max(-1, Math.floor(b)))];
  }

  private repeatBar(scale: Scale, repeat: Repeat, turn: bigint, y: number): Bar {
    const span = turnOf(repeat, turn) as { lo: bigint; hi: bigint };
    const unit = this.report.scale;
    return {
      x0: pixel(scale, Math.floor(Number(span.lo) / 2) * unit),
      x1: pixel(scale, Math.ceil(Number(span.hi) / 2) * unit),
      y,
      openLeft: (span.lo & 1n) === 1n,
      openRight: (span.hi & 1n) === 1n,
      kind: DERIVED,
    };
  }

  private bar(scale: Scale, row: number, y: number): Bar {
    const { report } = this;
    return {
      x0: pixel(scale, report.x[2 * row]),
      x1: pixel(scale, report.x[2 * row + 1]),
      y,
      openLeft: report.rows.openLeft(row),
      openRight: report.rows.openRight(row),
      kind: report.rows.kind(row),
    };
  }

  private atomOf(selection: Selection): number {
    return "row" in selection ? this.report.rows.of.at(selection.row) : selection.atom;
  }

  // The item that is drawn at a position of the canvas.
  private hit(x: number, y: number): Selection | null {
    if (y < AXIS || x < this.labels) return null;
    const place = Math.floor((y - AXIS + this.scroller.scrollTop) / ROW);
    const atom = this.view.atoms[place];
    if (atom === undefined) return null;
    const scale = this.scale();
    const reach = 9;
    const [from, to] = [Number(scale.invert(x - reach)), Number(scale.invert(x + reach))];
    let best: Selection | null = null;
    let least = NEAR + 0.1;
    for (let row = this.report.firstEnding(atom, from); row < this.report.firstRow[atom + 1]; row++) {
      if (this.report.x[2 * row] > to) break;
      if (!this.view.shows(row)) continue;
      const bar = this.bar(scale, row, 0);
      const distance = Math.max(bar.x0 - x, x - bar.x1, 0);
      if (distance < least) [best, least] = [{ row }, distance];
    }
    for (const repeat of this.report.repeatsOfAtom.get(atom) ?? []) {
      const [first, last] = this.turns(repeat, from, to);
      for (let turn = first; turn <= last && turn < first + 50n; turn++) {
        const bar = this.repeatBar(scale, repeat, turn, 0);
        const distance = Math.max(bar.x0 - x, x - bar.x1, 0);
        if (distance < least) [best, least] = [{ atom, repeat, turn }, distance];
      }
    }
    return best;
  }

  // The empty spot of a row at a position of the canvas.
  private spot(x: number, y: number): Selection | null {
    if (y < AXIS || x < this.labels) return null;
    const atom = this.view.atoms[Math.floor((y - AXIS + this.scroller.scrollTop) / ROW)];
    if (atom === undefined) return null;
    const ticks = Number(this.scale().invert(x)) / this.report.scale;
    const between = 2n * BigInt(Math.floor(ticks)) + 1n;
    // A pixel may cover many positions: take one nearby at which the atom does not hold.
    const at = [between, between + 1n, between - 1n].find((position) => !this.report.holds(atom, position));
    return at === undefined ? null : { atom, at };
  }

  private click(event: MouseEvent): void {
    const found = this.hit(event.offsetX, event.offsetY) ?? this.spot(event.offsetX, event.offsetY);
    this.hideTip();
    if (found) this.onSelect(found);
  }

  private hover(event: PointerEvent): void {
    const found = this.hit(event.offsetX, event.offsetY);
    this.canvas.style.cursor = found ? "pointer" : event.offsetX < this.labels ? "default" : "grab";
    let text = found ? this.tipText(found) : "";
    if (!found && this.spot(event.offsetX, event.offsetY)) {
      this.canvas.style.cursor = "help";
      text = "Why not here?";
    }
    if (!found && event.offsetX < this.labels && event.offsetY > AXIS) {
      const atom = this.view.atoms[Math.floor((event.offsetY - AXIS + this.scroller.scrollTop) / ROW)];
      text = atom === undefined ? "" : this.report.atomTexts[atom];
    }
    if (!text || event.buttons) {
      this.hideTip();
      return;
    }
    this.tip.textContent = text;
    this.tip.hidden = false;
    const { width } = this.tip.getBoundingClientRect();
    this.tip.style.left = `${Math.max(4, Math.min(event.offsetX + 12, this.width - width - 4))}px`;
    this.tip.style.top = `${event.offsetY + 18}px`;
  }

  private hideTip(): void {
    this.tip.hidden = true;
  }

  private tipText(selection: Selection): string {
    if ("at" in selection) return "Why not here?";
    if ("row" in selection) return `${this.report.fact(selection.row)}  ·  ${this.report.kindText(selection.row)}`;
    const interval = this.report.clock.interval(turnOf(selection.repeat, selection.turn));
    return `${this.report.atomTexts[selection.atom]}@${interval}  ·  repeats`;
  }

  private reveal(selection: Selection): void {
    const place = this.placeOf.get(this.atomOf(selection));
    if (place === undefined) return;
    const top = place * ROW;
    const room = this.height - AXIS;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = Math.max(0, top - ROW);
    else if (top + ROW > this.scroller.scrollTop + room) this.scroller.scrollTop = top + 2 * ROW - room;
    if (!("row" in selection)) return;
    const [lo, hi] = [this.report.x[2 * selection.row], this.report.x[2 * selection.row + 1]];
    const [from, to] = this.visible();
    if (hi >= from && lo <= to) return;
    const middle = Number.isFinite(lo) && Number.isFinite(hi) ? (lo + hi) / 2 : Number.isFinite(lo) ? lo : hi;
    const half = (to - from) / 2;
    this.zoomTo(middle - half, middle + half);
  }

  private key(event: KeyboardEvent): void {
    const page = Math.max(1, Math.floor((this.height - AXIS) / ROW) - 1);
    const moves: Record<string, () => void> = {
      ArrowDown: () => this.goToPlace(1),
      ArrowUp: () => this.goToPlace(-1),
      PageDown: () => this.goToPlace(page),
      PageUp: () => this.goToPlace(-page),
      ArrowRight: () => this.goAlong(1),
      ArrowLeft: () => this.goAlong(-1),
      Home: () => this.goAlong(-Infinity),
      End: () => this.goAlong(Infinity),
      Enter: () => this.cursor && this.onSelect(this.cursor),
      " ": () => this.cursor && this.onSelect(this.cursor),
      "+": () => this.zoomBy(1.6),
      "=": () => this.zoomBy(1.6),
      "-": () => this.zoomBy(1 / 1.6),
      "0": () => this.fit(),
      n: () => this.chooseGap(),
    };
    const move = moves[event.key];
    if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    move();
  }

  // Ask why the atom does not hold right after the chosen interval, or right before it if it has no end.
  private chooseGap(): void {
    if (!this.cursor || !("row" in this.cursor)) return;
    const { lo, hi } = this.report.rows.span(this.cursor.row);
    const atom = this.atomOf(this.cursor);
    const at = hi !== null ? hi + 1n : lo !== null ? lo - 1n : null;
    if (at !== null && !this.report.holds(atom, at)) this.onSelect({ atom, at });
  }

  // Move up or down by some rows, to the interval there that is nearest in time.
  private goToPlace(by: number): void {
    const { atoms } = this.view;
    if (!atoms.length) return;
    const now = this.cursor ? this.placeOf.get(this.atomOf(this.cursor)) : undefined;
    const place = now === undefined ? 0 : Math.min(Math.max(now + by, 0), atoms.length - 1);
    const middle = this.cursor && "row" in this.cursor ? this.report.x[2 * this.cursor.row] : this.visible()[0];
    const rows = this.rowsAt(atoms[place]);
    if (!rows.length) {
      const repeat = this.report.repeatsOfAtom.get(atoms[place])?.[0];
      if (repeat) this.choose({ atom: atoms[place], repeat, turn: 0n });
      return;
    }
    const distance = (row: number) => Math.max(this.report.x[2 * row] - middle, middle - this.report.x[2 * row + 1], 0);
    let best = rows[0];
    for (const row of rows) if (distance(row) < distance(best)) best = row;
    this.choose({ row: best });
  }

  private goAlong(by: number): void {
    if (!this.cursor) {
      this.goToPlace(0);
      return;
    }
    if ("at" in this.cursor) {
      const { atom } = this.cursor;
      const at = this.cursor.at;
      const rows = this.rowsAt(atom);
      const isLater = (row: number) => (this.report.rows.span(row).lo ?? at) > at;
      const row = by > 0 ? rows.find(isLater) : rows.filter((one) => !isLater(one)).pop();
      if (row !== undefined) this.choose({ row });
      return;
    }
    if (!("row" in this.cursor)) {
      const turn = this.cursor.turn + (Number.isFinite(by) ? BigInt(by) * (this.cursor.repeat.before ? -1n : 1n) : 0n);
      if (turn >= 0n) this.choose({ ...this.cursor, turn });
      return;
    }
    const rows = this.rowsAt(this.atomOf(this.cursor));
    const at = rows.indexOf(this.cursor.row) + by;
    const row = rows[Math.min(Math.max(at, 0), rows.length - 1)];
    if (row !== undefined) this.choose({ row });
  }

  private rowsAt(atom: number): number[] {
    const found = [];
    for (let row = this.report.firstRow[atom]; row < this.report.firstRow[atom + 1]; row++)
      if (this.view.shows(row)) found.push(row);
    return found;
  }
}

export function turnOf(repeat: Repeat, turn: bigint): Span {
  const by = BigInt(repeat.every) * (repeat.before ? -turn : turn);
  return { lo: BigInt(repeat.lo) + by, hi: BigInt(repeat.hi) + by };
}

const dateAt = (time: Date | number): string => {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString().slice(0, 10);
};

// A label without its middle, where it is too long: the arguments at its end tell it from others.
function shorten(text: string, room: number): string {
  if (text.length <= room) return text;
  const kept = Math.max(room - 1, 2);
  const tail = Math.floor(kept / 2);
  return `${text.slice(0, kept - tail)}…${text.slice(-tail)}`;
}

const labelFont = (): string => `12.5px ${color("mono")}`;

function pixel(scale: Scale, time: number): number {
  return Number.isFinite(time) ? scale(time) : time;
}
