// Where the time of compiles went: by phase, event, compile, function or rank as a table, or by event as a flame graph.
import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import './time.css';
import type { Compile, Model } from '../data/model';
import { notAttributed, timedPhases } from '../data/phases';
import { neighboursOf, partsOfKey, phaseTimes, useTimes, type Neighbour, type Scope, type Times } from '../data/time';
import { count, duration, percent, plural } from '../lib/format';
import { parseFilter } from '../lib/filter';
import { href, setQuery, type Route } from '../route';
import { CompileLink, Empty, HeatBar, PhaseBar, Waiting } from '../ui/bits';
import { CopyTable } from '../ui/copy_table';
import { FilterBox } from '../ui/filter_box';
import { Flame } from '../ui/flame';
import { Grid, sortRows, type Column } from '../ui/virtual';
import { hasTrends, trendHref } from './compare_trend';
import { AroundCompiles } from './overview_time';
import { forms, linkOf, rowsBy, scopeOf, ways, type Row, type Way } from './time_rows';

const countNames: Record<Way, [string, string]> = {
  phase: ['Events', 'Events with which the phase begins'],
  event: ['Count', 'Events of this name'],
  compile: ['Events', 'Timed events of the compile'],
  function: ['Compiles', 'Compiles of the function'],
  rank: ['Compiles', 'Compiles of the process'],
};

// The phases of several compiles as one bar.
function sumOf(compiles: Compile[]): Compile {
  const sum = (of: (compile: Compile) => number | null) => compiles.reduce((total, compile) => total + (of(compile) ?? 0), 0);
  return {
    ...compiles[0],
    dynamoUs: sum((own) => own.dynamoUs),
    aotUs: sum((own) => own.aotUs),
    inductorUs: sum((own) => own.inductorUs),
    backwardUs: sum((own) => own.backwardUs),
  };
}

function columnsOf(way: Way, times: Times, most: number): Column<Row>[] {
  const time = (key: string, title: string, hint: string, of: (row: Row) => number | null): Column<Row> => ({
    key,
    title,
    hint,
    width: '78px',
    align: 'right',
    unit: 'µs',
    sort: of,
    cell: (row) => duration(of(row)),
  });
  const [countTitle, countHint] = countNames[way];
  const name: Column<Row> = {
    key: 'name',
    title: way[0].toUpperCase() + way.slice(1),
    width: 'minmax(150px, 3fr)',
    sort: (row) => row.name,
    about: (row) => [row.name, row.about].filter(Boolean).join('\n'),
    cell: (row) => (
      <>
        {row.phase && <i class={`swatch ${row.phase.class}`} />} {row.link ? <a href={row.link}>{row.name}</a> : row.name}
      </>
    ),
  };
  const total =
    way === 'event' || way === 'phase'
      ? 'Wall time in which one of them was open, with what it called'
      : 'Wall time with what began inside of it; the backward included';
  const columns = [
    name,
    time(
      'self',
      'Self',
      way === 'event' || way === 'phase'
        ? 'Wall time in which it was the innermost: of events that are open at once, the one that began last. The column adds up to the whole'
        : 'Wall time of its events, and what is not attributed, without compiles inside of it. The column adds up to the whole',
      (row) => row.selfUs,
    ),
    time('total', 'Total', total, (row) => row.totalUs),
    {
      key: 'count',
      title: countTitle,
      hint: countHint,
      width: '70px',
      align: 'right',
      sort: (row) => row.count,
      cell: (row) => count(row.count),
    } as Column<Row>,
    ...(way === 'compile'
      ? []
      : [time('max', 'Longest', way === 'function' || way === 'rank' ? 'Its longest compile' : 'The longest of them', (row) => row.maxUs)]),
    {
      key: 'share',
      title: 'Share',
      hint: 'Self, of the whole',
      width: 'minmax(90px, 1fr)',
      cell: (row) => <HeatBar share={row.selfUs / times.wholeUs} />,
    } as Column<Row>,
  ];
  if (way === 'event' || way === 'phase') return columns;
  return [
    ...columns,
    {
      key: 'phases',
      title: 'Phases',
      width: 'minmax(80px, 1fr)',
      cell: (row) => row.compiles.length > 0 && <PhaseBar compile={sumOf(row.compiles)} scaleUs={most} />,
    },
  ];
}

