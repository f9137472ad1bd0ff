// Two sides and what differs: the chunks `diff/…`, as `tlparse diff` compares. A page of files has the comparisons of `ranks`, `launches` and `runs`; a served
// page asks for any two sides.
import { isServed, load, useAsync, type Chunks, type Pending } from './chunks';
import { plural } from '../lib/format';
import { timedPhases, type Phase } from './phases';

export const kinds = ['ranks', 'launches', 'runs', 'databases'] as const;
export type Kind = (typeof kinds)[number];

export interface PhaseChange {
  phase: Phase;
  aUs: number;
  bUs: number;
}

export interface Change {
  what: string; // recompile, graph break, guard, kernel, code
  how: string; // new, gone, changed
  text: string | null; // null: further ones
  count: number;
  aRecord: number | null;
  bRecord: number | null;
}

export interface LookupChange {
  lookup: string;
  aState: string | null;
  bState: string | null;
  hasSameKey: boolean;
  cause: string | null;
  text: string | null;
  explained: number;
  fallback: string | null;
}

export interface CompileChange {
  aId: number;
  bId: number;
  aLabel: string;
  bLabel: string;
  function: string;
  aFile: string | null;
  bFile: string | null;
  aStatus: string;
  bStatus: string;
  isEqual: boolean;
  graph: string | null; // what differs in the Dynamo graph
  aUs: number | null;
  bUs: number | null;
  changes: Change[];
  lookups: LookupChange[];
  lacks: string[]; // what only one side's log has
}

export interface OnlyCompile {
  isB: boolean;
  id: number;
  us: number | null;
  label: string;
  function: string;
  status: string;
  reason: string | null;
}

export interface MeasuredChange {
  kind: string;
  name: string;
  file: string | null;
  line: number | null;
  graph: string;
  aUs: number;
  bUs: number;
  aCalls: number;
  bCalls: number;
}

export interface Side {
  key: string;
  database: number | null; // null: that of the page
  run: number | null; // null: that of the page
  name: string;
  ranks: string | null; // that it stands for
  alone: string | null; // ranks that the other side has not
  torch: string | null;
  python: string | null;
}

export interface Comparison {
  a: Side;
  b: Side;
  verdict: string;
  totals: [number, number] | null; // microseconds
  phases: PhaseChange[]; // each without the others
  compiles: CompileChange[];
  only: OnlyCompile[];
  measured: MeasuredChange[];
  isPerStep: boolean;
  leftOut: number; // further pairs of classes
}

const opposite: Record<string, string> = { new: 'gone', gone: 'new', changed: 'changed' };

// "2:u3" is a run of the second database.
function placeOf(key: string): Pick<Side, 'key' | 'database' | 'run'> {
  const [, database, run] = /^(?:(\d+):)?u(\d+)$/.exec(key) ?? [];
  return { key, database: database === undefined ? null : Number(database), run: run === undefined ? null : Number(run) };
}

function sideOf(c: Chunks['diff']['comparison'], of: 'a' | 'b', at: number): Side {
  return {
    ...placeOf(c[of][at] ?? ''),
    name: c[`${of}_name`][at] ?? '',
    ranks: c[`${of}_ranks`][at],
    alone: c[`only_${of}_ranks`][at],
    torch: c[`${of}_torch`][at],
    python: c[`${of}_python`][at],
  };
}

