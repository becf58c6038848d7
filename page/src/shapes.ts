// How an interval looks: given is solid, derived an outline with a tint, awaited hatched with a dashed outline. A closed
// end has a crossbar, an open one a hollow dot, an infinite one an arrow; a point is a diamond. All of them lie within
// the interval, so that neighbours stay apart.

import { AWAITED, GIVEN } from "./data";

export interface Ink {
  color: string;
  background: string;
  focus: string;
}

export interface Bar {
  // Pixels; the ends may be far outside the view, or infinite.
  x0: number;
  x1: number;
  y: number;
  openLeft: boolean;
  openRight: boolean;
  kind: number;
}

export const BAR = 12;
const DOT = 4;
const CROSSBAR = 2.5;
const DIAMOND = 6;
// Below the first width ends are not distinguished; below the second a bar is a mark.
const ROOM_FOR_DOTS = 15;
const MARK = 3;
const HEAD = 10;

export function drawBar(g: CanvasRenderingContext2D, bar: Bar, left: number, right: number, ink: Ink): void {
  // An infinite end is an arrow at the edge.
  const x0 = bar.x0 === -Infinity ? left + HEAD : Math.max(bar.x0, left - 20);
  const x1 = bar.x1 === Infinity ? right - HEAD : Math.min(bar.x1, right + 20);
  const width = x1 - x0;
  const top = bar.y - BAR / 2;
  const point = bar.x0 === bar.x1;
  if (bar.kind === AWAITED) {
    const middle = (x0 + x1) / 2;
    const wide = Math.max(width, 16);
    hatched(g, middle - wide / 2, top - 1, wide, BAR + 2, ink);
    return;
  }
  if (point) {
    diamond(g, x0, bar.y, bar.kind === GIVEN, ink);
    return;
  }
  g.fillStyle = ink.color;
  if (width < MARK) {
    g.globalAlpha = bar.kind === GIVEN ? 1 : 0.75;
    g.fillRect(x0 - (MARK - width) / 2, top, MARK, BAR);
    g.globalAlpha = 1;
    return;
  }
  if (bar.kind === GIVEN) {
    g.fillRect(x0, top, width, BAR);
  } else {
    g.globalAlpha = 0.2;
    g.fillRect(x0, top, width, BAR);
    g.globalAlpha = 1;
    g.strokeStyle = ink.color;
    g.lineWidth = 1.5;
    g.strokeRect(x0 + 0.75, top + 0.75, Math.max(width - 1.5, 0.5), BAR - 1.5);
  }
  if (bar.x0 === -Infinity) arrow(g, left + 2, bar.y, -1, ink);
  if (bar.x1 === Infinity) arrow(g, right - 2, bar.y, 1, ink);
  if (width < ROOM_FOR_DOTS) return;
  if (bar.x0 > left - DOT) end(g, bar.x0, 1, bar.y, bar.openLeft, ink);
  if (bar.x1 < right + DOT) end(g, bar.x1, -1, bar.y, bar.openRight, ink);
}

export function drawRing(g: CanvasRenderingContext2D, bar: Bar, left: number, right: number, ink: Ink, thick: number): void {
  const middle = (Math.max(bar.x0, left) + Math.min(bar.x1, right)) / 2;
  const half = Math.max((Math.min(bar.x1, right) - Math.max(bar.x0, left)) / 2, bar.kind === AWAITED ? 8 : 6) + 5;
  g.strokeStyle = ink.focus;
  g.lineWidth = thick;
  g.beginPath();
  g.roundRect(middle - half, bar.y - BAR / 2 - 4.5, 2 * half, BAR + 9, 5);
  g.stroke();
}

// An end at x, from which the interval extends to the right (1) or to the left (-1).
function end(g: CanvasRenderingContext2D, x: number, inwards: number, y: number, open: boolean, ink: Ink): void {
  if (!open) {
    g.fillStyle = ink.color;
    g.fillRect(inwards > 0 ? x : x - CROSSBAR, y - BAR / 2 - 3, CROSSBAR, BAR + 6);
    return;
  }
  g.beginPath();
  g.arc(x + inwards * (DOT + 0.75), y, DOT, 0, 2 * Math.PI);
  g.fillStyle = ink.background;
  g.fill();
  g.strokeStyle = ink.color;
  g.lineWidth = 1.5;
  g.stroke();
}

function diamond(g: CanvasRenderingContext2D, x: number, y: number, solid: boolean, ink: Ink): void {
  g.beginPath();
  g.moveTo(x, y - DIAMOND);
  g.lineTo(x + DIAMOND, y);
  g.lineTo(x, y + DIAMOND);
  g.lineTo(x - DIAMOND, y);
  g.closePath();
  g.fillStyle = ink.color;
  g.globalAlpha = solid ? 1 : 0.2;
  g.fill();
  g.globalAlpha = 1;
  g.strokeStyle = ink.color;
  g.lineWidth = 1.5;
  g.stroke();
}

function arrow(g: CanvasRenderingContext2D, x: number, y: number, direction: number, ink: Ink): void {
  g.beginPath();
  g.moveTo(x, y);
  g.lineTo(x - direction * (HEAD - 2), y - 8);
  g.lineTo(x - direction * (HEAD - 2), y + 8);
  g.closePath();
  g.fillStyle = ink.color;
  g.fill();
}

function hatched(g: CanvasRenderingContext2D, x: number, y: number, width: number, height: number, ink: Ink): void {
  g.save();
  g.strokeStyle = ink.color;
  g.lineWidth = 1.5;
  g.setLineDash([4, 3]);
  g.strokeRect(x + 0.75, y + 0.75, width - 1.5, height - 1.5);
  g.setLineDash([]);
  g.beginPath();
  g.rect(x, y, width, height);
  g.clip();
  g.lineWidth = 1.25;
  g.beginPath();
  for (let at = x - height; at < x + width; at += 5) {
    g.moveTo(at, y + height);
    g.lineTo(at + height, y);
  }
  g.stroke();
  g.restore();
}
