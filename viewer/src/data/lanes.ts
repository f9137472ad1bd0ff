// The lanes of the timeline: one per process with its Chromium events, and lanes of its profiles. Slices that are open at the same time
// are drawn below each other.
import { useEffect, useState } from 'preact/hooks';
import { load, type Chunks } from './chunks';
import { chunkOfProcess, type Model, type Process } from './model';
import { phaseInside } from './phases';
import { measuredProfiles, type Profile } from './profiles';
import { loadProfileLanes, type ProfileLanes } from './slices';

// One slice before it is laid out.
export interface Row {
  name: string;
  start: number;
  length: number; // 0: instant
  id: number; // record, or row of the profile's slices
  compileId: number | null;
  phase: string;
}

// Slices that are not drawn one by one: how many began in each stretch of time, and how long they ran.
export interface Strip {
  from: number;
  stretchUs: number;
  at: number[]; // ascending
  count: number[];
  us: number[];
}

// Depth is how many slices are open around one.
export interface Lane {
  title: string;
  about: string;
  process: Process | null;
  profile: Profile | null; // null: the events of the log
  names: string[];
  start: Float64Array;
  length: Float64Array;
  depth: Uint8Array;
  color: Uint8Array;
  id: Int32Array;
  compileId: (number | null)[];
  phase: string[];
  depths: number;
  longest: Float64Array; // per depth: the longest slice, so that a search from the left can stop
  byDepth: Int32Array[]; // slices of each depth, by start
  strip?: Strip;
}

const maxDepth = 24;
export const colorCount = 9;
const nameColors = 8; // of slices that belong to no phase

function colorOf(name: string): number {
  let hash = 0;
  for (let i = 0; i < name.length; i++) hash = (hash * 31 + name.charCodeAt(i)) | 0;
  return ((hash % nameColors) + nameColors) % nameColors;
}

// Events of a compile have the colours that their phases have everywhere, in a light shade; others the rest.
const colorOfPhase = [null, 0, 1, 2, 8, 3];
function colorOfEvent(name: string, phase: number): number {
  return colorOfPhase[phase] ?? 4 + (colorOf(name) % 4);
}

export function layOut(rows: Row[], of: Pick<Lane, 'title' | 'about' | 'process' | 'profile'>): Lane {
  // By start; a slice that contains others comes first.
  rows.sort((a, b) => a.start - b.start || b.length - a.length);
  const n = rows.length;
  const lane: Lane = {
    ...of,
    names: rows.map((row) => row.name),
    start: new Float64Array(n),
    length: new Float64Array(n),
    depth: new Uint8Array(n),
    color: new Uint8Array(n),
    id: Int32Array.from(rows, (row) => row.id),
    compileId: rows.map((row) => row.compileId),
    phase: rows.map((row) => row.phase),
    depths: 1,
    longest: new Float64Array(maxDepth),
    byDepth: [],
  };
  const open: number[] = []; // ends of the slices that are open
  const lists: number[][] = [];
  const phases: number[] = []; // of the slices that are open
  rows.forEach(({ name, start, length }, i) => {
    // Events of compile threads overlap without nesting: each takes the first depth that is free.
    let depth = 0;
    while (depth < maxDepth - 1 && open[depth] !== undefined && open[depth] > start) depth++;
    if (length > 0) {
      open[depth] = start + length;
      // What is deeper has ended, or it would not have been free.
      for (let d = depth + 1; d < open.length; d++) if (open[d] <= start) open[d] = -Infinity;
    }
    const phase = phaseInside(name, phases[depth - 1] ?? 0);
    if (length > 0) phases[depth] = phase;
    lane.color[i] = of.profile ? colorOf(name) : colorOfEvent(name, phase);
    lane.start[i] = start;
    lane.length[i] = length;
    lane.depth[i] = depth;
    lane.depths = Math.max(lane.depths, depth + 1);
    lane.longest[depth] = Math.max(lane.longest[depth], length);
    (lists[depth] ??= []).push(i);
  });
  for (let depth = 0; depth < lane.depths; depth++) lane.byDepth.push(Int32Array.from(lists[depth] ?? []));
  return lane;
}

