// Area by area, which ranks agree.
import type { Chunks } from '../data/chunks';
import type { Model, Process } from '../data/model';
import { collectiveSequences, executionSequences, lookupsOf, type Lookup, type Sequence } from '../data/ranks';
import { plural } from '../lib/format';
import { remember } from '../lib/remember';
import { useTurns } from '../lib/schedule';
import { href } from '../route';
import { names } from '../ui/sequences';

interface Aspect {
  name: string;
  link: string | null; // null: no view shows it
  groups: () => Process[][] | null; // null: the log does not tell it
  leftOut?: number;
  leftOutCompiles?: number;
  command?: string;
}

// Of each aspect, the classes of ranks that agree; made when they are asked for.
const aspectsOf = remember((schedules: Chunks['schedules'], model: Model, cache: Chunks['cache'], findings: Chunks['findings'] | undefined) => {
  const lookups = lookupsOf(cache);
  const withCompiles = new Map<Process, number[]>();
  for (const process of model.peers) withCompiles.set(process, []);
  for (const compile of model.peerCompiles) withCompiles.get(model.processById.get(compile.processId)!)?.push(compile.id);
  const busy = [...withCompiles].filter(([, ids]) => ids.length > 0);
  // What a compile looked up is unknown where it did not finish: it is compared on no rank.
  const unfinished = new Set(model.peerCompiles.flatMap((compile) => (compile.status === 'unfinished' ? [compile.title] : [])));
  const leftOutCompiles = unfinished.size;
  const by = (describe: (process: Process, ids: number[]) => string) => {
    const groups = new Map<string, Process[]>();
    for (const [process, ids] of busy) {
      const key = describe(process, ids);
      const known = groups.get(key);
      if (known) known.push(process);
      else groups.set(key, [process]);
    }
    return [...groups.values()].sort((a, b) => b.length - a.length);
  };
  const bySequence = (sequences: Map<Process, Sequence>) => (sequences.size === 0 ? null : by((process) => sequences.get(process)?.items.join('|') ?? ''));
  const compileOf = (id: number) => model.compileById.get(id)!;
  // Sorted: one that hits asks the layers in another order than one that misses.
  const lookupsBy = (of: (lookup: Lookup) => string | null) =>
    by((_, ids) => ids.flatMap((id) => (unfinished.has(compileOf(id).title) ? [] : [(lookups.get(id) ?? []).map(of).sort().join(',')])).join('|'));
  const aspects: Aspect[] = [
    { name: 'PyTorch version', link: href([]), groups: () => by((process) => process.torchVersion ?? '') },
    {
      name: 'Compiles: ids and functions',
      link: href(['compiles'], { sort: 'function' }),
      groups: () => by((_, ids) => ids.map((id) => `${compileOf(id).title} ${compileOf(id).function}`).join('|')),
    },
    {
      name: 'Outcome of each compile',
      link: href(['compiles'], { sort: '-status' }),
      groups: () => by((_, ids) => ids.map((id) => `${compileOf(id).title} ${compileOf(id).status}`).join('|')),
    },
    { name: 'Graphs', link: null, groups: () => byAspect(findings, model, ['graphs', 'code']) },
    {
      name: 'Cache states',
      link: cache.cache_event.rows > 0 ? href(['ranks'], { tab: 'cache' }) : null,
      leftOutCompiles,
      groups: () => lookupsBy((lookup) => `${lookup.layer} ${lookup.direction} ${lookup.state}`),
    },
    {
      name: 'Cache keys',
      link: cache.cache_event.rows > 0 ? href(['ranks'], { tab: 'cache' }) : null,
      leftOutCompiles,
      groups: () => lookupsBy((lookup) => `${lookup.layer} ${lookup.direction} ${lookup.key}`),
    },
    {
      name: 'Collectives of compiled graphs',
      link: schedules.collective.rows > 0 ? href(['ranks'], { tab: 'collectives' }) : null,
      leftOut: schedules.left_out.collectives[0] ?? 0,
      command: 'collectives',
      groups: () => bySequence(collectiveSequences(model, schedules, false)),
    },
    {
      name: 'Execution order',
      link: schedules.execution.rows > 0 ? href(['ranks'], { tab: 'execution' }) : null,
      leftOut: schedules.left_out.executions[0] ?? 0,
      command: 'execution',
      groups: () => bySequence(executionSequences(model, schedules)),
    },
  ];
  return aspects.map((aspect) => ({ ...aspect, groups: once(aspect.groups) }));
});

