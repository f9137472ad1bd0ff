import { useMemo } from 'preact/hooks';
import { markOf } from '../data/changes';
import { isLive, isServed, useChunk } from '../data/chunks';
import { isFollowing } from '../data/live';
import type { CacheState, Compile, Model, Process } from '../data/model';
import { cacheStates } from '../data/model';
import { caveatsOf, holdsText, isMeasured, profilesOf, type Profile } from '../data/profiles';
import { baseName, bytes, count, duration, plural, ranges, utc } from '../lib/format';
import { href } from '../route';
import { CacheTag, Section, Waiting, cacheNames, problemsOf } from '../ui/bits';
import { CompileChart } from '../ui/compile_chart';
import { CopyButton, Findings } from '../ui/findings';
import { RanksNow } from '../ui/live_bar';
import { Grid, type Column } from '../ui/virtual';

function Fact({ name, value, link, tone, hint }: { name: string; value: string; link?: string; tone?: string; hint?: string }) {
  const body = (
    <>
      <span class="fact-value">{value}</span>
      <span class="fact-name">{name}</span>
    </>
  );
  return link ? (
    <a class={`fact ${tone ?? ''}`} href={link} title={hint}>
      {body}
    </a>
  ) : (
    <div class={`fact ${tone ?? ''}`} title={hint}>
      {body}
    </div>
  );
}

function span(compiles: Compile[]): [number, number] | null {
  let from = Infinity;
  let to = -Infinity;
  for (const compile of compiles) {
    if (compile.startUs === null) continue;
    from = Math.min(from, compile.startUs);
    to = Math.max(to, compile.startUs + (compile.durationUs ?? 0));
    if (compile.backwardStartUs !== null) to = Math.max(to, compile.backwardStartUs + (compile.backwardUs ?? 0));
  }
  return from <= to ? [from, to] : null;
}

function Facts({ model }: { model: Model }) {
  // Of the latest launch, as the findings are; an earlier one is in the tables.
  const { launches } = model;
  const compiles = model.compiles.filter((compile) => compile.launch === launches);
  const sum = (of: (compile: Compile) => number) => compiles.reduce((total, compile) => total + of(compile), 0);
  const breaks = sum((compile) => compile.graphBreaks);
  const recompiles = sum((compile) => (compile.recompiles > 0 ? 1 : 0));
  const only = (q: string) => [q, launches > 1 ? `launch:${launches}` : ''].filter(Boolean).join(' ') || null;
  const time = span(compiles);
  const perProcess = new Map<number, number>();
  for (const compile of compiles) {
    perProcess.set(compile.processId, (perProcess.get(compile.processId) ?? 0) + (compile.durationUs ?? 0) + (compile.backwardUs ?? 0));
  }
  const slowest = [...perProcess.values()].reduce((most, value) => Math.max(most, value), 0);
  const failed = compiles.filter((compile) => compile.status === 'failed').length;
  const unfinished = compiles.filter((compile) => compile.status === 'unfinished').length;
  const lookups: Record<string, number> = {};
  const states = model.index.cache_state;
  states.state.forEach((state, i) => states.launch[i] === launches && (lookups[state!] = (lookups[state!] ?? 0) + (states.events[i] ?? 0)));
  const hits = lookups.hit ?? 0;
  const all = Object.values(lookups).reduce((sum, value) => sum + value, 0);
  const problems = model.index.import_code.entries.reduce<number>((sum, value, i) => sum + (model.index.import_code.severity[i] === 'info' ? 0 : value!), 0);
  return (
    <div class="facts">
      <Fact name={perProcess.size > 1 ? 'compile time, slowest process' : 'compile time'} value={slowest > 0 ? duration(slowest) : compiles.length > 0 ? 'unknown' : '–'} hint={time ? `${utc(model.originUs + time[0])} and ${duration(time[1] - time[0])} on` : undefined} />
      <Fact name="compiles" value={count(compiles.length)} link={href(['compiles'], { q: only('') })} />
      <Fact name="failed" value={count(failed)} link={href(['compiles'], { q: only('status:failed') })} tone={failed > 0 ? 'bad' : ''} />
      {unfinished > 0 && <Fact name={isFollowing() ? 'not finished by now' : 'did not finish'} value={count(unfinished)} link={href(['compiles'], { q: only('status:unfinished') })} tone={isFollowing() ? '' : 'bad'} />}
      <Fact name="graph breaks" value={count(breaks)} link={href(['compiles'], { tab: 'breaks', q: only('') })} tone={breaks > 0 ? 'warn' : ''} />
      <Fact name="recompiles" value={count(recompiles)} link={href(['compiles'], { tab: 'recompiles', q: only('') })} tone={recompiles > 0 ? 'warn' : ''} />
      <Fact name={all > 0 ? `cache hit rate (${plural(all, 'lookup')})` : 'cache hit rate'} value={all > 0 ? `${Math.round((100 * hits) / all)} %` : '–'} link={href(['ranks'], { tab: 'cache' })} hint={cacheStates.map((state) => `${cacheNames[state]} ${lookups[state] ?? 0}`).join(', ')} />
      <Fact name="graphs" value={count(sum((compile) => compile.graphs))} link={href(['provenance'], { q: launches > 1 ? `launch ${launches}` : null })} />
      <Fact name={launches > 1 ? 'log problems, all launches' : 'log problems'} value={count(problems)} link={href(['import-log'])} tone={problems > 0 ? 'warn' : ''} />
    </div>
  );
}

