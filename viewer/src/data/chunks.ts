// Loads chunks of data: from data/*.js next to the page (classic scripts, because fetch is refused on file://), or over HTTP from
// `tlparse serve`. A chunk is loaded once and kept.
import { useLayoutEffect, useState } from 'preact/hooks';
import type * as Wire from '../../generated/chunks';

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
  export: Tables<Wire.ExportChunk>;
  cost: Tables<Wire.CostChunk>;
  slices: Tables<Wire.SlicesChunk>;
  collectives: Tables<Wire.CollectivesChunk>;
  text: Tables<Wire.TextChunk>;
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
    tlparse_chunk: (name: string, document: WireChunk) => void;
  }
}

export const isServed = document.documentElement.dataset.source === 'api';

const entries = new Map<string, Entry>();
const arrived = new Map<string, WireChunk>();
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

function loadScript(name: string): Promise<WireChunk> {
  return new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.src = `data/${name.replace('/', '-')}.js`;
    script.onload = () => {
      script.remove();
      const chunk = arrived.get(name);
      arrived.delete(name);
      if (chunk) resolve(chunk);
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
  const run = new URLSearchParams(location.search).get('run');
  const response = await fetch(`api/chunk/${name}${run ? `?run=${encodeURIComponent(run)}` : ''}`);
  if (!response.ok) throw new Error((await response.text()) || `${response.status} for ${name}`);
  return (await response.json()) as WireChunk;
}

export function load<S extends Stem>(stem: S, part?: string | number): Promise<Chunks[S]> {
  const name = part === undefined ? stem : `${stem}/${part}`;
  let entry = entries.get(name);
  if (!entry) {
    const created: Entry = {
      promise: (isServed ? loadServed(name) : loadScript(name)).then(
        (chunk) => (created.value = decode(chunk)),
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

// Returns what is already loaded, without waiting.
export function loaded<S extends Stem>(stem: S, part?: string | number): Chunks[S] | undefined {
  return entries.get(part === undefined ? stem : `${stem}/${part}`)?.value as Chunks[S] | undefined;
}

export interface Pending<T> {
  value?: T;
  error?: Error;
}

// Calls `start` again when `key` changes, before the browser draws. The value of an earlier key is never shown for a later one, and
// what `ready` has already is not waited for.
export function useAsync<T>(key: string | null, start: () => Promise<T>, ready?: () => T | undefined): Pending<T> {
  const [state, setState] = useState<Pending<T> & { key: string | null }>({ key: null });
  const settled = key !== null && state.key === key;
  const value = key === null || settled ? undefined : ready?.();
  useLayoutEffect(() => {
    if (key === null || settled || value !== undefined) return;
    let current = true;
    start().then(
      (result) => current && setState({ key, value: result }),
      (error: Error) => current && setState({ key, error }),
    );
    return () => {
      current = false;
    };
  }, [key]);
  if (settled) return state;
  return value === undefined ? {} : { value };
}

export function useChunk<S extends Stem>(stem: S | null, part?: string | number): Pending<Chunks[S]> {
  return useAsync(
    stem === null ? null : `${stem}/${part ?? ''}`,
    () => load(stem as S, part),
    () => loaded(stem as S, part),
  );
}
