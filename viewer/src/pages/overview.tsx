import { useMemo } from 'preact/hooks';
import { isLive, isServed } from '../data/chunks';
import { isFollowing } from '../data/live';
import { cacheStates, isRecompile, isRefused, stackOf, useFindings, type CacheState, type Compile, type Frame, type Model, type Process } from '../data/model';
import { caveatsOf, holdsText, isMeasured, kindText, measuredProfiles, profilesOf, type Profile } from '../data/profiles';
import { baseName, bytes, count, duration, plural, ranges, utc } from '../lib/format';
import { href } from '../route';
import { CacheTag, Section, Waiting, cacheNames, problemsOf } from '../ui/bits';
import { CompileChart } from '../ui/compile_chart';
import { Findings } from '../ui/findings';
import { RanksNow } from '../ui/live_bar';
import { Grid, type Column } from '../ui/virtual';
import { MemoryPeak } from './overview_memory';
import { Processes } from './overview_processes';
import { CompileTime, DeviceTime } from './overview_time';

// Where the job was started: the outermost module that compiles were called from.
function scriptOf(model: Model): Frame | undefined {
  const isScript = (frame: Frame) => frame.function === '<module>' && frame.file !== null && !/site-packages|dist-packages|^</.test(frame.file);
  for (const stack of new Set(model.compiles.map((compile) => compile.stackId))) {
    const script = stack === null ? undefined : stackOf(model.frames, stack).find(isScript);
    if (script) return script;
  }
  return undefined;
}

// From the first moment that the logs of the launch tell to the last.
function spanOf(model: Model): [number, number] | null {
  let [from, to] = [Infinity, -Infinity];
  const see = (start: number | null, end: number | null) => {
    from = Math.min(from, start ?? Infinity);
    to = Math.max(to, end ?? -Infinity);
  };
  for (const process of model.launched) see(process.launchStartUs, process.lastRecordUs);
  const compiles = model.allCompiles.filter((compile) => compile.launch === model.launch);
  for (const compile of compiles) see(compile.startUs, compile.startUs === null ? null : compile.startUs + (compile.durationUs ?? 0));
  // Without a log several profiles may be of runs that have nothing to do with each other.
  const profiles = measuredProfiles(model);
  if (model.index.log_file.rows === 0 && profiles.length === 1) see(profiles[0].startUs, profiles[0].endUs);
  return from <= to ? [from, to] : null;
}

const nameOfKind: Record<string, string> = {
  flight_recorder: 'recorder dump',
  kineto: 'profile',
  nsys: 'profile',
  libtrace: 'profile',
  memory_snapshot: 'memory snapshot',
  torch_logs: 'text log',
};

function profilesText({ path, kind }: Model['index']['profile']): string {
  const names = kind.map((own) => nameOfKind[own ?? ''] ?? 'other file');
  const files = (name: string) => new Set(path.filter((_, i) => names[i] === name)).size;
  return [...new Set([...Object.values(nameOfKind).slice(1), 'recorder dump', ...names])]
    .flatMap((name) => (files(name) > 0 ? [plural(files(name), name)] : []))
    .join(', ');
}

function JobLine({ model }: { model: Model }) {
  const { index, launched, launches, launch, rank } = model;
  const script = useMemo(() => scriptOf(model), [model]);
  const time = useMemo(() => spanOf(model), [model]);
  const ranks = launched.flatMap((process) => (process.rank === null ? [] : [process.rank]));
  const versions = (of: (process: Process) => string | null) => [...new Set(launched.flatMap((process) => of(process) ?? []))].join(', ');
  const pythonOf = (process: Process) => process.pythonVersion?.split(' ')[0] ?? null;
  const files = new Set(model.isOneLaunch ? launched.map((process) => process.file) : index.log_file.path);
  const logs = files.size;
  const size = index.log_file.path.reduce((sum, path, i) => sum + (files.has(path ?? '') ? (index.log_file.size_bytes[i] ?? 0) : 0), 0);
  const facts = [
    rank !== null
      ? `rank ${rank}`
      : ranks.length > 0
        ? `${new Set(ranks).size > 1 ? 'ranks' : 'rank'} ${ranges(ranks)}`
        : logs > 0
          ? plural(launched.length, 'process', 'processes')
          : null,
    launches > 1 ? `launch ${launch} of ${launches}` : null,
    time && `started ${utc(model.originUs + time[0]).slice(0, 19)} UTC`,
    time && duration(time[1] - time[0]),
    versions((process) => process.torchVersion) && `PyTorch ${versions((process) => process.torchVersion)}`,
    versions(pythonOf) && `Python ${versions(pythonOf)}`,
    logs > 0 ? `${plural(logs, 'log')}, ${bytes(size)}` : null,
    index.profile.rows > 0 ? profilesText(index.profile) : null,
  ].filter(Boolean);
  return (
    <header class="job">
      <h1 title={script?.file ?? model.runName}>{script?.file ? baseName(script.file) : baseName(model.runName.replace(/\/+$/, ''))}</h1>
      <span class="quiet">{facts.join(' · ')}</span>
    </header>
  );
}

