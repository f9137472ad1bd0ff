// Comparison of ranks: which compiles correspond, and which ranks are equal.
import type { Chunks } from './chunks';
import { remember } from '../lib/remember';
import { whenIdle } from '../lib/schedule';
import { load } from './chunks';
import type { CacheState, Compile, Model, Process } from './model';

// One compile of the job; each rank has its own.
export interface Slot {
  key: string;
  title: string;
  function: string | null;
  compiles: Map<number, Compile>; // by process
}

export function slotsOf(model: Model, findings: Chunks['findings']): Slot[] {
  const slots = new Map<number, Slot>();
  const t = findings.slot;
  t.compile_id.forEach((id, i) => {
    const compile = model.compileById.get(id!);
    const position = t.position[i]!;
    if (!compile) return;
    let slot = slots.get(position);
    if (!slot) slots.set(position, (slot = { key: String(position), title: compile.title, function: compile.function, compiles: new Map() }));
    if (!slot.compiles.has(compile.processId)) slot.compiles.set(compile.processId, compile);
  });
  return [...slots].sort(([a], [b]) => a - b).map(([, slot]) => slot);
}

// Processes of the launch whose log lost records, or ends within one: what it lacks they may have done.
export interface Damage {
  isDamaged: boolean; // else only its last record is incomplete
  participant: string; // "3", "log:<stem>"
  path: string;
}

export const damageOf = remember((findings: Chunks['findings']): Map<number, Damage> => {
  const t = findings.log_damage;
  return new Map(t.process_id.map((id, i) => [id!, { isDamaged: t.is_damaged[i] === 1, participant: t.participant[i] ?? '', path: t.path[i] ?? '' }]));
});

export interface Lookup {
  id: number;
  row: number;
  compileId: number;
  processId: number;
  layer: string;
  state: CacheState;
  key: string | null;
  direction: string | null;
  setId: number | null;
  deviceIndex: number | null; // that the components name
}

export const lookupsOf = remember((cache: Chunks['cache']): Map<number, Lookup[]> => {
  const byCompile = new Map<number, Lookup[]>();
  const t = cache.cache_event;
  t.id.forEach((id, row) => {
    const compileId = t.compile_id[row];
    if (compileId === null) return;
    const lookup: Lookup = {
      id: id!,
      row,
      compileId,
      processId: t.process_id[row]!,
      layer: t.layer[row] ?? '',
      state: t.state[row] as CacheState,
      key: t.key[row],
      direction: t.direction[row],
      setId: t.component_set_id[row],
      deviceIndex: t.device_index[row],
    };
    const known = byCompile.get(compileId);
    if (known) known.push(lookup);
    else byCompile.set(compileId, [lookup]);
  });
  return byCompile;
});

const badness: Record<CacheState, number> = { hit: 0, disabled: 1, bypass: 2, guard_miss: 3, miss: 4, remote_error: 5 };
export function worstState(lookups: Lookup[]): CacheState | null {
  return lookups.reduce<CacheState | null>((worst, lookup) => (worst === null || badness[lookup.state] > badness[worst] ? lookup.state : worst), null);
}

// ---- components of keys

export interface ComponentDifference {
  name: string;
  a: string | null;
  b: string | null;
  aHash: string | null;
  bHash: string | null;
}

function membersOf(sets: Chunks['sets'], setId: number, listRows: Map<number, Map<number, number>>): number[] {
  const t = sets.set_run;
  const members: number[] = [];
  t.set_id.forEach((id, i) => {
    if (id !== setId) return;
    const list = listRows.get(t.list_id[i]!);
    for (let n = 0; n < t.length[i]!; n++) {
      const component = list?.get(t.list_ordinal[i]! + n);
      if (component !== undefined) members[t.ordinal[i]! + n] = component;
    }
  });
  return members;
}

