// Elements from text and attributes. Text is always text: nothing here parses HTML.

type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | ((event: Event) => void) | undefined>;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else element.setAttribute(name, String(value));
  }
  const given = children.filter((child): child is Node | string => child instanceof Node || typeof child === "string");
  element.append(...given);
  return element;
}

// Code in which lines break only after commas, at spaces and inside of names: dates, numbers and `-inf` stay whole, with `@(`.
export function code(text: string, attributes: Attributes = {}): HTMLElement {
  const parts = text.split(/([[(]-?[\w./]+,-?[\w./]+[\])]|(?:@?[[(])?(?:\d{4}-\d\d-\d\dT[\d:.]+Z|-inf(?!\w)|-?[\d./]+[a-z]*)[\])]?,?)/);
  return h("code", attributes, ...parts.flatMap((part, index): Child[] => {
    if (index % 2 === 0) return [part];
    return [h("span", { class: "whole" }, part), part.endsWith(",") && document.createElement("wbr")];
  }));
}

export const counted = (count: number, noun: string): string =>
  `${count.toLocaleString("en-US")} ${noun}${count === 1 ? "" : "s"}`;

const dark = matchMedia("(prefers-color-scheme: dark)");
const known = new Map<string, string>();
dark.addEventListener("change", () => known.clear());

// A value of the style sheet, for drawing on canvases.
export function color(name: string): string {
  let value = known.get(name);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    known.set(name, value);
  }
  return value;
}

export function onThemeChange(redraw: () => void): void {
  dark.addEventListener("change", redraw);
}

// The shortest label of a tick: the part of the time that changes from tick to tick.
export function shortTime(time: Date): string {
  if (Number.isNaN(time.getTime())) return "";
  const [day, clock] = time.toISOString().split("T");
  if (clock === "00:00:00.000Z") return day.endsWith("-01-01") ? day.slice(0, -6) : day.slice(-5);
  return clock.endsWith(":00.000Z") ? clock.slice(0, 5) : clock.endsWith(".000Z") ? clock.slice(0, 8) : clock.slice(0, 12);
}

const UNITS: [number, string][] = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

// A length of time in seconds, in its largest units.
export function duration(value: number, most = 2): string {
  if (value < 60) return `${Number(value.toPrecision(3))} s`;
  let rest = Math.round(value);
  const parts: string[] = [];
  for (const [size, unit] of UNITS) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count) parts.push(`${count} ${unit}`);
    else if (parts.length) break;
  }
  return parts.slice(0, most).join(" ");
}
