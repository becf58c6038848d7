// Line charts of a stream: uPlot, in the colours of the page.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Series } from "./data";
import { color, counted, h, onThemeChange, shortTime } from "./dom";

export interface Line {
  title: string;
  hue: number;
  values: number[];
  // How a value is printed.
  format: (value: number) => string;
}

const short = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });
export const numbers = (value: number): string => short.format(value);
export function seconds(value: number): string {
  const units: [number, string][] = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]];
  const [size, unit] = units.find(([size]) => Math.abs(value) >= size) ?? [1e-9, "ns"];
  return value === 0 ? "0" : `${Number((value / size).toPrecision(3))} ${unit}`;
}

export class Chart {
  readonly element: HTMLElement;
  private plot: uPlot | null = null;
  // The index of the value that each point on the plot stands for.
  private places: number[] = [];
  private readonly place: HTMLElement;
  private readonly value: HTMLElement;

  constructor(
    private line: Line,
    private x: number[],
    // The label of a point, and the label of a tick.
    private readonly xText: (index: number) => string,
    private readonly xTick: (x: number) => string,
    private readonly group: string,
    // Between two points that are further apart than this, nothing is drawn.
    private readonly gap = Infinity,
  ) {
    this.place = h("div", { class: "plot", "aria-hidden": "true" });
    this.value = h("span", { class: "value" });
    this.element = h("figure", { class: "chart" }, h("figcaption", {}, line.title, this.value), this.place);
    new ResizeObserver(() => this.draw()).observe(this.place);
    onThemeChange(() => this.draw());
  }

  update(x: number[], values: number[]): void {
    this.x = x;
    this.line = { ...this.line, values };
    if (this.plot) {
      this.plot.setData(this.points());
      this.say(null);
    } else this.draw();
  }

  // The points of the line, with an empty one in every gap.
  private points(): [number[], (number | null)[]] {
    const { values } = this.line;
    const x: number[] = [];
    const y: (number | null)[] = [];
    this.places = [];
    this.x.forEach((at, index) => {
      if (index > 0 && at - this.x[index - 1] > this.gap) {
        x.push((at + this.x[index - 1]) / 2);
        y.push(null);
        this.places.push(index);
      }
      x.push(at);
      y.push(values[index]);
      this.places.push(index);
    });
    return [x, y];
  }

  private say(index: number | null | undefined): void {
    const { values, format } = this.line;
    const at = index === null || index === undefined ? values.length - 1 : (this.places[index] ?? 0);
    this.value.textContent = at >= 0 && values.length ? `${format(values[at])} ${this.xText(at)}` : "";
  }

  private draw(): void {
    const width = this.place.clientWidth;
    if (!width) return;
    this.plot?.destroy();
    const { hue, format } = this.line;
    const stroke = color(`hue-${hue}`);
    const axis = { stroke: color("muted"), grid: { stroke: color("line-soft"), width: 1 }, ticks: { stroke: color("line"), width: 1 }, font: `12px ${color("sans")}` };
    this.plot = new uPlot(
      {
        width,
        height: 170,
        legend: { show: false },
        cursor: { sync: { key: this.group }, y: false, drag: { x: true, y: false } },
        scales: { x: { time: false }, y: { range: (_, lo, hi) => [Math.min(0, lo), hi > 0 ? hi * 1.1 : 1] } },
        axes: [
          { ...axis, size: 32, values: (_, splits) => splits.map(this.xTick) },
          { ...axis, size: 62, values: (_, splits) => splits.map(format) },
        ],
        series: [{}, { stroke, fill: `${stroke}22`, width: 1.75, points: { show: true, filter: (plot, series, shown) => (shown ? alone(plot, series) : null) } }],
        hooks: { setCursor: [(plot) => this.say(plot.cursor.idx)] },
      },
      this.points(),
      this.place,
    );
    this.say(null);
  }
}

// The points without a neighbour, which a line alone would not show.
function alone(plot: uPlot, series: number): number[] {
  const values = plot.data[series];
  const isEmpty = (index: number) => values[index] === null || values[index] === undefined;
  const found: number[] = [];
  for (let i = 0; i < values.length; i++) if (!isEmpty(i) && isEmpty(i - 1) && isEmpty(i + 1)) found.push(i);
  return found;
}

// The figures of a stream that has ended.
export function streamCharts(series: Series, dates: boolean): HTMLElement {
  const tick = (x: number) => (dates ? shortTime(new Date(x * 1000)) : numbers(x));
  const at = (index: number) => `at t = ${series.t[index]}`;
  const lines: Line[] = [
    { title: "Facts held", hue: 0, values: series.held, format: numbers },
    { title: "Slowest step", hue: 1, values: series.slowest, format: seconds },
    { title: "Answers", hue: 2, values: series.answers, format: numbers },
    { title: "Facts in", hue: 3, values: series.facts_in, format: numbers },
  ];
  const sum = (values: number[]) => values.reduce((a, b) => a + b, 0);
  const steps = sum(series.steps);
  const many = steps > series.steps.length ? ` Each point of a line stands for up to ${Math.max(...series.steps)} steps.` : "";
  const rows: [string, string][] = [
    ["Steps", steps.toLocaleString("en-US")],
    ["Facts in", sum(series.facts_in).toLocaleString("en-US")],
    ["Answers", sum(series.answers).toLocaleString("en-US")],
    ["Most facts held", Math.max(0, ...series.held).toLocaleString("en-US")],
    ["Time in steps", seconds(sum(series.seconds))],
    ["Slowest step", seconds(Math.max(0, ...series.slowest))],
  ];
  return h(
    "div",
    { class: "charts" },
    h("p", { class: "hint" }, `${counted(steps, "step")}.${many} Drag over a chart to zoom, double-click to see all.`),
    h("div", { class: "grid" }, ...lines.map((line) => new Chart(line, series.x, at, tick, "stream").element)),
    h("table", { class: "figures" }, h("caption", {}, "In all"), h("tbody", {}, ...rows.map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, value))))),
  );
}
