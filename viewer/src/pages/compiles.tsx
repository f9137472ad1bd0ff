import { useMemo, useState } from 'preact/hooks';
import { useChunk, type Chunks } from '../data/chunks';
import type { Compile, Frame, Model } from '../data/model';
import { parseFilter } from '../lib/filter';
import { count, duration, plural, shorten } from '../lib/format';
import { href, setQuery, type Route } from '../route';
import { CacheSummary, CompileLink, Empty, PhaseBar, Place, Status, Tabs, Waiting } from '../ui/bits';
import { Grid, sortRows, type Column } from '../ui/virtual';

function compileColumns(model: Model, slowest: number): Column<Compile>[] {
  const hasRanks = model.processes.length > 1;
  const columns: Column<Compile>[] = [
    { key: 'id', title: 'Id', width: '76px', cell: (c) => <CompileLink compile={c} />, sort: (c) => c.id, hint: 'Compile id as PyTorch prints it: frame/compile of that frame' },
    { key: 'rank', title: 'Rank', width: '52px', align: 'right', cell: (c) => model.processById.get(c.processId)?.shortName, sort: (c) => c.rank ?? c.processId },
    { key: 'function', title: 'Function', width: 'minmax(140px, 2fr)', cell: (c) => <code title={c.function ?? ''}>{c.function && shorten(c.function, 200)}</code>, sort: (c) => c.function },
    { key: 'place', title: 'Place', width: 'minmax(90px, 1fr)', cell: (c) => <Place file={c.file} line={c.line} />, sort: (c) => `${c.file ?? ''}:${String(c.line ?? 0).padStart(8, '0')}` },
    { key: 'status', title: 'Status', width: '92px', cell: (c) => <Status status={c.status} />, sort: (c) => c.status },
    { key: 'start', title: 'Start', width: '78px', align: 'right', cell: (c) => (c.startUs === null ? '' : duration(c.startUs)), sort: (c) => c.startUs, hint: 'Since the first compile of the run' },
    { key: 'duration', title: 'Time', width: '78px', align: 'right', cell: (c) => duration(c.durationUs), sort: (c) => c.durationUs },
    { key: 'backward', title: 'Backward', width: '78px', align: 'right', cell: (c) => duration(c.backwardUs), sort: (c) => c.backwardUs, hint: 'Compile time of the backward, where it came later' },
    { key: 'phases', title: 'Phases', width: 'minmax(80px, 1fr)', cell: (c) => <PhaseBar compile={c} scaleUs={slowest} />, sort: (c) => c.inductorUs, hint: 'Dynamo, AOTAutograd, Inductor, backward; sorted by Inductor' },
    { key: 'graphs', title: 'Graphs', width: '62px', align: 'right', cell: (c) => c.graphs || '', sort: (c) => c.graphs },
    { key: 'ops', title: 'Ops', width: '54px', align: 'right', cell: (c) => count(c.ops), sort: (c) => c.ops },
    { key: 'guards', title: 'Guards', width: '62px', align: 'right', cell: (c) => count(c.guards), sort: (c) => c.guards },
    { key: 'breaks', title: 'Breaks', width: '60px', align: 'right', cell: (c) => c.graphBreaks || '', sort: (c) => c.graphBreaks },
    { key: 'cache', title: 'Cache', width: '112px', cell: (c) => <CacheSummary compile={c} />, sort: (c) => c.cache.miss * 100 + c.cache.guard_miss * 10 + c.cache.bypass },
  ];
  return columns.filter((column) => hasRanks || column.key !== 'rank');
}

const searchTexts = new WeakMap<Compile, string>();
function searchText(compile: Compile): string {
  let text = searchTexts.get(compile);
  if (text === undefined) {
    text = `${compile.title} ${compile.function ?? ''} ${compile.file ?? ''}:${compile.line ?? ''} ${compile.status} ${compile.failType ?? ''} ${compile.failReason ?? ''}`.toLowerCase();
    searchTexts.set(compile, text);
  }
  return text;
}

export function filterCompiles(compiles: Compile[], query: string): Compile[] {
  if (!query) return compiles;
  const filter = parseFilter(query);
  return compiles.filter((compile) =>
    filter.matches(searchText(compile), {
      id: compile.label,
      status: compile.status,
      rank: String(compile.rank ?? ''),
      function: (compile.function ?? '').toLowerCase(),
      file: (compile.file ?? '').toLowerCase(),
      frame: String(compile.frameId ?? ''),
      cache: (Object.entries(compile.cache) as [string, number][]).filter(([, value]) => value > 0).map(([state]) => state).join(' '),
    }),
  );
}

