import { isLive, useChunk, type Chunks } from '../data/chunks';
import { useFindings, type Model, type Process } from '../data/model';
import { measuresRanks } from '../data/profiles';
import { cardsOf } from '../data/findings';
import { classesOf, collectiveSequences, damageOf, executionSequences, lookupsOf, type Lookup, type Sequence } from '../data/ranks';
import { duration, plural, shorten } from '../lib/format';
import { remember } from '../lib/remember';
import { useTurns } from '../lib/schedule';
import { href, setQuery, type Route } from '../route';
import { Empty, Section, Tabs, Waiting, chosenTab, problemsOf } from '../ui/bits';
import { Sequences, names } from '../ui/sequences';
import { Matrix } from './ranks_cache';
import { Issued } from './ranks_issued';
import { Roles } from './ranks_roles';

interface Aspect {
  name: string;
  link: string | null; // null: no view shows it
  groups: () => Process[][] | null; // null: the log does not tell it
  leftOut?: number;
  leftOutCompiles?: number;
  command?: string;
}

// Of each aspect, the classes of ranks that agree; made when they are asked for.
const aspectsOf = remember((schedules: Chunks['schedules'], model: Model, cache: Chunks['cache']) => {
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
      name: 'Collectives',
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

function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}

// `tlparse ranks` compares compile by compile; here whole sequences are compared: where it sees a difference that the sequence has not,
// the row says so instead of contradicting it.
const areaOf: Record<string, string> = { Collectives: 'collectives', 'Execution order': 'execution' };

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

function Classes({
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
  const aspects = aspectsOf(schedules, model, cache);
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

// Logs that do not hold all that their ranks did.
function Damaged({ findings }: { findings: Chunks['findings'] }) {
  const logs = [...new Map([...damageOf(findings).values()].map((log) => [log.path, log])).values()];
  if (logs.length === 0) return null;
  return (
    <p class="caveat">
      {plural(logs.length, 'log')} {logs.length === 1 ? 'does' : 'do'} not hold all that was written; what sets {logs.length === 1 ? 'its rank' : 'their ranks'}{' '}
      apart may be due to that:{' '}
      {logs.slice(0, 12).map((log, i) => (
        <>
          {i > 0 && ', '}
          <a href={problemsOf(log.path)} title={log.path}>
            {/^\d/.test(log.participant) ? `rank ${log.participant}` : log.participant} {log.isDamaged ? 'damaged' : 'cut off or damaged at its end'}
          </a>
        </>
      ))}
      {logs.length > 12 && ` and ${logs.length - 12} more`}
    </p>
  );
}

// Findings that are about some of the ranks, though all compiled the same: who stopped, who waits, who came late.
function OfRanks({ model, findings }: { model: Model; findings: Chunks['findings'] }) {
  const t = findings.finding;
  const cards = cardsOf(findings, model).filter((card) => t.ranks[card.row] !== null && (t.launch[card.row] ?? model.launch) === model.launch);
  if (cards.length === 0) return null;
  return (
    <Section title="What sets ranks apart all the same">
      <ul class="compare-list">
        {cards.slice(0, 20).map((card) => (
          <li>
            <span class={`tag severity-${t.severity[card.row]}`}>{t.severity[card.row]}</span>{' '}
            <a href={href([], { finding: card.id })}>{shorten(t.title[card.row] ?? '', 300)}</a>
          </li>
        ))}
      </ul>
    </Section>
  );
}

// The groups of equal ranks, and how the others differ from the largest.
function Apart({ model, findings }: { model: Model; findings: Chunks['findings'] }) {
  const classes = findings.rank_class;
  const aspects = findings.aspect;
  const notes = findings.note.text;
  return (
    <>
      {model.peers.some((process) => process.rank === null) && (
        <p class="quiet">Some logs tell no rank, neither in their records nor in their names: they may be of runs that have nothing to do with each other.</p>
      )}
      {model.launches > 1 && (
        <p class="quiet">
          The job was started {model.launches} times. Ranks are compared within launch {model.launch}; another is chosen at the top.
        </p>
      )}
      <Damaged findings={findings} />
      {classes.rows < 2 && <p class="quiet">{classes.rows === 1 ? 'All ranks compiled the same thing.' : 'There are no compiles to compare.'}</p>}
      {classes.rows < 2 && <OfRanks model={model} findings={findings} />}
      {notes.length > 0 && (
        <details class="notes">
          <summary>{plural(notes.length, 'expected difference')}, ignored</summary>
          <ul>
            {notes.slice(0, 200).map((note) => (
              <li>{shorten(note ?? '', 400)}</li>
            ))}
          </ul>
        </details>
      )}
      {classes.rows > 1 && (
        <Section title="Groups of identical ranks" aside={<a href={href(['compare'], { kind: 'ranks' })}>compare two ranks</a>}>
          <table class="plain rank-classes">
            <thead>
              <tr>
                <th scope="col">Ranks</th>
                <th scope="col" class="right">
                  Compile time
                </th>
                <th scope="col">Difference from the first group</th>
              </tr>
            </thead>
            <tbody>
              {classes.ordinal.map((ordinal, i) => {
                const own = aspects.class_ordinal.flatMap((of, n) => (of === ordinal ? [n] : []));
                return (
                  <tr>
                    <th scope="row">
                      <b>{classes.ranks[i]}</b> <span class="quiet">{plural(classes.ranks_count[i] ?? 0, 'rank')}</span>
                    </th>
                    <td class="right">
                      {classes.median_compile_s[i] === null ? (
                        <span class="quiet">unknown</span>
                      ) : (
                        `${classes.is_at_least[i] === 1 ? 'at least ' : ''}${duration(classes.median_compile_s[i]! * 1e6)}`
                      )}
                    </td>
                    <td>
                      {(classes.is_damaged[i] === 1 || classes.is_cut[i] === 1) && (
                        <div>
                          <span class="tag severity-warning">damaged</span>{' '}
                          {classes.is_damaged[i] === 1
                            ? `${classes.ranks_count[i] === 1 ? 'Its log' : 'Each of its logs'} lost records: a difference may be due to that.`
                            : `The last record of ${classes.ranks_count[i] === 1 ? 'its log' : 'each of its logs'} is cut off or damaged.`}
                        </div>
                      )}
                      {ordinal === 0 ? (
                        <span class="quiet">what the others are compared with</span>
                      ) : (
                        own.slice(0, 12).map((n) => (
                          <div>
                            <span class="tag">{aspects.area[n]}</span> {shorten(aspects.text[n] ?? '', 300)}
                          </div>
                        ))
                      )}
                    </td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </Section>
      )}
    </>
  );
}

// Of schedules that are too long for the page.
function LeftOut({ count, what, command }: { count: number; what: string; command: string }) {
  if (count === 0) return null;
  return (
    <p class="quiet">
      {plural(count, what)} of this run are left out here, and the ranks are compared without them: <code>tlparse {command}</code> compares all.
    </p>
  );
}

export function RanksPage({ model, route }: { model: Model; route: Route }) {
  // Profiles and dumps tell collectives alone.
  const hasLogs = model.allProcesses.length > 0 || isLive;
  const has = (name: string) => isLive || (model.counts.get(name) ?? 0) > 0;
  const tabs = [
    { key: 'classes', title: 'Where ranks differ', isShown: hasLogs },
    { key: 'cache', title: 'Cache states', isShown: isLive || model.index.cache_state.rows > 0 },
    { key: 'collectives', title: 'Collectives', isShown: has('collectives') || measuresRanks(model) || !hasLogs },
    { key: 'execution', title: 'Execution order', isShown: has('executions') },
  ].filter(({ key, isShown }) => isShown || (hasLogs && key === route.query.get('tab'))); // an address of one without data says why it is empty
  const tab = chosenTab(route, tabs);
  const cache = useChunk(tab === 'classes' || tab === 'cache' ? 'cache' : null);
  const schedules = useChunk(tab === 'cache' ? null : 'schedules');
  const findings = useFindings(model, tab === 'classes' || tab === 'cache');
  const withWaits = route.query.get('waits') === '1';
  return (
    <div class="page wide">
      <h1 class="unseen">Ranks</h1>
      <Tabs tabs={tabs} current={tab} link={(key) => href(['ranks'], { tab: key === 'classes' ? null : key })} />
      {tab === 'classes' && (
        <>
          {model.peers.length < 2 && (
            <p class="quiet">This run has one process: there is nobody to differ from. Give tlparse the directory with the logs of all ranks.</p>
          )}
          {model.peers.length > 1 && <Waiting pending={findings}>{(value) => <Apart model={model} findings={value} />}</Waiting>}
          <Roles model={model} />
          <Section title="Comparison by area">
            <Waiting pending={cache}>
              {(value) => (
                <Waiting pending={schedules}>{(other) => <Classes model={model} cache={value} schedules={other} findings={findings.value} />}</Waiting>
              )}
            </Waiting>
          </Section>
        </>
      )}
      {tab === 'cache' && (
        <Waiting pending={cache}>
          {(value) => <Waiting pending={findings}>{(other) => <Matrix model={model} cache={value} findings={other} route={route} />}</Waiting>}
        </Waiting>
      )}
      {tab === 'collectives' && (
        <Waiting pending={schedules}>
          {(value) => (
            <>
              <Issued model={model} route={route} none={!hasLogs && <Empty>No log was read, and the profiles and dumps hold no collective.</Empty>} />
              {hasLogs && (
                <>
                  <h2 class="issued-head">Scheduled by the compiled graphs, as the logs tell</h2>
                  <label class="quiet">
                    <input type="checkbox" checked={withWaits} onChange={(event) => setQuery({ waits: event.currentTarget.checked ? 1 : null })} /> include
                    wait_tensor
                  </label>
                  <LeftOut count={value.left_out.collectives[0] ?? 0} what="collective" command="collectives" />
                  <Sequences
                    classes={classesOf(collectiveSequences(model, value, withWaits))}
                    peers={model.peers}
                    what="collective"
                    route={route}
                    empty="No collectives: none of the compiled graphs communicates, or their generated code is not in the log."
                  />
                </>
              )}
            </>
          )}
        </Waiting>
      )}
      {tab === 'execution' && (
        <Waiting pending={schedules}>
          {(value) => (
            <>
              <LeftOut count={value.left_out.executions[0] ?? 0} what="execution" command="execution" />
              <Sequences
                classes={classesOf(executionSequences(model, value))}
                peers={model.peers}
                what="execution"
                route={route}
                empty="No execution order is in this log: it is written only inside torch._inductor.debug.record_and_log_graph_execution_order()."
              />
            </>
          )}
        </Waiting>
      )}
    </div>
  );
}
