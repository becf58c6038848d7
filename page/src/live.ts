// The page of a running stream (`--ui`): asks its server once a second.

import { Chart, numbers, seconds } from "./charts";
import type { LiveData } from "./data";
import { h } from "./dom";

interface Status {
  state: "running" | "ended";
  seconds: number;
  facts: number;
  answers: number;
  late: number;
  aside: number;
  rate: number;
  watermark: string | null;
  lag_seconds: number | null;
  held: Record<string, number>;
  slowest_rules: { rule: string; seconds: number }[];
  latest: string[];
  samples: { at: number[]; rate: number[]; held: number[]; answers: number[]; step: number[] };
}

const EVERY = 1000;

export function showLive(data: LiveData, into: HTMLElement): void {
  const state = h("span", { class: "state", role: "status" }, "connecting");
  const names = ["Facts per second", "Facts in", "Answers", "Answered up to", "Lag", "Facts held", "Late facts", "Set aside"];
  const tiles = new Map(names.map((name) => [name, h("dd", {}, "–")]));
  const held = h("tbody");
  const slowest = h("tbody");
  const slowestBox = box("Slowest rules", h("table", {}, slowest));
  slowestBox.hidden = true;
  const latest = h("ol", { class: "latest", tabindex: 0, "aria-label": "Latest answers, newest first" });
  const ago = (index: number) => `${Math.round(times[times.length - 1] - times[index])} s ago`;
  const tick = (x: number) => `${numbers(x)} s`;
  let times: number[] = [];
  const charts = {
    rate: new Chart({ title: "Facts per second", hue: 0, values: [], format: numbers }, [], ago, tick, "live"),
    held: new Chart({ title: "Facts held", hue: 3, values: [], format: numbers }, [], ago, tick, "live"),
    answers: new Chart({ title: "Answers per second", hue: 2, values: [], format: numbers }, [], ago, tick, "live"),
    step: new Chart({ title: "Slowest step", hue: 1, values: [], format: seconds }, [], ago, tick, "live"),
  };

  into.classList.add("live");
  into.append(
    h("header", { class: "top" }, h("h1", {}, data.title), state),
    h("dl", { class: "tiles" }, ...[...tiles].map(([name, value]) => h("div", {}, h("dt", {}, name), value))),
    h("div", { class: "charts" }, h("div", { class: "grid" }, ...Object.values(charts).map((chart) => chart.element))),
    h("div", { class: "boxes" },
      box("Latest answers", latest),
      box("Held by predicate", h("table", {}, h("caption", { class: "visually-hidden" }, "Facts held by predicate"), held)),
      slowestBox),
    h("footer", {}, `tidelog ${data.version}. This page connects only to the process that it shows.`),
  );

  const show = (status: Status) => {
    say(state, status.state === "running" ? `running for ${duration(status.seconds)}` : `ended after ${duration(status.seconds)}`);
    state.className = `state ${status.state}`;
    const total = Object.values(status.held).reduce((a, b) => a + b, 0);
    const count = (value: number) => value.toLocaleString("en-US");
    const values = [numbers(status.rate), count(status.facts), count(status.answers), status.watermark ?? "–", status.lag_seconds === null ? "–" : duration(status.lag_seconds), count(total), count(status.late), count(status.aside)];
    names.forEach((name, number) => say(tiles.get(name), values[number]));
    const most = Math.max(1, ...Object.values(status.held));
    held.replaceChildren(...Object.entries(status.held).sort((a, b) => b[1] - a[1]).map(([name, number]) => barRow(name, number / most, count(number))));
    const slow = status.slowest_rules;
    slowestBox.hidden = slow.length === 0;
    const longest = Math.max(1e-12, ...slow.map((entry) => entry.seconds));
    slowest.replaceChildren(...slow.map((entry) => barRow(entry.rule, entry.seconds / longest, seconds(entry.seconds))));
    latest.replaceChildren(...status.latest.map((fact) => h("li", {}, h("code", {}, fact))));
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

function box(title: string, content: HTMLElement): HTMLElement {
  return h("section", { class: "box" }, h("h2", {}, title), content);
}

function barRow(name: string, share: number, value: string): HTMLElement {
  const bar = h("span", { class: "meter", "aria-hidden": "true" });
  bar.style.width = `${Math.max(1, share * 100)}%`;
  return h("tr", {}, h("th", { scope: "row" }, h("code", {}, name)), h("td", { class: "bar" }, bar), h("td", { class: "number" }, value));
}

// Change only text that is new: screen readers announce changes, and selected text stays selected.
function say(element: HTMLElement | undefined, text: string): void {
  if (!element || element.textContent === text) return;
  element.textContent = text;
  element.classList.toggle("long", text.length > 14);
}

function duration(value: number): string {
  if (value < 120) return `${Number(value.toPrecision(3))} s`;
  const units: [number, string][] = [[86400, "d"], [3600, "h"], [60, "min"]];
  const [size, unit] = units.find(([size]) => value >= 2 * size) ?? [60, "min"];
  return `${Math.round(value / size)} ${unit}`;
}
