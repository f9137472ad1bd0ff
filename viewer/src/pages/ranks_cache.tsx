// Ranks × compiles: results of cache lookups, and the differences between two keys.
import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { JSX } from 'preact';
import { type Chunks } from '../data/chunks';
import { isFollowing } from '../data/live';
import type { Compile, Model, Process } from '../data/model';
import { damageOf, loadKeysAhead, lookupsOf, slotsOf, worstState, type Damage, type Lookup } from '../data/ranks';
import { shorten } from '../lib/format';
import { href, setQuery, type Route } from '../route';
import { CacheTag, Empty, cacheNames, cacheSigns } from '../ui/bits';
import { FilterBox } from '../ui/filter_box';
import { memo, useWindow } from '../ui/virtual';
import { CellDetail, type MatrixRow } from './ranks_cache_cell';

// Why the key of a compile differs from those of most ranks: the first cause that is not an expected difference.
function causesOf(findings: Chunks['findings']): Map<number, string> {
  const causes = new Map<number, string>();
  const t = findings.key_cause_compile;
  t.compile_id.forEach((id, i) => {
    const row = t.key_cause[i]!;
    if (!causes.has(id!)) causes.set(id!, `${findings.key_cause.title[row]}: ${findings.key_cause.text[row]}`);
  });
  return causes;
}

// Why the log does not show what a cache answered: the compile did not finish, or the log lost records. '': it shows it.
function whyUnknown(compile: Compile | undefined, lookups: Lookup[], damage: Damage | undefined): string {
  if (lookups.length > 0) return '';
  if (compile?.status === 'unfinished') return isFollowing() ? 'the compile has not finished by now' : 'the compile did not finish';
  return damage && (damage.isDamaged || !compile) ? 'its log is damaged or cut' : '';
}

