// A function over the runs of all databases that are served: a dot a run.
import { useMemo } from 'preact/hooks';
import './trend.css';
import { isServed, searchOf } from '../data/chunks';
import type { Model } from '../data/model';
import { runsOf, trendsNamed, useTrends, type Trend, type TrendPoint } from '../data/trend';
import { baseName, count, duration, plural, shorten, wholePlace } from '../lib/format';
import { href, setQuery, type Route } from '../route';
import { Empty, Place, Waiting } from '../ui/bits';
import { CopyTable } from '../ui/copy_table';
import { Grid, sortRows, type Column } from '../ui/virtual';

export const trendHref = ({ name, file = null, line = null }: { name: string; file?: string | null; line?: number | null }) =>
  href(['compare', 'trend'], { function: name, file, line });
export const allTrendsHref = () => href(['compare', 'trend']);
export const hasTrends = (model: Model) => runsOf(model.index).length > 1;

const shortName = (name: string) => baseName(name.replace(/\/+$/, ''));
const timeText = ({ us }: TrendPoint) => (us === null ? 'time not known' : duration(us));

// Dots over the runs, a mark at each that recompiled.
function Chart({ model, trend }: { model: Model; trend: Trend }) {
  const all = runsOf(model.index);
  const runs = all.length;
  const most = Math.max(1, ...trend.points.map(({ us }) => us ?? 0));
  const left = (run: number) => `${((run + 0.5) / runs) * 100}%`;
  const top = (us: number) => `${100 - (us / most) * 100}%`;
  const line = trend.points.flatMap(({ run, us }) => (us === null ? [] : [`${((run + 0.5) / runs) * 1000},${1000 - (us / most) * 1000}`])).join(' ');
  const named = Math.max(1, Math.ceil(runs / 12));
  return (
    <figure class="trend" aria-label={`Compile time of ${trend.name} by run`}>
      <div class="trend-scale" aria-hidden="true">
        {[1, 0.5, 0].map((part) => (
          <span style={{ top: top(most * part) }}>{part === 0 ? '0' : duration(most * part)}</span>
        ))}
      </div>
      <div class="trend-plot">
        <svg viewBox="0 0 1000 1000" preserveAspectRatio="none" aria-hidden="true">
          <polyline points={line} />
        </svg>
        {trend.points.map((point) => {
          const { run, us, recompiles } = point;
          const { database, id, name, isCurrent } = all[run];
          const text = `${shortName(name)}: ${timeText(point)}, ${plural(point.compiles, 'compile')}, ${plural(recompiles, 'recompile')}`;
          const style = { left: left(run), top: top(us ?? 0) };
          const classes = `trend-dot ${isCurrent ? 'current' : ''} ${us === null ? 'unknown' : ''}`;
          return (
            <>
              {isServed ? (
                <a class={classes} style={style} title={text} aria-label={text} href={`${searchOf(id, database) || '?'}${location.hash}`} />
              ) : (
                <span class={classes} style={style} title={text} />
              )}
              {recompiles > 0 && (
                <span class="trend-recompiles" style={style} aria-hidden="true">
                  ↻{recompiles}
                </span>
              )}
            </>
          );
        })}
      </div>
      <div class="trend-runs" aria-hidden="true">
        {all.map(({ name }, run) => run % named === 0 && <span style={{ left: left(run) }}>{shorten(shortName(name), 18)}</span>)}
      </div>
    </figure>
  );
}

function pointColumns(model: Model): Column<TrendPoint>[] {
  const runs = runsOf(model.index);
  return [
    { key: 'run', title: 'Run', width: 'minmax(160px, 2fr)', cell: (row) => runs[row.run].name, sort: (row) => runs[row.run].name },
    { key: 'time', title: 'Compile time', width: '110px', align: 'right', unit: 'µs', cell: timeText, sort: (row) => row.us },
    { key: 'compiles', title: 'Compiles', width: '90px', align: 'right', cell: (row) => count(row.compiles), sort: (row) => row.compiles },
    { key: 'recompiles', title: 'Recompiles', width: '100px', align: 'right', cell: (row) => count(row.recompiles), sort: (row) => row.recompiles },
    { key: 'processes', title: 'Processes', width: '90px', align: 'right', cell: (row) => count(row.processes), sort: (row) => row.processes },
  ];
}

