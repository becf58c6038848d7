// What is firing now: the answers that hold, the newest first, each with since when, for how long and why.

import { code, counted, duration, h } from "./dom";
import { numbers } from "./charts";

interface Start {
  atom: string;
  // Null: since the beginning of time.
  since: string | null;
  closed: boolean;
}

interface OpenAlert extends Start {
  lasted: number | null;
  reason: { rule: string; because: string[] } | null;
}

export interface OpenAlerts {
  alerts: OpenAlert[];
  total: number;
  // Up to when this is known.
  known: string;
  withdrawn: (Start & { known: string })[];
}

interface Item {
  element: HTMLElement;
  lasted: HTMLElement;
  why: HTMLElement;
  explained: boolean;
}

// The most withdrawn alerts that are listed.
const WITHDRAWN = 5;

export class Firing {
  readonly element: HTMLElement;
  private readonly count = h("span", { class: "count", role: "status" });
  private readonly known = h("span", { class: "known" });
  private readonly none = h("p", { class: "none" }, "Waiting for the first figures.");
  private readonly list = h("ol", { class: "alerts", "aria-label": "Alerts that hold now, newest first" });
  private readonly more = h("p", { class: "none", hidden: true });
  private readonly withdrawn = h("ul", { class: "withdrawn", "aria-label": "Alerts that were withdrawn, newest first" });
  // Elements stay while their alert holds, so that what was unfolded stays unfolded.
  private items = new Map<string, Item>();

  constructor() {
    this.element = h("section", { class: "firing", "aria-label": "Firing now" },
      h("header", {}, h("h2", {}, "Firing now"), this.count, this.known),
      this.list, this.more, this.none, this.withdrawn);
  }

  show(open: OpenAlerts | null, dates: boolean, ended: boolean): void {
    this.element.classList.toggle("calm", !open?.total);
    this.none.hidden = Boolean(open?.total);
    this.list.hidden = !open?.total;
    if (!open) {
      say(this.none, "This stream does not say what holds now: its answers are points in time, or come from a job on Spark. They are listed below.");
      return;
    }
    say(this.count, open.total ? open.total.toLocaleString("en-US") : "");
    say(this.known, `${ended ? "at the end, " : ""}as of ${open.known}`);
    say(this.none, "Nothing is firing.");
    const before = this.items;
    this.items = new Map();
    open.alerts.forEach((alert, place) => {
      const key = `${alert.atom}@${alert.since}${alert.closed}`;
      const item = before.get(key) ?? makeItem(alert);
      before.delete(key);
      this.items.set(key, item);
      say(item.lasted, alert.lasted === null ? "" : `for ${dates ? duration(alert.lasted) : numbers(alert.lasted)}`);
      if (!item.explained && alert.reason) explain(item, alert.reason);
      if (this.list.children[place] !== item.element) this.list.insertBefore(item.element, this.list.children[place] ?? null);
    });
    for (const item of before.values()) item.element.remove();
    const hidden = open.total - open.alerts.length;
    this.more.hidden = hidden === 0;
    say(this.more, `and ${counted(hidden, "alert")} that began earlier`);
    const gone = open.withdrawn.slice(0, WITHDRAWN).map((alert) => withdrawnText(alert));
    if (gone.join("\n") !== [...this.withdrawn.children].map((child) => child.textContent).join("\n"))
      this.withdrawn.replaceChildren(...gone.map((text) => h("li", {}, text)));
    this.withdrawn.hidden = gone.length === 0;
  }
}

function makeItem(alert: OpenAlert): Item {
  const lasted = h("span", { class: "lasted" });
  const why = h("div", { class: "why" }, h("p", { class: "note" }, "The facts that this follows from are not held, or too many are."));
  const since = alert.since === null ? "since the beginning" : `since ${alert.since}`;
  const title = alert.closed || alert.since === null ? "" : "from right after that time";
  const element = h("li", {},
    code(alert.atom, { class: "atom" }),
    h("span", { class: "since", title }, since),
    lasted,
    h("details", {}, h("summary", { "aria-label": `Why ${alert.atom}` }, "why?"), why));
  return { element, lasted, why, explained: false };
}

function explain(item: Item, reason: { rule: string; because: string[] }): void {
  item.explained = true;
  item.why.replaceChildren(
    h("code", { class: "rule" }, reason.rule),
    h("ul", { class: "premises" }, ...reason.because.map((line) => h("li", {}, code(line)))));
}

function withdrawnText(alert: Start & { known: string }): string {
  const since = alert.since === null ? "the beginning" : alert.since;
  return `Withdrawn at ${alert.known}: ${alert.atom} since ${since}, after a correction`;
}

function say(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}
