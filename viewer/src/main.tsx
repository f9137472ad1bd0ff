import { render } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import './style.css';
import { isLive, isServed, loaded, searchOf } from './data/chunks';
import { hasMeasuredRuns, measuresRanks } from './data/profiles';
import { blockOf, loadAhead, loadBlock, loadText, loadedText, useModel, type Choice, type Model } from './data/model';
import { baseName, count } from './lib/format';
import { behindFrame } from './lib/schedule';
import { CompilePage } from './pages/compile';
import { ComparePage } from './pages/compare';
import { firstPair } from './pages/compare_pair';
import { CompilesPage } from './pages/compiles';
import { CostPage } from './pages/cost';
import { DiffPage } from './pages/diff';
import { ExportPage } from './pages/export';
import { ImportLogPage } from './pages/import_log';
import { MemoryPage } from './pages/memory';
import { OverviewPage } from './pages/overview';
import { ProcessPage } from './pages/process';
import { ProvenancePage } from './pages/provenance';
import { RanksPage } from './pages/ranks';
import { SearchPage } from './pages/search';
import { SourcePage } from './pages/source';
import { SqlPage } from './pages/sql';
import { TimePage } from './pages/time';
import { TimelinePage } from './pages/timeline';
import { TorchLogsPage } from './pages/torch_logs';
import { followLinks, go, href, parseRoute, setQuery, useRoute, type Route } from './route';
import { Empty, Waiting } from './ui/bits';
import { KeyHelp } from './ui/keys';
import { LiveBar } from './ui/live_bar';
import { memo } from './ui/virtual';

// Pages without data are not there; while a job is watched, theirs may come.
const pages: { key: string; title: string; shown?: (model: Model) => boolean }[] = [
  { key: 'overview', title: 'Overview' },
  { key: 'compiles', title: 'Compiles', shown: (model) => model.allCompiles.length > 0 || isLive },
  { key: 'ranks', title: 'Ranks', shown: (model) => model.allProcesses.length > 1 || measuresRanks(model) || isLive },
  {
    key: 'compare',
    title: 'Compare',
    shown: (model) => model.peers.length > 1 || model.launches > 1 || model.index.run.rows > 1 || model.index.served_run.rows > 0 || firstPair(model) !== null,
  },
  { key: 'provenance', title: 'Provenance', shown: (model) => has(model, 'provenance_graphs') },
  { key: 'source', title: 'Source', shown: (model) => has(model, 'has_source') },
  { key: 'cost', title: 'Cost', shown: hasMeasuredRuns },
  { key: 'memory', title: 'Memory', shown: (model) => model.index.memory.rows > 0 },
  { key: 'time', title: 'Time', shown: (model) => has(model, 'has_events') },
  { key: 'timeline', title: 'Timeline', shown: (model) => has(model, 'has_events') || hasMeasuredRuns() },
  { key: 'torch-logs', title: 'TORCH_LOGS', shown: (model) => has(model, 'torch_log') },
  { key: 'import-log', title: 'Import log', shown: (model) => has(model, 'import_log') },
  { key: 'export', title: 'Export', shown: (model) => has(model, 'has_export') },
  { key: 'sql', title: 'SQL', shown: () => isServed },
];
const has = (model: Model, name: string) => (model.counts.get(name) ?? 0) > 0;

function Page({ model, route }: { model: Model; route: Route }) {
  const [name = 'overview', id] = route.path;
  const number = Number(id);
  switch (name) {
    case 'overview':
      return <OverviewPage model={model} />;
    case 'compiles':
      return <CompilesPage model={model} route={route} />;
    case 'compare':
      return <ComparePage model={model} route={route} />;
    case 'compile':
      return <CompilePage key={number} model={model} route={route} id={number} />;
    case 'process':
      return <ProcessPage key={number} model={model} route={route} id={number} />;
    case 'ranks':
      return <RanksPage model={model} route={route} />;
    case 'provenance':
      return <ProvenancePage model={model} route={route} graphId={id === undefined ? null : number} />;
    case 'source':
      return <SourcePage model={model} route={route} />;
    case 'cost':
      return <CostPage model={model} route={route} />;
    case 'memory':
      return <MemoryPage model={model} route={route} />;
    case 'time':
      return <TimePage model={model} route={route} />;
    case 'timeline':
      return <TimelinePage model={model} route={route} />;
    case 'torch-logs':
      return <TorchLogsPage model={model} route={route} />;
    case 'import-log':
      return <ImportLogPage model={model} route={route} />;
    case 'export':
      return <ExportPage model={model} route={route} />;
    case 'diff':
      return <DiffPage model={model} route={route} />;
    case 'search':
      return <SearchPage model={model} route={route} />;
    case 'sql':
      return <SqlPage route={route} />;
    default:
      return (
        <Empty>
          There is no page “{name}”. <a href="#/">Overview</a>
        </Empty>
      );
  }
}

