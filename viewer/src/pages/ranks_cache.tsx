// Ranks × compiles: results of cache lookups, and the differences between two keys.
import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { JSX } from 'preact';
import { useAsync, type Chunks } from '../data/chunks';
import { isFollowing } from '../data/live';
import type { Compile, Model, Process } from '../data/model';
import { compareKeys, damageOf, loadKeysAhead, lookupsOf, slotsOf, worstState, type ComponentDifference, type Damage, type Lookup, type Slot } from '../data/ranks';
import { changedPart, diff } from '../lib/diff';
import { count, plural, shorten } from '../lib/format';
import { href, setQuery, type Route } from '../route';
import { CacheTag, CompileLink, Empty, Waiting, cacheNames, cacheSigns } from '../ui/bits';
import { FilterBox } from '../ui/filter_box';
import { memo, useWindow } from '../ui/virtual';

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

interface MatrixRow {
  slot: Slot;
  byProcess: Map<number, Lookup[]>;
  isMixed: boolean;
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
        byProcess.set(processId, (lookups.get(compile.id) ?? []).filter((lookup) => !layer || lookup.layer === layer));
      }
      const known = processes.filter((process) => !whyUnknown(slot.compiles.get(process.id), byProcess.get(process.id) ?? [], damage.get(process.id)));
      const states = new Set(known.map((process) => (byProcess.has(process.id) ? (worstState(byProcess.get(process.id)!) ?? 'none') : 'absent')));
      const apart = [...slot.compiles.values()].some((compile) => causes.has(compile.id));
      rows.push({ slot, byProcess, isMixed: states.size > 1 || apart });
    }
    return rows;
  }, [model, lookups, layer, processes, findings]);
  const rows = useMemo(() => all.filter((row) => (!onlyMixed || row.isMixed) && `${row.slot.title} ${row.slot.function ?? ''}`.toLowerCase().includes(query)), [all, onlyMixed, query]);
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
          <input type="checkbox" checked={onlyMixed} onChange={(event) => setQuery({ mixed: event.currentTarget.checked ? 1 : null })} /> only where ranks differ ({mixed})
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
        <Empty>{all.length === 0 ? 'There are no compiles in this run.' : onlyMixed ? 'All ranks got the same answers from their caches.' : 'Nothing matches.'}</Empty>
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

function MatrixGrid({ rows, processes, chosen, causes, damage, route }: { rows: MatrixRow[]; processes: Process[]; chosen: { compileId: number; processId: number } | null; causes: Map<number, string>; damage: Map<number, Damage>; route: Route }) {
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
    lines.push(<MatrixLine key={rows[i].slot.key} row={rows[i]} at={i} first={first} processes={shown} chosen={isChosen ? chosen.processId : null} causes={causes} damage={damage} link={link} width={width} />);
  }
  return (
    <div class="matrix" ref={box} role="grid" aria-label="Cache states of compiles by rank" tabIndex={0} aria-rowcount={rows.length + 1} aria-colcount={processes.length + 1} onKeyDown={focusCell} style={{ height: `min(${(rows.length + 1.4) * rowHeight + 18}px, 60vh)` }}>
      <div role="row" class="matrix-head" style={{ width: `${width}px` }}>
        <div role="columnheader" class="matrix-name">
          Compile
        </div>
        <div role="presentation" style={{ width: `${first * cell}px`, flex: 'none' }} />
        {shown.map((process, n) => (
          <div role="columnheader" aria-colindex={first + n + 2} class={`cell-head ${damage.has(process.id) ? 'odd' : ''}`} title={`${process.name}${damage.has(process.id) ? ': its log is damaged or cut' : ''}`}>
            {process.shortName.slice(-4)}
          </div>
        ))}
      </div>
      <div role="presentation" class="matrix-body" style={{ height: `${rows.length * rowHeight}px`, width: `${width}px` }}>
        {lines}
      </div>
    </div>
  );
}

