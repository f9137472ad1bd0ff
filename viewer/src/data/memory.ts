// Recordings of allocators: devices of snapshots, and of profiles with memory events.
import { baseName } from '../lib/format';
import type { Chunks } from './chunks';
import type { Model } from './model';

export type Memory = Chunks['memory'];

// What stays longest lies lowest.
export const categories = [
  { key: 'parameter', about: 'allocated while a module was made, moved or loaded' },
  { key: 'optimizer', about: 'allocated in a step of an optimizer: its state and temporary tensors' },
  { key: 'compiled', about: 'allocated while a compiled graph or region ran' },
  { key: 'forward', about: 'allocated while a module ran forward: activations and outputs' },
  { key: 'backward', about: 'allocated by autograd in a backward: gradients and temporary tensors' },
  { key: 'other', about: 'allocated by other code' },
  { key: 'unknown', about: 'neither a stack nor anything that was open is known' },
] as const;

export interface Recording {
  id: number;
  row: number; // in the index
  name: string;
}

// Those of the chosen rank, or all.
export function recordingsOf(model: Model): Recording[] {
  const t = model.index.memory;
  return t.id.flatMap((id, row) => {
    const rank = t.rank[row];
    if (model.rank !== null && rank !== null && rank !== model.rank) return [];
    const device = t.device[row] === null ? (t.kind[row] === 'kineto' ? (t.source[row] ?? '') : '') : `device ${t.device[row]}`;
    return [{ id: id!, row, name: [baseName(t.path[row] ?? ''), rank === null ? '' : `rank ${rank}`, device].filter(Boolean).join(', ') }];
  });
}

// Where the points lie: by time, or by event, where some have no time.
export function axisOf(memory: Memory): { xs: number[]; isTime: boolean } {
  const { time_us: times, ordinal } = memory.point;
  const isTime = times.every((time) => time !== null) && times[0] !== times[times.length - 1];
  return { xs: (isTime ? times : ordinal).map((x) => x ?? 0), isTime };
}

// The point at a position: the last one before it.
export function pointAt(xs: number[], x: number): number {
  let at = 0;
  while (at + 1 < xs.length && xs[at + 1] <= x) at++;
  return at;
}

// The first of the points that hold most; of a recording that is its peak.
export const peakOf = (memory: Memory): number =>
  memory.point.size_bytes.reduce<number>((best, size, i, all) => ((size ?? 0) > (all[best] ?? 0) ? i : best), 0);
