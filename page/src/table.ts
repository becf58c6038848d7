// The same intervals as a table, a page at a time.

import type { Report } from "./data";
import { h } from "./dom";
import type { Selection } from "./timeline";
import type { Shown } from "./filters";

const PAGE = 100;

export class Table {
  readonly element: HTMLElement;
  private readonly body: HTMLElement;
  private readonly position: HTMLElement;
  private readonly back: HTMLButtonElement;
  private readonly on: HTMLButtonElement;
  private rows: number[] = [];
  private at = 0;

  constructor(
    private readonly report: Report,
    private readonly choose: (selection: Selection) => void,
  ) {
    this.body = h("tbody");
    this.position = h("span", { role: "status" });
    this.back = h("button", { type: "button", onclick: () => this.turn(-PAGE) }, "Previous");
    this.on = h("button", { type: "button", onclick: () => this.turn(PAGE) }, "Next");
    const heads = ["Atom", "From", "To", "Kind", "Proof"].map((name) => h("th", { scope: "col" }, name));
    this.element = h(
      "div",
      { class: "table" },
      h("nav", { class: "line", "aria-label": "Pages of the table" }, this.back, this.on, this.position),
      h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Intervals" },
        h("table", {}, h("caption", { class: "visually-hidden" }, "Intervals"), h("thead", {}, h("tr", {}, ...heads)), this.body)),
    );
  }

  show(shown: Shown): void {
    this.rows = [];
    for (const atom of shown.atoms)
      for (let row = this.report.firstRow[atom]; row < this.report.firstRow[atom + 1]; row++)
        if (shown.shows(row)) this.rows.push(row);
    this.at = 0;
    this.fill();
  }

  private turn(by: number): void {
    this.at = Math.max(0, Math.min(this.at + by, this.rows.length - 1));
    this.fill();
  }

  private fill(): void {
    const { report } = this;
    const some = this.rows.slice(this.at, this.at + PAGE);
    this.body.replaceChildren(...some.map((row) => this.line(row)));
    this.back.disabled = this.at === 0;
    this.on.disabled = this.at + PAGE >= this.rows.length;
    const last = this.at + some.length;
    const of = this.rows.length.toLocaleString("en-US");
    this.position.textContent = some.length ? `${(this.at + 1).toLocaleString("en-US")} to ${last.toLocaleString("en-US")} of ${of}` : "nothing fits";
    for (const repeat of this.at === 0 ? report.data.timeline.repeats.slice(0, PAGE) : []) {
      const interval = report.clock.interval({ lo: BigInt(repeat.lo), hi: BigInt(repeat.hi) });
      const text = `${report.atomTexts[repeat.atom]}`;
      this.body.append(h("tr", {}, h("th", { scope: "row" }, text), h("td", { colspan: 2 }, interval), h("td", {}, "repeats for ever"), h("td")));
    }
  }

  private line(row: number): HTMLElement {
    const { report } = this;
    const span = report.rows.span(row);
    const why = h("button", { type: "button", onclick: () => this.choose({ row }), "aria-label": `Proof of ${report.fact(row)}` }, "why?");
    const closed = (end: bigint | null) => (end === null ? "" : end & 1n ? " (excluded)" : "");
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, report.atomTexts[report.rows.of.at(row)]),
      h("td", {}, report.clock.left(span) + closed(span.lo)),
      h("td", {}, report.clock.right(span) + closed(span.hi)),
      h("td", {}, report.kindText(row)),
      h("td", {}, why),
    );
  }
}