// One bar of the phases; each part narrows down to it, and again to all.
function PhaseStrip({ times, route, chosen }: { times: Times; route: Route; chosen: number | null }) {
  const parts = [
    ...phaseTimes(times).map((own) => ({ phase: timedPhases[own.phase], us: own.selfUs })),
    { phase: notAttributed, us: times.notAttributedUs },
  ].filter((part) => part.us > 0);
  return (
    <div class="went">
      <div class="went-bar" aria-hidden="true">
        {parts.map(({ phase, us }) => (
          <span class={phase.class} style={{ flexGrow: us }} title={`${phase.name}: ${duration(us)}`} />
        ))}
      </div>
      <ul class="went-parts" aria-label="Time by phase">
        {parts.map(({ phase, us }) => {
          const isChosen = chosen !== null && timedPhases[chosen] === phase;
          const name = (
            <>
              <i class={`swatch ${phase.class}`} /> {phase.name}
            </>
          );
          return (
            <li>
              {phase === notAttributed ? (
                <span title={phase.hint}>{name}</span>
              ) : (
                <a
                  href={linkOf(route, { phase: isChosen ? null : phase.key, by: isChosen ? 'phase' : 'event' })}
                  title={phase.hint}
                  aria-current={isChosen ? 'true' : undefined}
                >
                  {name}
                </a>
              )}{' '}
              <b>{duration(us)}</b> <span class="quiet">{percent(us / times.wholeUs)}</span>
            </li>
          );
        })}
      </ul>
    </div>
  );
}

