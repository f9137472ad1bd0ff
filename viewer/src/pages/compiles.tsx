import { useMemo, useState } from 'preact/hooks';
import { markOf } from '../data/changes';
import { useChunk } from '../data/chunks';
import { isFollowing } from '../data/live';
import { filterCompiles } from '../data/compile_filter';
import { isRecompile, loadBlock, type Compile, type Model } from '../data/model';
import { count, duration, plural, shorten, wholePlace } from '../lib/format';
import { href, setQuery, type Route } from '../route';
import { CacheSummary, CompileLink, PhaseBar, Place, Status, Tabs, Waiting, chosenTab } from '../ui/bits';
import { CopyTable } from '../ui/copy_table';
import { FilterBox } from '../ui/filter_box';
import { Grid, sortRows, type Column } from '../ui/virtual';
import { Problems, Recompiles } from './compiles_problems';
import { StackTree } from './compiles_stacks';

// Columns of one phase are there while the table is sorted by them, or where they were chosen.
const ofPhase = new Set(['dynamo', 'aot', 'inductor', 'code']);

// Those that the run has something for.
function compileColumns(model: Model, slowest: number): Column<Compile>[] {
  const hasRanks = model.processes.length > 1 && model.processes.some((process) => process.rank !== null);
  const hasBackward = model.compiles.some((c) => c.backwardUs !== null);
  const columns: Column<Compile>[] = [
    {
      key: 'id',
      copy: (c) => c.title,
      title: 'Id',
      width: '76px',
      cell: (c) => <CompileLink compile={c} />,
      sort: (c) => c.id,
      hint: 'Compile id as PyTorch prints it: frame/compile of that frame',
    },
    { key: 'launch', title: 'Launch', width: '60px', align: 'right', cell: (c) => c.launch, sort: (c) => c.launch },
    { key: 'rank', title: 'Rank', width: '52px', align: 'right', cell: (c) => c.rank, sort: (c) => c.rank },
    {
      key: 'function',
      title: 'Function',
      width: 'minmax(140px, 2fr)',
      class: 'mono',
      cell: (c) => c.function && shorten(c.function, 200),
      about: (c) => c.function ?? '',
      sort: (c) => c.function,
    },
    {
      key: 'place',
      copy: (c) => wholePlace(c.file, c.line),
      title: 'Place',
      width: 'minmax(120px, 1.3fr)',
      class: 'place',
      cell: (c) => <Place file={c.file} line={c.line} />,
      about: (c) => wholePlace(c.file, c.line),
      sort: (c) => `${c.file ?? ''}:${String(c.line ?? 0).padStart(8, '0')}`,
    },
    { key: 'status', title: 'Status', width: '92px', cell: (c) => <Status status={c.status} />, sort: (c) => c.status },
    {
      key: 'start',
      unit: 'µs',
      title: 'Start',
      width: '78px',
      align: 'right',
      cell: (c) => (c.startUs === null ? '' : duration(c.startUs)),
      sort: (c) => c.startUs,
      hint: 'Since the first compile of the run',
    },
    {
      key: 'duration',
      unit: 'µs',
      title: 'Total',
      width: '78px',
      align: 'right',
      cell: (c) => duration(totalUs(c)),
      sort: totalUs,
      hint: 'Compile time, that of the backward included',
    },
    {
      key: 'backward',
      unit: 'µs',
      title: 'Backward',
      width: '78px',
      align: 'right',
      cell: (c) => duration(c.backwardUs),
      sort: (c) => c.backwardUs,
      hint: 'Compile time of the backward, where it came later',
    },
    {
      key: 'dynamo',
      unit: 'µs',
      title: 'Dynamo',
      width: '78px',
      align: 'right',
      cell: (c) => duration(c.dynamoUs || null),
      sort: (c) => c.dynamoUs,
      hint: 'Tracing, without AOTAutograd',
    },
    {
      key: 'aot',
      unit: 'µs',
      title: 'AOTAutograd',
      width: '92px',
      align: 'right',
      cell: (c) => duration(c.aotUs || null),
      sort: (c) => c.aotUs,
      hint: 'Without Inductor',
    },
    {
      key: 'inductor',
      unit: 'µs',
      title: 'Inductor',
      width: '78px',
      align: 'right',
      cell: (c) => duration(c.inductorUs || null),
      sort: (c) => c.inductorUs,
      hint: 'Of the forward, code generation included',
    },
    {
      key: 'code',
      unit: 'µs',
      title: 'Code gen.',
      width: '78px',
      align: 'right',
      cell: (c) => duration(c.codeGenUs || null),
      sort: (c) => c.codeGenUs,
      hint: 'Code generation of the forward, compilers of C++ and Triton included',
    },
    {
      key: 'phases',
      copy: null,
      title: 'Phases',
      width: 'minmax(80px, 1fr)',
      cell: (c) => <PhaseBar compile={c} scaleUs={slowest} />,
      sort: (c) => c.inductorUs,
      hint: 'Dynamo, AOTAutograd, Inductor, backward; sorted by Inductor',
    },
    { key: 'graphs', title: 'Graphs', width: '62px', align: 'right', cell: (c) => c.graphs || '', sort: (c) => c.graphs },
    { key: 'ops', title: 'Ops', width: '54px', align: 'right', cell: (c) => count(c.ops), sort: (c) => c.ops },
    { key: 'guards', title: 'Guards', width: '62px', align: 'right', cell: (c) => count(c.guards), sort: (c) => c.guards },
    { key: 'breaks', title: 'Breaks', width: '60px', align: 'right', cell: (c) => c.graphBreaks || '', sort: (c) => c.graphBreaks },
    {
      key: 'cache',
      copy: (c) =>
        Object.entries(c.cache)
          .flatMap(([state, n]) => (n > 0 ? [`${n} ${state}`] : []))
          .join(', '),
      title: 'Cache',
      width: '112px',
      cell: (c) => <CacheSummary compile={c} />,
      sort: (c) => (c.cache.miss + c.cache.remote_error) * 100 + c.cache.guard_miss * 10 + c.cache.bypass,
    },
  ];
  return columns.filter(
    (column) => (!model.isOneLaunch || column.key !== 'launch') && (hasRanks || column.key !== 'rank') && (hasBackward || column.key !== 'backward'),
  );
}

