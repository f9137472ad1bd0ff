// Where the time of compiles went: the chunks `time` (all processes, by function) and `time/<process>` (by compile), summed up for what is chosen.
import { load, useAsync, type Chunks, type Pending } from './chunks';
import { chunkOfProcess, type Compile, type Model } from './model';
import { timedPhases } from './phases';

// What is looked at, as the address says.
export interface Scope {
  process: number | null;
  compile: number | null;
  function: string | null; // see functionKey
  phase: number | null;
}

export interface TimeNode {
  name: string;
  phase: number;
  selfUs: number;
  totalUs: number; // with what is inside
  count: number;
  parent: TimeNode | null;
  children: TimeNode[]; // in the order in which they were first seen
}

export interface TimeOfName {
  name: string;
  phase: number;
  selfUs: number;
  totalUs: number;
  maxUs: number;
  count: number;
}

export interface TimeOfCompile {
  processId: number;
  compile: Compile | null; // null: outside of compiles
  selfUs: number;
  totalUs: number;
  notAttributedUs: number;
  events: number;
}

export interface Times {
  wholeUs: number; // the sum of what follows, and what is not attributed
  notAttributedUs: number;
  roots: TimeNode[];
  names: TimeOfName[];
  compiles: TimeOfCompile[];
}

export const functionKey = (of: { function: string | null; file: string | null; line: number | null }) =>
  `${of.function ?? ''} ${of.file ?? ''}:${of.line ?? ''}`;

export function partsOfKey(key: string): { name: string; file: string | null; line: number | null } {
  const [, name, file, line] = /^(\S*) (.*):(\d*)$/.exec(key) ?? [];
  return { name: name ?? key, file: file || null, line: line ? Number(line) : null };
}

// Chunks of single processes where one is chosen, else the one of all.
function chunksOf(model: Model, scope: Scope): (number | null)[] {
  const process = scope.compile !== null ? model.compileById.get(scope.compile)?.processId : (scope.process ?? undefined);
  if (process !== undefined) return [process].filter((id) => chunkOfProcess(model.index, 'events', id) !== 0);
  if (model.rank === null) return [null];
  return model.processes.map((one) => one.id).filter((id) => chunkOfProcess(model.index, 'events', id) !== 0);
}

class Sums {
  roots: TimeNode[] = [];
  names = new Map<string, TimeOfName>();
  compiles: TimeOfCompile[] = [];
  constructor(
    private model: Model,
    private scope: Scope,
  ) {}

  private isWanted(group: Chunks['time']['group'], at: number): boolean {
    const { model, scope } = this;
    if (model.isOneLaunch && group.launch[at] !== model.launch) return false;
    if (scope.compile !== null && group.compile_id[at] !== scope.compile) return false;
    return scope.function === null || functionKey({ function: group.function[at], file: group.file[at], line: group.line[at] }) === scope.function;
  }

  add({ group, name, node, compile }: Chunks['time']): void {
    const { model, scope } = this;
    const wanted = group.launch.map((_, at) => this.isWanted(group, at));
    // Of one phase: what is in it, below the outermost event of the phase.
    const nodes: (TimeNode | null)[] = [];
    for (let i = 0; i < node.rows; i++) {
      const phase = node.phase[i] ?? 0;
      const outer = node.parent[i] === null ? null : nodes[node.parent[i]!];
      nodes.push(
        wanted[node.group[i]!] && (scope.phase === null || phase === scope.phase)
          ? this.merge(outer, node.name[i] ?? '', phase, node.self_us[i] ?? 0, node.count[i] ?? 0)
          : null,
      );
    }
    for (let i = 0; i < name.rows; i++) {
      const phase = name.phase[i] ?? 0;
      if (!wanted[name.group[i]!] || (scope.phase !== null && phase !== scope.phase)) continue;
      const key = `${phase} ${name.name[i]}`;
      let sum = this.names.get(key);
      if (!sum) this.names.set(key, (sum = { name: name.name[i] ?? '', phase, selfUs: 0, totalUs: 0, maxUs: 0, count: 0 }));
      sum.selfUs += name.self_us[i] ?? 0;
      sum.totalUs += name.total_us[i] ?? 0;
      sum.maxUs = Math.max(sum.maxUs, name.max_us[i] ?? 0);
      sum.count += name.count[i] ?? 0;
    }
    for (let i = 0; i < compile.rows; i++) {
      const process = model.processById.get(compile.process_id[i]!);
      const own = compile.compile_id[i] === null ? null : (model.compileById.get(compile.compile_id[i]!) ?? null);
      if (!process || (model.isOneLaunch && process.launch !== model.launch)) continue;
      if (scope.compile !== null && compile.compile_id[i] !== scope.compile) continue;
      if (scope.function !== null && functionKey(own ?? { function: null, file: null, line: null }) !== scope.function) continue;
      this.compiles.push({
        processId: process.id,
        compile: own,
        selfUs: compile.self_us[i] ?? 0,
        totalUs: compile.total_us[i] ?? 0,
        notAttributedUs: compile.not_attributed_us[i] ?? 0,
        events: compile.events[i] ?? 0,
      });
    }
  }