function CompileTable({ model, route }: { model: Model; route: Route }) {
  const query = route.query.get('q') ?? '';
  const sort = route.query.get('sort') ?? '';
  const slowest = useMemo(() => model.compiles.reduce((most, c) => Math.max(most, (c.durationUs ?? 0) + (c.backwardUs ?? 0)), 0), [model]);
  const columns = useMemo(() => compileColumns(model, slowest), [model, slowest]);
  const rows = useMemo(() => sortRows(filterCompiles(model.compiles, query), columns, sort), [model, query, sort, columns]);
  return (
    <>
      <div class="toolbar">
        <input
          type="search"
          class="filter"
          aria-label="Filter compiles"
          placeholder="Filter: words, status:failed, rank:3, cache:miss, function:forward, -word"
          value={query}
          onInput={(event) => setQuery({ q: event.currentTarget.value })}
        />
        <span class="quiet" role="status">
          {rows.length === model.compiles.length ? plural(rows.length, 'compile') : `${count(rows.length)} of ${plural(model.compiles.length, 'compile')}`}
        </span>
      </div>
      <div class="scroll-x">
        <div style={{ minWidth: '1010px' }}>
          <Grid
            label="Compiles"
            rows={rows}
            columns={columns}
            rowKey={(c) => c.id}
            rowHref={(c) => href(['compile', c.id])}
            rowClass={(c) => (c.status === 'failed' || c.status === 'unfinished' ? 'row-bad' : '')}
            sort={sort}
            onSort={(value) => setQuery({ sort: value })}
            height={rows.length > 20 ? 'calc(100vh - 160px)' : undefined}
            empty={model.compiles.length === 0 ? 'This log holds no compile: nothing was compiled while it was written, or it is the log of a process that only exports.' : `No compile matches “${query}”.`}
          />
        </div>
      </div>
    </>
  );
}

// ---- the stack trie

interface TrieNode {
  frame: Frame | null;
  children: Map<number, TrieNode>;
  compiles: Compile[];
  total: number;
  worst: number;
}

const severity: Record<string, number> = { ok: 0, empty: 1, skipped: 2, restarted: 2, unfinished: 3, failed: 4 };
const severityClass = ['ok', 'empty', 'restarted', 'unfinished', 'failed'];

function buildTrie(model: Model, compiles: Compile[]): { root: TrieNode; without: Compile[] } {
  const make = (frame: Frame | null): TrieNode => ({ frame, children: new Map(), compiles: [], total: 0, worst: 0 });
  const root = make(null);
  const nodes = new Map<number, TrieNode>();
  const nodeOf = (id: number): TrieNode => {
    const known = nodes.get(id);
    if (known) return known;
    const frame = model.frames.get(id)!;
    const node = make(frame);
    nodes.set(id, node);
    const parent = frame.parentId !== null && model.frames.has(frame.parentId) && frame.parentId < id ? nodeOf(frame.parentId) : root;
    parent.children.set(id, node);
    return node;
  };
  const without: Compile[] = [];
  for (const compile of compiles) {
    if (compile.stackId === null || !model.frames.has(compile.stackId)) without.push(compile);
    else nodeOf(compile.stackId).compiles.push(compile);
  }
  const sum = (node: TrieNode): void => {
    node.total = node.compiles.length;
    node.worst = node.compiles.reduce((worst, compile) => Math.max(worst, severity[compile.status] ?? 0), 0);
    for (const child of node.children.values()) {
      sum(child);
      node.total += child.total;
      node.worst = Math.max(node.worst, child.worst);
    }
  };
  sum(root);
  return { root, without };
}

interface TrieRow {
  node: TrieNode;
  depth: number;
  path: Frame[]; // a chain of frames with one child each is one row
  key: string;
}

function trieRows(root: TrieNode, closed: Set<string>): TrieRow[] {
  const rows: TrieRow[] = [];
  const visit = (start: TrieNode, depth: number) => {
    const path = [start.frame!];
    let node = start;
    while (node.children.size === 1 && node.compiles.length === 0) {
      node = [...node.children.values()][0];
      path.push(node.frame!);
    }
    const key = String(node.frame!.id);
    rows.push({ node, depth, path, key });
    if (!closed.has(key)) for (const child of node.children.values()) visit(child, depth + 1);
  };
  for (const child of root.children.values()) visit(child, 0);
  return rows;
}