const indexed = new WeakMap<Chunks['sets'], Map<number, Map<number, number>>>();
function listRowsOf(sets: Chunks['sets']): Map<number, Map<number, number>> {
  let lists = indexed.get(sets);
  if (!lists) {
    lists = new Map();
    const t = sets.list_member;
    for (let i = 0; i < t.rows; i++) {
      let list = lists.get(t.list_id[i]!);
      if (!list) lists.set(t.list_id[i]!, (list = new Map()));
      list.set(t.ordinal[i]!, t.component_id[i]!);
    }
    indexed.set(sets, lists);
  }
  return lists;
}

export interface KeyComparison {
  same: number;
  differences: ComponentDifference[];
}

// A component that names a device is stored once for all ranks: without a hash, and with this instead of the index.
const deviceMark = '\uFFFC';

async function loadComponents(ids: Iterable<number>) {
  const blocks = new Set<number>();
  for (const id of ids) blocks.add(Math.floor(id / 4096));
  return Promise.all([...blocks].map((block) => load('components', block)));
}

// Loads the data of compareKeys in idle time, if it is not much.
export function loadKeysAhead(): void {
  whenIdle(async () => {
    const sets = await load('sets').catch(() => undefined);
    const ids = sets && sets.list_member.rows < 200_000 ? [...listRowsOf(sets).values()].flatMap((list) => [...list.values()]) : [];
    if (ids.every((id) => id < 4096)) await loadComponents(ids).catch(() => undefined);
  });
}

export async function compareKeys(mine: Lookup, other: Lookup): Promise<KeyComparison> {
  const sets = await load('sets');
  const lists = listRowsOf(sets);
  const a = membersOf(sets, mine.setId!, lists);
  const b = membersOf(sets, other.setId!, lists);
  const inA = new Set(a);
  const inB = new Set(b);
  const isSameDevice = mine.deviceIndex === other.deviceIndex;
  const component = new Map<number, { name: string; hash: string | null; value: string }>();
  const wanted = isSameDevice ? [...a.filter((id) => !inB.has(id)), ...b.filter((id) => !inA.has(id))] : [...a, ...b];
  for (const { component: t } of await loadComponents(wanted)) {
    t.id.forEach((id, i) => component.set(id!, { name: t.name[i] ?? '', hash: t.hash[i], value: t.value[i] ?? '' }));
  }
  const namesDevice = (id: number) => !isSameDevice && component.get(id)?.hash === null;
  const onlyA = a.filter((id) => !inB.has(id) || namesDevice(id));
  const onlyB = b.filter((id) => !inA.has(id) || namesDevice(id));
  const valueOf = (c: { value: string }, lookup: Lookup) => c.value.replaceAll(deviceMark, String(lookup.deviceIndex ?? ''));
  const hashOf = (c: { hash: string | null }, lookup: Lookup) => c.hash ?? `device ${lookup.deviceIndex}`;
  const differences = new Map<string, ComponentDifference>();
  const entry = (name: string) => {
    let known = differences.get(name);
    if (!known) differences.set(name, (known = { name, a: null, b: null, aHash: null, bHash: null }));
    return known;
  };
  for (const id of onlyA) {
    const found = component.get(id);
    if (found) Object.assign(entry(found.name), { a: valueOf(found, mine), aHash: hashOf(found, mine) });
  }
  for (const id of onlyB) {
    const found = component.get(id);
    if (found) Object.assign(entry(found.name), { b: valueOf(found, other), bHash: hashOf(found, other) });
  }
  return { same: a.length - onlyA.length, differences: [...differences.values()] };
}

// ---- sequences: collectives, executions

export interface Sequence {
  items: string[]; // what is compared
  shown: string[]; // what is read
  where: (Compile | undefined)[];
}

export interface SequenceClass {
  processes: Process[];
  sequence: Sequence;
}

// Ranks with equal sequences, the largest class first.
export function classesOf(sequences: Map<Process, Sequence>): SequenceClass[] {
  const classes = new Map<string, SequenceClass>();
  for (const [process, sequence] of sequences) {
    const key = sequence.items.join('\u0000');
    const known = classes.get(key);
    if (known) known.processes.push(process);
    else classes.set(key, { processes: [process], sequence });
  }
  return [...classes.values()].sort((a, b) => b.processes.length - a.processes.length);
}

