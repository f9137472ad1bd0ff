import { useMemo, useState } from 'preact/hooks';
import type { Chunks } from '../data/chunks';
import { searchText } from '../data/compile_filter';
import { isRefused, isShown, type Compile, type Model } from '../data/model';
import { parseFilter } from '../lib/filter';
import { causeOf, headline, plural, ranges, shorten } from '../lib/format';
import { setQuery, type Route } from '../route';
import { CompileLink, Empty, GuardHint, Place, hintKey } from '../ui/bits';
import { FilterBox } from '../ui/filter_box';
import { Grid, type Column } from '../ui/virtual';

const kindNames: Record<string, string> = { restart: 'retried', failure: 'failed', dynamo_error: 'failed' };

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
  // A failure outside compiles is of a process.
  const isRow = (row: Problem, processId: number | null) => isShown(model, row.compile ?? model.processById.get(processId ?? -1));
  if (tab === 'breaks') {
    const t = chunk.graph_break;
    return t.reason
      .map((reason, i): Problem => ({
        key: `b${i}`,
        compile: compileOf(t.compile_id[i]),
        text: reason ?? '',
        detail: t.user_stack[i] ?? '',
        file: t.user_file[i],
        line: t.user_line[i],
        kind: String((t.attempt[i] ?? 0) + 1),
        recordId: t.record_id[i],
      }))
      .filter((row) => isRow(row, null));
  }
  const t = chunk.failure;
  return t.reason
    .map((reason, i): Problem => ({
      key: `f${i}`,
      compile: compileOf(t.compile_id[i]),
      text: [t.type[i], reason].filter(Boolean).join(': '),
      detail: '',
      file: t.user_file[i],
      line: t.user_line[i],
      kind: kindNames[t.kind[i] ?? ''] ?? t.kind[i] ?? '',
      recordId: t.record_id[i],
    }))
    .filter((row, i) => isRow(row, t.process_id[i]));
}

