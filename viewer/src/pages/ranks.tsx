import { isLive, useChunk, type Chunks } from '../data/chunks';
import { useFindings, type Model } from '../data/model';
import { measuresRanks } from '../data/profiles';
import { cardsOf } from '../data/findings';
import { classesOf, collectiveSequences, damageOf, executionSequences } from '../data/ranks';
import { duration, plural, shorten } from '../lib/format';
import { href, setQuery, type Route } from '../route';
import { Empty, Section, Tabs, Waiting, chosenTab, problemsOf } from '../ui/bits';
import { Sequences } from '../ui/sequences';
import { Areas } from './ranks_areas';
import { Matrix } from './ranks_cache';
import { Issued } from './ranks_issued';
import { Roles } from './ranks_roles';

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
  const hasRoles = classes.role.some((role) => role !== null);
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
      {aspects.rows === 0 && (
        <p class="quiet">
          {classes.rows === 0
            ? 'There are no compiles to compare.'
            : classes.rows === 1
              ? 'All ranks compiled the same thing.'
              : 'Ranks of one role compiled the same thing.'}
        </p>
      )}
      {aspects.rows === 0 && <OfRanks model={model} findings={findings} />}
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
                {hasRoles && <th scope="col">Role</th>}
                <th scope="col">Ranks</th>
                <th scope="col" class="right" title="Of the compiles and their backwards, as PyTorch times them; of several ranks the median">
                  Compile time
                </th>
                <th scope="col">Difference from the first group{hasRoles && ' of the role'}</th>
              </tr>
            </thead>
            <tbody>
              {classes.ordinal.map((ordinal, i) => {
                const own = aspects.class_ordinal.flatMap((of, n) => (of === ordinal ? [n] : []));
                return (
                  <tr>
                    {hasRoles && <td>{classes.is_reference[i] === 1 && (classes.role[i] || <span class="quiet">without a role</span>)}</td>}
                    <th scope="row">
                      <b>{classes.ranks[i]}</b> <span class="quiet">{plural(classes.ranks_count[i] ?? 0, 'rank')}</span>
                    </th>
                    <td class="right">
                      {classes.median_compile_s[i] === null ? (
                        <span class="quiet">unknown</span>
                      ) : (
                        `${classes.is_at_least[i] === 1 ? 'at least ' : ''}${(classes.ranks_count[i] ?? 0) > 1 ? 'median ' : ''}${duration(classes.median_compile_s[i]! * 1e6)}`
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
                      {classes.is_reference[i] === 1 ? (
                        <span class="quiet">{classes.is_reference[i + 1] === 0 && 'what the others are compared with'}</span>
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
          {model.peers.length > 1 && (
            <Section title="Comparison by area">
              <Waiting pending={cache}>
                {(value) => (
                  <Waiting pending={schedules}>{(other) => <Areas model={model} cache={value} schedules={other} findings={findings.value} />}</Waiting>
                )}
              </Waiting>
            </Section>
          )}
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
              {hasLogs && (has('collectives') || !measuresRanks(model)) && (
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