interface Fact {
  count: number;
  text: string;
  none: string; // if it is zero
  link: string;
  tone?: 'bad' | 'warn';
}

function factsOf(model: Model): Fact[] {
  const compiles = model.compiles.filter((compile) => compile.launch === model.launch);
  const sum = (of: (compile: Compile) => number) => compiles.reduce((total, compile) => total + of(compile), 0);
  const [breaks, recompiles, graphs] = [
    sum((compile) => compile.graphBreaks),
    sum((compile) => Number(isRecompile(compile))),
    sum((compile) => compile.graphs),
  ];
  const refused = sum((compile) => Number(isRefused(compile)));
  const failed = sum((compile) => Number(compile.status === 'failed'));
  const open = sum((compile) => Number(compile.status === 'unfinished'));
  const problems = model.index.import_code.entries.reduce<number>(
    (total, value, i) => total + (model.index.import_code.severity[i] === 'info' ? 0 : value!),
    0,
  );
  const page = (query: Record<string, string | null>) => href(['compiles'], query);
  return [
    { count: compiles.length, text: plural(compiles.length, 'compile'), none: 'no compile', link: page({}) },
    { count: graphs, text: plural(graphs, 'graph'), none: '', link: href(['provenance']) },
    { count: failed, text: `${count(failed)} failed`, none: 'none failed', link: page({ q: 'status:failed' }), tone: 'bad' },
    {
      count: open,
      text: `${count(open)} ${isFollowing() ? 'not finished by now' : 'did not finish'}`,
      none: '',
      link: page({ q: 'status:unfinished' }),
      tone: isFollowing() ? undefined : 'bad',
    },
    { count: recompiles, text: plural(recompiles, 'recompile'), none: 'no recompile', link: page({ tab: 'recompiles' }), tone: 'warn' },
    { count: refused, text: `${count(refused)} refused at the recompile limit`, none: '', link: page({ tab: 'recompiles' }), tone: 'bad' },
    { count: breaks, text: plural(breaks, 'graph break'), none: 'no graph break', link: page({ tab: 'breaks' }), tone: 'warn' },
    { count: problems, text: plural(problems, 'log problem'), none: 'no log problem', link: href(['import-log']), tone: 'warn' },
  ];
}

// What there is, as links; what there is not, as words.
function Facts({ model }: { model: Model }) {
  const facts = factsOf(model);
  const lookups = cacheStates.map(
    (state) => [state, model.compiles.reduce((total, compile) => total + (compile.launch === model.launch ? compile.cache[state] : 0), 0)] as const,
  );
  const all = lookups.reduce((total, [, n]) => total + n, 0);
  const hits = lookups.find(([state]) => state === 'hit')![1];
  return (
    <p class="facts">
      {facts
        .filter((fact) => fact.count > 0)
        .map((fact) => (
          <a class={`fact ${fact.tone ?? ''}`} href={fact.link}>
            {fact.text}
          </a>
        ))}
      {all > 0 && (
        <a
          class="fact"
          href={href(['ranks'], { tab: 'cache' })}
          title={lookups
            .filter(([, n]) => n > 0)
            .map(([state, n]) => `${cacheNames[state]} ${n}`)
            .join(', ')}
        >
          {Math.round((100 * hits) / all)} % of {plural(all, 'cache lookup')} hit
        </a>
      )}
      <span class="quiet">
        {facts
          .filter((fact) => fact.count === 0 && fact.none)
          .map((fact) => fact.none)
          .join(', ')}
      </span>
    </p>
  );
}

function Attention({ model }: { model: Model }) {
  const findings = useFindings(model);
  return (
    <section class="attention" aria-label="What needs attention">
      <Waiting pending={findings}>{(value) => <Findings key={model.launch} model={model} findings={value} />}</Waiting>
    </section>
  );
}

