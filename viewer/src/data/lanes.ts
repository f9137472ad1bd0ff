// Chromium events of processes, laid out for drawing: a lane per process, events that are open at once below each other.
import { useEffect, useState } from 'preact/hooks';
import { load, type Chunks } from './chunks';
import type { Model, Process } from './model';

// Events of one process, laid out: depth is how many events are open around it.
export interface Lane {
  process: Process;
  names: string[];
  start: Float64Array;
  length: Float64Array; // 0: instant
  depth: Uint8Array;
  recordId: number[];
  compileId: (number | null)[];
  phase: string[];
  depths: number;
  longest: Float64Array; // per depth: the longest event, so that a search from the left can stop
  byDepth: Int32Array[]; // rows of each depth, by start
}

const maxDepth = 24;

function layOut(process: Process, chunk: Chunks['events']): Lane {
  const t = chunk.event;
  const rows: number[] = [];
  for (let i = 0; i < t.rows; i++) if (t.start_us[i] !== null) rows.push(i);
  // By start, what contains others first.
  rows.sort((a, b) => t.start_us[a]! - t.start_us[b]! || (t.duration_us[b] ?? -1) - (t.duration_us[a] ?? -1));
  const lane: Lane = { process, names: rows.map((i) => t.name[i] ?? ''), start: new Float64Array(rows.length), length: new Float64Array(rows.length), depth: new Uint8Array(rows.length), recordId: rows.map((i) => t.record_id[i]!), compileId: rows.map((i) => t.compile_id[i]), phase: rows.map((i) => String.fromCharCode(t.phase[i] ?? 0)), depths: 1, longest: new Float64Array(maxDepth), byDepth: [] };
  const open: number[] = []; // ends of the events that are open
  const lists: number[][] = [];
  rows.forEach((row, i) => {
    const start = t.start_us[row]!;
    const length = t.duration_us[row] ?? 0;
    // Events of compile threads overlap without nesting: each takes the first depth that is free.
    let depth = 0;
    while (depth < maxDepth - 1 && open[depth] !== undefined && open[depth] > start) depth++;
    if (length > 0) {
      open[depth] = start + length;
      // What is deeper has ended, or it would not have been free.
      for (let d = depth + 1; d < open.length; d++) if (open[d] <= start) open[d] = -Infinity;
    }
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

// The lanes of all processes, or of one, as far as they are loaded.
export function useLanes(model: Model, only: number | null): { lanes: Lane[]; total: number; error?: string } {
  const [state, setState] = useState<{ lanes: Lane[]; total: number; error?: string }>({ lanes: [], total: model.processes.length });
  useEffect(() => {
    let current = true;
    const wanted = model.processes.filter((process) => only === null || process.id === only);
    const run = async () => {
      const lanes: Lane[] = [];
      let shown = performance.now();
      for (const process of wanted) {
        lanes.push(layOut(process, await load('events', process.id)));
        if (!current) return;
        if (performance.now() - shown > 150) {
          setState({ lanes: lanes.slice(), total: wanted.length });
          shown = performance.now();
          // Let the browser draw and take input between processes.
          await new Promise((resolve) => setTimeout(resolve));
        }
      }
      setState({ lanes, total: wanted.length });
    };
    run().catch((error: Error) => current && setState({ lanes: [], total: 0, error: error.message }));
    return () => {
      current = false;
    };
  }, [model, only]);
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
