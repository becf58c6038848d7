// The panel beside the timeline: what an interval is, and why it holds.

import { AWAITED, Clock, GIVEN, type AwaitedAnswer, type Proofs, type Repeat, type Report, type Span } from "./data";
import { code, duration, h } from "./dom";
import { unquote } from "./export";
import type { Blocked } from "./gaps";
import { turnOf, type Selection } from "./timeline";

// Proofs are open down to this depth.
const OPEN = 2;
// The most facts shown per condition; there may be very many.
const WIDTH = 60;

export class Details {
  readonly element: HTMLElement;

  constructor(
    private readonly report: Report,
    private readonly choose: (selection: Selection) => void,
    private readonly close: () => void,
  ) {
    this.element = h("aside", { class: "details", "aria-label": "Proof", hidden: true, tabindex: -1, onkeydown: (event) => this.key(event) });
  }

  // Rows with the facts that the shown interval follows from directly.
  show(selection: Selection): number[] {
    const { report } = this;
    this.element.hidden = false;
    const button = h("button", { type: "button", class: "close", "aria-label": "Close the proof", onclick: () => this.close() }, "×");
    if ("row" in selection) {
      const { row } = selection;
      this.fill(button, report.fact(row), report.kindText(row), [this.columns(report.rows.of.at(row)), ...this.because(row)]);
      return this.premises(row);
    }
    if ("at" in selection) {
      this.missing(button, selection.atom, selection.at);
      return [];
    }
    const { atom, repeat, turn } = selection;
    const part = turnOf(repeat, turn);
    const fact = `${report.atomTexts[atom]}@${report.clock.interval(part)}`;
    const start = report.clock.text(BigInt(repeat.start) / 2n);
    const length = report.clock.dates
      ? duration((Number(repeat.every) / 2) * (report.scale / 1000), 4)
      : new Clock(report.clock.denominator, false).text(BigInt(repeat.every) / 2n);
    const text = `This repeats every ${length}, ${repeat.before ? "before" : "from"} ${start}${repeat.before ? "" : " on"}, for ever.`;
    this.fill(button, fact, "repeats", [h("p", {}, text), ...this.firstTurn(repeat, fact)]);
    return [];
  }

  hide(): void {
    this.element.hidden = true;
    this.element.replaceChildren();
  }

  private fill(button: HTMLElement, fact: string, kind: string, why: (Node | null)[]): void {
    this.element.replaceChildren(
      h("header", {}, h("h2", {}, code(fact)), button),
      h("p", { class: "badge" }, kind),
      ...why.filter((node): node is Node => node !== null),
    );
  }

  // The arguments by the names of their columns, if these have names.
  private columns(atom: number): Node | null {
    const { columns } = this.report.predicate(atom);
    if (!columns) return null;
    const values = this.report.argsOf(atom);
    return h("dl", { class: "columns" }, ...columns.flatMap((name, place) => [h("dt", {}, name), h("dd", {}, unquote(values[place]))]));
  }

  // Why an atom does not hold at a position of its row.
  private missing(button: HTMLElement, atom: number, at: bigint): void {
    const { report } = this;
    const { name, derived } = report.predicate(atom);
    const part = derived ? (report.gaps?.find(atom, at) ?? null) : null;
    const when = part === null || !report.gaps ? report.clock.interval(pointAt(report, atom, at)) : report.clock.interval(report.gaps.span(part));
    const fact = `${report.atomTexts[atom]}@${when}`;
    const said: (Node | null)[] = [];
    if (!derived) said.push(h("p", {}, `No rule derives ${name}: it holds only where the data says so.`));
    else if (part === null) said.push(h("p", {}, "Why it does not hold here is not on this page."), this.command(fact));
    else said.push(h("h3", {}, "Because"), ...(report.gaps as NonNullable<typeof report.gaps>).blocked(part).map((blocked) => this.blocked(blocked)));
    this.fill(button, fact, "does not hold", said);
  }

  private blocked({ rule, lines: [failing, ...more] }: Blocked): HTMLElement {
    const below = more.filter((line) => !/^[\s│├└]/.test(line)).map((line) => {
      const deeper: string[] = [];
      for (let i = more.indexOf(line) + 1; i < more.length && /^[\s│├└]/.test(more[i]); i++) deeper.push(more[i].replace(/^[\s│├└─]+/, ""));
      if (!deeper.length) return h("li", {}, code(line));
      // Why a fact is missing is folded as a whole; of a value, the rows behind it are.
      const whole = line.includes(" does not hold");
      const inner = h("div", { class: "inner" }, h("ul", { class: "premises" }, ...(whole ? [line, ...deeper] : deeper).map((text) => h("li", {}, code(text)))));
      return h("li", {}, !whole && code(line), h("details", {}, h("summary", { "aria-label": `Why: ${line}` }, "why?"), inner));
    });
    return h("div", { class: "step" }, code(this.report.data.rules[rule], { class: "rule" }), h("p", { class: "fails" }, code(failing)), below.length > 0 && h("ul", { class: "premises" }, ...below));
  }

  private because(row: number): (Node | null)[] {
    const { report } = this;
    const kind = report.rows.kind(row);
    if (kind === AWAITED) return report.awaitedOf(row).map((entry) => this.awaited(entry));
    const found: (Node | null)[] = [];
    if (kind & GIVEN) found.push(this.givenParts(row));
    if (kind === GIVEN) return found;
    const root = report.proofs?.root(row);
    if (root !== undefined && report.proofs?.kind(root) !== "unknown") found.push(h("h3", {}, "Because"), this.step(root, 1, new Set([root])));
    else found.push(h("p", {}, "The proof of this interval is not on this page."), this.command(report.fact(row)));
    return found;
  }