export function Matrix({ model, cache, findings, route }: { model: Model; cache: Chunks['cache']; findings: Chunks['findings']; route: Route }) {
  const layers = useMemo(() => [...new Set(cache.cache_event.layer.map((layer) => layer ?? ''))].sort(), [cache]);
  const layer = route.query.get('layer') ?? '';
  const onlyMixed = route.query.get('mixed') === '1';
  const query = (route.query.get('q') ?? '').toLowerCase();
  const lookups = useMemo(() => lookupsOf(cache), [cache]);
  useEffect(loadKeysAhead, []);
  const processes = useMemo(() => {
    const busy = new Set(model.peerCompiles.map((compile) => compile.processId));
    return model.peers.filter((process) => busy.has(process.id));
  }, [model]);
  const causes = useMemo(() => causesOf(findings), [findings]);
  const damage = damageOf(findings);
  const all = useMemo(() => {
    const rows: MatrixRow[] = [];
    for (const slot of slotsOf(model, findings)) {
      const byProcess = new Map<number, Lookup[]>();
      for (const [processId, compile] of slot.compiles) {
        byProcess.set(
          processId,
          (lookups.get(compile.id) ?? []).filter((lookup) => !layer || lookup.layer === layer),
        );
      }
      const known = processes.filter((process) => !whyUnknown(slot.compiles.get(process.id), byProcess.get(process.id) ?? [], damage.get(process.id)));
      const states = new Set(known.map((process) => (byProcess.has(process.id) ? (worstState(byProcess.get(process.id)!) ?? 'none') : 'absent')));
      const apart = [...slot.compiles.values()].some((compile) => causes.has(compile.id));
      rows.push({ slot, byProcess, isMixed: states.size > 1 || apart });
    }
    return rows;
  }, [model, lookups, layer, processes, findings]);
  const rows = useMemo(
    () => all.filter((row) => (!onlyMixed || row.isMixed) && `${row.slot.title} ${row.slot.function ?? ''}`.toLowerCase().includes(query)),
    [all, onlyMixed, query],
  );
  const mixed = useMemo(() => all.filter((row) => row.isMixed).length, [all]);
  // A compile in the address selects its worst lookup that has components.
  const compileId = Number(route.query.get('compile'));
  const ofCompile = compileId ? (lookups.get(compileId) ?? []) : [];
  const worstOfCompile = ofCompile.find((lookup) => lookup.state === worstState(ofCompile) && lookup.setId !== null) ?? ofCompile[0];
  const eventId = Number(route.query.get('event')) || worstOfCompile?.id;
  const eventRow = eventId ? cache.cache_event.id.indexOf(eventId) : -1;
  const chosen = eventRow < 0 ? null : { compileId: cache.cache_event.compile_id[eventRow]!, processId: cache.cache_event.process_id[eventRow]! };
  return (
    <>
      <div class="toolbar">
        <label>
          Layer{' '}
          <select value={layer} onChange={(event) => setQuery({ layer: event.currentTarget.value })}>
            <option value="">all, worst state</option>
            {layers.map((name) => (
              <option value={name}>{name}</option>
            ))}
          </select>
        </label>
        <FilterBox label="Filter compiles" placeholder="Filter compiles" value={route.query.get('q') ?? ''} onFilter={(q) => setQuery({ q })} />
        <label>
          <input type="checkbox" checked={onlyMixed} onChange={(event) => setQuery({ mixed: event.currentTarget.checked ? 1 : null })} /> only where ranks
          differ ({mixed})
        </label>
        <span class="legend">
          {(Object.keys(cacheSigns) as (keyof typeof cacheSigns)[]).map((state) => (
            <CacheTag state={state} />
          ))}
          <span class="tag cell-none">· no lookup</span>
          <span class="tag cell-unknown">? unknown: the compile did not finish, or the log is damaged</span>
          <span class="tag cell-absent">no compile</span>
          {causes.size > 0 && (
            <span>
              <i class="corner" /> key differs, cause known
            </span>
          )}
        </span>
      </div>
      {rows.length === 0 ? (
        <Empty>
          {all.length === 0 ? 'There are no compiles in this run.' : onlyMixed ? 'All ranks got the same answers from their caches.' : 'Nothing matches.'}
        </Empty>
      ) : (
        <MatrixGrid rows={rows} processes={processes} chosen={chosen} causes={causes} damage={damage} route={route} />
      )}
      {eventRow >= 0 && <CellDetail model={model} cache={cache} row={eventRow} all={all} route={route} lookups={lookups} causes={causes} />}
    </>
  );
}

const cell = 26;
const rowHeight = 26;

interface MatrixLineProps {
  row: MatrixRow;
  at: number;
  first: number; // of the processes that are drawn
  processes: Process[];
  chosen: number | null; // process
  causes: Map<number, string>;
  damage: Map<number, Damage>;
  link: string; // of a lookup, without its id
  width: number;
}

const MatrixLine = memo(({ row: { slot, byProcess, isMixed }, at, first, processes, chosen, causes, damage, link, width }: MatrixLineProps) => (
  <div role="row" class={`matrix-row ${isMixed ? 'mixed' : ''}`} style={{ top: `${at * rowHeight}px`, width: `${width}px` }}>
    <div role="rowheader" class="matrix-name" title={`${slot.title} ${slot.function ?? ''}`}>
      <b>{slot.title}</b> <code>{slot.function && shorten(slot.function, 60)}</code>
    </div>
    <div role="presentation" style={{ width: `${first * cell}px`, flex: 'none' }} />
    {processes.map((process, n) => {
      const column = first + n;
      const compile = slot.compiles.get(process.id);
      const own = byProcess.get(process.id) ?? [];
      const unknown = whyUnknown(compile, own, damage.get(process.id));
      if (!compile) {
        const label = `${process.name}: no such compile${unknown && ` in its log; ${unknown}`}`;
        return (
          <div role="gridcell" aria-colindex={column + 2} class={`cell ${unknown ? 'cell-unknown' : 'cell-absent'}`} title={label} aria-label={label}>
            {unknown && '?'}
          </div>
        );
      }
      const state = worstState(own);
      const cause = causes.get(compile.id);
      const label = `${process.name}, ${slot.title}: ${unknown ? `unknown, ${unknown}` : own.length === 0 ? 'no lookup' : own.map((lookup) => `${lookup.layer} ${cacheNames[lookup.state]}`).join(', ')}${cause ? `; ${cause}` : ''}`;
      const worst = own.find((lookup) => lookup.state === state && lookup.setId !== null) ?? own.find((lookup) => lookup.state === state);
      return (
        <div role="gridcell" aria-colindex={column + 2}>
          <a
            class={`cell ${state ? `cache-${state}` : unknown ? 'cell-unknown' : 'cell-none'} ${process.id === chosen ? 'chosen' : ''} ${cause ? 'apart' : ''}`}
            data-row={at}
            data-column={column}
            title={label}
            aria-label={label}
            href={worst ? `${link}&event=${worst.id}` : href(['compile', compile.id])}
          >
            {state ? cacheSigns[state] : unknown ? '?' : '·'}
          </a>
        </div>
      );
    })}
  </div>
));