function StackTree({ model, route }: { model: Model; route: Route }) {
  const query = route.query.get('q') ?? '';
  const [closed, setClosed] = useState<Set<string>>(new Set());
  const trie = useMemo(() => buildTrie(model, filterCompiles(model.compiles, query)), [model, query]);
  const rows = useMemo(() => trieRows(trie.root, closed), [trie, closed]);
  const toggle = (key: string) => {
    const next = new Set(closed);
    if (!next.delete(key)) next.add(key);
    setClosed(next);
  };
  const columns: Column<TrieRow>[] = [
    {
      key: 'frame',
      title: 'Called from',
      width: 'minmax(300px, 3fr)',
      cell: (row) => {
        const last = row.path[row.path.length - 1];
        return (
          <span style={{ paddingLeft: `${Math.min(row.depth, 30) * 14}px` }} title={row.path.map((frame) => `${frame.file}:${frame.line} in ${frame.function}`).join('\n')}>
            {row.node.children.size > 0 ? (
              <button class="twist" aria-expanded={!closed.has(row.key)} aria-label={`Frames below ${last.function}`} onClick={() => toggle(row.key)}>
                {closed.has(row.key) ? '▸' : '▾'}
              </button>
            ) : (
              <span class="twist" />
            )}
            <i class={`dot dot-${severityClass[row.node.worst]}`} /> <code>{last.function}</code> <Place file={last.file} line={last.line} />
            {row.path.length > 1 && <span class="quiet"> {plural(row.path.length - 1, 'frame')} above</span>}
          </span>
        );
      },
    },
    { key: 'code', title: 'Line', width: 'minmax(120px, 2fr)', cell: (row) => <code class="quiet">{[...row.path].reverse().find((frame) => frame.code)?.code}</code> },
    { key: 'total', title: 'Compiles', width: '76px', align: 'right', cell: (row) => count(row.node.total) },
    {
      key: 'compiles',
      title: 'Ids',
      width: 'minmax(160px, 2fr)',
      cell: (row) => (
        <>
          {row.node.compiles.slice(0, 12).map((compile) => (
            <a class={`tag status-${compile.status}`} href={href(['compile', compile.id])} title={`${compile.status}: ${compile.function ?? ''}, ${model.processById.get(compile.processId)?.name}`}>
              {compile.title}
            </a>
          ))}
          {row.node.compiles.length > 12 && <span class="quiet"> and {row.node.compiles.length - 12} more</span>}
        </>
      ),
    },
  ];
  return (
    <>
      <div class="toolbar">
        <input type="search" class="filter" aria-label="Filter compiles" placeholder="Filter: words, status:failed, rank:3" value={query} onInput={(event) => setQuery({ q: event.currentTarget.value })} />
        <span class="legend">
          {severityClass.map((name) => (
            <span>
              <i class={`dot dot-${name}`} /> {name}
            </span>
          ))}
        </span>
        {trie.without.length > 0 && <span class="quiet">{plural(trie.without.length, 'compile')} without a stack</span>}
      </div>
      <Grid label="Stacks that led to compiles" rows={rows} columns={columns} rowKey={(row) => row.key} height={rows.length > 20 ? 'calc(100vh - 160px)' : undefined} empty="No compile here has a stack: the log has no dynamo_start records, as with AOTInductor and export." />
    </>
  );
}

// ---- problems

interface Problem {
  key: string;
  compile: Compile | undefined;
  text: string;
  detail: string;
  file: string | null;
  line: number | null;
  kind: string;
  recordId: number | null;
}

function problemsOf(model: Model, chunk: Chunks['problems'], tab: string): Problem[] {
  const compileOf = (id: number | null) => (id === null ? undefined : model.compileById.get(id));
  if (tab === 'breaks') {
    const t = chunk.graph_break;
    return t.reason.map((reason, i) => ({ key: `b${i}`, compile: compileOf(t.compile_id[i]), text: reason ?? '', detail: t.user_stack[i] ?? '', file: t.user_file[i], line: t.user_line[i], kind: `attempt ${t.attempt[i] ?? 0}`, recordId: t.record_id[i] }));
  }
  const t = chunk.failure;
  return t.reason.map((reason, i) => ({ key: `f${i}`, compile: compileOf(t.compile_id[i]), text: [t.type[i], reason].filter(Boolean).join(': '), detail: '', file: t.user_file[i], line: t.user_line[i], kind: t.kind[i] ?? '', recordId: t.record_id[i] }));
}

