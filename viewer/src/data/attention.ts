// What to look at first, worst first.
import { headline, place, plural, shorten } from '../lib/format';
import { remember } from '../lib/remember';
import { href } from '../route';
import type { Chunks } from './chunks';
import type { Model } from './model';

export interface Attention {
  tone: 'bad' | 'warn' | 'note';
  title: string;
  detail?: string;
  link: string;
  isUnranked?: boolean; // between logs of which one side has no rank: they may have nothing to do with each other
}

export function attention(model: Model, findings: Chunks['findings'] | undefined): Attention[] {
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
  if (findings && model.processes.length > 1) {
    const apart = divergences(findings, model);
    const unranked = apart.filter((item) => item.isUnranked).length;
    items.push(...apart.filter((item) => !item.isUnranked));
    if (unranked > 0) items.push({ tone: 'note', title: `${plural(unranked, 'difference')} of logs without a rank`, detail: withoutRank, link: href(['ranks']) });
  }
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
      detail: `Most often: ${headline(breaks.reason[0])} ${place(breaks.user_file[0], breaks.user_line[0])}`,
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
      title: `${table.failures[i]}× ${table.type[i] ?? kind}: ${shorten(headline(table.reason[i]), 300)}`,
      detail: place(table.user_file[i], table.user_line[i]),
      link: table.compile_id[i] === null ? href(['compiles'], { tab: 'failures' }) : href(['compile', table.compile_id[i]!]),
    });
  });
}

export const withoutRank = 'Neither their records nor their file names tell a rank: they may be of runs that have nothing to do with each other.';

// Participants of the analysis without a rank are called by their logs.
function isUnranked(participants: string | null): boolean {
  return (participants ?? '').split(',').every((name) => name.startsWith('log:'));
}

// What sets ranks apart, from the answers of the analysis: one item per cause, by-design differences left out, those of
// logs without a rank last.
export const divergences = remember((findings: Chunks['findings'], model: Model): Attention[] => {
  const items: Attention[] = [];
  // The tone of what sets `a` apart from `b`.
  const between = (a: string | null, b: string | null): Pick<Attention, 'tone' | 'isUnranked'> => (isUnranked(a) || isUnranked(b) ? { tone: 'note', isUnranked: true } : { tone: 'bad' });
  const who = (ranks: string | null) => (/^[\d,-]+$/.test(ranks ?? '') ? `${/[,-]/.test(ranks!) ? 'Ranks' : 'Rank'} ${ranks}` : (ranks ?? ''));
  const cache = findings.cache_finding;
  // The same cause of the same ranks is one item, however many compiles and counterparts it has.
  const merged = new Map<string, number[]>();
  cache.cause.forEach((cause, i) => {
    if (cache.is_note[i] === 1) return;
    const key = [cache.ranks[i], cause, cache.text[i], cache.state[i], cache.against_state[i]].join('\n');
    merged.set(key, [...(merged.get(key) ?? []), i]);
  });
  for (const rows of merged.values()) {
    const i = rows[0];
    const isMissing = cache.cause[i] === 'missing_compile';
    const state = cache.state[i] === cache.against_state[i] ? `${cache.state[i]} on both sides` : `${cache.state[i]} here, ${cache.against_state[i]} there`;
    const node = cache.node[i] || cache.against_node[i] ? `first differing node ${cache.against_node[i] || '(none)'} → ${cache.node[i] || '(none)'} ${cache.source[i] ?? ''}` : '';
    const compileId = cache.compile_id[i] ?? cache.against_compile_id[i];
    const compiles = [...new Set(rows.map((row) => cache.compiles[row]))].join(', ');
    const against = cache.against[i] && cache.against[i]!.length < 14 ? ` ≠ ${cache.against[i]}` : '';
    items.push({
      ...between(cache.ranks[i], cache.against[i]),
      title: `${who(cache.ranks[i])}${against}: ${isMissing ? cache.text[i] : cache.title[i]}`,
      detail: [isMissing ? '' : cache.text[i], node, `in ${compiles}`, cache.lookups[i] ? state : '', cache.explained[i] ? `explains ${cache.explained[i]} more components` : ''].filter(Boolean).join(' · '),
      link: cache.lookups[i] && compileId !== null ? href(['ranks'], { tab: 'cache', compile: compileId }) : compileId !== null ? href(['compile', compileId]) : href(['ranks']),
    });
  }
  const same = findings.same_key;
  same.key.forEach((_, i) => {
    items.push({ ...between(same.ranks[i], same.other_ranks[i]), title: `${who(same.ranks[i])} and ${same.other_ranks[i]}: one cache key, two generated codes`, detail: (same.diff[i] ?? '').split('\n').slice(0, 6).join(' '), link: href(['ranks'], { tab: 'cache' }) });
  });
  const firstOf = (ranks: (string | null)[]) => ranks.map((name, i) => (ranks.indexOf(name) === i ? i : -1)).filter((i) => i >= 0);
  const reference = findings.rank_class.ranks[0] ?? null; // what the others are compared with
  const collectives = findings.collective_mismatch;
  for (const i of firstOf(collectives.ranks)) {
    const many = collectives.ranks.filter((name) => name === collectives.ranks[i]).length;
    const item = collectives.item[i] || '(nothing)';
    const other = collectives.against_item[i] || '(nothing)';
    const place = (ordinal: number | null) => `#${(ordinal ?? 0) + 1}`;
    const part = item === other ? `${item} is ${place(collectives.ordinal[i])}, ${place(collectives.against_ordinal[i])} for the others` : `${item} where the others have ${other}`;
    items.push({
      ...between(collectives.ranks[i], reference),
      title: `${who(collectives.ranks[i])}: collectives part in ${collectives.graph[i]}`,
      detail: [`${collectives.kind[i]}: ${part}`, collectives.reason[i], many > 1 ? `${many} mismatches` : ''].filter(Boolean).join(' · '),
      link: href(['ranks'], { tab: 'collectives' }),
    });
  }
  const order = findings.order_difference;
  for (const i of firstOf(order.ranks)) {
    items.push({ ...between(order.ranks[i], reference), title: `${who(order.ranks[i])}: another order of execution from position ${order.position[i]}`, detail: `ran ${order.ran[i] || 'nothing'}, the others ${order.against_ran[i] || 'nothing'}`, link: href(['ranks'], { tab: 'execution' }) });
  }
  const notes = findings.note;
  notes.text.forEach((text, i) => {
    if (notes.kind[i] === 'missing_ranks') items.push({ tone: 'bad', title: text ?? '', link: href(['ranks']) });
    else if (notes.kind[i] === 'slowest' && model.processes.length > 1) items.push({ tone: 'note', title: 'Slowest rank', detail: text ?? '', link: href(['ranks']) });
  });
  return [...items.filter((item) => !item.isUnranked), ...items.filter((item) => item.isUnranked)];
});
