// Compile time of functions over the runs of a database.
import { baseName } from '../lib/format';
import { remember } from '../lib/remember';
import type { Chunks } from './chunks';
import type { Model } from './model';

export interface TrendPoint {
  run: number; // row of the table of runs
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

// A function is known by its name and file: lines move from run to run. Where one run has several of a name and file, their lines count too.
function keysOf({ function: names, file, line, run_id: run }: Chunks['trend']['function_time']): string[] {
  const short = names.map((name, i) => (file[i] ? `${name} ${baseName(file[i]!)}` : name!));
  const runsOfKey = new Set<string>();
  const several = new Set<string>();
  short.forEach((key, i) => {
    const own = `${key} ${run[i]}`;
    if (runsOfKey.has(own)) several.add(key);
    runsOfKey.add(own);
  });
  return short.map((key, i) => (several.has(key) ? `${names[i]} ${file[i]}:${line[i]}` : key));
}

export const trendsOf = remember((chunk: Chunks['trend'], model: Model): Trend[] => {
  const t = chunk.function_time;
  const { run } = model.index;
  const rowOfRun = new Map(run.id.map((id, i) => [id, i]));
  const trends = new Map<string, Trend>();
  keysOf(t).forEach((key, i) => {
    const at = rowOfRun.get(t.run_id[i]);
    if (at === undefined) return;
    const trend = trends.get(key) ?? { key, name: t.function[i]!, file: null, line: null, points: [], lastUs: 0, changeUs: null };
    trends.set(key, trend);
    [trend.file, trend.line] = [t.file[i], t.line[i]];
    trend.points.push({ run: at, us: t.us[i], compiles: t.compiles[i]!, recompiles: t.recompiles[i]!, processes: t.processes[i]! });
  });
  for (const trend of trends.values()) {
    trend.points.sort((a, b) => a.run - b.run);
    const timed = trend.points.flatMap(({ us }) => us ?? []);
    trend.lastUs = timed[timed.length - 1] ?? 0;
    if (timed.length > 1) trend.changeUs = trend.lastUs - timed[timed.length - 2];
  }
  return [...trends.values()];
});

// Those that a name, a file and a line, each if known, leave: lines only tell apart what the file does not.
export function trendsNamed(trends: Trend[], name: string, file: string | null, line: number | null): Trend[] {
  const named = trends.filter((trend) => trend.name === name);
  const inFile = named.filter((trend) => file === null || baseName(trend.file ?? '') === baseName(file));
  const found = inFile.length > 0 ? inFile : named;
  const onLine = found.filter((trend) => trend.line === line);
  return onLine.length === 1 ? onLine : found;
}
