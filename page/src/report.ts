// The page of `tidelog report`: timeline, table, rules, stream, and proofs beside them.

import { streamCharts } from "./charts";
import { Report, type ReportData } from "./data";
import { code, counted, h } from "./dom";
import { fileName, save, toCsv } from "./export";
import { Filters, type Shown } from "./filters";
import { Details } from "./proof";
import { Table } from "./table";
import { Timeline, type Selection } from "./timeline";

// Up to this width of a screen, the parts of the page are below each other.
const NARROW = 800;

export function showReport(data: ReportData, into: HTMLElement): void {
  const report = new Report(data);
  let shownRows: Shown | null = null;
  const choose = (selection: Selection) => {
    open(0);
    if ("row" in selection && report.predicate(report.rows.of.at(selection.row)).role === "helper") filters.unfold();
    timeline.choose(selection, details.show(selection));
    // On narrow screens the proof is below the timeline.
    details.element.focus({ preventScroll: innerWidth > NARROW });
  };
  const close = () => {
    details.hide();
    timeline.focus();
  };
  const timeline = new Timeline(report, choose);
  const table = new Table(report, choose);
  const details = new Details(report, choose, close);
  let stretched = false;
  const filters = new Filters(report, (shown) => {
    shownRows = shown;
    timeline.show(shown);
    table.show(shown);
    if (shown.stretch) timeline.zoomTo(...shown.stretch);
    else if (stretched) timeline.fit();
    stretched = shown.stretch !== null;
  });

  const panels: [string, HTMLElement][] = [
    ["Timeline", h("div", { class: "view" }, toolbar(timeline, data.awaited.length > 0, report.gaps !== null), timeline.element)],
    ["Table", table.element],
  ];
  if (data.rules.length) panels.push(["Rules", rules(data)]);
  if (data.awaited.length) panels.push(["Awaited", awaited(report, choose)]);
  if (data.steps) panels.push(["Stream", streamCharts(data.steps, data.timeline.dates)]);
  const { element, open, list } = tabs(panels);
  // What is in view: the intervals that fit the filters, within the visible range of time.
  const inView = (): number[] => {
    const [from, to] = timeline.visible();
    const rows: number[] = [];
    for (const atom of shownRows?.atoms ?? [])
      for (let row = report.firstRow[atom]; row < report.firstRow[atom + 1]; row++)
        if (shownRows?.shows(row) && report.x[2 * row + 1] >= from && report.x[2 * row] <= to) rows.push(row);
    return rows;
  };
  const exports: [string, string, () => void][] = [
    ["CSV", "Save the intervals in view as CSV", () => save(fileName(data.title, "csv"), new Blob([toCsv(report, inView())], { type: "text/csv" }))],
    ["PNG", "Save the timeline as an image", () => void timeline.toImage(data.title).then((image) => save(fileName(data.title, "png"), image))],
  ];
  const saving = h("span", { class: "saving", role: "group", "aria-label": "Save" },
    ...exports.map(([text, label, act]) => h("button", { type: "button", "aria-label": label, title: label, onclick: act }, text)));
  list.after(h("span", { class: "choices" }, filters.ordering, saving));

  into.append(
    h("header", { class: "top" }, h("h1", {}, data.title), about(report)),
    ...data.notes.map((note) => h("p", { class: "notice", role: "note" }, note)),
    filters.element,
    h("div", { class: "main" }, element, details.element),
    h("footer", {}, `Made by tidelog ${data.version}. This page is self-contained: it loads nothing and sends nothing.`),
  );
  filters.apply();
}

function about(report: Report): HTMLElement {
  const { given, derived, mixed, awaited } = report.counts;
  const parts = [counted(report.atoms, "atom"), counted(report.rows.length, "interval")];
  if (given) parts.push(`${given.toLocaleString("en-US")} given`);
  if (derived) parts.push(`${derived.toLocaleString("en-US")} derived`);
  if (mixed) parts.push(`${mixed.toLocaleString("en-US")} of both`);
  if (awaited) parts.push(`${awaited.toLocaleString("en-US")} awaited`);
  const items = report.data.about.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]);
  return h("dl", { class: "about" }, ...items, h("dt", {}, "Shows"), h("dd", {}, parts.join(", ")));
}

