// Compile time of functions over the runs of all databases that are served.
import { baseName } from '../lib/format';
import { remember } from '../lib/remember';
import { load, useAsync, type Chunks, type Pending } from './chunks';
import type { Model } from './model';

export interface TrendRun {
  database: number | null; // null: that of the page
  id: number;
  name: string; // with its database, where runs of several have one name
  isCurrent: boolean;
}

// In the order in which the databases were named, of each as they were ingested.
export const runsOf = remember((index: Model['index']): TrendRun[] => {
  const { run, served_run: served } = index;
  if (served.rows === 0) return run.id.map((id, i) => ({ database: null, id: id!, name: run.name[i] ?? '', isCurrent: run.is_current[i] === 1 }));
  return served.id.map((id, i) => {
    const name = served.name[i] ?? '';
    const isAlone = served.name.indexOf(name) === served.name.lastIndexOf(name);
    return {
      database: served.database[i],
      id: id!,
      name: isAlone ? name : `${name} of ${served.database_name[i]}`,
      isCurrent: served.is_current[i] === 1,
    };
  });
});

export interface TrendPoint {
  run: number; // place in runsOf
  us: number | null;
  compiles: number;
  recompiles: number;
  processes: number;
}

export interface Trend {
  key: string;
  name: string;
  file: string | null; // of the latest run that has it
  line: number | null;
  points: TrendPoint[]; // by run; runs that did not compile it have none
  lastUs: number;
  changeUs: number | null; // against the run before that has it
}

interface Row extends TrendPoint {
  name: string;
  file: string | null;
  line: number | null;
}

// The rows of all databases, by run.
function rowsOf(databases: { database: number | null; chunk: Chunks['trend'] }[], runs: TrendRun[]): Row[] {
  const rows = databases.flatMap(({ database, chunk: { function_time: t } }) =>
    t.run_id.flatMap((id, i) => {
      const run = runs.findIndex((one) => one.database === database && one.id === id);
      if (run < 0) return [];
      const [us, compiles, recompiles, processes] = [t.us[i], t.compiles[i]!, t.recompiles[i]!, t.processes[i]!];
      return { run, us, compiles, recompiles, processes, name: t.function[i]!, file: t.file[i], line: t.line[i] };
    }),
  );
  return rows.sort((a, b) => a.run - b.run);
}

// A function is known by its name and file: lines move from run to run. Where one run has several of a name and file, their lines count too.
function keysOf(rows: Row[]): string[] {
  const short = rows.map(({ name, file }) => (file ? `${name} ${baseName(file)}` : name));
  const runsOfKey = new Set<string>();
  const several = new Set<string>();
  short.forEach((key, i) => {
    const own = `${key} ${rows[i].run}`;
    if (runsOfKey.has(own)) several.add(key);
    runsOfKey.add(own);
  });
  return short.map((key, i) => (several.has(key) ? `${rows[i].name} ${rows[i].file}:${rows[i].line}` : key));
}

function trendsOf(databases: { database: number | null; chunk: Chunks['trend'] }[], runs: TrendRun[]): Trend[] {
  const rows = rowsOf(databases, runs);
  const trends = new Map<string, Trend>();
  keysOf(rows).forEach((key, i) => {
    const { name, file, line, ...point } = rows[i];
    const trend = trends.get(key) ?? { key, name, file: null, line: null, points: [], lastUs: 0, changeUs: null };
    trends.set(key, trend);
    [trend.file, trend.line] = [file, line];
    trend.points.push(point);
  });
  for (const trend of trends.values()) {
    const timed = trend.points.flatMap(({ us }) => us ?? []);
    trend.lastUs = timed[timed.length - 1] ?? 0;
    if (timed.length > 1) trend.changeUs = trend.lastUs - timed[timed.length - 2];
  }
  return [...trends.values()];
}

export function useTrends(model: Model): Pending<Trend[]> {
  return useAsync('trends', async () => {
    const runs = runsOf(model.index);
    const databases = [...new Set(runs.map(({ database }) => database))];
    const chunks = databases.map(async (database) => ({ database, chunk: await (database === null ? load('trend') : load('trend', database)) }));
    return trendsOf(await Promise.all(chunks), runs);
  });
}

// Those that a name, a file and a line, each if known, leave: lines only tell apart what the file does not.
export function trendsNamed(trends: Trend[], name: string, file: string | null, line: number | null): Trend[] {
  const named = trends.filter((trend) => trend.name === name);
  const inFile = named.filter((trend) => file === null || baseName(trend.file ?? '') === baseName(file));
  const found = inFile.length > 0 ? inFile : named;
  const onLine = found.filter((trend) => trend.line === line);
  return onLine.length === 1 ? onLine : found;
}