// Loads what a compile's view shows, or the text of one of its records.
function prepareRoute({ path, query }: Route): Promise<unknown> | undefined {
  const index = loaded('index');
  const id = Number(path[1]);
  if (path[0] !== 'compile' || !index || !Number.isInteger(id)) return undefined;
  const block = loaded('compile', blockOf(index, 'compile', id));
  const record = block?.record.id.indexOf(Number(query.get('record'))) ?? -1;
  const hash = record < 0 ? null : block!.record.payload_hash[record];
  const text = hash === null ? null : { hash, sizeBytes: block!.record.size_bytes[record] ?? 0 };
  if (!block) return loadBlock('compile', id);
  return text && !loadedText(text) ? loadText(text) : undefined;
}

type Theme = 'auto' | 'light' | 'dark';

function readTheme(): Theme {
  try {
    const stored = localStorage.getItem('tlparse-theme');
    return stored === 'light' || stored === 'dark' ? stored : 'auto';
  } catch {
    return 'auto'; // storage may be refused on file://
  }
}

const ThemeButton = memo(() => {
  const [theme, setTheme] = useState(readTheme);
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem('tlparse-theme', theme);
    } catch {
      // Without storage the choice holds for this page only.
    }
  }, [theme]);
  const next: Record<Theme, Theme> = { auto: 'light', light: 'dark', dark: 'auto' };
  return (
    <button class="theme" onClick={() => setTheme(next[theme])} title={`Colours: ${theme}`}>
      <span aria-hidden="true">{theme === 'auto' ? '◐' : theme === 'light' ? '☀' : '☾'}</span>
      <span class="unseen">Colours: {theme}</span>
    </button>
  );
});

const SearchBox = memo(() => {
  const input = useRef<HTMLInputElement>(null);
  // A typed letter is drawn before its results.
  const later = useRef(behindFrame((text: string) => show(text))).current;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const typing = (event.target as Element).closest?.('input,textarea,select');
      if (event.key === '/' && !typing && !event.ctrlKey && !event.metaKey) {
        input.current?.focus();
        input.current?.select();
        event.preventDefault();
      }
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, []);
  const show = (text: string) => {
    later.cancel();
    const target = href(['search'], { q: text });
    // One step of history per search, not per letter.
    if (parseRoute(location.hash).path[0] === 'search') {
      history.replaceState(null, '', target);
      window.dispatchEvent(new HashChangeEvent('hashchange'));
    } else go(target);
  };
  return (
    <input
      ref={input}
      class="search"
      type="search"
      placeholder="Search   /"
      aria-label="Search compiles, functions, kernels and artifacts"
      onInput={(event) => (event.currentTarget.value ? later.run(event.currentTarget.value) : later.cancel())}
      onKeyDown={(event) => {
        if (event.key === 'Enter' && event.currentTarget.value) show(event.currentTarget.value);
        if (event.key === 'Escape') event.currentTarget.blur();
        if (event.key === 'ArrowDown') document.querySelector<HTMLElement>('main a')?.focus();
      }}
    />
  );
});

