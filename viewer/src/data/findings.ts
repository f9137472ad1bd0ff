// The findings of a launch as cards show them: each with its evidence and its compiles, by their rows.
import { remember } from '../lib/remember';
import type { Chunks } from './chunks';
import type { Compile, Model } from './model';

export type FindingTable = Chunks['findings']['finding'];

export interface Card {
  row: number; // of the table
  id: string; // in the address: of its launch
  evidence: number[]; // rows
  // What it is about: of compiles of one name on several ranks the first.
  work: { function: string | null; compiles: Compile[] }[];
}

function workOf(compiles: Compile[]): Card['work'] {
  const byFunction = new Map<string | null, Compile[]>();
  for (const compile of compiles) {
    const own = byFunction.get(compile.function);
    if (!own) byFunction.set(compile.function, [compile]);
    else if (!own.some((known) => known.title === compile.title)) own.push(compile);
  }
  return [...byFunction].map(([name, own]) => ({ function: name, compiles: own.sort((a, b) => (a.frameId ?? 0) - (b.frameId ?? 0) || a.id - b.id) }));
}

export const cardsOf = remember((chunk: Chunks['findings'], model: Model): Card[] => {
  const t = chunk.finding;
  const evidence = new Map<number, number[]>();
  t.parent.forEach((parent, row) => parent !== null && evidence.set(parent, [...(evidence.get(parent) ?? []), row]));
  const compiles = new Map<number, Compile[]>();
  const rows = chunk.finding_compile;
  rows.finding.forEach((finding, i) => {
    const compile = model.compileById.get(rows.compile_id[i]!);
    if (compile) compiles.set(finding!, [...(compiles.get(finding!) ?? []), compile]);
  });
  return t.parent.flatMap((parent, row) =>
    parent === null ? [{ row, id: t.id[row] ?? '', evidence: evidence.get(row) ?? [], work: workOf(compiles.get(row) ?? []) }] : [],
  );
});

// "0-3,6" holds 2; without ranks a finding is of all.
function holdsRank(ranks: string | null, rank: number): boolean {
  return (
    ranks === null ||
    ranks.split(',').some((part) => {
      const [from, to = from] = part.split('-').map(Number);
      return rank >= from && rank <= to;
    })
  );
}

// Those that concern the chosen rank.
export function cardsOfRank(cards: Card[], t: FindingTable, rank: number | null): Card[] {
  return rank === null ? cards : cards.filter((card) => holdsRank(t.ranks[card.row], rank));
}