  private firstTurn(repeat: Repeat, fact: string): (Node | null)[] {
    const { report } = this;
    const root = report.proofs?.repeatRoot(report.data.timeline.repeats.indexOf(repeat));
    const kind = root === undefined ? "unknown" : report.proofs?.kind(root);
    if (root === undefined || kind === "unknown") return [this.command(fact)];
    const first = h("p", {}, "The first time: ", h("code", {}, report.nodeText(root)));
    return [first, kind === "given" ? h("p", {}, "This is in the data.") : this.step(root, 1, new Set([root]))];
  }

  private givenParts(row: number): Node {
    const { report } = this;
    const [first, last] = report.givenParts(row);
    if (first === last) return h("p", {}, "This is in the data.");
    const parts = [];
    for (let i = first; i < Math.min(last, first + 50); i++) parts.push(h("li", {}, report.clock.interval(report.given.span(i))));
    const more = last - first - parts.length;
    return h("div", {}, h("p", {}, "In the data for"), h("ul", { class: "parts" }, ...parts, more > 0 && h("li", {}, `and ${more} more`)));
  }

  private awaited(entry: AwaitedAnswer): Node {
    const list = (items: string[]) => h("ul", { class: "parts" }, ...items.map((item) => h("li", {}, h("code", {}, item))));
    return h(
      "section",
      { class: "awaited-entry" },
      h("h3", {}, "Waits for"), list(entry.hypotheses),
      entry.conditions.length > 0 && h("p", {}, `where ${entry.conditions.join(", ")}`),
      entry.evidence.length > 0 && h("h3", {}, "Evidence"),
      entry.evidence.length > 0 && list(entry.evidence),
      entry.decided_by !== null && h("p", {}, `Decided by ${entry.decided_by} at the latest.`),
      entry.confidence !== null && h("p", {}, `Confidence ${entry.confidence.toPrecision(3)}.`),
    );
  }

  private command(fact: string): Node | null {
    const { command } = this.report.data;
    if (command === null) return null;
    const quoted = `'${fact.replaceAll("'", "'\\''")}'`;
    return h("div", {}, h("p", {}, "This command prints it:"), h("pre", { class: "command", tabindex: 0 }, `${command} ${quoted}`));
  }

  // Rows with the facts that an interval follows from, directly or through the parts that it is split into.
  private premises(row: number): number[] {
    const { proofs } = this.report;
    const root = proofs?.root(row);
    if (!proofs || root === undefined) return [];
    const found = new Set<number>();
    const add = (node: number, deep: boolean) => {
      for (const { facts } of proofs.conditionsOf(node))
        for (const fact of facts) {
          const other = this.report.rowOf(fact);
          if (deep && proofs.kind(node) === "words") add(fact, false);
          else if (other !== null && other !== row) found.add(other);
        }
    };
    add(root, true);
    return [...found];
  }

  // How a node is derived; `above` are the nodes whose proofs contain it.
  private step(node: number, depth: number, above: Set<number>): HTMLElement {
    const { report } = this;
    const proofs = report.proofs as Proofs;
    const rule = proofs.rule(node);
    const conditions = proofs.conditionsOf(node).flatMap(({ text, facts }) => {
      const below = facts.slice(0, WIDTH).map((fact) => this.premise(fact, depth, above));
      if (facts.length > WIDTH) below.push(h("li", {}, `and ${facts.length - WIDTH} more`));
      return text === null ? below : [h("li", {}, code(text), below.length > 0 && h("ul", { class: "premises" }, ...below))];
    });
    return h(
      "div",
      { class: "step" },
      rule >= 0 && h("code", { class: "rule" }, report.data.rules[rule]),
      proofs.words(node) && h("p", { class: "note" }, proofs.words(node)),
      conditions.length > 0 && h("ul", { class: "premises" }, ...conditions),
    );
  }

  private premise(node: number, depth: number, above: Set<number>): HTMLElement {
    const { report } = this;
    const proofs = report.proofs as Proofs;
    const kind = proofs.kind(node);
    const row = report.rowOf(node);
    const text = code(report.nodeText(node));
    const fact = row === null ? text : h("button", { type: "button", class: "fact", onclick: () => this.choose({ row }), title: "Show it on the timeline" }, text);
    const said = h("span", { class: "badge" }, above.has(node) ? "see above" : { given: "given", rule: "derived", words: "derived", unknown: "derived, proof not shown" }[kind]);
    if (kind === "given" || kind === "unknown" || above.has(node)) return h("li", {}, fact, said);
    const inner = h("div", { class: "inner" });
    const open = () => inner.childNodes.length || inner.append(this.step(node, depth + 1, new Set([...above, node])));
    const details = h("details", { ontoggle: () => details.open && open() }, h("summary", { "aria-label": `Why ${report.nodeText(node)}` }, "why?"), inner);
    if (depth < OPEN) {
      open();
      details.open = true;
    }
    return h("li", {}, fact, said, details);
  }

  private key(event: Event): void {
    if ((event as KeyboardEvent).key === "Escape") this.close();
  }
}

// A time at or near a position at which an atom does not hold: a tick, or else the middle between two.
function pointAt(report: Report, atom: number, at: bigint): Span {
  const near = (at & 1n) === 0n ? [at] : [at - 1n, at + 1n];
  const tick = near.find((position) => !report.holds(atom, position)) ?? at;
  return { lo: tick, hi: tick };
}