function Problems({ model, chunk, tab, route }: { model: Model; chunk: Chunks['problems']; tab: string; route: Route }) {
  const query = (route.query.get('q') ?? '').toLowerCase();
  const all = useMemo(() => problemsOf(model, chunk, tab), [model, chunk, tab]);
  const rows = useMemo(() => {
    const filter = parseFilter(query);
    return query ? all.filter((row) => filter.matches(`${row.text} ${row.file}:${row.line} ${row.kind} ${row.compile ? searchText(row.compile) : ''}`.toLowerCase(), { kind: row.kind.toLowerCase() })) : all;
  }, [all, query]);
  const selected = route.query.get('row');
  const open = all.find((row) => row.key === selected);
  const columns: Column<Problem>[] = [
    { key: 'id', title: 'Compile', width: '84px', cell: (row) => row.compile && <CompileLink compile={row.compile} query={row.recordId === null ? undefined : { record: row.recordId }} /> },
    { key: 'rank', title: 'Rank', width: '52px', align: 'right', cell: (row) => row.compile && model.processById.get(row.compile.processId)?.shortName },
    { key: 'function', title: 'Function', width: 'minmax(110px, 1fr)', cell: (row) => <code>{row.compile?.function}</code> },
    { key: 'kind', title: tab === 'breaks' ? 'Attempt' : 'Kind', width: '96px', cell: (row) => row.kind },
    { key: 'text', title: 'Reason', width: 'minmax(260px, 4fr)', cell: (row) => <span title={shorten(row.text, 2000)}>{shorten(row.text.split('\n')[0], 300)}</span> },
    { key: 'place', title: 'Python line', width: 'minmax(110px, 1fr)', cell: (row) => <Place file={row.file} line={row.line} /> },
  ];
  return (
    <>
      <div class="toolbar">
        <input type="search" class="filter" aria-label="Filter" placeholder="Filter" value={route.query.get('q') ?? ''} onInput={(event) => setQuery({ q: event.currentTarget.value })} />
        <span class="quiet">{rows.length === all.length ? '' : `${rows.length} of ${all.length}`}</span>
      </div>
      <Grid
        label={tab === 'breaks' ? 'Graph breaks' : 'Failures and restarts'}
        rows={rows}
        columns={columns}
        rowKey={(row) => row.key}
        selected={selected}
        onSelect={(row) => setQuery({ row: row.key }, true)}
        height={`${Math.min(rows.length + 1.4, 16) * 26}px`}
        empty={all.length === 0 ? (tab === 'breaks' ? 'No graph breaks: Dynamo traced every frame of this log in one piece.' : 'No compile failed and none was restarted.') : `Nothing matches “${query}”.`}
      />
      {open && (
        <section class="detail" aria-label="Reason">
          <pre>{open.text}</pre>
          {open.detail && <pre class="quiet-text">{open.detail}</pre>}
        </section>
      )}
    </>
  );
}

interface Recompile {
  compile: Compile;
  prior: Compile | undefined;
  priorLabel: string;
  guard: string | null;
  reason: string;
  file: string | null;
  line: number | null;
  recordId: number;
}

function Recompiles({ model, chunk, route }: { model: Model; chunk: Chunks['problems']; route: Route }) {
  const query = route.query.get('q') ?? '';
  const chains = useMemo(() => {
    const t = chunk.recompile;
    const byFrame = new Map<string, { first: Compile; edges: Recompile[] }>();
    t.compile_id.forEach((id, i) => {
      const compile = id === null ? undefined : model.compileById.get(id);
      if (!compile) return;
      const key = `${compile.processId} ${compile.frameId ?? compile.function} ${compile.generation}`;
      if (!byFrame.has(key)) byFrame.set(key, { first: compile, edges: [] });
      byFrame.get(key)!.edges.push({
        compile,
        prior: t.prior_compile_id[i] === null ? undefined : model.compileById.get(t.prior_compile_id[i]!),
        priorLabel: t.prior_label[i] ?? '?',
        guard: t.guard[i],
        reason: t.reason[i] ?? '',
        file: t.user_file[i],
        line: t.user_line[i],
        recordId: t.record_id[i]!,
      });
    });
    return [...byFrame.values()].sort((a, b) => b.edges.length - a.edges.length);
  }, [model, chunk]);
  if (chains.length === 0) return <Empty>No recompiles: every frame was compiled once, or the log does not say why it was compiled again.</Empty>;
  const filter = parseFilter(query);
  const shown = chains.filter((chain) => !query || filter.matches(`${searchText(chain.first)} ${chain.edges.map((edge) => `${edge.reason} ${edge.file}`).join(' ')}`.toLowerCase(), { rank: String(chain.first.rank ?? ''), function: (chain.first.function ?? '').toLowerCase() }));
  const limit = 60;
  return (
    <>
      <div class="toolbar">
        <input type="search" class="filter" aria-label="Filter recompiles" placeholder="Filter: function, guard, rank:3" value={query} onInput={(event) => setQuery({ q: event.currentTarget.value })} />
        <span class="quiet">
          {plural(shown.length, 'frame')} compiled again{shown.length > limit ? `, the first ${limit} are shown` : ''}
        </span>
      </div>
      {shown.slice(0, limit).map((chain) => (
        <RecompileChain model={model} first={chain.first} edges={chain.edges} />
      ))}
      {shown.length === 0 && <Empty>Nothing matches “{query}”.</Empty>}
    </>
  );
}