function toolbar(timeline: Timeline, awaited: boolean, gaps: boolean): HTMLElement {
  const button = (label: string, text: string, act: () => void) =>
    h("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);
  const key = (name: string, text: string) => h("span", { class: "key" }, h("span", { class: `swatch ${name}`, "aria-hidden": "true" }), text);
  return h(
    "div",
    { class: "toolbar", role: "toolbar", "aria-label": "Zoom" },
    button("Zoom in", "+", () => timeline.zoomBy(2)),
    button("Zoom out", "−", () => timeline.zoomBy(0.5)),
    button("Show all", "All", () => timeline.fit()),
    h("span", { class: "legend", "aria-label": "Legend" },
      key("given", "given"), key("derived", "derived"), awaited && key("awaited", "awaited"),
      key("closed", "end included"), key("open", "end excluded"), key("point", "point")),
    h("span", { class: "hint" }, `Drag to move, Ctrl + wheel to zoom; click an interval for its proof${gaps ? ", an empty spot for why not" : ""}.`),
  );
}

function rules(data: ReportData): HTMLElement {
  return h("div", { class: "rules" }, h("ol", {}, ...data.rules.map((rule) => h("li", {}, code(rule, { class: "rule" })))));
}

function awaited(report: Report, choose: (selection: Selection) => void): HTMLElement {
  const heads = ["Possible answer", "Waits for", "Since", "Decided by"].map((name) => h("th", { scope: "col" }, name));
  const lines = report.data.awaited.map((entry) => {
    const { row } = entry;
    const text = row === null ? entry.text : h("button", { type: "button", class: "fact", onclick: () => choose({ row }) }, h("code", {}, entry.text));
    const where = entry.conditions.length ? ` where ${entry.conditions.join(", ")}` : "";
    return h("tr", {}, h("th", { scope: "row" }, text), h("td", {}, entry.hypotheses.join(", ") + where), h("td", {}, entry.evidence.join(", ")), h("td", {}, entry.decided_by ?? "open"));
  });
  return h("div", { class: "table" }, h("div", { class: "wide" }, h("table", {}, h("caption", { class: "visually-hidden" }, "What may still become true"), h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...lines))));
}

// Tabs after the ARIA authoring practices: one tab stop, arrow keys between them.
function tabs(panels: [string, HTMLElement][]): { element: HTMLElement; open: (index: number) => void; list: HTMLElement } {
  const buttons = panels.map(([name], index) =>
    h("button", { type: "button", role: "tab", id: `tab-${index}`, "aria-controls": `panel-${index}`, onclick: () => open(index) }, name),
  );
  const shown = panels.map(([, content], index) => h("section", { role: "tabpanel", id: `panel-${index}`, "aria-labelledby": `tab-${index}` }, content));
  const open = (index: number) => {
    buttons.forEach((button, number) => {
      button.setAttribute("aria-selected", String(number === index));
      button.tabIndex = number === index ? 0 : -1;
      shown[number].hidden = number !== index;
    });
  };
  const list = h("div", { role: "tablist", class: "tabs", "aria-label": "Views", onkeydown: (event) => {
    const { key } = event as KeyboardEvent;
    const now = buttons.findIndex((button) => button === document.activeElement);
    const by = key === "ArrowRight" ? 1 : key === "ArrowLeft" ? -1 : 0;
    if (!by || now < 0) return;
    const next = (now + by + buttons.length) % buttons.length;
    open(next);
    buttons[next].focus();
  } }, ...buttons);
  open(0);
  return { element: h("div", { class: "views" }, h("div", { class: "bar-line" }, list), ...shown), open, list };
}