function CellDetail({ model, cache, row, all, route, lookups, causes }: { causes: Map<number, string>; model: Model; cache: Chunks['cache']; row: number; all: MatrixRow[]; route: Route; lookups: Map<number, Lookup[]> }) {
  const t = cache.cache_event;
  const compile = model.compileById.get(t.compile_id[row]!);
  const process = model.processById.get(t.process_id[row]!);
  const box = useRef<HTMLElement>(null);
  useEffect(() => box.current?.scrollIntoView({ block: 'nearest' }), [row]);
  const slot = all.find((candidate) => compile && candidate.slot.compiles.get(compile.processId)?.id === compile.id)?.slot;
  const own = compile ? (lookups.get(compile.id) ?? []) : [];
  const mine = own.find((lookup) => lookup.row === row);
  const position = own.filter((lookup) => lookup.layer === mine?.layer).indexOf(mine!);
  // The same lookup of the other ranks: same layer, same place among its like.
  const others = useMemo(() => {
    const found: { process: Process; lookup: Lookup }[] = [];
    if (!slot || !mine) return found;
    for (const [processId, other] of slot.compiles) {
      const lookup = (lookups.get(other.id) ?? []).filter((candidate) => candidate.layer === mine.layer)[position];
      const otherProcess = model.processById.get(processId);
      if (lookup && otherProcess && processId !== mine.processId) found.push({ process: otherProcess, lookup });
    }
    return found;
  }, [slot, mine, position]);
  const preferred = others.find((other) => other.lookup.state === 'hit') ?? others.find((other) => other.lookup.key !== mine?.key) ?? others[0];
  const withId = Number(route.query.get('with'));
  const other = others.find((candidate) => candidate.lookup.id === withId) ?? preferred;
  if (!compile || !mine || !process) return null;
  return (
    <section class="detail" ref={box} aria-label="Cache lookup">
      <h2>
        <CompileLink compile={compile} /> <code>{shorten(compile.function ?? '', 60)}</code>, {process.name}
      </h2>
      <div class="toolbar">
        {own.map((lookup) => (
          <a class={`tag ${lookup === mine ? 'on' : ''}`} href={href(['ranks'], { ...Object.fromEntries(route.query), event: lookup.id, with: null, compile: null })}>
            {lookup.layer} {lookup.direction ?? ''}
          </a>
        ))}
        <CacheTag state={mine.state} />
        <code class="key ellipsis" title={mine.key ?? ''}>
          {mine.key ?? 'no key'}
        </code>
        {t.bypass_reason[row] && <span>{t.bypass_reason[row]}</span>}
        {t.guard_expression[row] && <code class="guard">{t.guard_expression[row]}</code>}
      </div>
      {others.length === 0 ? (
        <p class="quiet">No other rank made this lookup.</p>
      ) : (
        <div class="toolbar">
          <label>
            Compare with{' '}
            <select value={other!.lookup.id} onChange={(event) => setQuery({ with: event.currentTarget.value })}>
              {others.map((candidate) => (
                <option value={candidate.lookup.id}>
                  {candidate.process.name}: {cacheNames[candidate.lookup.state]}
                  {candidate.lookup.key === mine.key ? ', same key' : ''}
                </option>
              ))}
            </select>
          </label>
          <CacheTag state={other!.lookup.state} />
          <code class="key ellipsis" title={other!.lookup.key ?? ''}>
            {other!.lookup.key ?? 'no key'}
          </code>
        </div>
      )}
      {causes.has(compile.id) && (
        <p>
          <span class="tag status-failed">cause</span> {shorten(causes.get(compile.id)!, 600)}
        </p>
      )}
      {other && <Components mine={mine} other={other.lookup} names={[process.name, other.process.name]} state={t.components_state[row]} />}
    </section>
  );
}