function RecompileChain({ model, first, edges }: { model: Model; first: Compile; edges: Recompile[] }) {
  const byCompile = new Map<number, Recompile[]>();
  for (const edge of edges) byCompile.set(edge.compile.id, [...(byCompile.get(edge.compile.id) ?? []), edge]);
  const [isOpen, setOpen] = useState(byCompile.size <= 12);
  const entries = [...byCompile.entries()];
  return (
    <section class="chain">
      <h2>
        <code>{first.function && shorten(first.function, 120)}</code> <Place file={first.file} line={first.line} />
        <span class="quiet">
          {' '}
          {model.processById.get(first.processId)?.name}, compiled again {byCompile.size === 1 ? 'once' : `${byCompile.size} times`}
        </span>
      </h2>
      <ol>
        {(isOpen ? entries : entries.slice(0, 8)).map(([id, reasons]) => (
          <li>
            <CompileLink compile={model.compileById.get(id)!} query={{ record: reasons[0].recordId }} />
            <div>
              {reasons.map((edge) => (
                <div class="reason">
                  <span class="quiet">instead of {edge.prior ? <CompileLink compile={edge.prior} /> : edge.priorLabel}:</span>{' '}
                  <code class="guard" title={shorten(edge.reason, 1000)}>
                    {shorten(edge.guard ?? edge.reason, 260)}
                  </code>{' '}
                  <Place file={edge.file} line={edge.line} />
                </div>
              ))}
            </div>
          </li>
        ))}
      </ol>
      {entries.length > 8 && (
        <button class="link" onClick={() => setOpen(!isOpen)}>
          {isOpen ? 'Show fewer' : `Show all ${entries.length}`}
        </button>
      )}
    </section>
  );
}

export function CompilesPage({ model, route }: { model: Model; route: Route }) {
  const tab = route.query.get('tab') ?? 'table';
  const problems = useChunk(tab === 'table' || tab === 'stacks' ? null : 'problems');
  const failures = model.index.failure_group.failures.reduce<number>((sum, value) => sum + (value ?? 0), 0);
  const tabs = [
    { key: 'table', title: 'Table' },
    { key: 'stacks', title: 'Stacks' },
    { key: 'recompiles', title: 'Recompiles', count: model.counts.get('recompiles') ?? 0 },
    { key: 'breaks', title: 'Graph breaks', count: model.counts.get('graph_breaks') ?? 0 },
    { key: 'failures', title: 'Failures and restarts', count: failures },
  ];
  return (
    <div class="page wide">
      <h1 class="unseen">Compiles</h1>
      <Tabs tabs={tabs} current={tab} link={(key) => href(['compiles'], { tab: key === 'table' ? null : key, q: key === 'table' || key === 'stacks' ? route.query.get('q') : null })} />
      {tab === 'table' && <CompileTable model={model} route={route} />}
      {tab === 'stacks' && <StackTree model={model} route={route} />}
      {tab === 'recompiles' && <Waiting pending={problems}>{(chunk) => <Recompiles model={model} chunk={chunk} route={route} />}</Waiting>}
      {(tab === 'breaks' || tab === 'failures') && <Waiting pending={problems}>{(chunk) => <Problems key={tab} model={model} chunk={chunk} tab={tab} route={route} />}</Waiting>}
    </div>
  );
}