// As the program compared them compile by compile; null: nothing was compared.
function byAspect(findings: Chunks['findings'] | undefined, model: Model, areas: string[]): Process[][] | null {
  const classes = findings?.rank_class;
  if (!classes || classes.rows === 0) return null;
  const groups = new Map<string, Process[]>();
  classes.ordinal.forEach((ordinal, i) => {
    const { class_ordinal: of, area, text } = findings.aspect;
    const own = of.flatMap((own, n) => (own === ordinal && areas.includes(area[n] ?? '') ? [text[n]] : []));
    const key = `${classes.role[i]} ${own.join('|')}`;
    const parts = (classes.ranks[i] ?? '').split(',').map((part) => part.split('-').map(Number));
    const isOf = ({ rank }: Process) => rank !== null && parts.some(([from, to = from]) => rank >= from && rank <= to);
    groups.set(key, [...(groups.get(key) ?? []), ...model.peers.filter(isOf)]);
  });
  const known = [...groups.values()].filter((group) => group.length > 0);
  return known.length === 0 ? null : known.sort((a, b) => b.length - a.length);
}

function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}

// `tlparse ranks` compares compile by compile; here whole sequences are compared: where it sees a difference that the sequence has not,
// the row says so instead of contradicting it.
const areaOf: Record<string, string> = { 'Collectives of compiled graphs': 'collectives', 'Execution order': 'execution' };

function Agreement({ aspect, model, differing }: { aspect: Aspect; model: Model; differing: Set<string | null> }) {
  if (aspect.leftOut) {
    return (
      <span class="quiet">
        too many to be compared here: <code>tlparse {aspect.command}</code> compares them
      </span>
    );
  }
  const groups = aspect.groups();
  if (groups === null) return <span class="quiet">not in this log</span>;
  return (
    <>
      {groups.length === 1 && differing.has(areaOf[aspect.name]) ? (
        <span class="tag status-skipped">the same in order, but in other compiles: see the groups above</span>
      ) : groups.length === 1 ? (
        <span class="tag status-ok">all agree</span>
      ) : groups.length === model.peers.length && aspect.name === 'Cache keys' && model.peers.length > 1 ? (
        <span class="tag">every rank has its own</span>
      ) : (
        groups.slice(0, 12).map((group, i) => <span class={`tag class-${Math.min(i, 3)}`}>{names(group)}</span>)
      )}
      {aspect.leftOutCompiles ? <span class="quiet"> without {plural(aspect.leftOutCompiles, 'compile')} that did not finish on a rank</span> : null}
      {groups.length > 12 && <span class="quiet"> and {groups.length - 12} more</span>}
    </>
  );
}

export function Areas({
  model,
  cache,
  schedules,
  findings,
}: {
  model: Model;
  cache: Chunks['cache'];
  schedules: Chunks['schedules'];
  findings: Chunks['findings'] | undefined;
}) {
  const aspects = aspectsOf(schedules, model, cache, findings);
  const differing = new Set(findings?.aspect.area ?? []);
  const compared = useTurns(aspects, aspects.length);
  return (
    <table class="plain classes">
      <thead>
        <tr>
          <th scope="col">Area</th>
          <th scope="col">Groups of ranks that agree</th>
        </tr>
      </thead>
      <tbody>
        {aspects.map((aspect, i) => (
          <tr>
            <th scope="row">{aspect.link === null ? aspect.name : <a href={aspect.link}>{aspect.name}</a>}</th>
            <td>{i < compared ? <Agreement aspect={aspect} model={model} differing={differing} /> : <span class="quiet">comparing ranks…</span>}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
