// The rows of the tables of time, by phase, event, compile, function and rank.
import './time.css';
import type { Compile, Model } from '../data/model';
import { notAttributed, timedPhases, type Phase } from '../data/phases';
import { functionKey, phaseTimes, type Scope, type TimeOfCompile, type Times } from '../data/time';
import { baseName } from '../lib/format';
import { href, type Route } from '../route';

export const ways = ['phase', 'event', 'compile', 'function', 'rank'] as const;
export type Way = (typeof ways)[number];
export const forms = ['table', 'flame', 'left-heavy'] as const;

// A row of every table.
export interface Row {
  key: string;
  name: string;
  about: string;
  phase: Phase | null;
  link: string | null; // narrows down to it
  compiles: Compile[]; // whose phases are drawn
  selfUs: number;
  totalUs: number | null;
  count: number | null;
  maxUs: number | null;
}

export function scopeOf({ query }: Route): Scope {
  const id = (name: string) => (/^\d+$/.test(query.get(name) ?? '') ? Number(query.get(name)) : null);
  const phase = timedPhases.findIndex((own) => own.key === query.get('phase'));
  return { process: id('process'), compile: id('compile'), function: query.get('function'), phase: phase < 0 ? null : phase };
}

// The address of this view with other values.
export function linkOf(route: Route, change: Record<string, string | number | null>): string {
  return href(['time'], {
    ...Object.fromEntries(['by', 'view', 'phase', 'compile', 'function', 'process', 'q', 'sort'].map((name) => [name, route.query.get(name)])),
    ...change,
  });
}

const empty = { about: '', phase: null, link: null, compiles: [], totalUs: null, count: null, maxUs: null };

function restOf(times: Times): Row[] {
  return times.notAttributedUs > 0
    ? [{ ...empty, key: 'none', name: notAttributed.name, about: notAttributed.hint, phase: notAttributed, selfUs: times.notAttributedUs }]
    : [];
}

function byPhase(times: Times, route: Route): Row[] {
  return phaseTimes(times).map((own) => {
    const phase = timedPhases[own.phase];
    return {
      ...empty,
      key: phase.key,
      name: phase.name,
      about: phase.hint,
      phase,
      link: linkOf(route, { by: 'event', phase: phase.key, q: null, sort: null }),
      selfUs: own.selfUs,
      totalUs: own.totalUs,
      count: own.count,
      maxUs: own.maxUs,
    };
  });
}

function byEvent(times: Times): Row[] {
  const rows = new Map<string, Row & { totalUs: number; count: number; maxUs: number; most: number }>();
  for (const own of times.names) {
    const row = rows.get(own.name) ?? { ...empty, key: own.name, name: own.name, selfUs: 0, totalUs: 0, count: 0, maxUs: 0, most: -1 };
    rows.set(own.name, row);
    row.selfUs += own.selfUs;
    row.totalUs += own.totalUs;
    row.count += own.count;
    row.maxUs = Math.max(row.maxUs, own.maxUs);
    // Its colour is that of the phase in which it takes most.
    if (own.totalUs > row.most) [row.most, row.phase] = [own.totalUs, timedPhases[own.phase]];
  }
  return [...rows.values()];
}

// Compiles under one key.
function grouped(times: Times, keyOf: (own: TimeOfCompile) => string, rowOf: (own: TimeOfCompile, key: string) => Partial<Row> & { name: string }): Row[] {
  const rows = new Map<string, Row>();
  for (const own of times.compiles) {
    const key = keyOf(own);
    let row = rows.get(key);
    if (!row) rows.set(key, (row = { ...empty, compiles: [], key, selfUs: 0, totalUs: 0, count: 0, ...rowOf(own, key) }));
    row.selfUs += own.selfUs;
    if (!own.compile) continue;
    row.compiles.push(own.compile);
    row.count! += 1;
    row.totalUs! += own.totalUs;
    row.maxUs = Math.max(row.maxUs ?? 0, own.totalUs);
  }
  return [...rows.values()];
}

const outside = 'outside of compiles';

export function rowsBy(way: Way, model: Model, times: Times, route: Route): Row[] {
  const narrow = (change: Record<string, string | number | null>) => linkOf(route, { by: 'event', q: null, sort: null, ...change });
  switch (way) {
    case 'phase':
      return [...byPhase(times, route), ...restOf(times)];
    case 'event':
      return [...byEvent(times), ...restOf(times)];
    case 'compile':
      return times.compiles.map((own) => ({
        ...empty,
        key: `${own.processId} ${own.compile?.id ?? ''}`,
        name: own.compile ? `${own.compile.title} ${own.compile.function ?? ''}` : outside,
        about: model.processById.get(own.processId)?.name ?? '',
        link: own.compile ? narrow({ compile: own.compile.id }) : null,
        compiles: own.compile ? [own.compile] : [],
        selfUs: own.selfUs,
        totalUs: own.totalUs,
        count: own.events,
      }));
    case 'function':
      return grouped(
        times,
        (own) => (own.compile ? functionKey(own.compile) : ''),
        ({ compile }, key) => ({
          name: compile ? `${compile.function ?? 'unknown function'}${compile.file ? ` (${baseName(compile.file)}:${compile.line ?? '?'})` : ''}` : outside,
          about: compile?.file ? `${compile.file}:${compile.line ?? ''}` : '',
          link: compile ? narrow({ function: key }) : null,
        }),
      );
    case 'rank':
      return grouped(
        times,
        (own) => String(own.processId),
        ({ processId }) => ({
          name: model.processById.get(processId)?.name ?? '',
          about: model.processById.get(processId)?.file ?? '',
          link: narrow({ process: processId }),
        }),
      );
  }
}