function eventsOf(process: Process, chunk: Chunks['events']): Lane {
  const t = chunk.event;
  const rows: Row[] = [];
  for (let i = 0; i < t.rows; i++) {
    if (t.start_us[i] === null) continue;
    rows.push({
      name: t.name[i] ?? '',
      start: t.start_us[i]!,
      length: t.duration_us[i] ?? 0,
      id: t.record_id[i]!,
      compileId: t.compile_id[i],
      phase: String.fromCharCode(t.phase[i] ?? 0),
    });
  }
  return layOut(rows, { title: process.laneName, about: process.name, process, profile: null });
}

export interface Lanes {
  lanes: Lane[];
  loaded: number;
  total: number;
  profiles: ProfileLanes[];
  others: number; // profiles that are not shown, as several processes are
  error?: string;
}

// One process or one profile, or everything: then only events, unless there is one profile alone or all are of the only process.
export interface Wanted {
  process: number | null;
  profile: number | null;
}

// The loaded lanes of all processes, or of one.
export function useLanes(model: Model, { process: only, profile: onlyProfile }: Wanted): Lanes {
  const [state, setState] = useState<Lanes>({ lanes: [], loaded: 0, total: 1, profiles: [], others: 0 });
  useEffect(() => {
    let current = true;
    const all = measuredProfiles(model);
    const wanted = model.processes.filter((process) => onlyProfile === null && (only === null || process.id === only));
    const isOne = all.length === 1 || (model.processes.length === 1 && all.every((profile) => profile.process !== null));
    const own = all.filter((profile) => (onlyProfile !== null ? profile.id === onlyProfile : only !== null ? profile.process?.id === only : isOne));
    own.sort((a, b) => (a.startUs ?? 0) - (b.startUs ?? 0));
    const total = wanted.length + own.length;
    const run = async () => {
      const lanes: Lane[] = [];
      const profiles: ProfileLanes[] = [];
      let loaded = 0;
      let shown = performance.now();
      const show = () => current && setState({ lanes: lanes.slice(), loaded, total, profiles: profiles.slice(), others: all.length - own.length });
      for (const process of wanted) {
        const lane = eventsOf(process, await load('events', chunkOfProcess(model.index, 'events', process.id)));
        if (!current) return;
        if (lane.start.length > 0 || own.length === 0) lanes.push(lane);
        loaded++;
        if (performance.now() - shown > 150) {
          show();
          shown = performance.now();
          // Let the browser draw and take input between processes.
          await new Promise((resolve) => setTimeout(resolve));
        }
      }
      for (const [i, profile] of own.entries()) {
        const found = await loadProfileLanes(model, profile, own.length > 1 ? `${i + 1}: ` : '');
        lanes.push(...found.lanes);
        profiles.push(found);
        loaded++;
      }
      show();
    };
    setState((old) => ({ ...old, loaded: 0, total }));
    run().catch((error: Error) => current && setState({ lanes: [], loaded: 0, total: 0, profiles: [], others: 0, error: error.message }));
    return () => {
      current = false;
    };
  }, [model, only, onlyProfile]);
  return state;
}

// From the first event to the last, with a margin; null if there is nothing.
export function boundsOf(lanes: Lane[]): { from: number; to: number } | null {
  let from = Infinity;
  let to = -Infinity;
  for (const lane of lanes) {
    for (let i = 0; i < lane.start.length; i++) {
      from = Math.min(from, lane.start[i]);
      to = Math.max(to, lane.start[i] + lane.length[i]);
    }
  }
  const margin = (to - from) * 0.01;
  return from < to ? { from: from - margin, to: to + margin } : null;
}

// The first of the rows that starts at `at` or later.
export function lowerBound(lane: Lane, rows: Int32Array, at: number): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lane.start[rows[middle]] < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

// The event of a depth that is open at a time, give or take the slack; -1 if none is.
export function eventAt(lane: Lane, depth: number, time: number, slack: number): number {
  const rows = lane.byDepth[depth];
  let best = -1;
  for (let r = lowerBound(lane, rows, time - lane.longest[depth] - slack); r < rows.length; r++) {
    const i = rows[r];
    if (lane.start[i] > time + slack) break;
    if (time >= lane.start[i] - slack && time <= lane.start[i] + lane.length[i] + slack) best = i;
  }
  return best;
}
