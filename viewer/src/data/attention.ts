// What to look at first, worst first.
import { place, plural, ranges } from '../lib/format';
import { href } from '../route';
import type { Model } from './model';

export interface Attention {
  tone: 'bad' | 'warn' | 'note';
  title: string;
  detail?: string;
  link: string;
}

export function attention(model: Model): Attention[] {
  const items: Attention[] = [];
  const { compiles, index } = model;
  failures(model, items);
  const unfinished = compiles.filter((compile) => compile.status === 'unfinished');
  if (unfinished.length > 0) {
    items.push({
      tone: 'bad',
      title: `${plural(unfinished.length, 'compile')} never ended`,
      detail: `The log stops inside ${unfinished.slice(0, 3).map((compile) => `${compile.title} ${compile.function ?? ''}`.trim()).join(', ')}: the process was killed or is still running.`,
      link: href(['compiles'], { q: 'status:unfinished' }),
    });
  }
  divergence(model, items);
  const recompiles = index.recompile_group;
  recompiles.guard.slice(0, 2).forEach((guard, i) => {
    items.push({
      tone: 'warn',
      title: `${recompiles.function[i] ?? 'A function'} was compiled again ${recompiles.recompiles[i] === 1 ? 'once' : `${recompiles.recompiles[i]} times`}`,
      detail: `Failed guard: ${guard ?? recompiles.reason[i]} ${place(recompiles.user_file[i], recompiles.user_line[i])}`,
      link: href(['compile', recompiles.compile_id[i]!]),
    });
  });
  const breaks = index.graph_break_group;
  if (breaks.rows > 0) {
    const total = breaks.breaks.reduce<number>((sum, value) => sum + (value ?? 0), 0);
    items.push({
      tone: 'warn',
      title: `${plural(total, 'graph break')} at ${plural(breaks.rows, 'place')}`,
      detail: `Most often: ${(breaks.reason[0] ?? '').split('\n')[0]} ${place(breaks.user_file[0], breaks.user_line[0])}`,
      link: href(['compiles'], { tab: 'breaks' }),
    });
  }
  const codes = index.import_code;
  codes.code.forEach((code, i) => {
    if (codes.severity[i] === 'info') return;
    items.push({
      tone: codes.severity[i] === 'error' ? 'bad' : 'note',
      title: `Import log: ${plural(codes.entries[i] ?? 0, 'entry', 'entries')} ${code}`,
      link: href(['import-log'], { severity: codes.severity[i], q: `code:${code}` }),
    });
  });
  const order = { bad: 0, warn: 1, note: 2 };
  return items.sort((a, b) => order[a.tone] - order[b.tone]);
}

function failures(model: Model, items: Attention[]): void {
  const table = model.index.failure_group;
  table.kind.forEach((kind, i) => {
    if (kind === 'restart' || i > 3) return;
    items.push({
      tone: 'bad',
      title: `${table.failures[i]}× ${table.type[i] ?? kind}: ${(table.reason[i] ?? '').split('\n')[0]}`,
      detail: place(table.user_file[i], table.user_line[i]),
      link: table.compile_id[i] === null ? href(['compiles'], { tab: 'failures' }) : href(['compile', table.compile_id[i]!]),
    });
  });
}

// Compiles that not all ranks had, or whose cache lookups ended differently.
function divergence(model: Model, items: Attention[]): void {
  const ranked = model.processes.filter((process) => process.rank !== null);
  if (ranked.length < 2) return;
  const byLabel = new Map<string, { title: string; processes: Set<number>; states: Map<string, number[]> }>();
  for (const compile of model.compiles) {
    if (compile.isSynthetic || model.processById.get(compile.processId)?.rank == null) continue;
    const key = `${compile.label}#${compile.generation}`;
    let entry = byLabel.get(key);
    if (!entry) byLabel.set(key, (entry = { title: `${compile.title} ${compile.function ?? ''}`, processes: new Set(), states: new Map() }));
    entry.processes.add(compile.processId);
    const worst = compile.cache.miss + compile.cache.guard_miss > 0 ? 'miss' : compile.cache.bypass > 0 ? 'bypass' : compile.cache.hit > 0 ? 'hit' : 'none';
    entry.states.set(worst, [...(entry.states.get(worst) ?? []), compile.rank ?? -1]);
  }
  const partial = [...byLabel.values()].filter((entry) => entry.processes.size < ranked.length);
  if (partial.length > 0) {
    const first = partial[0];
    const missing = ranked.filter((process) => !first.processes.has(process.id)).map((process) => process.rank!);
    const having = ranked.filter((process) => first.processes.has(process.id)).map((process) => process.rank!);
    items.push({
      tone: 'bad',
      title: `${plural(partial.length, 'compile')} did not happen on every rank`,
      detail: having.length <= missing.length ? `${first.title}: only on ${ranges(having)}` : `${first.title}: not on ${ranges(missing)}`,
      link: href(['ranks']),
    });
  }
  const mixed = [...byLabel.values()].filter((entry) => entry.states.size > 1);
  if (mixed.length > 0) {
    const detail = [...mixed[0].states].map(([state, ranks]) => `${state === 'none' ? 'no lookup' : state} on ${ranges(ranks)}`).join(', ');
    items.push({
      tone: 'bad',
      title: `${plural(mixed.length, 'compile')} hit a cache on some ranks and not on others`,
      detail: `${mixed[0].title}: ${detail}`,
      link: href(['ranks'], { tab: 'cache' }),
    });
  }
}
