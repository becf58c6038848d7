// Why an atom does not hold where its row is empty: per part of a gap, the condition at which each rule fails.

import { Column, Spans, type Packed, type PackedSpans, type Span } from "./data";

export interface PackedGaps {
  parts: PackedSpans;
  rules: Packed;
  rule: Packed;
  lines: Packed;
  line: Packed;
  texts: string[];
}

// A rule that fails: the first line is the condition that fails and when, the others say more.
export interface Blocked {
  rule: number;
  lines: string[];
}

export class Gaps {
  private readonly parts: Spans;
  private readonly rules: Column;
  private readonly rule: Column;
  private readonly lines: Column;
  private readonly line: Column;
  private readonly first = new Map<number, number>();

  constructor(private readonly packed: PackedGaps) {
    this.parts = new Spans(packed.parts);
    this.rules = new Column(packed.rules);
    this.rule = new Column(packed.rule);
    this.lines = new Column(packed.lines);
    this.line = new Column(packed.line);
    for (let part = this.parts.length - 1; part >= 0; part--) this.first.set(this.parts.of.at(part), part);
  }

  // The part of an atom's gaps that contains a position, if it is on this page.
  find(atom: number, at: bigint): number | null {
    for (let part = this.first.get(atom) ?? this.parts.length; part < this.parts.length && this.parts.of.at(part) === atom; part++) {
      const { lo, hi } = this.parts.span(part);
      if ((lo === null || lo <= at) && (hi === null || at <= hi)) return part;
    }
    return null;
  }

  span(part: number): Span {
    return this.parts.span(part);
  }

  blocked(part: number): Blocked[] {
    const found: Blocked[] = [];
    for (let i = this.rules.at(part); i < this.rules.at(part + 1); i++) {
      const lines = [];
      for (let l = this.lines.at(i); l < this.lines.at(i + 1); l++) lines.push(this.packed.texts[this.line.at(l)]);
      found.push({ rule: this.rule.at(i), lines });
    }
    return found;
  }
}
