// Python files as far as the inputs know them: lines with their text, and what came of each.
import { remember } from '../lib/remember';
import type { Chunks } from './chunks';
import { isRefused, isShown, type Compile, type Model, type TextRef } from './model';

// Something that a line led to in a compile; equal ones of several ranks are one.
export interface Outcome {
  compile: Compile;
  ranks: number[];
  compiles: number; // how many are folded
  text: string;
  recordId: number | null;
  graphId: number | null;
  direction: string | null;
  entity: string | null; // of the provenance page: "kernel:12"
}

export interface LineFacts {
  begins: Outcome[]; // compiles whose function begins here
  breaks: Outcome[];
  recompiles: Outcome[];
  failures: Outcome[];
  guards: Outcome[];
  nodes: Outcome[];
  kernels: Outcome[];
  guardCount: number;
  kernelIds: Set<number>;
  callerIds: Set<number>; // kernels that a call in this line led to
  compileUs: number; // of `begins`: of equal ranks the slowest
}
export type OutcomeKind = 'begins' | 'breaks' | 'recompiles' | 'failures' | 'guards' | 'nodes' | 'kernels';

export interface SourceFile {
  name: string;
  texts: Map<number, string[]>; // by line
  facts: Map<number, LineFacts>;
  whole: (TextRef & { compileId: number; recordId: number }) | null;
  isLibrary: boolean;
}

export function newFacts(): LineFacts {
  return {
    begins: [],
    breaks: [],
    recompiles: [],
    failures: [],
    guards: [],
    nodes: [],
    kernels: [],
    guardCount: 0,
    kernelIds: new Set(),
    callerIds: new Set(),
    compileUs: 0,
  };
}

// Files of Python and its packages, and those that PyTorch names by their tail ("_dynamo/output_graph.py").
const isLibrary = (name: string) =>
  /site-packages|dist-packages|\/lib\/python\d|^<|(^|\/)(_dynamo|_inductor|_functorch|_subclasses|_library|_refs|_ops|_tensor)\b|^[^/]*\/?(_\w+|fx|nn|utils|cuda|autograd|distributed|symbolic_shapes)\//.test(
    name,
  );
const isWholeName = (name: string) => /^(\/|[A-Za-z]:)/.test(name);
// A file and line of a stack that were taken for a file.
const isNoFile = (name: string) => /:\d+ in /.test(name);

interface Seen {
  outcome: Outcome;
  ranks: number[][];
}

class Builder {
  readonly files = new Map<string, SourceFile>();
  private readonly seen: Seen[] = [];
  // By line, kind and name of use, and text: texts are strings of the chunk, whose hash is known, and no longer key is made of them.
  private readonly byLine = new Map<LineFacts, Map<string, Map<string, Seen>>>();
  private readonly resolved = new Map<string, string>();

  constructor(
    readonly model: Model,
    private readonly names: Set<string>, // whole, of files that a line is known of
  ) {}

  file(name: string): SourceFile {
    let file = this.files.get(name);
    if (!file) this.files.set(name, (file = { name, texts: new Map(), facts: new Map(), whole: null, isLibrary: isLibrary(name) }));
    return file;
  }

  facts(name: string, line: number): LineFacts {
    const { facts } = this.file(name);
    let own = facts.get(line);
    if (!own) facts.set(line, (own = newFacts()));
    return own;
  }

  // PyTorch cuts long paths at the left: "…ork/scripts/a.py" is the one file that ends so.
  resolve(name: string): string {
    let whole = this.resolved.get(name);
    if (whole === undefined) {
      const found = isWholeName(name) || name.startsWith('<') ? [name] : [...this.names].filter((known) => known.endsWith(name) && isWholeName(known));
      this.resolved.set(name, (whole = found.length === 1 ? found[0] : name));
    }
    return whole;
  }

  // Of one compile.
  add(kind: OutcomeKind, file: string, line: number, compileId: number | null, text: string, more: Partial<Outcome> = {}): LineFacts | null {
    const compile = compileId === null ? undefined : this.model.compileById.get(compileId);
    if (!compile || !isShown(this.model, compile)) return null;
    return this.addUse(
      kind,
      file,
      line,
      { row: 0, name: nameOf(compile), compiles: [compile], ranks: compile.rank === null ? [] : [compile.rank] },
      text,
      more,
    );
  }

