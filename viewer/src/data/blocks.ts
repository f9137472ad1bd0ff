// Tables in chunks of 4096 ids: read one after the other, shown as they come.
import { useEffect, useState } from 'preact/hooks';
import { load, type Chunks } from './chunks';
import type { Model } from './model';

const blockRows = 4096;

export interface Rows<T> {
  rows: T[];
  done: boolean;
  error?: string;
}

export function useBlocks<S extends 'import_log' | 'torch_log', T>(model: Model, stem: S, rowsOf: (chunk: Chunks[S]) => T[]): Rows<T> {
  const [state, setState] = useState<Rows<T>>({ rows: [], done: false });
  useEffect(() => {
    let current = true;
    const first = model.counts.get(`${stem}_first`);
    const last = model.counts.get(`${stem}_last`);
    const run = async () => {
      const rows: T[] = [];
      if (typeof first === 'number' && typeof last === 'number' && (model.counts.get(stem) ?? 0) > 0) {
        for (let block = Math.floor(first / blockRows); block <= Math.floor(last / blockRows) && current; block++) {
          for (const row of rowsOf(await load(stem, block))) rows.push(row);
          if (current) setState((old) => (old.done ? old : { rows: rows.slice(), done: false }));
        }
      }
      if (current) setState({ rows, done: true });
    };
    run().catch((error: Error) => current && setState({ rows: [], done: true, error: error.message }));
    return () => {
      current = false;
    };
  }, [model]);
  return state;
}
