// Loads chunks of data: from data/*.js next to the page (classic scripts, because fetch is refused on file://; large ones packed), or over HTTP from
// `tlparse serve`. A chunk is loaded once and kept. The database of `tlparse watch --serve` grows: all chunks that are shown are of one
// revision of it, and `refresh` replaces all chunks in use by those of a newer revision, loaded in one request.
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type * as Wire from '../../generated/chunks';
import { gunzip } from '../lib/gunzip';
import { noteChanges } from './changes';

type Columns<T> = T extends { numbers: infer N; texts: infer S }
  ? { rows: number } & { [K in keyof N]: (number | null)[] } & { [K in keyof S]: (string | null)[] }
  : never;
type Tables<C> = C extends { tables: infer T } ? { [K in keyof T]: Columns<T[K]> } : never;

export interface Chunks {
  index: Tables<Wire.IndexChunk>;
  compiles: Tables<Wire.CompilesChunk>;
  problems: Tables<Wire.ProblemsChunk>;
  findings: Tables<Wire.FindingsChunk>;
  graphs: Tables<Wire.GraphsChunk>;
  kernels: Tables<Wire.KernelsChunk>;
  compile: Tables<Wire.CompileChunk>;
  process: Tables<Wire.ProcessChunk>;
  guards: Tables<Wire.GuardsChunk>;
  provenance: Tables<Wire.ProvenanceChunk>;
  cache: Tables<Wire.CacheChunk>;
  sets: Tables<Wire.SetsChunk>;
  components: Tables<Wire.ComponentsChunk>;
  schedules: Tables<Wire.SchedulesChunk>;
  events: Tables<Wire.EventsChunk>;
  args: Tables<Wire.ArgsChunk>;
  import_log: Tables<Wire.ImportLogChunk>;
  torch_log: Tables<Wire.TorchLogChunk>;
  export: Tables<Wire.ExportChunk>;
  source: Tables<Wire.SourceChunk>;
  cost: Tables<Wire.CostChunk>;
  slices: Tables<Wire.SlicesChunk>;
  time: Tables<Wire.TimeChunk>;
  memory: Tables<Wire.MemoryChunk>;
  tuning: Tables<Wire.TuningChunk>;
  trend: Tables<Wire.TrendChunk>;
  diff: Tables<Wire.DiffChunk>;
  collectives: Tables<Wire.CollectivesChunk>;
  text: Tables<Wire.TextChunk>;
  search: Tables<Wire.SearchChunk>;
}
export type Stem = keyof Chunks;

interface WireTable {
  rows: number;
  numbers: Record<string, (number | null)[]>;
  texts: Record<string, (number | null)[]>;
}
interface WireChunk {
  strings: string[];
  tables: Record<string, WireTable>;
}

interface Entry {
  promise: Promise<unknown>;
  value?: unknown;
  error?: Error;
}

declare global {
  interface Window {
    tlparse_chunk: (name: string, document: WireChunk | string) => void;
  }
}

const { source, run: followedRun } = document.documentElement.dataset;
export const isServed = source !== 'static';
// Of a watch: the run that it follows; its database may hold others.
export const isLive = source === 'live' && !new URLSearchParams(location.search).has('run');
// The address of another run, of this database or another one that is served.
export function searchOf(run: number, database?: number | null): string {
  const db = database ?? new URLSearchParams(location.search).get('db');
  if (source === 'live' && String(run) === followedRun) return '';
  return `?${db === null ? '' : `db=${db}&`}run=${run}`;
}
// What a request of the API asks of: the run and the database that the address chooses.
export function ofRun(query: Record<string, string> = {}): string {
  const chosen = new URLSearchParams(location.search);
  const pairs = ['db', 'run'].flatMap((name) => (chosen.has(name) ? [[name, chosen.get(name)!]] : []));
  const text = new URLSearchParams([...Object.entries(query), ...pairs]).toString();
  return text && `?${text}`;
}

let entries = new Map<string, Entry>();
const arrived = new Map<string, WireChunk | string>();
window.tlparse_chunk = (name, document) => void arrived.set(name, document);

