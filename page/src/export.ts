// What is shown, as a file: intervals as CSV in the form that the command line writes, and the timeline as an image.

import type { Report } from "./data";
import { h } from "./dom";

const CLOSED = ["neither", "right", "left", "both"];

// The rows as CSV; arguments have the names of their columns where all rows agree on them.
export function toCsv(report: Report, rows: number[]): string {
  const shown = [...new Set(rows.map((row) => report.predicateOf.at(report.rows.of.at(row))))];
  const predicates = shown.map((number) => report.data.timeline.predicates[number]);
  const arity = Math.max(0, ...predicates.map((predicate) => predicate.arity));
  const names = argumentNames(report, shown);
  const lines = [["predicate", ...names, "start", "end", "closed", "kind"]];
  for (const row of rows) {
    const atom = report.rows.of.at(row);
    const span = report.rows.span(row);
    const args = report.argsOf(atom).map(unquote);
    const closed = (Number(span.lo !== null && (span.lo & 1n) === 0n) << 1) | Number(span.hi !== null && (span.hi & 1n) === 0n);
    lines.push([
      report.data.timeline.predicates[report.predicateOf.at(atom)].name,
      ...args,
      ...Array<string>(arity - args.length).fill(""),
      report.clock.left(span),
      report.clock.right(span),
      CLOSED[closed],
      report.kindText(row),
    ]);
  }
  return lines.map((cells) => `${cells.map(quoteCell).join(",")}\n`).join("");
}

// The names of the arguments of some predicates: those of the schema if they agree, else arg1, arg2, ...
export function argumentNames(report: Report, predicates: number[]): string[] {
  const described = predicates.map((number) => report.data.timeline.predicates[number]);
  const arity = Math.max(0, ...described.map((predicate) => predicate.arity));
  const columns = described[0]?.columns;
  const agree = columns && described.every((predicate) => predicate.columns?.join("\n") === columns.join("\n"));
  return agree ? columns : Array.from({ length: arity }, (_, place) => `arg${place + 1}`);
}

export function save(name: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  const link = h("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

// A name for a file, made of a title.
export const fileName = (title: string, ending: string): string =>
  `${title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "") || "report"}.${ending}`;

// A constant as plain text: without the quotes that facts put around it.
export function unquote(text: string): string {
  if (!text.startsWith('"')) return text;
  const escapes: Record<string, string> = { n: "\n", r: "\r", t: "\t" };
  return text.slice(1, -1).replace(/\\([^])/g, (_, char: string) => escapes[char] ?? char);
}

function quoteCell(cell: string): string {
  return /[",\r\n]/.test(cell) || cell !== cell.trim() ? `"${cell.replaceAll('"', '""')}"` : cell;
}