  addUse(kind: OutcomeKind, file: string, line: number, { name, compiles, ranks }: Use, text: string, more: Partial<Outcome> = {}): LineFacts {
    const facts = this.facts(file, line);
    let uses = this.byLine.get(facts);
    if (!uses) this.byLine.set(facts, (uses = new Map()));
    const key = `${kind} ${name}`;
    let texts = uses.get(key);
    if (!texts) uses.set(key, (texts = new Map()));
    const known = texts.get(text);
    if (known) {
      known.outcome.compiles += compiles.length;
      known.ranks.push(ranks);
      if (kind === 'begins' && (compiles[0].durationUs ?? 0) > (known.outcome.compile.durationUs ?? 0)) known.outcome.compile = compiles[0];
      return facts;
    }
    const outcome: Outcome = {
      compile: compiles[0],
      ranks,
      compiles: compiles.length,
      text,
      recordId: null,
      graphId: null,
      direction: null,
      entity: null,
      ...more,
    };
    const first = { outcome, ranks: [ranks] };
    this.seen.push(first);
    texts.set(text, first);
    facts[kind].push(outcome);
    return facts;
  }

  finish(): Map<string, SourceFile> {
    for (const { outcome, ranks } of this.seen) if (ranks.length > 1) outcome.ranks = [...new Set(ranks.flat())];
    return this.files;
  }
}

// Equal compiles that used one text: those of several ranks are drawn as one, so the lines of the text are read once for all of them.
interface Use {
  row: number; // of the first
  name: string; // what tells it from other uses
  compiles: Compile[];
  ranks: number[];
}
const nameOf = (compile: Compile, more = '') => `${compile.title} ${compile.function} ${more}`;

function usesOf(model: Model, contents: (number | null)[], compileIds: (number | null)[], more?: (string | null)[]): Map<number, Use[]> {
  const byContent = new Map<number, Map<string, { use: Use; ranks: Set<number> }>>();
  contents.forEach((content, row) => {
    const compile = compileIds[row] === null ? undefined : model.compileById.get(compileIds[row]!);
    if (content === null || !compile || !isShown(model, compile)) return;
    let uses = byContent.get(content);
    if (!uses) byContent.set(content, (uses = new Map()));
    const name = nameOf(compile, more?.[row] ?? '');
    let known = uses.get(name);
    if (!known) uses.set(name, (known = { use: { row, name, compiles: [], ranks: [] }, ranks: new Set() }));
    known.use.compiles.push(compile);
    if (compile.rank !== null) known.ranks.add(compile.rank);
  });
  const list = ({ use, ranks }: { use: Use; ranks: Set<number> }): Use => ({ ...use, ranks: [...ranks] });
  return new Map([...byContent].map(([content, uses]) => [content, [...uses.values()].map(list)]));
}

function addProblems(builder: Builder, chunk: Chunks['source']): void {
  const { break: b, recompile: r, failure: f } = chunk;
  b.file.forEach((file, i) => builder.add('breaks', builder.resolve(file!), b.line[i]!, b.compile_id[i], b.cause[i] ?? '', { recordId: b.record_id[i] }));
  r.file.forEach((file, i) => builder.add('recompiles', builder.resolve(file!), r.line[i]!, r.compile_id[i], r.guard[i] ?? '', { recordId: r.record_id[i] }));
  f.file.forEach((file, i) =>
    builder.add('failures', builder.resolve(file!), f.line[i]!, f.compile_id[i], f.type[i] ?? 'failed', { recordId: f.record_id[i] }),
  );
}

function addContents(builder: Builder, chunk: Chunks['source'], graphs: Chunks['graphs']): void {
  const { guard_line: g, guard_use: gu, node_line: n, node_use: nu, kernel: k, kernel_frame: kf } = chunk;
  const { model } = builder;
  const guardUses = usesOf(model, gu.content_id, gu.compile_id);
  g.file.forEach((file, i) => {
    const uses = guardUses.get(g.content_id[i]!);
    if (!uses) return;
    const name = builder.resolve(file!);
    const expression = g.expression[i] ?? '';
    const text = g.guards[i]! > 1 ? `${g.guards[i]} guards, one of them ${expression}` : expression;
    for (const use of uses) builder.addUse('guards', name, g.line[i]!, use, text, { recordId: gu.record_id[use.row] });
    builder.facts(name, g.line[i]!).guardCount += g.guards[i]!;
  });
  const nodeUses = usesOf(model, nu.content_id, nu.compile_id, nu.stage);
  n.file.forEach((file, i) => {
    const more = n.nodes[i]! > 1 ? ` and ${n.nodes[i]! - 1} more` : '';
    for (const use of nodeUses.get(n.content_id[i]!) ?? [])
      builder.addUse('nodes', file!, n.line[i]!, use, `${nu.stage[use.row]}: ${n.node[i]}${more}`, { recordId: nu.record_id[use.row] });
  });
  const { graph } = graphs;
  const graphUses = usesOf(model, graph.provenance_content_id, graph.compile_id, graph.direction);
  const kernelRow = new Map(k.id.map((id, i) => [id!, i]));
  kf.file.forEach((file, i) => {
    const row = kernelRow.get(kf.kernel_id[i]!);
    const id = kf.kernel_id[i]!;
    if (row === undefined) return;
    for (const use of graphUses.get(k.content_id[row]!) ?? []) {
      if (kf.is_inner[i] !== 1) builder.facts(file!, kf.line[i]!).callerIds.add(id);
      else {
        const more = { graphId: graph.id[use.row], direction: graph.direction[use.row], entity: `kernel:${id}` };
        builder.addUse('kernels', file!, kf.line[i]!, use, k.name[row] ?? '', more).kernelIds.add(id);
      }
    }
  });
}