function decode(chunk: WireChunk): unknown {
  const tables: Record<string, unknown> = {};
  for (const [name, table] of Object.entries(chunk.tables)) {
    const columns: Record<string, unknown> = { rows: table.rows, ...table.numbers };
    for (const [column, cells] of Object.entries(table.texts)) {
      columns[column] = cells.map((cell) => (cell === null ? null : chunk.strings[cell]));
    }
    tables[name] = columns;
  }
  return tables;
}

// A document that was packed: base64 of a gzip stream.
async function unpack(packed: string): Promise<WireChunk> {
  const letters = atob(packed);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = letters.charCodeAt(i);
  return JSON.parse(await gunzip(bytes)) as WireChunk;
}

function loadScript(name: string): Promise<WireChunk> {
  return new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.src = `data/${name.replace('/', '-')}.js`;
    script.onload = () => {
      script.remove();
      const chunk = arrived.get(name);
      arrived.delete(name);
      if (chunk) resolve(typeof chunk === 'string' ? unpack(chunk) : chunk);
      else reject(new Error(`data/${name.replace('/', '-')}.js does not hold ${name}`));
    };
    script.onerror = () => {
      script.remove();
      reject(new Error(`cannot read data/${name.replace('/', '-')}.js: is the data folder still next to index.html?`));
    };
    document.head.append(script);
  });
}

async function loadServed(name: string): Promise<WireChunk> {
  const response = await fetch(`api/chunk/${name}${ofRun()}`);
  if (!response.ok) throw new Error((await response.text()) || `${response.status} for ${name}`);
  return (await response.json()) as WireChunk;
}

// ---- of a watch

interface Together {
  state: string;
  revision: number;
  looked_at_us: number;
  chunks: Record<string, WireChunk>;
  errors: Record<string, string>;
}

export interface Shown {
  state: string; // of the database: equal for equal rows
  revision: number;
  lookedAtUs: number;
}
let shown: Shown | undefined;
export const shownState = (): Shown | undefined => shown;

export const pageName = Math.random().toString(36).slice(2, 12);

let epoch = 0; // how often all chunks were replaced
export const epochNow = (): number => epoch;
const listeners = new Set<() => void>();
let used = new Set<string>(); // since the latest epoch
const mostTogether = 150; // chunks

const nameOf = (stem: string, part?: string | number) => (part === undefined ? stem : `${stem}/${part}`);
const isText = (name: string) => name.startsWith('text/'); // named by its content, which never changes

async function askTogether(names: string[]): Promise<Together> {
  let response: Response;
  try {
    response = await fetch(`api/chunks?page=${pageName}&names=${names.map(encodeURIComponent).join(',')}`);
  } catch {
    throw new Error('tlparse does not answer, and this was not loaded before.');
  }
  if (!response.ok) throw new Error((await response.text()) || `${response.status} for ${names[0]}`);
  return (await response.json()) as Together;
}

function take(answer: Together, names: string[]): void {
  const isSame = answer.state === shown?.state;
  const next = new Map([...entries].filter(([name]) => isSame || isText(name)));
  const values = new Map<string, unknown>();
  for (const name of names) {
    const chunk = answer.chunks[name];
    const error = new Error(answer.errors[name] ?? `there is no ${name}`);
    const value = chunk && decode(chunk);
    const promise = chunk ? Promise.resolve(value) : Promise.reject(error);
    promise.catch(() => undefined);
    next.set(name, { promise, value, error: chunk ? undefined : error });
    if (chunk) values.set(name, value);
  }
  noteChanges(new Map([...entries].map(([name, entry]) => [name, entry.value])), values);
  entries = next;
  shown = { state: answer.state, revision: answer.revision, lookedAtUs: answer.looked_at_us };
  used = new Set();
  epoch++;
  for (const listener of [...listeners]) listener();
}

let refreshing: Promise<void> | undefined;

