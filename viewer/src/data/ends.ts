// How processes ended, in words.
import type { Chunks } from './chunks';
import type { Process } from './model';

type Groups = Chunks['index']['process_group'];

// "killed, ended with rank 2"
export function wordsOfEnd(t: Groups, row: number): string {
  const kind = (t.end_kind[row] ?? '').replaceAll('_', ' ');
  if (t.ended_by[row] !== null) return `${kind}, ended ${t.ended_long_after[row] === 1 ? 'after' : 'with'} ${t.ended_by[row]}`;
  return t.is_bystander[row] === 1 ? `${kind}, ended with another` : kind;
}

// The row of the processes that ended as this one did; -1: it is not among those that the index lists.
export function groupOf(t: Groups, process: Process): number {
  return t.process_ids.findIndex((ids) => (ids ?? '').split(',').includes(String(process.id)));
}