// Null: unknown.
function totalUs(c: Compile): number | null {
  return c.durationUs === null && c.backwardUs === null ? null : (c.durationUs ?? 0) + (c.backwardUs ?? 0);
}

// The columns of the address; a table that nobody changed has no list there.
function useColumns(model: Model, slowest: number, route: Route, sort: string) {
  const all = useMemo(() => compileColumns(model, slowest), [model, slowest]);
  const asked = route.query.get('cols');
  const sorted = sort.replace(/^-/, '');
  const columns = useMemo(() => {
    const chosen = new Set(asked?.split(',') ?? all.flatMap(({ key }) => (ofPhase.has(key) ? [] : [key])));
    return all.filter(({ key }) => key === 'id' || key === sorted || chosen.has(key));
  }, [all, asked, sorted]);
  return { all, columns };
}

function ColumnChoice({ all, columns }: { all: Column<Compile>[]; columns: Column<Compile>[] }) {
  const [isOpen, setOpen] = useState(false);
  const change = (key: string, isShown: boolean) => {
    const next = all.filter((column) => (column.key === key ? isShown : columns.includes(column))).map((column) => column.key);
    const usual = all.filter((column) => !ofPhase.has(column.key)).map((column) => column.key);
    setQuery({ cols: next.join() === usual.join() ? null : next.join() });
  };
  return (
    <>
      <button class="link" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        Columns {isOpen ? '▾' : '▸'}
      </button>
      {isOpen && (
        <span class="column-choice" role="group" aria-label="Columns">
          {all.slice(1).map((column) => (
            <label title={column.hint}>
              <input type="checkbox" checked={columns.includes(column)} onChange={(event) => change(column.key, event.currentTarget.checked)} /> {column.title}
            </label>
          ))}
        </span>
      )}
    </>
  );
}

