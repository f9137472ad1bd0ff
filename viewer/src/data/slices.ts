// The slices of a profile, as lanes of the timeline below those of its process.
import { load, type Chunks } from './chunks';
import { layOut, type Lane, type Row } from './lanes';
import type { Model } from './model';
import type { Profile } from './profiles';

type Table = Chunks['slices'];

const kinds = ['annotations', 'graphs', 'ops', 'kernels', 'copies'];
const calls = ['graph call', 'region', 'compiled function', 'compiled backward', 'wrapper', 'graph call on the device', 'graph call'];

function titleOf(t: Table, track: number): string {
  const kind = kinds[t.track.kind[track] ?? 0] ?? '';
  const device = t.track.device[track];
  if (device !== null) return `${kind} dev ${device}${t.track.stream[track] === null ? '' : `:${t.track.stream[track]}`}`;
  return t.track.tid[track] === null ? kind : `${kind} ${t.track.tid[track]}`;
}

// Graphs are named by their compile; the profile names them by a cache key.
function graphNames(model: Model, graphs: Chunks['graphs']): Map<number, string> {
  const g = graphs.graph;
  return new Map(g.id.map((id, i) => [id!, [model.compileById.get(g.compile_id[i]!)?.title, g.direction[i]].filter(Boolean).join(' ')]));
}

function rowsOf(t: Table, names: Map<number, string>, compileOf: Map<number, number>): Row[][] {
  const rows: Row[][] = t.track.kind.map(() => []);
  const start = t.span.start_us[0] ?? 0;
  for (let i = 0; i < t.slice.rows; i++) {
    const graph = t.slice.graph_id[i];
    const call = t.slice.call[i];
    const own = t.slice.name[i] ?? '';
    const called = graph === null ? own : (names.get(graph) ?? '');
    const name = call === null ? own : call === 0 || call === 1 || call === 5 || call === 6 ? `${calls[call]} ${called || own}` : own || calls[call] || '';
    rows[t.slice.track[i]!].push({
      name,
      start: start + t.slice.start_ns[i]! / 1000,
      length: t.slice.duration_ns[i]! / 1000,
      id: i,
      compileId: graph === null ? null : (compileOf.get(graph) ?? null),
      phase: 'X',
    });
  }
  return rows;
}

export interface ProfileLanes {
  lanes: Lane[];
  profile: Profile;
  prefix: string; // of the lanes' titles: "2: " of the second profile of several
  span: { from: number; to: number; slices: number; kept: number; shortestUs: number; stretchUs: number; tracks: number; shownTracks: number };
}

export async function loadProfileLanes(model: Model, profile: Profile, prefix: string): Promise<ProfileLanes> {
  const [t, graphs] = await Promise.all([load('slices', profile.id), load('graphs')]);
  const compileOf = new Map(graphs.graph.id.map((id, i) => [id!, graphs.graph.compile_id[i]!]));
  const rows = rowsOf(t, graphNames(model, graphs), compileOf);
  const start = t.span.start_us[0] ?? 0;
  const stretchUs = (t.span.stretch_ns[0] ?? 1) / 1000;
  const strips = rows.map(() => ({ from: start, stretchUs, at: [] as number[], count: [] as number[], us: [] as number[] }));
  t.strip.track.forEach((track, i) => {
    const strip = strips[track!];
    strip.at.push(t.strip.stretch[i]!);
    strip.count.push(t.strip.count[i]!);
    strip.us.push(t.strip.ns[i]! / 1000);
  });
  const lanes = rows.flatMap((own, track) => {
    const title = prefix + titleOf(t, track);
    const about = [profile.name, t.track.thread_name[track]].filter(Boolean).join(', ');
    const lane = layOut(own, { title, about, process: profile.process, profile });
    if (strips[track].at.length > 0) lane.strip = strips[track];
    return own.length > 0 || lane.strip ? [lane] : [];
  });
  let to = start;
  for (const lane of lanes) for (let i = 0; i < lane.start.length; i++) to = Math.max(to, lane.start[i] + lane.length[i]);
  const span = {
    from: start,
    to,
    slices: t.span.slices[0] ?? 0,
    kept: t.span.kept[0] ?? 0,
    shortestUs: (t.span.shortest_ns[0] ?? 0) / 1000,
    stretchUs,
    tracks: t.span.tracks[0] ?? 0,
    shownTracks: t.track.rows,
  };
  return { lanes, profile, prefix, span };
}
