// The filters: search, predicates, a constant, kinds, a time range.

import { AWAITED, DERIVED, GIVEN, type Report } from "./data";
import { counted, h } from "./dom";
import type { View } from "./timeline";

// The order of rows: by name, or by the first or the last time of each atom.
type Order = "name" | "first" | "last";
const ORDERS: [Order, string][] = [["name", "name"], ["first", "earliest first"], ["last", "latest first"]];
const ROLES = ["query", "given", "helper"];

export interface Shown extends View {
  // The chosen time range, if both of its ends are given.
  stretch: [number, number] | null;
}

// An input behind its label, on one line.
function field(name: string, input: HTMLElement): HTMLElement {
  return h("span", { class: "field" }, h("label", { for: input.id }, name), input);
}

// A time as in facts: a number, a fraction, or a date.
function readTime(text: string, dates: boolean): number | null {
  const value = text.trim();
  const fraction = value.match(/^([+-]?\d+)\/(\d+)$/);
  const seconds = fraction ? Number(fraction[1]) / Number(fraction[2]) : Number(value);
  if (value && Number.isFinite(seconds)) return dates ? seconds * 1000 : seconds;
  const zoned = /T.*(Z|[+-]\d\d:?\d\d)$/i.test(value) || !value.includes("T") ? value : `${value}Z`;
  const date = dates ? Date.parse(zoned) : NaN;
  return Number.isNaN(date) ? null : date;
}

export class Filters {
  readonly element: HTMLElement;
  private readonly search: HTMLInputElement;
  private readonly constant: HTMLInputElement;
  private readonly from: HTMLInputElement;
  private readonly to: HTMLInputElement;
  private readonly kinds = new Map<number, HTMLInputElement>();
  private readonly predicates = new Set<number>();
  private readonly chips: HTMLButtonElement[] = [];
  private readonly summary: HTMLElement;
  // The choice of the order of rows, to be placed beside them.
  readonly ordering: HTMLElement;
  private readonly order: HTMLSelectElement;
  private readonly helpers: HTMLButtonElement;
  private folded: boolean;
  private readonly lower: string[];
  private readonly shownKind: Uint8Array;

  constructor(
    private readonly report: Report,
    private readonly changed: (shown: Shown) => void,
  ) {
    const { predicates, constants } = report.data.timeline;
    this.lower = report.atomTexts.map((text) => text.toLowerCase());
    this.shownKind = new Uint8Array(report.rows.length);
    const update = () => this.apply();
    this.search = h("input", { type: "search", id: "search", placeholder: "Search atoms", autocomplete: "off", oninput: update });
    this.constant = h("input", { type: "text", id: "constant", list: "constants", placeholder: "any", autocomplete: "off", size: 10, oninput: update });
    this.from = h("input", { type: "text", id: "from", size: 10, placeholder: "start", autocomplete: "off", oninput: update });
    this.to = h("input", { type: "text", id: "to", size: 10, placeholder: "end", autocomplete: "off", oninput: update });
    this.summary = h("output", { class: "summary", role: "status" });
    const { given, derived, mixed, awaited } = report.counts;
    const some: [number, string, number][] = [
      [GIVEN, "given", given + mixed],
      [DERIVED, "derived", derived + mixed + report.data.timeline.repeats.length],
      [AWAITED, "awaited", awaited],
    ];
    const kinds = some.filter(([, , count]) => count > 0).map(([kind, name]) => {
      const box = h("input", { type: "checkbox", checked: true, id: `kind-${name}`, onchange: update });
      this.kinds.set(kind, box);
      return h("label", { class: "kind" }, box, h("span", { class: `swatch ${name}`, "aria-hidden": "true" }), name);
    });
    predicates.forEach(({ name, arity, columns }, number) => {
      const count = report.rowsOfPredicate[number];
      const chip = h(
        "button",
        { type: "button", class: `chip hue-${number % 8}`, "aria-pressed": "false", title: columns ? `${name}(${columns.join(", ")})` : `${name}, ${counted(arity, "argument")}`, onclick: () => this.toggle(number) },
        name,
        h("span", { class: "count" }, count.toLocaleString("en-US")),
      );
      this.chips.push(chip);
    });
    this.order = h("select", { id: "order", onchange: update }, ...ORDERS.map(([value, text]) => h("option", { value }, text)));
    this.ordering = field("Order", this.order);
    const helpers = predicates.filter(({ role }) => role === "helper").length;
    this.folded = helpers > 0 && predicates.some(({ role }, number) => role === "query" && report.rowsOfPredicate[number] > 0);
    this.helpers = h("button", { type: "button", class: "chip helpers", hidden: helpers === 0, onclick: () => this.fold(!this.folded) });
    const byRole = (role: string) => this.chips.filter((_, number) => predicates[number].role === role);
    this.element = h(
      "form",
      { class: "filters", role: "search", "aria-label": "Filter intervals", onsubmit: (event) => event.preventDefault() },
      h("div", { class: "line" },
        h("label", { for: "search", class: "visually-hidden" }, "Search atoms"), this.search,
        field("Constant", this.constant),
        h("datalist", { id: "constants" }, ...constants.slice(0, 500).map((text) => h("option", { value: text }))),
        h("span", { class: "field" }, field("Time from", this.from), field("to", this.to)),
        h("span", { role: "group", "aria-label": "Kinds", class: "kinds" }, ...kinds),
        h("button", { type: "button", id: "reset", onclick: () => this.reset() }, "Reset"),
      ),
      h("div", { class: "under" },
        h("div", { class: "chips", role: "group", "aria-label": "Predicates" }, ...byRole("query"), ...byRole("given"), this.helpers, ...byRole("helper")),
        this.summary),
    );
    this.nameHelpers();
  }