// The comparison in row `at`; `isSwapped`: with its sides exchanged.
function readOne(chunk: Chunks['diff'], at: number, isSwapped: boolean): Comparison {
  const { comparison: c, phase, compile, change, cache, only, measured } = chunk;
  const turn = <T>(a: T, b: T): [T, T] => (isSwapped ? [b, a] : [a, b]);
  const compiles = new Map<number, CompileChange>();
  compile.comparison.forEach((of, i) => {
    if (of !== at) return;
    const [aUs, bUs] = turn(compile.a_us[i], compile.b_us[i]);
    const [aId, bId] = turn(compile.a_id[i]!, compile.b_id[i]!);
    const [aLabel, bLabel] = turn(compile.a_label[i] ?? '', compile.b_label[i] ?? '');
    const [aStatus, bStatus] = turn(compile.a_status[i] ?? '', compile.b_status[i] ?? '');
    const [aFile, bFile] = turn(compile.a_file[i], compile.b_file[i]);
    const lacks = (['guard', 'kernel'] as const).flatMap((what) => {
      const [a, b] = turn(compile[`a_${what}s`][i] ?? 0, compile[`b_${what}s`][i] ?? 0);
      return (a === 0) === (b === 0) ? [] : [`${plural(Math.max(a, b), what)} only in the log of ${a === 0 ? 'b' : 'a'}`];
    });
    if (compile.alike_guards[i]! > 0)
      lacks.push(`${plural(compile.alike_guards[i]!, 'guard')} ${compile.alike_guards[i] === 1 ? 'differs' : 'differ'} in names of generated code only`);
    const graph =
      compile.has_same_graph[i] === 1
        ? null
        : compile.has_other_comments_only[i] === 1
          ? 'in comments only'
          : (compile.graph_difference[i] ?? 'in shapes, types or comments, not in its operations');
    compiles.set(i, {
      aId,
      bId,
      aLabel,
      bLabel,
      aStatus,
      bStatus,
      aFile,
      bFile,
      function: compile.function[i] ?? '',
      isEqual: compile.is_equal[i] === 1,
      graph,
      aUs,
      bUs,
      changes: [],
      lookups: [],
      lacks,
    });
  });
  change.compile.forEach((of, i) => {
    const [aRecord, bRecord] = turn(change.a_record_id[i], change.b_record_id[i]);
    compiles.get(of!)?.changes.push({
      what: change.what[i] ?? '',
      how: isSwapped ? opposite[change.how[i] ?? ''] : (change.how[i] ?? ''),
      text: change.text[i],
      count: change.count[i] ?? 1,
      aRecord,
      bRecord,
    });
  });
  cache.compile.forEach((of, i) => {
    const [aState, bState] = turn(cache.a_state[i], cache.b_state[i]);
    compiles.get(of!)?.lookups.push({
      lookup: cache.lookup[i] ?? '',
      aState,
      bState,
      hasSameKey: cache.has_same_key[i] === 1,
      cause: cache.cause[i],
      text: cache.text[i],
      explained: cache.explained[i] ?? 0,
      fallback: cache.fallback[i],
    });
  });
  const [a, b] = turn(sideOf(c, 'a', at), sideOf(c, 'b', at));
  const timed = [...compiles.values()].filter((own) => own.aUs !== null && own.bUs !== null);
  const phases = timedPhases.map((own) => ({ phase: own, aUs: 0, bUs: 0 }));
  phase.compile.forEach((of, i) => {
    if (!compiles.has(of!)) return;
    const [aUs, bUs] = turn(phase.a_us[i] ?? 0, phase.b_us[i] ?? 0);
    phases[phase.phase[i]!].aUs += aUs;
    phases[phase.phase[i]!].bUs += bUs;
  });
  const sum = (of: (own: CompileChange) => number | null) => timed.reduce((total, own) => total + (of(own) ?? 0), 0);
  return {
    a,
    b,
    verdict: c.verdict[at] ?? '',
    totals: timed.length > 0 ? [sum((own) => own.aUs), sum((own) => own.bUs)] : null,
    phases: phases.filter((own) => own.aUs > 0 || own.bUs > 0),
    compiles: [...compiles.values()],
    only: only.comparison.flatMap((of, i) =>
      of === at
        ? [
            {
              isB: (only.is_b[i] === 1) !== isSwapped,
              id: only.id[i]!,
              us: only.duration_us[i],
              label: only.label[i] ?? '',
              function: only.function[i] ?? '',
              status: only.status[i] ?? '',
              reason: only.reason[i],
            },
          ]
        : [],
    ),
    measured: measured.comparison.flatMap((of, i) => {
      if (of !== at) return [];
      const [aUs, bUs] = turn(measured.a_us[i] ?? 0, measured.b_us[i] ?? 0);
      const [aCalls, bCalls] = turn(measured.a_calls[i] ?? 0, measured.b_calls[i] ?? 0);
      return [
        {
          kind: measured.kind[i] ?? '',
          name: measured.name[i] ?? '',
          file: measured.file[i],
          line: measured.line[i],
          graph: [measured.label[i], measured.direction[i]].filter(Boolean).join(' '),
          aUs,
          bUs,
          aCalls,
          bCalls,
        },
      ];
    }),
    isPerStep: c.is_per_step[at] === 1,
    leftOut: c.left_out[at] ?? 0,
  };
}