// Graph breaks, or failures and restarts.
export function Problems({ model, chunk, tab, route }: { model: Model; chunk: Chunks['problems']; tab: string; route: Route }) {
  const query = (route.query.get('q') ?? '').toLowerCase();
  const all = useMemo(() => problemsOf(model, chunk, tab), [model, chunk, tab]);
  const rows = useMemo(() => {
    const filter = parseFilter(query);
    return query
      ? all.filter((row) =>
          filter.matches(`${row.text} ${row.file}:${row.line} ${row.kind} ${row.compile ? searchText(row.compile) : ''}`.toLowerCase(), (key) =>
            key === 'kind' ? row.kind.toLowerCase() : key === 'launch' ? String(row.compile?.launch ?? '') : undefined,
          ),
        )
      : all;
  }, [all, query]);
  const selected = route.query.get('row');
  const open = all.find((row) => row.key === selected);
  const columns: Column<Problem>[] = [
    {
      key: 'id',
      title: 'Compile',
      width: '84px',
      cell: (row) => row.compile && <CompileLink compile={row.compile} query={row.recordId === null ? undefined : { record: row.recordId }} />,
    },
    { key: 'rank', title: 'Rank', width: '52px', align: 'right', cell: (row) => row.compile && row.compile.rank },
    { key: 'function', title: 'Function', width: 'minmax(110px, 1fr)', cell: (row) => <code>{row.compile?.function}</code> },
    { key: 'kind', title: tab === 'breaks' ? 'Attempt' : 'Kind', width: '96px', cell: (row) => row.kind },
    {
      key: 'text',
      title: 'Reason',
      width: 'minmax(260px, 4fr)',
      cell: (row) => <span title={shorten(row.text, 2000)}>{shorten(tab === 'breaks' ? causeOf(row.text) : headline(row.text), 300)}</span>,
    },
    { key: 'place', title: 'Python line', width: 'minmax(110px, 1fr)', cell: (row) => <Place file={row.file} line={row.line} /> },
  ];
  const hasRanks = model.processes.some((process) => process.rank !== null);
  const hasRetries = tab !== 'breaks' || all.some((row) => row.kind !== '1');
  const hasPlaces = all.some((row) => row.file !== null);
  const isShown: Record<string, boolean> = { rank: hasRanks, kind: hasRetries, place: hasPlaces };
  const shown = columns.filter(({ key }) => isShown[key] ?? true);
  return (
    <>
      <div class="toolbar">
        <FilterBox label="Filter" placeholder="Filter" value={route.query.get('q') ?? ''} onFilter={(q) => setQuery({ q })} />
        <span class="quiet">
          {rows.length === all.length
            ? plural(all.length, tab === 'breaks' ? 'graph break' : 'entry', tab === 'breaks' ? 'graph breaks' : 'entries')
            : `${rows.length} of ${all.length}`}
        </span>
      </div>
      <Grid
        label={tab === 'breaks' ? 'Graph breaks' : 'Failures and restarts'}
        rows={rows}
        columns={shown}
        rowKey={(row) => row.key}
        selected={selected}
        onSelect={(row) => setQuery({ row: row.key }, true)}
        height={`${Math.min(rows.length + 1.4, 16) * 26}px`}
        empty={
          all.length === 0
            ? tab === 'breaks'
              ? 'No graph breaks: Dynamo traced every frame of this log in one piece.'
              : 'No compile failed and none was restarted.'
            : `Nothing matches “${query}”.`
        }
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

interface Chain {
  first: Compile;
  alike: Compile[]; // the first of other ranks whose function was recompiled alike
  edges: Recompile[];
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

export function Recompiles({ model, chunk, route }: { model: Model; chunk: Chunks['problems']; route: Route }) {
  const query = route.query.get('q') ?? '';
  const chains = useMemo(() => {
    const t = chunk.recompile;
    const byFrame = new Map<string, Chain>();
    t.compile_id.forEach((id, i) => {
      const compile = id === null ? undefined : model.compileById.get(id);
      if (!compile || !isShown(model, compile)) return;
      const key = `${compile.processId} ${compile.frameId ?? compile.function} ${compile.generation}`;
      if (!byFrame.has(key)) byFrame.set(key, { first: compile, alike: [], edges: [] });
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
    return foldRanks([...byFrame.values()]).sort((a, b) => b.edges.length - a.edges.length);
  }, [model, chunk]);
  if (chains.length === 0) return <Empty>No recompiles: every function was compiled once, or the log does not say why it was recompiled.</Empty>;
  const filter = parseFilter(query);
  const shown = chains.filter(
    (chain) =>
      !query ||
      filter.matches(`${searchText(chain.first)} ${chain.edges.map((edge) => `${edge.reason} ${edge.file}`).join(' ')}`.toLowerCase(), (key) =>
        key === 'rank'
          ? [chain.first, ...chain.alike].map((own) => own.rank ?? '').join(' ')
          : key === 'launch'
            ? String(chain.first.launch)
            : key === 'function'
              ? (chain.first.function ?? '').toLowerCase()
              : undefined,
      ),
  );
  const limit = 60;
  return (
    <>
      <div class="toolbar">
        <FilterBox label="Filter recompiles" placeholder="Filter: function, guard, rank:3" value={query} onFilter={(q) => setQuery({ q })} />
        <span class="quiet">
          {plural(functionsOf(shown), 'function')} recompiled
          {shown.length > limit ? `, the first ${limit} are shown` : ''}
        </span>
      </div>
      {shown.slice(0, limit).map((chain) => (
        <RecompileChain model={model} chain={chain} />
      ))}
      {shown.length === 0 && <Empty>Nothing matches “{query}”.</Empty>}
    </>
  );
}

// Ranks whose function was recompiled for the same reasons are one: ids of objects aside, which no two processes share.
function foldRanks(chains: Chain[]): Chain[] {
  const folded = new Map<string, Chain>();
  for (const chain of chains) {
    const { first, edges } = chain;
    const what = edges.map((edge) => `${edge.compile.title} ${isRefused(edge.compile)} ${edge.priorLabel} ${edge.reason.replace(/\d{9,}/g, '…')}`);
    const key = first.rank === null ? String(first.id) : [first.launch, first.function, first.file, first.line, ...what].join('\n');
    const known = folded.get(key);
    if (known && known.first.rank !== first.rank) known.alike.push(first);
    else folded.set(known ? `${key} ${first.id}` : key, chain);
  }
  return [...folded.values()];
}

const functionsOf = (chains: Chain[]) => new Set(chains.map(({ first }) => `${first.function} ${first.file}:${first.line}`)).size;

// "recompiled 3 times; 4 further attempts were refused at the recompile limit", as a finding counts.
function timesText(times: number, refused: number): string {
  const done = times === 1 ? 'recompiled once' : times === 2 ? 'recompiled twice' : times > 0 ? `recompiled ${times} times` : '';
  return [done, refused > 0 ? `${refused} ${done ? 'further ' : ''}${refused === 1 ? 'attempt was' : 'attempts were'} refused at the recompile limit` : '']
    .filter(Boolean)
    .join('; ');
}

function RecompileChain({ model, chain: { first, alike, edges } }: { model: Model; chain: Chain }) {
  const byCompile = new Map<number, Recompile[]>();
  for (const edge of edges) byCompile.set(edge.compile.id, [...(byCompile.get(edge.compile.id) ?? []), edge]);
  const [isOpen, setOpen] = useState(byCompile.size <= 12);
  const entries = [...byCompile.entries()];
  const refused = entries.filter(([id]) => isRefused(model.compileById.get(id)!)).length;
  // Why an earlier compile did not fit is said with the first compile that came of it.
  const reasonsSaid = new Set<string>();
  const isRepeated = ({ priorLabel, guard, reason }: Recompile) => {
    const key = `${priorLabel} ${guard ?? reason}`;
    return reasonsSaid.has(key) || reasonsSaid.add(key).size === 0;
  };
  // The code and PyTorch's advice are the same for most guards of a function: they are said with the first.
  const said = new Set<string>();
  const isNews = (edge: Recompile) => {
    const hint = hintKey(edge.reason);
    return !said.has(hint) && said.add(hint).size > 0;
  };
  return (
    <section class="chain">
      <h2>
        <code>{first.function && shorten(first.function, 120)}</code> <Place file={first.file} line={first.line} />
        <span class="quiet">
          {' '}
          {alike.length > 0 ? `ranks ${ranges([first, ...alike].map((own) => own.rank!))}, each ` : `${model.processById.get(first.processId)?.name}, `}
          {timesText(byCompile.size - refused, refused)}
        </span>
      </h2>
      <ol>
        {(isOpen ? entries : entries.slice(0, 8)).map(([id, reasons]) => {
          const repeated = reasons.map(isRepeated);
          return (
            <li>
              <span>
                <CompileLink compile={model.compileById.get(id)!} query={{ record: reasons[0].recordId }} />{' '}
                {isRefused(model.compileById.get(id)!) && <span class="tag status-failed">refused</span>}
              </span>
              <div>
                {reasons
                  .filter((_, i) => !repeated[i])
                  .map((edge) => (
                    <div class="reason">
                      <span class="quiet">not {edge.prior ? <CompileLink compile={edge.prior} /> : edge.priorLabel}: guard failed</span>{' '}
                      <code class="guard" title={shorten(edge.reason, 1000)}>
                        {shorten(edge.guard ?? edge.reason, 260)}
                      </code>{' '}
                      <Place file={edge.file} line={edge.line} />
                      {isNews(edge) && <GuardHint reason={edge.reason} />}
                    </div>
                  ))}
                {repeated.includes(true) && (
                  <div class="reason quiet">
                    {repeated.every(Boolean) ? 'for the guards above:' : 'and, as above,'} not{' '}
                    {reasons
                      .filter((_, i) => repeated[i])
                      .map((edge, i) => (
                        <>
                          {i > 0 && ', '}
                          {edge.prior ? <CompileLink compile={edge.prior} /> : edge.priorLabel}
                        </>
                      ))}
                  </div>
                )}
              </div>
            </li>
          );
        })}
      </ol>
      {entries.length > 8 && (
        <button class="link" onClick={() => setOpen(!isOpen)}>
          {isOpen ? 'Show fewer' : `Show all ${entries.length}`}
        </button>
      )}
    </section>
  );
}