function LaunchNote({ model: { launches, latest, originUs } }: { model: Model }) {
  const start = latest[0]?.launchStartUs ?? null;
  return (
    <p class="quiet">
      The job was started {launches} times. These numbers are of launch {launches}, the latest{start !== null && `, which began at ${utc(originUs + start)}`}; all launches are in <b>Compiles over time</b> and in the <a href={href(['compiles'])}>table of compiles</a>.
    </p>
  );
}

function AttentionList({ model }: { model: Model }) {
  const findings = useChunk('findings');
  return (
    <Section title="What needs attention" aside={findings.value && <CopyButton title="Copy as Markdown" text={findings.value.answer.markdown[0] ?? ''} />}>
      <Waiting pending={findings}>{(value) => <Findings model={model} findings={value} />}</Waiting>
    </Section>
  );
}

function CacheTable({ model }: { model: Model }) {
  const table = model.index.cache_state;
  const layers = [...new Set(table.layer.filter((_, i) => table.launch[i] === model.launches))];
  const cell = (layer: string | null, state: CacheState) => {
    const row = table.layer.findIndex((name, i) => name === layer && table.state[i] === state && table.launch[i] === model.launches);
    return row < 0 ? 0 : table.events[row]!;
  };
  if (layers.length === 0) return <p class="quiet">No cache lookups in {model.launches > 1 ? 'the logs of this launch' : 'this log'}: caching was off, or the compiles never reached Inductor.</p>;
  const shown = cacheStates.filter((state) => layers.some((layer) => cell(layer, state) > 0));
  return (
    <table class="plain">
      <thead>
        <tr>
          <th scope="col">Layer</th>
          {shown.map((state) => (
            <th scope="col" class="right">
              <CacheTag state={state} />
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {layers.map((layer) => (
          <tr>
            <th scope="row">
              <code>{layer}</code>
            </th>
            {shown.map((state) => (
              <td class="right">{cell(layer, state) || <span class="quiet">·</span>}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Processes({ model }: { model: Model }) {
  const columns = useMemo<Column<Process>[]>(() => {
    const compilesOf = new Map<number, number>();
    for (const compile of model.compiles) compilesOf.set(compile.processId, (compilesOf.get(compile.processId) ?? 0) + 1);
    const logs = model.index.log_file;
    const problems = new Map(logs.path.flatMap((path, i) => (logs.problems[i] ? [[path ?? '', logs.problems[i]!]] : [])));
    return [
      { key: 'process', title: 'Process', width: 'minmax(120px, 1.2fr)', cell: (process) => <a href={href(['process', process.id])}>{process.name}</a> },
      { key: 'version', title: 'PyTorch', width: 'minmax(108px, 1fr)', cell: (process) => process.torchVersion ?? <span class="quiet">unknown</span> },
      { key: 'compiles', title: 'Compiles', width: '64px', align: 'right', cell: (process) => count(compilesOf.get(process.id) ?? 0) },
      { key: 'log', title: 'Log', width: 'minmax(90px, 1.4fr)', cell: (process) => <span class="tail" title={process.file}><bdi>{baseName(process.file)}</bdi></span> },
      ...(problems.size > 0 ? [{ key: 'problems', title: '', width: '88px', cell: (process: Process) => problems.has(process.file) && <a class="tag severity-warning" href={problemsOf(process.file)}>{plural(problems.get(process.file)!, 'problem')}</a> }] : []),
    ];
  }, [model]);
  return <Grid label="Processes" rows={model.processes} columns={columns} rowKey={(process) => process.id} rowHref={(process) => href(['process', process.id])} rowClass={(process) => markOf('index.process', process.id) ?? ''} height={`${Math.min(model.processes.length, 16) * 26 + 30}px`} empty="No log was read." />;
}

function Profiles({ model }: { model: Model }) {
  const profiles = useMemo(() => profilesOf(model), [model]);
  const columns: Column<Profile>[] = [
    { key: 'name', title: 'File', width: 'minmax(130px, 2fr)', about: (profile) => profile.path, cell: (profile) => (isMeasured(profile) ? <a href={href(['cost'], { profile: profile.id })}>{profile.name}</a> : profile.name) },
    { key: 'kind', title: 'Kind', width: '104px', cell: (profile) => profile.kind.replace('_', ' ') },
    { key: 'what', title: 'Holds', width: 'minmax(110px, 1.4fr)', about: holdsText, cell: holdsText },
  ];
  if (profiles.some((profile) => profile.problems > 0 || profile.overlapsId !== null))
    columns.push({ key: 'problems', title: '', width: '70px', about: (profile) => caveatsOf(profile).join('\n'), cell: (profile) => (profile.problems > 0 ? <a class="tag severity-warning" href={problemsOf(profile.path)}>damaged</a> : profile.overlapsId !== null ? <span class="tag">overlaps</span> : null) });
  if (profiles.length === 0) return null;
  return (
    <Section title="Profiles and dumps" aside={profiles.some(isMeasured) && <a href={href(['cost'])}>where the time went</a>}>
      <Grid label="Profiles and dumps" rows={profiles} columns={columns} rowKey={(profile) => profile.id} height={`${Math.min(profiles.length, 10) * 26 + 30}px`} empty="" />
    </Section>
  );
}

// Profiles, recorder dumps and other files that are no logs.
function otherFiles(model: Model): string {
  const { path, kind } = model.index.profile;
  const others = new Set(path.filter((_, i) => kind[i] !== 'libtrace')).size;
  return others === 0 ? '' : ` and ${plural(others, 'other file')}`;
}

export function OverviewPage({ model }: { model: Model }) {
  const time = span(model.compiles);
  const run = model.index.run.is_current.indexOf(1);
  const bases = [...new Set(model.processes.map((process) => process.timeBasis))];
  const ranks = model.processes.flatMap((process) => (process.rank === null ? [] : [process.rank]));
  const hasLog = isLive || model.index.log_file.rows > 0;
  return (
    <div class="page">
      <h1 class="unseen">Overview</h1>
      {model.launches > 1 && <LaunchNote model={model} />}
      {hasLog && <Facts model={model} />}
      <RanksNow />
      <AttentionList model={model} />
      {hasLog && (
        <Section
          title="Compiles over time"
          aside={
            <span class="quiet">
              {time ? `${utc(model.originUs + time[0])}, ${duration(time[1] - time[0])}` : ''}
              {bases.includes('none') ? ' · logs whose clock is unknown are not drawn' : ''}
            </span>
          }
        >
          <CompileChart model={model} />
        </Section>
      )}
      <div class="columns">
        <div>
          {hasLog && (
            <Section title="Caches" aside={<a href={href(['ranks'], { tab: 'cache' })}>by compile and rank</a>}>
              <CacheTable model={model} />
            </Section>
          )}
          <Profiles model={model} />
        </div>
        <div>
          <Section title={ranks.length > 0 ? `Processes: ranks ${ranges(ranks)}` : 'Processes'}>
            <Processes model={model} />
          </Section>
          <p class="quiet small">
            {isLive ? 'Followed' : 'Read'} by tlparse {model.index.run.tool_version[run]} {isLive ? 'since' : 'at'} {model.index.run.created_at[run]} from {plural(model.index.log_file.rows, 'log')} ({bytes(model.counts.get('bytes'))}){otherFiles(model)}.{' '}
            {isServed ? (
              'Every table here is a query on the database: see SQL.'
            ) : (
              <>
                All of this is in trace.db next to this page as well, and in <a href="files.html">files for other tools</a>.
              </>
            )}
          </p>
        </div>
      </div>
    </div>
  );
}