  // Show helper predicates or hide them.
  fold(folded: boolean): void {
    this.folded = folded;
    this.nameHelpers();
    this.apply();
  }

  unfold(): void {
    if (this.folded) this.fold(false);
  }

  private nameHelpers(): void {
    const { predicates } = this.report.data.timeline;
    const count = predicates.filter(({ role }) => role === "helper").length;
    this.helpers.textContent = `${this.folded ? "▸ Show" : "▾ Hide"} ${counted(count, "helper")}`;
    this.helpers.setAttribute("aria-expanded", String(!this.folded));
    this.chips.forEach((chip, number) => (chip.hidden = this.folded && predicates[number].role === "helper" && !this.predicates.has(number)));
  }

  apply(): void {
    const { report } = this;
    const terms = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const constant = this.constant.value.trim();
    const lo = this.time(this.from) ?? -Infinity;
    const hi = this.time(this.to) ?? Infinity;
    let mask = 0;
    for (const [kind, box] of this.kinds) if (box.checked) mask |= kind;
    const shown = this.shownKind;
    const atoms: number[] = [];
    let intervals = 0;
    for (let atom = 0; atom < report.atoms; atom++) {
      const wanted = this.wants(atom, terms, constant);
      let some = false;
      for (let row = report.firstRow[atom]; row < report.firstRow[atom + 1]; row++) {
        const fits = wanted && (report.rows.kind(row) & mask) !== 0 && report.x[2 * row + 1] >= lo && report.x[2 * row] <= hi;
        shown[row] = fits ? 1 : 0;
        if (fits) intervals += 1;
        some ||= fits;
      }
      if (some || (wanted && (mask & DERIVED) !== 0 && report.repeatsOfAtom.has(atom))) atoms.push(atom);
    }
    this.summary.textContent = `${counted(intervals, "interval")} of ${report.rows.length.toLocaleString("en-US")}`;
    const stretch: [number, number] | null = Number.isFinite(hi - lo) && lo < hi ? [lo, hi] : null;
    this.changed({ atoms: this.sort(atoms), shows: (row) => shown[row] === 1, stretch });
  }

  // Query predicates first, then what is given, then helpers; within these, in the order that was chosen.
  private sort(atoms: number[]): Int32Array {
    const { report } = this;
    const roles = atoms.map((atom) => ROLES.indexOf(report.predicate(atom).role));
    const keys = atoms.map((atom) => this.sortKey(atom));
    const places = atoms.map((_, place) => place);
    // Atoms are in the order of their names, which sorting keeps among those that are equal.
    places.sort((a, b) => roles[a] - roles[b] || (keys[a] < keys[b] ? -1 : keys[a] > keys[b] ? 1 : 0));
    return Int32Array.from(places, (place) => atoms[place]);
  }

  private sortKey(atom: number): number {
    const { report } = this;
    const [first, last] = [report.firstRow[atom], report.firstRow[atom + 1] - 1];
    if (this.order.value === "name" || first > last) return 0;
    return this.order.value === "first" ? report.x[2 * first] : -report.x[2 * last + 1];
  }

  // The helpers are folded, unless one looks for something.
  private wants(atom: number, terms: string[], constant: string): boolean {
    if (this.predicates.size && !this.predicates.has(this.report.predicateOf.at(atom))) return false;
    const searching = this.predicates.size > 0 || terms.length > 0 || constant !== "";
    if (this.folded && !searching && this.report.predicate(atom).role === "helper") return false;
    if (!terms.every((term) => this.lower[atom].includes(term))) return false;
    return !constant || this.report.argsOf(atom).includes(constant);
  }

  private time(input: HTMLInputElement): number | null {
    const found = input.value.trim() ? readTime(input.value, this.report.clock.dates) : null;
    input.setAttribute("aria-invalid", String(input.value.trim() !== "" && found === null));
    return found;
  }

  private toggle(predicate: number): void {
    if (!this.predicates.delete(predicate)) this.predicates.add(predicate);
    this.chips.forEach((chip, number) => chip.setAttribute("aria-pressed", String(this.predicates.has(number))));
    this.apply();
  }

  reset(): void {
    for (const input of [this.search, this.constant, this.from, this.to]) input.value = "";
    for (const box of this.kinds.values()) box.checked = true;
    this.predicates.clear();
    this.order.value = "name";
    this.chips.forEach((chip) => chip.setAttribute("aria-pressed", "false"));
    this.nameHelpers();
    this.apply();
  }
}