export const filesOf = remember((chunk: Chunks['source'], model: Model, graphs: Chunks['graphs']): Map<string, SourceFile> => {
  const t = chunk.source_line;
  const builder = new Builder(model, new Set(t.file as string[]));
  t.file.forEach((file, i) => {
    if (isNoFile(file!)) return;
    const { texts } = builder.file(builder.resolve(file!));
    const known = texts.get(t.line[i]!) ?? [];
    const code = (t.code[i] ?? '').trim();
    if (!known.includes(code)) texts.set(t.line[i]!, [...known, code]);
  });
  const w = chunk.whole_file;
  w.file.forEach(
    (file, i) =>
      (builder.file(file!).whole = { hash: w.payload_hash[i]!, sizeBytes: w.size_bytes[i] ?? 0, compileId: w.compile_id[i]!, recordId: w.record_id[i]! }),
  );
  for (const compile of model.compiles) {
    if (compile.file && compile.line)
      builder.add('begins', compile.file, compile.line, compile.id, isRefused(compile) ? 'refused at the recompile limit' : compile.status);
  }
  for (const file of builder.files.values())
    for (const facts of file.facts.values())
      facts.compileUs = facts.begins.reduce((sum, one) => sum + (one.compile.durationUs ?? 0) + (one.compile.backwardUs ?? 0), 0);
  addProblems(builder, chunk);
  addContents(builder, chunk, graphs);
  return builder.finish();
});

// The files of an address, which names one whole or by the tail that PyTorch prints: of several, those first of whose line more came.
export function filesNamed(files: Map<string, SourceFile>, name: string, line: number | null): SourceFile[] {
  const exact = files.get(name);
  if (exact) return [exact];
  const found = [...files.values()].filter((file) => file.name.endsWith(name));
  const whole = found.filter((file) => isWholeName(file.name));
  const came = ({ facts, texts }: SourceFile) => {
    const own = line === null ? undefined : facts.get(line);
    return (own ? 2 + own.kernelIds.size + own.nodes.length + own.guardCount : 0) + (line !== null && texts.has(line) ? 1 : 0);
  };
  return (whole.length > 0 ? whole : found).sort((a, b) => came(b) - came(a) || b.facts.size - a.facts.size || (a.name < b.name ? -1 : 1));
}

// What a finding says of a line.
export interface Said {
  id: string;
  severity: string;
  title: string;
  code: string | null;
}

export function saidOf(findings: Chunks['findings'] | undefined, file: string): Map<number, Said[]> {
  const said = new Map<number, Said[]>();
  const t = findings?.finding;
  t?.file.forEach((name, i) => {
    if (name !== file || t.line[i] === null || t.parent[i] !== null) return;
    const own = {
      id: t.id[i] ?? '',
      severity: t.severity[i] ?? '',
      title: t.title[i] ?? '',
      code: t.code[i],
    };
    said.set(t.line[i]!, [...(said.get(t.line[i]!) ?? []), own]);
  });
  return said;
}

// Lines of callers that led to the same kernels, those that hold few first: they tell the kernels of a line apart.
export function callersOf(files: Map<string, SourceFile>, kernels: Set<number>): { file: string; line: number; kernels: number }[] {
  const callers: { file: string; line: number; kernels: number }[] = [];
  for (const file of files.values()) {
    for (const [line, facts] of file.facts) {
      const shared = [...facts.callerIds].filter((id) => kernels.has(id)).length;
      if (shared > 0) callers.push({ file: file.name, line, kernels: shared });
    }
  }
  return callers.sort((a, b) => a.kernels - b.kernels || (a.file < b.file ? -1 : 1) || a.line - b.line);
}
