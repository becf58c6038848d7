// The same intervals as a table, a page at a time; sorted by any column, or in the order of the timeline.

import type { Report } from "./data";
import { code, h } from "./dom";
import { argumentNames } from "./export";
import type { Selection } from "./timeline";
import type { Shown } from "./filters";

const PAGE = 100;

interface Sorting {
  column: string;
  descending: boolean;
}

export class Table {
  readonly element: HTMLElement;
  private readonly head: HTMLElement;
  private readonly body: HTMLElement;
  private readonly position: HTMLElement;
  private readonly back: HTMLButtonElement;
  private readonly on: HTMLButtonElement;
  private given: number[] = [];
  private rows: number[] = [];
  private at = 0;
  private sorting: Sorting | null = null;

  constructor(
    private readonly report: Report,
    private readonly choose: (selection: Selection) => void,
  ) {
    this.head = h("tr");
    this.body = h("tbody");
    this.position = h("span", { role: "status" });
    this.back = h("button", { type: "button", onclick: () => this.turn(-PAGE) }, "Previous");
    this.on = h("button", { type: "button", onclick: () => this.turn(PAGE) }, "Next");
    this.element = h(
      "div",
      { class: "table" },
      h("nav", { class: "line", "aria-label": "Pages of the table" }, this.back, this.on, this.position),
      h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Intervals" },
        h("table", {}, h("caption", { class: "visually-hidden" }, "Intervals"), h("thead", {}, this.head), this.body)),
    );
  }

  show(shown: Shown): void {
    this.given = [];
    for (const atom of shown.atoms)
      for (let row = this.report.firstRow[atom]; row < this.report.firstRow[atom + 1]; row++)
        if (shown.shows(row)) this.given.push(row);
    this.sort();
  }

  private turn(by: number): void {
    this.at = Math.max(0, Math.min(this.at + by, this.rows.length - 1));
    this.fill();
  }

  // The names of the argument columns, if all rows are of one predicate; null if they share a column of atoms.
  private columns(): string[] | null {
    const { report } = this;
    const predicates = new Set(this.given.map((row) => report.predicateOf.at(report.rows.of.at(row))));
    const names = predicates.size === 1 ? argumentNames(report, [...predicates]) : [];
    return names.length ? names : null;
  }

  private sortBy(column: string): void {
    const { sorting } = this;
    // Ascending, descending, and back to the order of the timeline.
    if (sorting?.column !== column) this.sorting = { column, descending: false };
    else this.sorting = sorting.descending ? null : { column, descending: true };
    this.sort();
    this.head.querySelector<HTMLElement>(`[data-column="${CSS.escape(column)}"]`)?.focus();
  }

  private sort(): void {
    const { report, sorting } = this;
    this.rows = this.given;
    this.at = 0;
    const columns = this.columns();
    if (sorting) {
      const compare = this.comparison(sorting.column, columns);
      if (compare) this.rows = [...this.given].sort((a, b) => (sorting.descending ? -1 : 1) * compare(a, b));
    }
    const names = [...(columns ?? ["Atom"]), "From", "To", "Kind"];
    this.head.replaceChildren(...names.map((name) => this.heading(name)), h("th", { scope: "col" }, "Proof"));
    if (columns) {
      const predicate = report.predicate(report.rows.of.at(this.given[0])).name;
      this.head.firstElementChild?.prepend(h("span", { class: "visually-hidden" }, `${predicate}: `));
    }
    this.fill();
  }

  private heading(name: string): HTMLElement {
    const sorted = this.sorting?.column === name ? (this.sorting.descending ? "descending" : "ascending") : undefined;
    const mark = sorted ? (sorted === "ascending" ? " ▲" : " ▼") : "";
    return h("th", { scope: "col", "aria-sort": sorted }, h("button", { type: "button", class: "sort", "data-column": name, title: `Sort by ${name}`, onclick: () => this.sortBy(name) }, name, h("span", { "aria-hidden": "true" }, mark)));
  }

  private comparison(column: string, columns: string[] | null): ((a: number, b: number) => number) | null {
    const { report } = this;
    const end = { From: 0, To: 1 }[column];
    if (end !== undefined) return (a, b) => less(report.x[2 * a + end], report.x[2 * b + end]);
    if (column === "Kind") return (a, b) => less(report.kindText(a), report.kindText(b));
    const place = columns ? columns.indexOf(column) : column === "Atom" ? -1 : null;
    if (place === null || (columns && place < 0)) return null;
    const text = (row: number) => (columns ? report.argsOf(report.rows.of.at(row))[place] : report.atomTexts[report.rows.of.at(row)]);
    return (a, b) => text(a).localeCompare(text(b), "en", { numeric: true });
  }

  private fill(): void {
    const { report } = this;
    const columns = this.columns();
    const some = this.rows.slice(this.at, this.at + PAGE);
    this.body.replaceChildren(...some.map((row) => this.line(row, columns)));
    this.back.disabled = this.at === 0;
    this.on.disabled = this.at + PAGE >= this.rows.length;
    const last = this.at + some.length;
    const of = this.rows.length.toLocaleString("en-US");
    this.position.textContent = some.length ? `${(this.at + 1).toLocaleString("en-US")} to ${last.toLocaleString("en-US")} of ${of}` : "nothing fits";
    for (const repeat of this.at === 0 ? report.data.timeline.repeats.slice(0, PAGE) : []) {
      const interval = report.clock.interval({ lo: BigInt(repeat.lo), hi: BigInt(repeat.hi) });
      const text = `${report.atomTexts[repeat.atom]}`;
      this.body.append(h("tr", {}, h("th", { scope: "row", colspan: columns?.length ?? 1 }, code(text)), h("td", { colspan: 2 }, interval), h("td", {}, "repeats for ever"), h("td")));
    }
  }

  private line(row: number, columns: string[] | null): HTMLElement {
    const { report } = this;
    const span = report.rows.span(row);
    const atom = report.rows.of.at(row);
    const why = h("button", { type: "button", onclick: () => this.choose({ row }), "aria-label": `Proof of ${report.fact(row)}` }, "why?");
    const closed = (end: bigint | null) => (end === null ? "" : end & 1n ? " (excluded)" : "");
    const [first, ...rest] = columns ? report.argsOf(atom) : [report.atomTexts[atom]];
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, code(first)),
      ...rest.map((text) => h("td", {}, code(text))),
      h("td", { class: "time" }, report.clock.left(span) + closed(span.lo)),
      h("td", { class: "time" }, report.clock.right(span) + closed(span.hi)),
      h("td", {}, report.kindText(row)),
      h("td", {}, why),
    );
  }
}

const less = <T>(a: T, b: T): number => (a < b ? -1 : a > b ? 1 : 0);