export function collectiveSequences(model: Model, chunk: Chunks['schedules'], withWaits: boolean): Map<Process, Sequence> {
  const ops = new Map<number, number[]>();
  chunk.collective.content_id.forEach((content, i) => {
    const known = ops.get(content!);
    if (known) known.push(i);
    else ops.set(content!, [i]);
  });
  const t = chunk.schedule_use;
  // The calls in a graph's code, which is logged on a cache hit too and has sizes and groups; else the scheduler's list of names.
  const fromCode = new Set<number>();
  t.graph_id.forEach((graph, i) => graph !== null && t.is_code[i] === 1 && fromCode.add(graph));
  // Ranks give the groups of a mesh other names: a group is compared by when its rank first calls it.
  const groups = new Map<Process, Map<string, number>>();
  const groupOf = (process: Process, name: string) => {
    let own = groups.get(process);
    if (!own) groups.set(process, (own = new Map()));
    if (!own.has(name)) own.set(name, own.size);
    return own.get(name)!;
  };
  const sequences = new Map<Process, Sequence>();
  t.process_id.forEach((processId, i) => {
    const process = model.processById.get(processId!);
    if (!process || process.launch !== model.launch || process.isChild || (t.is_code[i] === 0 && t.graph_id[i] !== null && fromCode.has(t.graph_id[i]!)))
      return;
    let sequence = sequences.get(process);
    if (!sequence) sequences.set(process, (sequence = { items: [], shown: [], where: [] }));
    const compile = t.compile_id[i] === null ? undefined : model.compileById.get(t.compile_id[i]!);
    for (const row of ops.get(t.content_id[i]!) ?? []) {
      const c = chunk.collective;
      if (c.is_wait[row] === 1 && !withWaits) continue;
      const name = (c.op[row] ?? 'unnamed kernel')
        .replace(/^torch\.ops\./, '')
        .replace(/^_c10d_functional\./, '')
        .replace(/\.default$/, '');
      const what = [c.dtype[row], c.shape[row]].filter(Boolean).join(' ');
      const group = c.group_name[row];
      const facts = [what, group && `group ${group}`].filter(Boolean).join(' ');
      sequence.items.push(`${name} ${what} ${group ? groupOf(process, group) : ''}`); // not its compile: the same calls may stand in graphs that are cut differently
      sequence.shown.push(facts ? `${name}  ${facts}` : name);
      sequence.where.push(compile);
    }
  });
  return sequences;
}

export function executionSequences(model: Model, chunk: Chunks['schedules']): Map<Process, Sequence> {
  const rows = new Map<number, number[]>();
  chunk.execution.content_id.forEach((content, i) => {
    const known = rows.get(content!);
    if (known) known.push(i);
    else rows.set(content!, [i]);
  });
  const byLabel = new Map<string, Compile>();
  for (const compile of model.peerCompiles) byLabel.set(`${compile.processId} ${compile.label}`, compile);
  const sequences = new Map<Process, Sequence>();
  const t = chunk.execution_use;
  t.process_id.forEach((processId, i) => {
    const process = model.processById.get(processId!);
    if (!process || process.launch !== model.launch || process.isChild) return;
    let sequence = sequences.get(process);
    if (!sequence) sequences.set(process, (sequence = { items: [], shown: [], where: [] }));
    for (const row of rows.get(t.content_id[i]!) ?? []) {
      const label = chunk.execution.label[row];
      const compile = label === null ? undefined : byLabel.get(`${processId} ${label}`);
      sequence.items.push(label ?? '(from a cache)');
      sequence.shown.push(label === null ? 'loaded from a cache: no id' : `${label} ${compile?.function ?? ''}`);
      sequence.where.push(compile);
    }
  });
  return sequences;
}