function One({ model, trend }: { model: Model; trend: Trend }) {
  const columns = useMemo(() => pointColumns(model), [model]);
  const missing = runsOf(model.index).length - trend.points.length;
  return (
    <>
      <p class="quiet">
        <a href={allTrendsHref()}>All functions</a> · {trend.name} {trend.file && <Place file={trend.file} line={trend.line} />} · compile time with backward,
        of the slowest process{missing > 0 && ` · ${plural(missing, 'run')} did not compile it`}
      </p>
      <Chart model={model} trend={trend} />
      <div class="toolbar">
        <CopyTable rows={trend.points} columns={columns} />
      </div>
      <Grid label={`${trend.name} by run`} rows={trend.points} columns={columns} rowKey={(row) => row.run} empty="" />
    </>
  );
}

const functionColumns: Column<Trend>[] = [
  { key: 'name', title: 'Function', width: 'minmax(140px, 2fr)', about: (row) => row.name, cell: (row) => row.name, sort: (row) => row.name },
  {
    key: 'place',
    title: 'Line',
    width: 'minmax(120px, 2fr)',
    about: (row) => wholePlace(row.file, row.line),
    cell: (row) => row.file && <Place file={row.file} line={row.line} />,
    sort: (row) => wholePlace(row.file, row.line),
  },
  { key: 'runs', title: 'Runs', width: '60px', align: 'right', cell: (row) => count(row.points.length), sort: (row) => row.points.length },
  {
    key: 'last',
    title: 'Latest',
    width: '90px',
    align: 'right',
    unit: 'µs',
    hint: 'Compile time in the last run that compiled it',
    cell: (row) => duration(row.lastUs),
    sort: (row) => row.lastUs,
  },
  {
    key: 'change',
    title: 'Against the run before',
    width: '170px',
    align: 'right',
    unit: 'µs',
    cell: (row) => (row.changeUs === null ? '' : duration(row.changeUs, true)),
    sort: (row) => row.changeUs,
  },
  {
    key: 'recompiles',
    title: 'Recompiles',
    width: '100px',
    align: 'right',
    hint: 'In the last run that compiled it',
    cell: (row) => count(row.points[row.points.length - 1].recompiles),
    sort: (row) => row.points[row.points.length - 1].recompiles,
  },
];

function All({ trends, route }: { trends: Trend[]; route: Route }) {
  const sort = route.query.get('sort') ?? '-runs';
  const rows = useMemo(() => sortRows(sortRows(trends, functionColumns, '-last'), functionColumns, sort), [trends, sort]);
  return (
    <Grid
      label="Functions over the runs"
      rows={rows}
      columns={functionColumns}
      rowKey={(row) => row.key}
      rowHref={trendHref}
      sort={sort}
      onSort={(next) => setQuery({ sort: next })}
      empty="No run compiled a function."
    />
  );
}

export function CompareTrend({ model, route: { query }, route }: { model: Model; route: Route }) {
  const pending = useTrends(model);
  const name = query.get('function');
  const line = query.get('line');
  return (
    <Waiting pending={pending}>
      {(trends) => {
        if (name === null) return <All trends={trends} route={route} />;
        const found = trendsNamed(trends, name, query.get('file'), line === null ? null : Number(line));
        if (found.length > 1) return <All trends={found} route={route} />;
        return found.length === 1 ? (
          <One model={model} trend={found[0]} />
        ) : (
          <Empty>
            No run compiled {name}. <a href={allTrendsHref()}>All functions</a>
          </Empty>
        );
      }}
    </Waiting>
  );
}