// What the page shows: the run of a served database, the launch, the rank. Chosen, it stays chosen.
const Choices = memo(({ model }: { model: Model }) => {
  const { run, served_run: served } = model.index;
  const ranks = [...new Set(model.peers.flatMap((process) => (process.rank === null ? [] : [process.rank])))];
  const latest = Array.from({ length: model.launches }, (_, i) => model.launches - i).slice(0, mostLaunches);
  return (
    <div class="choices">
      {served.rows > 0 ? (
        <select
          aria-label="Run"
          onChange={(event) => {
            const [database, run] = event.currentTarget.value.split(':').map(Number);
            location.search = searchOf(run, database);
          }}
        >
          {[...new Set(served.database)].map((database) => (
            <optgroup label={served.database_name[served.database.indexOf(database)] ?? ''}>
              {served.id.map(
                (id, i) =>
                  served.database[i] === database && (
                    <option value={`${database}:${id}`} selected={served.is_current[i] === 1}>
                      {served.name[i]}
                    </option>
                  ),
              )}
            </optgroup>
          ))}
        </select>
      ) : isServed && run.rows > 1 ? (
        <select
          aria-label="Run"
          onChange={(event) => {
            location.search = searchOf(Number(event.currentTarget.value));
          }}
        >
          {run.id.map((id, i) => (
            <option value={id!} selected={run.is_current[i] === 1}>
              {run.name[i]}
            </option>
          ))}
        </select>
      ) : (
        <b class="run" title={model.runName}>
          {baseName(model.runName.replace(/\/+$/, ''))}
        </b>
      )}
      {model.launches > 1 && (
        <select aria-label="Launch" onChange={(event) => setQuery({ launch: event.currentTarget.value, rank: null }, true)}>
          {latest.map((launch) => (
            <option value={launch === model.launches ? '' : launch} selected={model.isOneLaunch && launch === model.launch}>
              launch {launch} of {model.launches}
            </option>
          ))}
          <option value="all" selected={!model.isOneLaunch}>
            all launches
          </option>
        </select>
      )}
      {ranks.length > 1 && (
        <select aria-label="Rank" onChange={(event) => setQuery({ rank: event.currentTarget.value }, true)}>
          <option value="" selected={model.rank === null}>
            all ranks
          </option>
          {ranks.map((rank) => (
            <option value={rank} selected={rank === model.rank}>
              rank {rank}
            </option>
          ))}
        </select>
      )}
    </div>
  );
});
const mostLaunches = 51; // of which a report has findings

function choiceOf(route: Route): Choice {
  const launch = route.query.get('launch');
  const rank = route.query.get('rank');
  return { launch: launch === 'all' ? 'all' : launch === null ? null : Number(launch), rank: rank === null || !/^\d+$/.test(rank) ? null : Number(rank) };
}

function App() {
  const route = useRoute();
  const choice = choiceOf(route);
  const model = useModel(choice);
  const current = route.path[0] ?? 'overview';
  const section = current === 'compile' || current === 'process' || current === 'diff' ? 'compiles' : current;
  const main = useRef<HTMLElement>(null);
  const path = route.path.join('/');
  const hasModel = model.value !== undefined;
  useEffect(() => {
    // For the benchmark: the first view is there after the next frame.
    if (!model.value) return;
    requestAnimationFrame(() => performance.mark('first-view'));
    if (!isLive) void loadAhead(model.value);
  }, [hasModel]);
  useEffect(() => window.scrollTo(0, 0), [path, hasModel]);
  useEffect(() => {
    const title = pages.find((page) => page.key === section)?.title ?? 'tlparse';
    const compile = current === 'compile' ? model.value?.compileById.get(Number(route.path[1])) : undefined;
    document.title = `${compile ? `${compile.title} ${compile.function ?? ''}` : title} · ${model.value?.runName ?? 'tlparse'}`.slice(0, 200);
  }, [path, model.value]);
  return (
    <>
      <header class="top">
        <a class="skip" href={location.hash || '#/'} onClick={(event) => (event.preventDefault(), main.current?.focus())}>
          Skip to content
        </a>
        <nav aria-label="Pages">
          {pages
            .filter((page) => (model.value ? (page.shown?.(model.value) ?? true) : page.key === section))
            .map((page) => (
              <a href={href(page.key === 'overview' ? [] : [page.key])} aria-current={page.key === section ? 'page' : undefined}>
                {page.key === 'export' && model.value && !has(model.value, 'is_export') ? 'Shapes' : page.title}
                {page.key === 'compiles' && model.value && <span class="count">{count(model.value.compiles.length)}</span>}
              </a>
            ))}
        </nav>
        <SearchBox />
        {model.value && <Choices model={model.value} />}
        <KeyHelp />
        <ThemeButton />
        <LiveBar />
      </header>
      <main id="content" ref={main} tabIndex={-1}>
        <Waiting pending={model}>{(value) => <Page key={`${choice.launch} ${choice.rank}`} model={value} route={route} />}</Waiting>
      </main>
    </>
  );
}

const root = document.getElementById('page')!;
root.textContent = '';
followLinks(prepareRoute);
render(<App />, root);