function CompileTable({ model, route }: { model: Model; route: Route }) {
  const query = route.query.get('q') ?? '';
  const sort = route.query.get('sort') ?? '';
  const slowest = useMemo(() => model.compiles.reduce((most, c) => Math.max(most, (c.durationUs ?? 0) + (c.backwardUs ?? 0)), 0), [model]);
  const { all, columns } = useColumns(model, slowest, route, sort);
  const rows = useMemo(() => sortRows(filterCompiles(model.compiles, query), columns, sort), [model, query, sort, columns]);
  return (
    <>
      <div class="toolbar">
        <FilterBox
          label="Filter compiles"
          placeholder="Filter: words, -word, status:failed, rank:3, cache:miss"
          value={query}
          onFilter={(q) => setQuery({ q })}
        />
        <span class="quiet" role="status">
          {rows.length === model.compiles.length ? plural(rows.length, 'compile') : `${count(rows.length)} of ${plural(model.compiles.length, 'compile')}`}
        </span>
        {rows.length > 0 && <CopyTable rows={rows} columns={columns} />}
        <ColumnChoice all={all} columns={columns} />
      </div>
      <div class="scroll-x">
        <div style={{ minWidth: '1010px' }}>
          <Grid
            label="Compiles"
            rows={rows}
            columns={columns}
            rowKey={(c) => c.id}
            rowHref={(c) => href(['compile', c.id])}
            onPress={(c) => void loadBlock('compile', c.id).catch(() => undefined)}
            rowClass={(c) =>
              `${c.status === 'failed' || (c.status === 'unfinished' && !isFollowing()) ? 'row-bad' : ''} ${markOf('compiles.compile', c.id) ?? ''}`
            }
            sort={sort}
            onSort={(value) => setQuery({ sort: value })}
            height={rows.length > 20 ? 'calc(100vh - 160px)' : undefined}
            empty={
              model.compiles.length === 0
                ? 'This log holds no compile: nothing was compiled while it was written, or it is the log of a process that only exports.'
                : `No compile matches “${query}”.`
            }
          />
        </div>
      </div>
    </>
  );
}

export function CompilesPage({ model, route }: { model: Model; route: Route }) {
  const isAll = model.rank === null && (!model.isOneLaunch || model.launches === 1);
  const tabs = [
    { key: 'table', title: 'Table' },
    { key: 'stacks', title: 'Stacks' },
    { key: 'recompiles', title: 'Recompiles', count: model.compiles.reduce((sum, c) => sum + Number(isRecompile(c)), 0) },
    { key: 'breaks', title: 'Graph breaks', count: model.compiles.reduce((sum, c) => sum + c.graphBreaks, 0) },
    { key: 'failures', title: 'Failures and restarts', count: isAll ? (model.counts.get('failures') ?? 0) : undefined },
  ];
  const tab = chosenTab(route, tabs);
  const problems = useChunk(tab === 'table' || tab === 'stacks' ? null : 'problems');
  return (
    <div class="page wide">
      <h1 class="unseen">Compiles</h1>
      <Tabs
        tabs={tabs}
        current={tab}
        link={(key) => href(['compiles'], { tab: key === 'table' ? null : key, q: key === 'table' || key === 'stacks' ? route.query.get('q') : null })}
      />
      {tab === 'table' && <CompileTable model={model} route={route} />}
      {tab === 'stacks' && <StackTree model={model} route={route} />}
      {tab === 'recompiles' && <Waiting pending={problems}>{(chunk) => <Recompiles model={model} chunk={chunk} route={route} />}</Waiting>}
      {(tab === 'breaks' || tab === 'failures') && (
        <Waiting pending={problems}>{(chunk) => <Problems key={tab} model={model} chunk={chunk} tab={tab} route={route} />}</Waiting>
      )}
    </div>
  );
}
