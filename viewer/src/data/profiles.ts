// Profiles and recorder dumps of the run: what each measured, and its problems.
import { loaded, type Chunks } from './chunks';
import { plural, duration, baseName } from '../lib/format';
import { isShown, type Model, type Process } from './model';

export interface Profile {
  id: number;
  process: Process | null; // null: processNote says why
  rank: number | null;
  name: string; // "rank 0", with the file's name where that does not tell
  path: string;
  kind: string;
  startUs: number | null;
  endUs: number | null;
  overlapsId: number | null;
  eventCount: number;
  keptCount: number;
  kernels: number;
  ops: number;
  graphCalls: number;
  collectives: number;
  problems: number;
  problem: string | null; // the first of them
  processNote: string | null;
}

// Whether they hold collectives with their numbers, by which ranks are compared.
export function measuresRanks({ counts }: Model): boolean {
  return (counts.get('has_issued') ?? 0) > 0;
}

const measuring = new Set(['kineto', 'nsys', 'libtrace']);

function read(index: Chunks['index'], processById: Map<number, Process>): Profile[] {
  const t = index.profile;
  return t.id.map((id, i) => {
    const process = t.process_id[i] === null ? null : (processById.get(t.process_id[i]!) ?? null);
    const rank = t.rank[i];
    return {
      id: id!,
      process,
      rank,
      // What is of the whole job is of no rank.
      name: `${process ? `${process.name}: ` : rank !== null ? `rank ${rank}: ` : t.kind[i] === 'run' ? '' : 'no rank: '}${baseName(t.path[i] ?? '')}`,
      path: t.path[i] ?? '',
      kind: t.kind[i] ?? '',
      startUs: t.start_us[i],
      endUs: t.end_us[i],
      overlapsId: t.overlaps_id[i],
      eventCount: t.event_count[i] ?? 0,
      keptCount: t.kept_count[i] ?? 0,
      kernels: t.kernels[i] ?? 0,
      ops: t.ops[i] ?? 0,
      graphCalls: t.graph_calls[i] ?? 0,
      collectives: t.collectives[i] ?? 0,
      problems: t.problems[i] ?? 0,
      problem: t.problem[i],
      processNote: t.process_note[i],
    };
  });
}

export function profilesOf(model: Model): Profile[] {
  return (model.profiles ??= read(model.index, model.processById));
}

// Those that measured runs of code (dumps and lists have no cost), of the launch and rank that are chosen at the top.
export function measuredProfiles(model: Model): Profile[] {
  return profilesOf(model).filter(
    (profile) =>
      isMeasured(profile) && isShown(model, { launch: profile.process?.launch ?? model.launch, rank: profile.rank ?? profile.process?.rank ?? null }),
  );
}

// The one with the most kernels.
export function fullestProfile(model: Model): Profile | undefined {
  return measuredProfiles(model).reduce<Profile | undefined>(
    (most, profile) => (most === undefined || profile.kernels > most.kernels || (profile.kernels === most.kernels && profile.ops > most.ops) ? profile : most),
    undefined,
  );
}

export function isMeasured(profile: Profile): boolean {
  return measuring.has(profile.kind) && profile.kernels + profile.ops + profile.graphCalls > 0;
}

const rowOfKind: Record<string, readonly [string, string]> = {
  flight_recorder: ['call', 'calls'],
  memory_snapshot: ['event', 'events'],
  torch_logs: ['line', 'lines'],
  run: ['entry', 'entries'],
};
const nameOfKind: Record<string, string> = {
  flight_recorder: 'recorder dump',
  kineto: 'profile',
  nsys: 'profile (nsys)',
  libtrace: 'profile (libtrace)',
  memory_snapshot: 'memory snapshot',
  torch_logs: 'text log',
  run: 'ends and output',
};
export const kindText = (profile: Profile) => nameOfKind[profile.kind] ?? profile.kind.replaceAll('_', ' ');
export function holdsText(profile: Profile): string {
  const parts: [number, string, string][] = [
    [profile.kernels, 'kernel', 'kernels'],
    [profile.graphCalls, 'graph call', 'graph calls'],
    [profile.ops, 'op', 'ops'],
    [profile.collectives, 'collective', 'collectives'],
  ];
  const held = parts.flatMap(([n, one, many]) => (n > 0 ? [plural(n, one, many)] : []));
  return held.join(', ') || plural(profile.keptCount, ...(rowOfKind[profile.kind] ?? (['row', 'rows'] as const)));
}

export function hasMeasuredRuns(): boolean {
  const t = loaded('index')?.profile;
  return t !== undefined && t.kind.some((kind, i) => measuring.has(kind ?? '') && (t.kernels[i] ?? 0) + (t.ops[i] ?? 0) + (t.graph_calls[i] ?? 0) > 0);
}

// What the costs of a profile are counted over: "3 steps (4–6), 87.3 ms".
export function windowText(cost: Chunks['cost']): string {
  const w = cost.window;
  if (w.rows === 0) return '';
  const [first, last] = [w.first_step[0], w.last_step[0]];
  const steps = w.steps[0] ?? 0;
  const which = first === null ? '' : first === last ? ` (step ${first})` : ` (${first}–${last})`;
  return steps > 0 ? `${plural(steps, 'step')}${which}, ${duration(w.window_us[0])}` : `the whole profile, ${duration(w.window_us[0])}: it marks no steps`;
}

// Caveats about its numbers; empty if there are none.
export function caveatsOf(profile: Profile): string[] {
  const caveats: string[] = [];
  if (profile.problems > 0)
    caveats.push(
      `The file is damaged or incomplete (${plural(profile.problems, 'entry', 'entries')} in the import log, the first: ${profile.problem}). What is lost is not counted.`,
    );
  if (profile.overlapsId !== null) caveats.push('Another profile, which is counted, measured the same process at the same time: this one is not counted.');
  if (profile.process === null) caveats.push(`No log of its process: ${profile.processNote ?? 'none was found'}. Kernels have no Python lines.`);
  return caveats;
}
