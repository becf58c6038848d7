// The page of a running stream (`--ui`): asks its server once a second. What holds now comes first, then the figures.

import { Chart, numbers, seconds } from "./charts";
import type { LiveData } from "./data";
import { code, duration, h } from "./dom";
import { Firing, type OpenAlerts } from "./firing";

interface Status {
  state: "running" | "ended";
  seconds: number;
  facts: number;
  answers: number;
  late: number;
  aside: number;
  rate: number;
  dates: boolean;
  watermark: string | null;
  lag_seconds: number | null;
  open: OpenAlerts | null;
  held: Record<string, number>;
  slowest_rules: { rule: string; seconds: number }[];
  latest: string[];
  samples: { at: number[]; rate: number[]; held: number[]; answers: number[]; step: number[] };
}

const EVERY = 1000;
// Samples come once a second; between two that are further apart than this nothing is known.
const GAP = 5;

export function showLive(data: LiveData, into: HTMLElement): void {
  const state = h("span", { class: "state", role: "status" }, "connecting");
  const names = ["Answered up to", "Facts per second", "Facts in", "Answers", "Facts held", "Late facts", "Set aside"];
  const tiles = new Map(names.map((name) => [name, h("span", { class: "figure" }, "–")]));
  const lag = h("span", { class: "lag", hidden: true });
  const held = h("tbody");
  const heldTable = h("table", {}, h("caption", { class: "visually-hidden" }, "Facts held by predicate"), held);
  const heldNone = h("p", { class: "none" }, "No facts are held.");
  const slowest = h("tbody");
  const slowestBox = box("Slowest rules", h("table", {}, h("caption", { class: "visually-hidden" }, "Time by rule"), slowest));
  slowestBox.hidden = true;
  const firing = new Firing();
  const latest = h("ol", { class: "latest", tabindex: 0, "aria-label": "Latest answers, newest first" });
  const latestNone = h("p", { class: "none" }, "There are no answers yet.");
  const ago = (index: number) => {
    const passed = Math.round(times[times.length - 1] - times[index]);
    return passed ? `${duration(passed)} ago` : "now";
  };
  const tick = (x: number) => `${numbers(x)} s`;
  let times: number[] = [];
  const charts = {
    rate: new Chart({ title: "Facts per second", hue: 0, values: [], format: numbers }, [], ago, tick, "live", GAP),
    answers: new Chart({ title: "Answers per second", hue: 2, values: [], format: numbers }, [], ago, tick, "live", GAP),
    held: new Chart({ title: "Facts held", hue: 3, values: [], format: numbers }, [], ago, tick, "live", GAP),
    step: new Chart({ title: "Slowest step", hue: 1, values: [], format: seconds }, [], ago, tick, "live", GAP),
  };

  into.classList.add("live");
  into.append(
    h("header", { class: "top" }, h("h1", {}, data.title), state),
    firing.element,
    h("dl", { class: "tiles", "aria-label": "Figures" }, ...[...tiles].map(([name, value]) =>
      h("div", { class: name === names[0] ? "double" : "" }, h("dt", {}, name), h("dd", {}, value, name === names[0] && lag)))),
    h("div", { class: "charts" }, h("div", { class: "grid" }, ...Object.values(charts).map((chart) => chart.element))),
    h("div", { class: "boxes" },
      box("Latest answers", latest, latestNone),
      h("div", { class: "column" }, box("Held by predicate", heldTable, heldNone), slowestBox)),
    h("footer", {}, `tidelog ${data.version}. This page connects only to the process that it shows.`),
  );

  const show = (status: Status) => {
    say(state, status.state === "running" ? `running for ${duration(status.seconds)}` : `ended after ${duration(status.seconds)}`);
    state.className = `state ${status.state}`;
    firing.show(status.open, status.dates, status.state === "ended");
    const total = status.open?.total ?? 0;
    document.title = total ? `(${total}) ${data.title}` : data.title;
    const count = (value: number) => value.toLocaleString("en-US");
    const totalHeld = Object.values(status.held).reduce((a, b) => a + b, 0);
    const values = [status.watermark ?? "–", numbers(status.rate), count(status.facts), count(status.answers), count(totalHeld), count(status.late), count(status.aside)];
    names.forEach((name, number) => say(tiles.get(name), values[number]));
    lag.hidden = status.lag_seconds === null;
    if (status.lag_seconds !== null) say(lag, status.lag_seconds < 0 ? "ahead of the clock" : `${duration(status.lag_seconds)} behind the clock`);
    const most = Math.max(1, ...Object.values(status.held));
    held.replaceChildren(...Object.entries(status.held).sort((a, b) => b[1] - a[1]).map(([name, number]) => barRow(name, number / most, count(number))));
    heldTable.hidden = totalHeld === 0;
    heldNone.hidden = totalHeld > 0;
    const slow = status.slowest_rules;
    slowestBox.hidden = slow.length === 0;
    const longest = Math.max(1e-12, ...slow.map((entry) => entry.seconds));
    slowest.replaceChildren(...slow.map((entry) => barRow(entry.rule, entry.seconds / longest, seconds(entry.seconds))));
    latest.replaceChildren(...answerItems(status.latest));
    latest.hidden = status.latest.length === 0;
    latestNone.hidden = status.latest.length > 0;
    times = status.samples.at;
    for (const [name, chart] of Object.entries(charts)) chart.update(times, status.samples[name as keyof typeof charts]);
  };

  const ask = async () => {
    let again = true;
    try {
      const answer = await fetch("status", { cache: "no-store" });
      if (!answer.ok) throw new Error(String(answer.status));
      const status = (await answer.json()) as Status;
      show(status);
      again = status.state === "running";
    } catch {
      say(state, "the stream has ended, or cannot be reached");
      state.className = "state lost";
    }
    if (again) setTimeout(ask, EVERY);
  };
  void ask();
}

// With corrections, answers have a sign. One that was taken back later is marked, wherever it stands in the list.
function answerItems(latest: string[]): HTMLElement[] {
  const withdrawn = new Set<string>();
  return latest.map((text) => {
    const sign = text[0] === "+" || text[0] === "-" ? text[0] : "";
    const fact = text.slice(sign.length);
    if (sign === "-") withdrawn.add(fact);
    const gone = sign === "-" || (sign === "+" && withdrawn.delete(fact));
    return h("li", { class: gone ? "gone" : "" }, h(gone ? "s" : "span", {}, code(fact)), gone && h("span", { class: "badge" }, "withdrawn"));
  });
}

function box(title: string, ...content: HTMLElement[]): HTMLElement {
  return h("section", { class: "box" }, h("h2", {}, title), ...content);
}

function barRow(name: string, share: number, value: string): HTMLElement {
  const bar = h("span", { class: "meter", "aria-hidden": "true" });
  bar.style.width = `${Math.max(1, share * 100)}%`;
  return h("tr", {}, h("th", { scope: "row" }, code(name)), h("td", { class: "bar" }, bar), h("td", { class: "number" }, value));
}

// Change only text that is new: screen readers announce changes, and selected text stays selected.
function say(element: HTMLElement | undefined, text: string): void {
  if (!element || element.textContent === text) return;
  element.textContent = text;
  element.classList.toggle("long", text.length > 9);
}