function CacheTable({ model }: { model: Model }) {
  const table = model.index.cache_state;
  const layers = [...new Set(table.layer.filter((_, i) => table.launch[i] === model.launch))];
  const cell = (layer: string | null, state: CacheState) => {
    const row = table.layer.findIndex((name, i) => name === layer && table.state[i] === state && table.launch[i] === model.launch);
    return row < 0 ? 0 : table.events[row]!;
  };
  if (layers.length === 0)
    return (
      <p class="quiet">
        No cache lookups in {model.launches > 1 ? 'the logs of this launch' : 'this log'}: caching was off, or the compiles never reached Inductor.
      </p>
    );
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

function Profiles({ model }: { model: Model }) {
  const profiles = useMemo(() => profilesOf(model), [model]);
  const recordings = model.index.memory;
  const linkOf = (profile: Profile): string | null => {
    if (isMeasured(profile)) return href(['cost'], { profile: profile.id });
    const row = recordings.profile_id.indexOf(profile.id);
    return row < 0 ? null : href(['memory'], { recording: recordings.id[row] });
  };
  const columns: Column<Profile>[] = [
    {
      key: 'name',
      title: 'File',
      width: 'minmax(130px, 2fr)',
      about: (profile) => profile.path,
      cell: (profile) => (linkOf(profile) === null ? profile.name : <a href={linkOf(profile)!}>{profile.name}</a>),
    },
    { key: 'kind', title: 'Kind', width: '118px', cell: kindText },
    { key: 'what', title: 'Holds', width: 'minmax(110px, 1.4fr)', about: holdsText, cell: holdsText },
  ];
  if (profiles.some((profile) => profile.problems > 0 || profile.overlapsId !== null))
    columns.push({
      key: 'problems',
      title: '',
      width: '70px',
      about: (profile) => caveatsOf(profile).join('\n'),
      cell: (profile) =>
        profile.problems > 0 ? (
          <a class="tag severity-warning" href={problemsOf(profile.path)}>
            damaged
          </a>
        ) : profile.overlapsId !== null ? (
          <span class="tag">overlaps</span>
        ) : null,
    });
  if (profiles.length === 0) return null;
  return (
    <Section title="Profiles and dumps" aside={profiles.some(isMeasured) && <a href={href(['cost'])}>where the time went</a>}>
      <Grid
        label="Profiles and dumps"
        rows={profiles}
        columns={columns}
        rowKey={(profile) => profile.id}
        height={`${Math.min(profiles.length, 10) * 26 + 30}px`}
        empty=""
      />
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
  const run = model.index.run.is_current.indexOf(1);
  const bases = [...new Set(model.processes.map((process) => process.timeBasis))];
  const ranks = model.processes.flatMap((process) => (process.rank === null ? [] : [process.rank]));
  const hasLog = isLive || model.index.log_file.rows > 0;
  return (
    <div class="page">
      <JobLine model={model} />
      <RanksNow />
      {hasLog && <Attention model={model} />}
      {hasLog && <Facts model={model} />}
      {!hasLog && <DeviceTime model={model} />}
      {!hasLog && <MemoryPeak model={model} />}
      {!hasLog && <Attention model={model} />}
      <CompileTime model={model} />
      {hasLog && <DeviceTime model={model} />}
      {hasLog && (
        <Section title="Compiles over time" aside={<span class="quiet">{bases.includes('none') ? 'logs whose clock is unknown are not drawn' : ''}</span>}>
          <CompileChart model={model} />
        </Section>
      )}
      <div class={hasLog ? 'columns' : ''}>
        <div>
          {hasLog && (
            <Section title="Caches" aside={<a href={href(['ranks'], { tab: 'cache' })}>by compile{ranks.length > 1 ? ' and rank' : ''}</a>}>
              <CacheTable model={model} />
            </Section>
          )}
          <Profiles model={model} />
        </div>
        <div>
          {hasLog && (
            <Section title={ranks.length > 0 ? `Processes: ranks ${ranges(ranks)}` : 'Processes'}>
              <Processes model={model} />
            </Section>
          )}
          <p class="quiet small">
            {isLive ? 'Followed' : 'Read'} by tlparse {model.index.run.tool_version[run]} {isLive ? 'since' : 'at'} {model.index.run.created_at[run]} from{' '}
            {hasLog
              ? `${plural(model.index.log_file.rows, 'log')} (${bytes(model.counts.get('bytes'))})${otherFiles(model)}`
              : plural(new Set(model.index.profile.path).size, 'file')}
            .{' '}
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