function Components({ mine, other, names: sides, state }: { mine: Lookup; other: Lookup; names: [string, string]; state: string | null }) {
  const comparable = mine.setId !== null && other.setId !== null;
  const pending = useAsync(comparable ? `keys ${mine.id} ${other.id}` : null, () => compareKeys(mine, other));
  if (mine.key !== null && mine.key === other.key && mine.state !== other.state) {
    return <p>The keys are equal: both ranks asked for the same entry. One found it and the other did not, so their caches hold different entries (a directory of its own, or filled at another time).</p>;
  }
  if (mine.key !== null && mine.key === other.key) return <p class="quiet">The keys are equal.</p>;
  if (!comparable) return <p class="quiet">This lookup logged no components of its key{state === 'unparsed' ? ' that could be read' : ''}: what differs cannot be told from it. The lookups of other layers may have some.</p>;
  return (
    <Waiting pending={pending}>
      {(value) =>
        value.differences.length === 0 ? (
          <p>The keys differ, but all {count(value.same)} components that were logged are equal: what made them differ is not in the log.</p>
        ) : (
          <>
            <p>
              <b>{plural(value.differences.length, 'component')}</b> of {count(value.same + value.differences.length)} {value.differences.length === 1 ? 'differs' : 'differ'}:
            </p>
            <DifferenceTable differences={value.differences} sides={sides} />
          </>
        )
      }
    </Waiting>
  );
}

// Everywhere a change is read from what most ranks have to what this one has: "64 → 13", the left red, the right green.
function DifferenceTable({ differences, sides }: { differences: ComponentDifference[]; sides: [string, string] }) {
  const value = (text: string | null, hash: string | null, other: string | null) => {
    if (hash === null) return <span class="quiet">not there</span>;
    return (
      <>
        <code title={shorten(text ?? '', 4000)}>
          <Changed text={shorten(text ?? '', 600)} other={other === null ? null : shorten(other, 600)} />
        </code>
        {text === other && <span class="quiet"> (text equal, hash {hash.slice(0, 10)}… not)</span>}
      </>
    );
  };
  const isText = ({ a, b }: ComponentDifference) => a !== null && b !== null && a !== b && (a.includes('\n') || b.includes('\n'));
  return (
    <table class="plain differences">
      <thead>
        <tr>
          <th scope="col">Component</th>
          <th scope="col">{sides[1]}</th>
          <th scope="col">→ {sides[0]}</th>
        </tr>
      </thead>
      <tbody>
        {differences.slice(0, 400).map((difference) => (
          <tr>
            <th scope="row">
              <code>{difference.name}</code>
            </th>
            {isText(difference) ? (
              <td colSpan={2}>
                <LineChanges from={difference.b!} to={difference.a!} />
              </td>
            ) : (
              <>
                <td class="removed">{value(difference.b, difference.bHash, difference.a)}</td>
                <td class="added">{value(difference.a, difference.aHash, difference.b)}</td>
              </>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

// A value, with what the other one does not have marked.
function Changed({ text, other }: { text: string; other: string | null }) {
  if (other === null || text === other) return <>{text}</>;
  const [begin, end] = changedPart(text, other).a;
  return (
    <>
      {text.slice(0, begin)}
      <mark>{text.slice(begin, end)}</mark>
      {text.slice(end)}
    </>
  );
}

const contextLines = 2;
const mostLines = 200;

// A text of several lines (a graph): the lines that changed, and some around them.
function LineChanges({ from, to }: { from: string; to: string }) {
  const [a, b] = useMemo(() => [from.split('\n'), to.split('\n')], [from, to]);
  const lines = useMemo(() => {
    const hunks = diff(a, b);
    return hunks.flatMap((hunk, n) => {
      if (hunk.kind === 'change') return [...a.slice(...hunk.a).map((text) => ({ sign: '−', text })), ...b.slice(...hunk.b).map((text) => ({ sign: '+', text }))];
      const [start, end] = hunk.a;
      const head = n === 0 ? start : Math.min(end, start + contextLines);
      const tail = n === hunks.length - 1 ? end : Math.max(head, end - contextLines);
      return [...a.slice(start, head).map((text) => ({ sign: ' ', text })), ...(tail > head ? [{ sign: '…', text: plural(tail - head, 'equal line') }] : []), ...a.slice(tail, end).map((text) => ({ sign: ' ', text }))];
    });
  }, [a, b]);
  const kinds: Record<string, string> = { '−': 'removed', '+': 'added', '…': 'quiet' };
  return (
    <div class="line-changes">
      {lines.slice(0, mostLines).map(({ sign, text }) => (
        <div class={kinds[sign]}>
          <span class="sign">{sign}</span>
          <code>{shorten(text, 600)}</code>
        </div>
      ))}
      {lines.length > mostLines && <div class="quiet">and {plural(lines.length - mostLines, 'line')} more</div>}
    </div>
  );
}