  private merge(parent: TimeNode | null, name: string, phase: number, selfUs: number, count: number): TimeNode {
    const among = parent ? parent.children : this.roots;
    let node = among.find((one) => one.name === name && one.phase === phase);
    if (!node) among.push((node = { name, phase, selfUs: 0, totalUs: 0, count: 0, parent, children: [] }));
    node.selfUs += selfUs;
    node.count += count;
    for (let at: TimeNode | null = node; at; at = at.parent) at.totalUs += selfUs;
    return node;
  }

  finish(): Times {
    const notAttributedUs = this.scope.phase === null ? this.compiles.reduce((sum, own) => sum + own.notAttributedUs, 0) : 0;
    return {
      wholeUs: this.roots.reduce((sum, root) => sum + root.totalUs, notAttributedUs),
      notAttributedUs,
      roots: this.roots,
      names: [...this.names.values()],
      compiles: this.compiles,
    };
  }
}

// Without a scope: nothing.
export function useTimes(model: Model, scope: Scope | null): Pending<Times> {
  const parts = scope ? chunksOf(model, scope) : [];
  const key = scope && `times ${parts.join()} ${model.launch} ${model.isOneLaunch} ${JSON.stringify(scope)}`;
  return useAsync(key, async () => {
    const sums = new Sums(model, scope!);
    for (const part of parts) sums.add(await (part === null ? load('time') : load('time', part)));
    return sums.finish();
  });
}

// Every node, outer ones first.
export function* nodesOf(roots: TimeNode[]): Generator<TimeNode> {
  for (const root of roots) {
    yield root;
    yield* nodesOf(root.children);
  }
}

export interface PhaseTime {
  phase: number;
  selfUs: number;
  totalUs: number;
  count: number; // of the events that open it
  maxUs: number; // the longest of them
}

export function phaseTimes(times: Times): PhaseTime[] {
  const sums = timedPhases.map((_, phase): PhaseTime => ({ phase, selfUs: 0, totalUs: 0, count: 0, maxUs: 0 }));
  const openers = new Set<string>();
  const walk = (nodes: TimeNode[], open: number[]) => {
    for (const node of nodes) {
      const sum = sums[node.phase];
      sum.selfUs += node.selfUs;
      const isOpened = open[open.length - 1] !== node.phase;
      if (isOpened && !open.includes(node.phase)) {
        sum.totalUs += node.totalUs;
        sum.count += node.count;
        openers.add(`${node.phase} ${node.name}`);
      }
      walk(node.children, isOpened ? [...open, node.phase] : open);
    }
  };
  walk(times.roots, []);
  for (const own of times.names) if (openers.has(`${own.phase} ${own.name}`)) sums[own.phase].maxUs = Math.max(sums[own.phase].maxUs, own.maxUs);
  return sums.filter((sum) => sum.count > 0);
}

export interface Neighbour {
  name: string; // empty: no event
  totalUs: number;
  count: number;
}

// What calls the events of a name, and what they call, over all places of it.
export function neighboursOf(roots: TimeNode[], name: string): { callers: Neighbour[]; callees: Neighbour[]; selfUs: number; totalUs: number } {
  const [callers, callees] = [new Map<string, Neighbour>(), new Map<string, Neighbour>()];
  const add = (to: Map<string, Neighbour>, of: string, us: number, count: number) => {
    const sum = to.get(of) ?? { name: of, totalUs: 0, count: 0 };
    to.set(of, { name: of, totalUs: sum.totalUs + us, count: sum.count + count });
  };
  let [selfUs, totalUs] = [0, 0];
  for (const node of nodesOf(roots)) {
    if (node.name !== name) continue;
    selfUs += node.selfUs;
    totalUs += node.totalUs;
    add(callers, node.parent?.name ?? '', node.totalUs, node.count);
    for (const child of node.children) add(callees, child.name, child.totalUs, child.count);
  }
  const sorted = (of: Map<string, Neighbour>) => [...of.values()].sort((a, b) => b.totalUs - a.totalUs);
  return { callers: sorted(callers), callees: sorted(callees), selfUs, totalUs };
}
