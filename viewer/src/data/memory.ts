// Recordings of allocators: devices of snapshots, and of profiles with memory events.
import { baseName } from '../lib/format';
import { load, useAsync, type Chunks } from './chunks';
import type { Model } from './model';
import { measuredProfiles } from './profiles';
import type { ProfileLanes } from './slices';

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
    const host = t.kind[row] === 'kineto' ? (t.source[row] ?? '') : 'pinned memory';
    const device = t.device[row] === null ? host : `device ${t.device[row]}`;
    return [{ id: id!, row, name: [baseName(t.path[row] ?? ''), rank === null ? '' : `rank ${rank}`, device].filter(Boolean).join(', ') }];
  });
}

// That with the highest peak.
export function highestOf(model: Model): Recording | undefined {
  const peak = ({ row }: Recording) => model.index.memory.peak_bytes[row] ?? 0;
  return recordingsOf(model).reduce<Recording | undefined>((best, one) => (best && peak(best) >= peak(one) ? best : one), undefined);
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

// A recording on the axis of the timeline, in microseconds.
export interface MemoryLane {
  recording: Recording;
  memory: Memory;
  xs: number[];
  to: number;
  most: number;
}

const mostLanes = 4;

async function laneOf({ index: { memory: t } }: Model, recording: Recording): Promise<MemoryLane[]> {
  const memory = await load('memory', recording.id);
  const { xs, isTime } = axisOf(memory);
  const start = t.start_us[recording.row];
  if (!isTime || start === null) return [];
  const most = memory.point.size_bytes[peakOf(memory)] ?? 0;
  return [{ recording, memory, xs: xs.map((x) => start + x), to: start + Math.max(xs[xs.length - 1], t.span_us[recording.row] ?? 0), most }];
}

// Of what the timeline shows: a process, a profile, or all processes, of which the largest.
export function useMemoryLanes(model: Model, process: number | null, profile: number | null, profiles: ProfileLanes[]): MemoryLane[] {
  const t = model.index.memory;
  const processes = process !== null ? [process] : profile !== null ? [] : model.processes.map(({ id }) => id);
  const shown = new Set(profiles.map((own) => own.profile.id));
  const wanted = recordingsOf(model)
    .filter(({ row }) => t.start_us[row] !== null && (processes.includes(t.process_id[row]!) || shown.has(t.profile_id[row]!)))
    .sort((a, b) => (t.peak_bytes[b.row] ?? 0) - (t.peak_bytes[a.row] ?? 0))
    .slice(0, mostLanes);
  const found = useAsync(wanted.length > 0 ? `memory lanes ${wanted.map(({ id }) => id).join()}` : null, () =>
    Promise.all(wanted.map((one) => laneOf(model, one))),
  );
  return found.value?.flat() ?? none;
}
const none: MemoryLane[] = [];

// The address of a moment on the timeline, where the recording has times and its process or profile is shown there.
export function onTimeline(model: Model, { row }: Recording, memory: Memory, point: number): Record<string, number | null> | null {
  const t = model.index.memory;
  const { xs, isTime } = axisOf(memory);
  const start = t.start_us[row];
  const process = t.process_id[row];
  if (!isTime || start === null || (process === null && !measuredProfiles(model).some(({ id }) => id === t.profile_id[row]))) return null;
  const to = start + xs[xs.length - 1];
  return {
    process,
    profile: process === null ? t.profile_id[row] : null,
    from: Math.round(start),
    to: Math.round(to),
    t: Math.ceil(10 * (start + xs[point])) / 10,
  };
}
