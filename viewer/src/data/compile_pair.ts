// Two compiles of the run and what differs between them, by their records, guards, lookups and kernels.
import { diff, normalize } from '../lib/diff';
import { compileArtifacts, type Artifact } from './artifact';
import { load, type Chunks } from './chunks';
import { loadBlock, loadText, rowsWhere, type Compile, type Model } from './model';

export interface TextChange {
  title: string; // with its number, where a compile has several of the name
  a: Artifact | null; // null: only the other has it
  b: Artifact | null;
  removed: number | null; // lines; null: the texts are too long to be compared here
  added: number | null;
}

export interface SetChange {
  gone: string[]; // only in a
  added: string[]; // only in b
}

export interface CompilePair {
  a: Compile;
  b: Compile;
  reasons: { prior: string; guard: string }[]; // of the later one, where it was recompiled because it could not reuse the other
  breaks: SetChange;
  guards: SetChange | null; // null: not both logged any
  kernels: SetChange | null;
  lookups: { what: string; a: string | null; b: string | null; hasSameKey: boolean }[]; // that differ
  texts: TextChange[]; // that differ
  equalTexts: number;
}

const longest = 400_000; // characters of texts that are compared line by line

function changeOf(a: string[], b: string[]): SetChange {
  const counts = new Map<string, number>();
  for (const text of a) counts.set(text, (counts.get(text) ?? 0) + 1);
  const added = b.filter((text) => {
    const left = counts.get(text) ?? 0;
    counts.set(text, left - 1);
    return left <= 0;
  });
  return { gone: [...counts].flatMap(([text, n]) => Array<string>(Math.max(0, n)).fill(text)), added };
}

async function guardsOf(chunk: Chunks['compile'], compile: Compile): Promise<string[]> {
  const trees = rowsWhere(chunk.guard_tree.compile_id, compile.id);
  if (trees.length === 0) return [];
  const content = chunk.guard_tree.content_id[trees[trees.length - 1]]!;
  const { guard } = await loadBlock('guards', content);
  return rowsWhere(guard.content_id, content).flatMap((i) => (/Manager$/.test(guard.kind[i] ?? '') ? [] : [normalize(guard.expression[i] ?? '')]));
}

function kernelsOf({ graph }: Chunks['graphs'], { kernel }: Chunks['kernels'], compile: Compile): string[] {
  const contents = new Set(rowsWhere(graph.compile_id, compile.id).flatMap((i) => graph.provenance_content_id[i] ?? []));
  return kernel.name.filter((_, i) => contents.has(kernel.content_id[i]!)).map((name) => name ?? '');
}

function lookupsOf({ cache_event: t }: Chunks['cache'], compile: Compile): Map<string, { state: string; key: string | null }> {
  const lookups = new Map<string, { state: string; key: string | null }>();
  for (const i of rowsWhere(t.compile_id, compile.id)) {
    const name = [t.layer[i], t.direction[i]].filter(Boolean).join(' ');
    let what = name;
    for (let n = 2; lookups.has(what); n++) what = `${name} ${n}`;
    lookups.set(what, { state: t.state[i] ?? '', key: t.key[i] });
  }
  return lookups;
}

function named(artifacts: Artifact[]): Map<string, Artifact> {
  const uses = new Map<string, number>();
  return new Map(
    artifacts.flatMap((artifact): [string, Artifact][] => {
      if (!artifact.text) return [];
      const n = (uses.get(artifact.title) ?? 0) + 1;
      uses.set(artifact.title, n);
      return [[n === 1 ? artifact.title : `${artifact.title} (${n})`, artifact]];
    }),
  );
}

async function linesOf(artifact: Artifact): Promise<string[]> {
  return (await loadText(artifact.text!)).content.split('\n').map(normalize);
}

async function compareTexts(title: string, a: Artifact, b: Artifact): Promise<TextChange | null> {
  if (a.text!.hash === b.text!.hash) return null;
  if (Math.max(a.text!.sizeBytes, b.text!.sizeBytes) > longest) return { title, a, b, removed: null, added: null };
  const changes = diff(await linesOf(a), await linesOf(b)).filter((hunk) => hunk.kind === 'change');
  if (changes.length === 0) return null;
  const sum = (side: 'a' | 'b') => changes.reduce((total, hunk) => total + hunk[side][1] - hunk[side][0], 0);
  return { title, a, b, removed: sum('a'), added: sum('b') };
}

export async function loadPair(model: Model, aId: number, bId: number): Promise<CompilePair> {
  const [a, b] = [aId, bId].map((id) => model.compileById.get(id));
  if (!a || !b) throw new Error(`There is no compile ${a ? bId : aId} in this run.`);
  const [inA, inB, problems, cache, graphs, kernels] = await Promise.all([
    loadBlock('compile', a.id),
    loadBlock('compile', b.id),
    load('problems'),
    load('cache'),
    load('graphs'),
    load('kernels'),
  ]);
  const [aGuards, bGuards] = await Promise.all([guardsOf(inA, a), guardsOf(inB, b)]);
  const [aKernels, bKernels] = [a, b].map((one) => kernelsOf(graphs, kernels, one));
  const breaksOf = (one: Compile) =>
    rowsWhere(problems.graph_break.compile_id, one.id).map(
      (i) =>
        `${problems.graph_break.user_file[i]?.split('/').pop() ?? '?'}:${problems.graph_break.user_line[i] ?? '?'} ${(problems.graph_break.reason[i] ?? '').split('\n')[0]}`,
    );
  const { recompile } = problems;
  const [later, earlier] = a.id < b.id ? [b, a] : [a, b];
  const reasons = rowsWhere(recompile.compile_id, later.id).flatMap((i) =>
    recompile.prior_compile_id[i] === earlier.id ? [{ prior: earlier.title, guard: recompile.guard[i] ?? recompile.reason[i] ?? '' }] : [],
  );
  const [aLookups, bLookups] = [a, b].map((one) => lookupsOf(cache, one));
  const lookups = [...new Set([...aLookups.keys(), ...bLookups.keys()])].flatMap((what) => {
    const [x, y] = [aLookups.get(what), bLookups.get(what)];
    const hasSameKey = x !== undefined && y !== undefined && x.key !== null && x.key === y.key;
    return x?.state === y?.state && hasSameKey ? [] : [{ what, a: x?.state ?? null, b: y?.state ?? null, hasSameKey }];
  });
  const [aTexts, bTexts] = [named(compileArtifacts(inA, a.id)), named(compileArtifacts(inB, b.id))];
  const texts: TextChange[] = [];
  let equalTexts = 0;
  for (const [title, own] of aTexts) {
    const other = bTexts.get(title);
    const change = other ? await compareTexts(title, own, other) : { title, a: own, b: null, removed: null, added: null };
    if (change) texts.push(change);
    else equalTexts++;
  }
  for (const [title, own] of bTexts) if (!aTexts.has(title)) texts.push({ title, a: null, b: own, removed: null, added: null });
  return {
    a,
    b,
    reasons,
    breaks: changeOf(breaksOf(a), breaksOf(b)),
    guards: aGuards.length > 0 && bGuards.length > 0 ? changeOf(aGuards, bGuards) : null,
    kernels: aKernels.length > 0 && bKernels.length > 0 ? changeOf(aKernels, bKernels) : null,
    lookups,
    texts,
    equalTexts,
  };
}
