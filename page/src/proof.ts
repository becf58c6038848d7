// Beside the timeline: what an interval is, and why it holds.

import { AWAITED, Clock, GIVEN, type AwaitedAnswer, type Premise, type Report } from "./data";
import { h } from "./dom";
import { turnOf, type Selection } from "./timeline";

// Proofs of proofs open as deep as this by themselves.
const OPEN = 2;

export class Details {
  readonly element: HTMLElement;

  constructor(
    private readonly report: Report,
    private readonly choose: (selection: Selection) => void,
    private readonly close: () => void,
  ) {
    this.element = h("aside", { class: "details", "aria-label": "Proof", hidden: true, tabindex: -1, onkeydown: (event) => this.key(event) });
  }

  // Rows that the shown interval rests on directly.
  show(selection: Selection): number[] {
    const { report } = this;
    this.element.hidden = false;
    const button = h("button", { type: "button", class: "close", "aria-label": "Close the proof", onclick: () => this.close() }, "×");
    if ("row" in selection) {
      const { row } = selection;
      this.fill(button, report.fact(row), report.kindText(row), this.because(row));
      return report.steps(row).flatMap((step) => step.premises.flatMap(({ row }) => (row === null ? [] : [row])));
    }
    const { atom, repeat, turn } = selection;
    const part = turnOf(repeat, turn);
    const fact = `${report.atomTexts[atom]}@${report.clock.interval(part)}`;
    const start = report.clock.text(BigInt(repeat.start) / 2n);
    const every = new Clock(report.clock.denominator, false);
    const text = `This comes again every ${every.text(BigInt(repeat.every) / 2n)}, ${repeat.before ? "before" : "from"} ${start}${repeat.before ? "" : " on"}, for ever.`;
    this.fill(button, fact, "repeats", [h("p", {}, text), this.command(fact)]);
    return [];
  }

  hide(): void {
    this.element.hidden = true;
    this.element.replaceChildren();
  }

  private fill(button: HTMLElement, fact: string, kind: string, why: (Node | null)[]): void {
    this.element.replaceChildren(
      h("header", {}, h("h2", {}, fact), button),
      h("p", { class: "badge" }, kind),
      ...why.filter((node): node is Node => node !== null),
    );
  }

  private because(row: number): (Node | null)[] {
    const { report } = this;
    const kind = report.rows.kind(row);
    if (kind === AWAITED) return report.awaitedOf(row).map((entry) => this.awaited(entry));
    const found: (Node | null)[] = [];
    if (kind & GIVEN) found.push(this.givenParts(row));
    if (kind === GIVEN) return found;
    const steps = report.steps(row);
    if (steps.length) found.push(h("h3", {}, "Because"), this.tree(row, 1, new Set([row])));
    else found.push(h("p", {}, "The proof of this interval is not on this page."), this.command(report.fact(row)));
    return found;
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
      entry.evidence.length > 0 && h("h3", {}, "What speaks for it"),
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

  // The steps of an interval; `above` are those that it is part of the proof of.
  private tree(row: number, depth: number, above: Set<number>): HTMLElement {
    const { report } = this;
    const steps = report.steps(row).map((step) =>
      h(
        "li",
        {},
        step.note && h("p", { class: "note" }, step.note),
        step.rule >= 0 && h("code", { class: "rule" }, report.data.rules[step.rule]),
        h("ul", { class: "premises" }, ...step.premises.map((premise) => this.premise(premise, depth, above))),
      ),
    );
    return h("ul", { class: "steps" }, ...steps);
  }

  private premise(premise: Premise, depth: number, above: Set<number>): HTMLElement {
    const { row } = premise;
    const text = h("code", {}, premise.text);
    if (row === null) return h("li", {}, text);
    const { report } = this;
    const link = h("button", { type: "button", class: "fact", onclick: () => this.choose({ row }), title: "Show it on the timeline" }, text);
    const kind = h("span", { class: "badge" }, report.kindText(row));
    if (!report.steps(row).length || above.has(row)) return h("li", {}, link, kind);
    const inner = h("div", { class: "inner" });
    const open = () => inner.childNodes.length || inner.append(this.tree(row, depth + 1, new Set([...above, row])));
    const details = h("details", { ontoggle: () => details.open && open() }, h("summary", {}, "why?"), inner);
    if (depth < OPEN) {
      open();
      details.open = true;
    }
    return h("li", {}, link, kind, details);
  }

  private key(event: Event): void {
    if ((event as KeyboardEvent).key === "Escape") this.close();
  }
}