// Loads all chunks in use from the current revision; only `some` of them if the revision is that of the others.
export function refresh(some?: Stem): Promise<void> {
  return (refreshing ??= (async () => {
    try {
      await null; // chunks that are requested in the same task are loaded in this request
      if (some) {
        const answer = await askTogether([some]);
        if (answer.state === shown?.state) return take(answer, [some]);
      }
      const names = [...new Set(['index', 'compiles', ...used])].filter((name) => !isText(name)).slice(0, mostTogether);
      take(await askTogether(names), names);
    } finally {
      refreshing = undefined;
    }
  })());
}

async function loadLive(name: string): Promise<unknown> {
  if (shown && !refreshing) {
    const answer = await askTogether([name]);
    if (!(name in answer.chunks)) throw new Error(answer.errors[name] ?? `there is no ${name}`);
    if (answer.state === shown.state || isText(name)) return decode(answer.chunks[name]);
  }
  // The database has a newer revision than the other chunks.
  await refresh();
  return entries.get(name)?.value !== undefined ? entries.get(name)!.promise : loadLive(name);
}

function start(name: string): Promise<unknown> {
  return isLive ? loadLive(name) : (isServed ? loadServed(name) : loadScript(name)).then(decode);
}

export function load<S extends Stem>(stem: S, part?: string | number): Promise<Chunks[S]> {
  const name = nameOf(stem, part);
  if (isLive) used.add(name);
  let entry = entries.get(name);
  if (!entry) {
    const created: Entry = {
      promise: start(name).then(
        (value) => (created.value = value),
        (error: Error) => {
          created.error = error;
          throw error;
        },
      ),
    };
    created.promise.catch(() => undefined);
    entry = created;
    entries.set(name, entry);
  }
  return entry.promise as Promise<Chunks[S]>;
}

// Of a page of files: loads a chunk without keeping it.
export async function loadOnce<S extends Stem>(stem: S, part: string | number): Promise<Chunks[S]> {
  return (loaded(stem, part) ?? decode(await loadScript(nameOf(stem, part)))) as Chunks[S];
}

// Returns what is already loaded, without waiting.
export function loaded<S extends Stem>(stem: S, part?: string | number): Chunks[S] | undefined {
  const name = nameOf(stem, part);
  if (isLive) used.add(name);
  return entries.get(name)?.value as Chunks[S] | undefined;
}

export interface Pending<T> {
  value?: T;
  error?: Error;
}

export function useEpoch(): number {
  const [now, setNow] = useState(epoch);
  useLayoutEffect(() => {
    const listener = () => setNow(epoch);
    listener(); // the value may have changed since it was drawn
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
  return now;
}

// Calls `start` again when `key` changes, before the browser draws. The value of an earlier key is never shown for a later one; a
// value that `ready` returns is shown at once. During a refresh the old value stays.
export function useAsync<T>(key: string | null, start: () => Promise<T>, ready?: () => T | undefined): Pending<T> {
  const [state, setState] = useState<Pending<T> & { key: string | null; epoch: number }>({ key: null, epoch: 0 });
  const latest = useRef<{ key: string; value: T } | null>(null);
  useEpoch();
  const settled = key !== null && state.key === key && state.epoch === epoch;
  const value = key === null || settled ? undefined : ready?.();
  useLayoutEffect(() => {
    if (key === null || settled || value !== undefined) return;
    let current = true;
    const of = epoch;
    start().then(
      (result) => current && setState({ key, epoch: of, value: result }),
      (error: Error) => current && setState({ key, epoch: of, error }),
    );
    return () => {
      current = false;
    };
  }, [key, epoch]);
  const now = settled ? state.value : value;
  if (key !== null && now !== undefined) latest.current = { key, value: now };
  if (settled) return state;
  if (value !== undefined) return { value };
  return key !== null && latest.current?.key === key ? { value: latest.current.value } : {};
}

export function useChunk<S extends Stem>(stem: S | null, part?: string | number): Pending<Chunks[S]> {
  return useAsync(
    stem === null ? null : `${stem}/${part ?? ''}`,
    () => load(stem as S, part),
    () => loaded(stem as S, part),
  );
}