function Neighbours({ title, rows, route, none }: { title: string; rows: Neighbour[]; route: Route; none: string }) {
  return (
    <>
      <h3>{title}</h3>
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">Event</th>
            <th scope="col" class="right">
              Total
            </th>
            <th scope="col" class="right">
              Count
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr>
              <td>{row.name === '' ? <span class="quiet">{none}</span> : <a href={linkOf(route, { sel: row.name })}>{row.name}</a>}</td>
              <td class="right">{duration(row.totalUs)}</td>
              <td class="right">{row.count > 0 && count(row.count)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

// A name with what calls it and what it calls, over all of its places.
function Sandwich({ times, name, route }: { times: Times; name: string; route: Route }) {
  const { callers, callees, selfUs, totalUs } = useMemo(() => neighboursOf(times.roots, name), [times, name]);
  const own: Neighbour[] = callees.length > 0 ? [{ name: '', totalUs: selfUs, count: 0 }] : [];
  return (
    <section class="time-detail" aria-label="Selected event">
      <header>
        <h2>{name}</h2>
        <a href={linkOf(route, { sel: null })}>close</a>
      </header>
      <p class="quiet small">
        {duration(selfUs)} itself, {duration(totalUs)} with what it calls; wall time, each moment counted once.
      </p>
      <Neighbours title="Called by" rows={callers} route={route} none="nothing: outermost" />
      {callees.length > 0 ? (
        <Neighbours title="Calls" rows={[...callees, ...own].sort((a, b) => b.totalUs - a.totalUs)} route={route} none="itself" />
      ) : (
        <p class="quiet">It calls no timed event.</p>
      )}
    </section>
  );
}

// What the view is narrowed down to.
function ScopeChips({ model, route, scope }: { model: Model; route: Route; scope: Scope }) {
  const compile = scope.compile === null ? undefined : model.compileById.get(scope.compile);
  const chips = [
    scope.process !== null && { name: 'process', text: model.processById.get(scope.process)?.name ?? 'unknown process' },
    scope.compile !== null && { name: 'compile', text: compile ? `${compile.title} ${compile.function ?? ''}` : 'unknown compile' },
    scope.function !== null && { name: 'function', text: scope.function.split(' ')[0] || 'unknown function' },
    scope.phase !== null && { name: 'phase', text: timedPhases[scope.phase].name },
  ].filter((chip) => chip !== false);
  if (chips.length === 0) return null;
  return (
    <>
      {chips.map(({ name, text }) => (
        <a class="chip" href={linkOf(route, { [name]: null })} title="Show all again">
          {text} ✕
        </a>
      ))}
      {scope.function !== null && hasTrends(model) && (
        <a class="small" href={trendHref(partsOfKey(scope.function))}>
          over the runs
        </a>
      )}
      {compile && (
        <span class="small">
          <CompileLink compile={compile}>open the compile</CompileLink>
        </span>
      )}
    </>
  );
}

function Choice({ label, names, current, link }: { label: string; names: readonly string[]; current: string; link: (name: string) => string }) {
  return (
    <nav class="choice" aria-label={label}>
      {names.map((name) => (
        <a href={link(name)} aria-current={name === current ? 'true' : undefined}>
          {name.replace('-', ' ')}
        </a>
      ))}
    </nav>
  );
}

function TimeTable({ model, route, times, way, children }: { model: Model; route: Route; times: Times; way: Way; children: ComponentChildren }) {
  const text = route.query.get('q') ?? '';
  const sort = route.query.get('sort') ?? '-self';
  const all = useMemo(
    () => rowsBy(way, model, times, route).map((row) => ({ ...row, text: `${row.name} ${row.about}`.toLowerCase() })),
    [way, model, times, route.query.toString()],
  );
  const columns = useMemo(() => columnsOf(way, times, Math.max(1, ...all.map((row) => row.totalUs ?? 0))), [way, times, all]);
  const rows = useMemo(() => {
    const filter = parseFilter(text);
    return sortRows(
      all.filter((row) => filter.matches(row.text, () => undefined)),
      columns,
      sort,
    );
  }, [all, columns, text, sort]);
  const selected = way === 'event' ? route.query.get('sel') : null;
  const sum = rows.reduce((total, row) => total + row.selfUs, 0);
  return (
    <>
      <div class="toolbar">
        {children}
        <FilterBox label={`Filter by ${way}`} placeholder="Filter" value={text} onFilter={(q) => setQuery({ q })} />
        <span class="quiet" role="status">
          {plural(rows.length, 'row')}
          {rows.length < all.length && ` of ${count(all.length)}, ${duration(sum)} of ${duration(times.wholeUs)}`}
        </span>
        <CopyTable rows={rows} columns={columns} />
      </div>
      <Grid
        label={`Time by ${way}`}
        rows={rows}
        columns={columns}
        rowKey={(row) => row.key}
        selected={selected}
        sort={sort}
        onSort={(next) => setQuery({ sort: next })}
        onSelect={way === 'event' ? (row) => row.key !== 'none' && setQuery({ sel: row.key }, true) : undefined}
        rowHref={way === 'event' ? undefined : (row) => row.link ?? location.hash}
        height={`min(${rows.length * 26 + 32}px, calc(100vh - 250px))`}
        empty="No row matches."
      />
    </>
  );
}

function View({ model, route, times, scope }: { model: Model; route: Route; times: Times; scope: Scope }) {
  const way = ways.find((name) => name === route.query.get('by')) ?? (scope.phase === null ? 'phase' : 'event');
  const form = forms.find((name) => name === route.query.get('view')) ?? 'table';
  const selected = route.query.get('sel');
  const processes = new Set(times.compiles.map((own) => own.processId)).size;
  const compiles = times.compiles.filter((own) => own.compile).length;
  const isByEvent = form !== 'table' || way === 'event';
  const events = scope.phase === null ? times.compiles.reduce((sum, own) => sum + own.events, 0) : times.names.reduce((sum, own) => sum + own.count, 0);
  const choices = (
    <>
      <Choice label="As" names={forms} current={form} link={(view) => linkOf(route, { view: view === 'table' ? null : view, sel: selected })} />
      {form === 'table' && (
        <Choice
          label="By"
          names={model.processes.length > 1 ? ways : ways.filter((name) => name !== 'rank')}
          current={way}
          link={(by) => linkOf(route, { by, q: null, sort: null })}
        />
      )}
      <ScopeChips model={model} route={route} scope={scope} />
    </>
  );
  if (times.wholeUs === 0)
    return (
      <Empty>
        No timed event here. <a href={href(['time'])}>All of the time</a>
      </Empty>
    );
  return (
    <>
      <header class="job">
        <h1>{duration(times.wholeUs)}</h1>
        <span class="quiet">
          {scope.phase === null ? 'of compiling' : `in ${timedPhases[scope.phase].name}`}: {plural(compiles, 'compile')}
          {processes > 1 && ` in ${plural(processes, 'process', 'processes')}`}, by {count(events)} timed events
        </span>
      </header>
      <PhaseStrip times={times} route={route} chosen={scope.phase} />
      {scope.phase === null && <AroundCompiles eventsUs={times.wholeUs} compiles={times.compiles.flatMap((own) => own.compile ?? [])} />}
      <div class={isByEvent && selected !== null ? 'time-split' : ''}>
        <div>
          {form === 'table' ? (
            <TimeTable model={model} route={route} times={times} way={way}>
              {choices}
            </TimeTable>
          ) : (
            <>
              <div class="toolbar">{choices}</div>
              <Flame
                times={times}
                isLeftHeavy={form === 'left-heavy'}
                selected={selected}
                at={route.query.get('at')}
                onChoose={(sel, at) => setQuery({ sel, at }, true)}
              />
            </>
          )}
        </div>
        {isByEvent && selected !== null && <Sandwich times={times} name={selected} route={route} />}
      </div>
    </>
  );
}

export function TimePage({ model, route }: { model: Model; route: Route }) {
  const scope = scopeOf(route);
  const times = useTimes(model, scope);
  return (
    <div class="page time">
      <Waiting pending={times}>{(value) => <View model={model} route={route} times={value} scope={scope} />}</Waiting>
    </div>
  );
}
