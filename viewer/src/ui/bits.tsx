// Small pieces that every page uses.
import type { ComponentChildren } from 'preact';
import type { Pending } from '../data/chunks';
import { isFollowing } from '../data/live';
import type { CacheState, Compile, Frame } from '../data/model';
import { duration, percent, place, wholePlace } from '../lib/format';
import { href, type Route } from '../route';

const statusWords: Record<string, string> = {
  ok: 'compiled',
  restarted: 'compiled after a retry: the analysis was started again, as after a graph break',
  empty: 'no graph was captured: nothing to compile',
  loaded: 'loaded: precompiled code came from a store, nothing was traced',
  failed: 'failed',
  skipped: 'skipped: runs without being compiled',
  unfinished: 'compile did not finish: the log ends inside it',
  context: 'no compile of its own: a context of compiled autograd, or records without a compile id',
};

export function Status({ status }: { status: string }) {
  const isOpen = status === 'unfinished' && isFollowing();
  return (
    <span class={`tag status-${isOpen ? 'open' : status}`} title={isOpen ? 'compile has not finished by now' : statusWords[status]}>
      {status}
    </span>
  );
}

export const cacheNames: Record<CacheState, string> = {
  hit: 'hit',
  miss: 'miss',
  guard_miss: 'guard miss',
  remote_error: 'remote error',
  bypass: 'bypass',
  disabled: 'off',
};
export const cacheSigns: Record<CacheState, string> = { hit: '✓', miss: '✗', guard_miss: '◐', remote_error: '⚠', bypass: '→', disabled: '–' };

export function CacheTag({ state }: { state: string }) {
  const known = state as CacheState;
  return (
    <span class={`tag cache-${state}`}>
      <span aria-hidden="true">{cacheSigns[known] ?? '?'} </span>
      {cacheNames[known] ?? state}
    </span>
  );
}

export function CacheSummary({ compile }: { compile: Compile }) {
  const parts = (Object.keys(compile.cache) as CacheState[]).filter((state) => compile.cache[state] > 0);
  return (
    <span>
      {parts.map((state) => {
        const label = `${compile.cache[state]} cache lookups: ${cacheNames[state]}`;
        return (
          <span class={`tag cache-${state}`} title={label} role="img" aria-label={label}>
            {`${cacheSigns[state]} ${compile.cache[state]}`}
          </span>
        );
      })}
    </span>
  );
}

export const phases = [
  { key: 'dynamoUs', name: 'Dynamo' },
  { key: 'aotUs', name: 'AOTAutograd' },
  { key: 'inductorUs', name: 'Inductor' },
  { key: 'backwardUs', name: 'Backward' },
] as const;

// The share of each phase, as a bar of full width = `scaleUs`. One element: tables show thousands.
export function PhaseBar({ compile, scaleUs }: { compile: Compile; scaleUs: number }) {
  const title = phases.map((phase) => `${phase.name} ${duration(compile[phase.key]) || '–'}`).join(', ');
  let end = 0;
  const stops = phases.map((phase, i) => {
    const from = end;
    end += (100 * (compile[phase.key] ?? 0)) / Math.max(1, scaleUs);
    return `var(--phase-${i}) ${from}% ${end}%`;
  });
  return (
    <span
      class="phase-bar"
      title={title}
      role="img"
      aria-label={title}
      style={{ backgroundImage: `linear-gradient(to right, ${stops.join(', ')}, transparent ${end}%)` }}
    />
  );
}

// A share of measured time, as a number and a bar. One element: tables show thousands.
export function HeatBar({ share }: { share: number }) {
  const width = Math.min(100, 100 * share);
  return (
    <span class="heat" style={{ backgroundImage: `linear-gradient(to right, var(--heat) ${width}%, transparent ${width}%)` }}>
      {percent(share)}
    </span>
  );
}

export function CompileLink({ compile, children, query }: { compile: Compile; children?: ComponentChildren; query?: Record<string, string | number> }) {
  return (
    <a href={href(['compile', compile.id], query)} title={`${compile.title} ${compile.function ?? ''}`}>
      {children ?? compile.title}
    </a>
  );
}

// Every place leads to its line on the page of sources.
export function Place({ file, line }: { file: string | null; line: number | null }) {
  if (!file) return null;
  // A file that the log does not name, or code that has none.
  if (file.startsWith('<')) return <span class="place">{wholePlace(file, line)}</span>;
  return (
    <a class="place" href={href(['source', file], { line })} title={wholePlace(file, line)}>
      {/* Where it does not fit the name is cut, not the line. */}
      <span class="place-file">{place(file, null)}</span>
      {line !== null && <span>:{line}</span>}
    </a>
  );
}

function hintOf(reason: string): { hint?: string; code?: string } {
  const [first] = reason.split('\n'); // a stack may follow
  return { hint: /\(HINT:\s*(.*)\)\s*$/.exec(first)?.[1], code: /\s#\s(.*)\s#\s/.exec(first)?.[1].trim() };
}

// Equal for reasons with the same code and advice.
export function hintKey(reason: string): string {
  const { hint, code } = hintOf(reason);
  return `${hint ?? ''}\n${code ?? ''}`;
}

// The parts of a recompile's reason other than the guard: the code it comes from, and PyTorch's advice.
export function GuardHint({ reason }: { reason: string }) {
  const { hint, code } = hintOf(reason);
  return (
    <>
      {code && <div class="code-quote">{code}</div>}
      {hint && (
        <div>
          <b>Hint of PyTorch:</b> {hint}
        </div>
      )}
    </>
  );
}

export function Stack({ frames }: { frames: Frame[] }) {
  return (
    <ol class="stack">
      {frames.map((frame) => (
        <li>
          <Place file={frame.file} line={frame.line} /> <span class="quiet">in</span> <code>{frame.function}</code>
          {frame.code && <div class="code-quote">{frame.code}</div>}
        </li>
      ))}
    </ol>
  );
}

// The rows of the import log about one file.
export const problemsOf = (path: string) => href(['import-log'], { q: `file:"${path}"` });

export function Waiting<T>({ pending, children }: { pending: Pending<T>; children: (value: T) => ComponentChildren }) {
  if (pending.error) {
    return (
      <div class="empty error" role="alert">
        {pending.error.message}
      </div>
    );
  }
  if (pending.value === undefined) return <p class="loading">Loading…</p>;
  return <>{children(pending.value)}</>;
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <div class="empty">{children}</div>;
}

export function Section({ title, aside, children, id }: { title: ComponentChildren; aside?: ComponentChildren; children: ComponentChildren; id?: string }) {
  return (
    <section class="section" id={id}>
      <header class="section-head">
        <h2>{title}</h2>
        {aside && <div class="aside">{aside}</div>}
      </header>
      {children}
    </section>
  );
}

// The tab that an address names; the first if it names none of these.
export function chosenTab(route: Route, tabs: { key: string }[]): string {
  const asked = route.query.get('tab');
  return tabs.find((tab) => tab.key === asked)?.key ?? tabs[0]?.key ?? '';
}

// Views that hold nothing are not offered; while a job is watched, something may come.
export function Tabs({ tabs, current, link }: { tabs: { key: string; title: string; count?: number }[]; current: string; link: (key: string) => string }) {
  return (
    <nav class="tabs" aria-label="Views">
      {tabs
        .filter((tab) => tab.count !== 0 || tab.key === current || isFollowing())
        .map((tab) => (
          <a href={link(tab.key)} aria-current={tab.key === current ? 'page' : undefined}>
            {tab.title}
            {tab.count !== undefined && <span class="count">{tab.count}</span>}
          </a>
        ))}
    </nav>
  );
}