function MatrixGrid({
  rows,
  processes,
  chosen,
  causes,
  damage,
  route,
}: {
  rows: MatrixRow[];
  processes: Process[];
  chosen: { compileId: number; processId: number } | null;
  causes: Map<number, string>;
  damage: Map<number, Damage>;
  route: Route;
}) {
  const box = useRef<HTMLDivElement>(null);
  const seen = useWindow(box, rowHeight, rows.length);
  const { first, last } = useWindow(box, cell, processes.length, { horizontal: true });
  const shown = useMemo(() => processes.slice(first, last), [processes, first, last]);
  const link = href(['ranks'], { ...Object.fromEntries(route.query), tab: 'cache', event: null, with: null, compile: null });
  const focusCell = (event: JSX.TargetedKeyboardEvent<HTMLDivElement>) => {
    const steps: Record<string, [number, number]> = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
    const step = steps[event.key];
    const from = (event.target as HTMLElement).dataset;
    if (!step || from.column === undefined) return;
    const next = box.current?.querySelector<HTMLElement>(`[data-row="${Number(from.row) + step[1]}"][data-column="${Number(from.column) + step[0]}"]`);
    next?.focus();
    event.preventDefault();
  };
  const width = 250 + processes.length * cell;
  const lines = [];
  for (let i = seen.first; i < seen.last; i++) {
    const isChosen = chosen !== null && rows[i].slot.compiles.get(chosen.processId)?.id === chosen.compileId;
    lines.push(
      <MatrixLine
        key={rows[i].slot.key}
        row={rows[i]}
        at={i}
        first={first}
        processes={shown}
        chosen={isChosen ? chosen.processId : null}
        causes={causes}
        damage={damage}
        link={link}
        width={width}
      />,
    );
  }
  return (
    <div
      class="matrix"
      ref={box}
      role="grid"
      aria-label="Cache states of compiles by rank"
      tabIndex={0}
      aria-rowcount={rows.length + 1}
      aria-colcount={processes.length + 1}
      onKeyDown={focusCell}
      style={{ height: `min(${(rows.length + 1.4) * rowHeight + 18}px, 60vh)` }}
    >
      <div role="row" class="matrix-head" style={{ width: `${width}px` }}>
        <div role="columnheader" class="matrix-name">
          Compile
        </div>
        <div role="presentation" style={{ width: `${first * cell}px`, flex: 'none' }} />
        {shown.map((process, n) => (
          <div
            role="columnheader"
            aria-colindex={first + n + 2}
            class={`cell-head ${damage.has(process.id) ? 'odd' : ''}`}
            title={`${process.name}${damage.has(process.id) ? ': its log is damaged or cut' : ''}`}
          >
            {process.shortName.length > 4 ? `…${process.shortName.slice(-3)}` : process.shortName}
          </div>
        ))}
      </div>
      <div role="presentation" class="matrix-body" style={{ height: `${rows.length * rowHeight}px`, width: `${width}px` }}>
        {lines}
      </div>
    </div>
  );
}
