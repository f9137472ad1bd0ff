import { render } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import './style.css';
import { isLive, isServed, loaded, searchOf } from './data/chunks';
import { hasMeasuredRuns } from './data/profiles';
import { blockOf, loadAhead, loadBlock, loadText, loadedText, useModel, type Model } from './data/model';
import { bytes, count, plural, ranges } from './lib/format';
import { behindFrame, whenIdle } from './lib/schedule';
import { CompilePage } from './pages/compile';
import { CompilesPage } from './pages/compiles';
import { CostPage } from './pages/cost';
import { DiffPage } from './pages/diff';
import { ExportPage } from './pages/export';
import { ImportLogPage } from './pages/import_log';
import { OverviewPage } from './pages/overview';
import { ProcessPage } from './pages/process';
import { ProvenancePage } from './pages/provenance';
import { RanksPage } from './pages/ranks';
import { SearchPage } from './pages/search';
import { SqlPage } from './pages/sql';
import { TimelinePage } from './pages/timeline';
import { followLinks, go, href, parseRoute, useRoute, type Route } from './route';
import { Empty, Waiting } from './ui/bits';
import { LiveBar } from './ui/live_bar';
import { memo } from './ui/virtual';

const pages: { key: string; title: string; shown?: () => boolean }[] = [
  { key: 'overview', title: 'Overview' },
  { key: 'compiles', title: 'Compiles' },
  { key: 'ranks', title: 'Ranks' },
  { key: 'provenance', title: 'Provenance' },
  { key: 'cost', title: 'Cost', shown: hasMeasuredRuns },
  { key: 'timeline', title: 'Timeline' },
  { key: 'import-log', title: 'Import log' },
  { key: 'export', title: 'Export' },
  { key: 'sql', title: 'SQL', shown: () => isServed },
];

function Page({ model, route }: { model: Model; route: Route }) {
  const [name = 'overview', id] = route.path;
  const number = Number(id);
  switch (name) {
    case 'overview':
      return <OverviewPage model={model} />;
    case 'compiles':
      return <CompilesPage model={model} route={route} />;
    case 'compile':
      return <CompilePage key={number} model={model} route={route} id={number} />;
    case 'process':
      return <ProcessPage key={number} model={model} route={route} id={number} />;
    case 'ranks':
      return <RanksPage model={model} route={route} />;
    case 'provenance':
      return <ProvenancePage model={model} route={route} graphId={id === undefined ? null : number} />;
    case 'cost':
      return <CostPage model={model} route={route} />;
    case 'timeline':
      return <TimelinePage model={model} route={route} />;
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

// Draws likely next views invisibly, one in each idle moment: the browser must compile code that runs for the first time,
// and on busy cores that takes longer than the view itself.
async function drawAhead(model: Model): Promise<void> {
  const first = model.compiles[0];
  if (first) await loadBlock('compile', first.id).catch(() => undefined);
  const unseen = document.createElement('div');
  for (const hash of ['#/compiles', '#/compiles?sort=function', '#/compiles?q=a', `#/compile/${first?.id}`, '#/ranks', '#/search?q=a', '#/search?q=ab']) {
    await new Promise<void>(whenIdle);
    render(<Page model={model} route={parseRoute(hash)} />, unseen);
  }
  render(null, unseen);
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
      placeholder="Search compiles, kernels, artifacts   /"
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

const RunName = memo(({ model }: { model: Model }) => {
  const ranks = model.processes.flatMap((process) => (process.rank === null ? [] : [process.rank]));
  const versions = [...new Set(model.processes.flatMap((process) => process.torchVersion ?? []))];
  const run = model.index.run;
  const facts = [
    versions.length > 0 ? `PyTorch ${versions.join(', ')}` : null,
    ranks.length > 0 ? `${new Set(ranks).size > 1 ? 'ranks' : 'rank'} ${ranges(ranks)}` : plural(model.processes.length, 'process', 'processes'),
    plural(model.counts.get('records') ?? 0, 'record'),
    bytes(model.counts.get('bytes') ?? 0),
  ].filter(Boolean);
  return (
    <div class="run" title={`${model.runName}\n${facts.join(' · ')}`}>
      {isServed && run.rows > 1 ? (
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
        <b>{model.runName}</b>
      )}
      <span class="quiet">{facts.join(' · ')}</span>
    </div>
  );
});

function App() {
  const route = useRoute();
  const model = useModel();
  const current = route.path[0] ?? 'overview';
  const section = current === 'compile' || current === 'process' || current === 'diff' ? 'compiles' : current;
  const main = useRef<HTMLElement>(null);
  const path = route.path.join('/');
  const hasModel = model.value !== undefined;
  useEffect(() => {
    // For the benchmark: the first view is there after the next frame.
    if (!model.value) return;
    requestAnimationFrame(() => performance.mark('first-view'));
    if (isLive) return; // a view that is drawn ahead would be out of date when it is opened
    void loadAhead(model.value).then((isLoaded) => (isLoaded ? drawAhead(model.value!) : undefined));
  }, [hasModel]);
  useEffect(() => window.scrollTo(0, 0), [path, hasModel]);
  useEffect(() => {
    const title = pages.find((page) => page.key === section)?.title ?? 'tlparse';
    const compile = current === 'compile' ? model.value?.compileById.get(Number(route.path[1])) : undefined;
    document.title = `${compile ? `${compile.title} ${compile.function ?? ''}` : title} · ${model.value?.runName ?? 'tlparse'}`.slice(0, 200);
  }, [path, model.value]);
  return (
    <>
      <a class="skip" href={location.hash || '#/'} onClick={(event) => (event.preventDefault(), main.current?.focus())}>
        Skip to content
      </a>
      <header class="top">
        <nav aria-label="Pages">
          {pages
            .filter((page) => page.shown?.() ?? true)
            .map((page) => (
              <a href={href(page.key === 'overview' ? [] : [page.key])} aria-current={page.key === section ? 'page' : undefined}>
                {page.title}
                {page.key === 'compiles' && model.value && <span class="count">{count(model.value.compiles.length)}</span>}
              </a>
            ))}
        </nav>
        <SearchBox />
        {model.value && <RunName model={model.value} />}
        <ThemeButton />
        <LiveBar />
      </header>
      <main id="content" ref={main} tabIndex={-1}>
        <Waiting pending={model}>{(value) => <Page model={value} route={route} />}</Waiting>
      </main>
    </>
  );
}

const root = document.getElementById('page')!;
root.textContent = '';
followLinks(prepareRoute);
render(<App />, root);