export interface Comparisons {
  kind: Kind;
  sides: Side[]; // that can be chosen
  chosen: Comparison[]; // of the two sides; of launches one for each class of ranks
}

const kindOfKey: Record<string, Kind> = { p: 'ranks', l: 'launches', u: 'runs' };
export function kindOf(a: string | null, b: string | null): Kind | null {
  const key = a ?? b;
  return key === null ? null : `${a}${b}`.includes(':') ? 'databases' : (kindOfKey[key[0]] ?? null);
}

function between(chunk: Chunks['diff'], a: string, b: string): Comparison[] {
  const { comparison } = chunk;
  return comparison.a.flatMap((key, at) =>
    key === a && comparison.b[at] === b ? [readOne(chunk, at, false)] : key === b && comparison.b[at] === a ? [readOne(chunk, at, true)] : [],
  );
}

function sidesOf({ comparison: c }: Chunks['diff']): Side[] {
  const sides = new Map<string, Side>();
  c.a.forEach((_, at) => {
    for (const side of [sideOf(c, 'a', at), sideOf(c, 'b', at)]) if (!sides.has(side.key)) sides.set(side.key, side);
  });
  return [...sides.values()];
}

// The comparison that is shown first: where most differs, else where the times do.
function mostTelling({ comparison, compile }: Chunks['diff']): number {
  const telling = comparison.is_equal.map((isEqual, at) => {
    let us = 0;
    compile.comparison.forEach((of, i) => (us += of === at ? (compile.b_us[i] ?? 0) - (compile.a_us[i] ?? 0) : 0));
    return Math.abs(us) + (isEqual === 1 ? 0 : 1e12);
  });
  return telling.indexOf(Math.max(...telling));
}

// `asked`: two sides, or nothing: the first comparison of the first kind that has one.
export function useComparisons(a: string | null, b: string | null, possible: Kind[]): Pending<Comparisons | null> {
  return useAsync(`comparisons ${a} ${b} ${possible.join()}`, async () => {
    const asked = kindOf(a, b);
    for (const kind of asked ? [asked] : possible) {
      // What there is to choose of databases is in the index.
      if (kind === 'databases' && a !== null && b !== null) return { kind, sides: [], chosen: between(await load('diff', `${a}-${b}`), a, b) };
      const chunk = await load('diff', kind);
      // Launches and runs begin with the latest.
      const at = kind === 'ranks' ? mostTelling(chunk) : 0;
      const first = chunk.comparison.rows > 0 ? [chunk.comparison.a[at]!, chunk.comparison.b[at]!] : null;
      if (!first && !(asked && isServed)) continue;
      const [left, right] = [a ?? first?.[0] ?? '', b ?? first?.[1] ?? ''];
      const chosen = between(chunk, left, right);
      const exact = chosen.length > 0 || !isServed || !left || !right ? chosen : between(await load('diff', `${left}-${right}`), left, right);
      return { kind, sides: sidesOf(chunk), chosen: exact };
    }
    return null;
  });
}
