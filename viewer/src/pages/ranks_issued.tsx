// Issued collectives: ranks × sequence numbers of each process group, as `tlparse collectives` compares them.
import type { ComponentChildren, JSX } from 'preact';
import { useMemo, useRef } from 'preact/hooks';
import { useChunk, type Chunks } from '../data/chunks';
import type { Model } from '../data/model';
import { count, duration, plural, shorten, utc } from '../lib/format';
import { href, setQuery, type Route } from '../route';
import { CompileLink, Place, Section, Waiting } from '../ui/bits';
import { useWindow } from '../ui/virtual';

type Table = Chunks['collectives'];

const states = ['done', 'waiting', 'missing', 'unknown', 'timed_out', 'ended', 'not_started', 'enqueued', 'issued'] as const;
type State = (typeof states)[number];
const signs: Record<State, string> = {
  done: '✓',
  waiting: '◐',
  missing: '✗',
  unknown: '?',
  timed_out: 'T',
  ended: '~',
  not_started: '◔',
  enqueued: '◔',
  issued: '○',
};

function stateName(state: State, isRecorded: boolean): string {
  if (state === 'missing') return isRecorded ? 'not reached' : 'not in its log';
  if (state === 'waiting') return isRecorded ? 'issued, not ended' : 'issued';
  if (state === 'not_started') return 'enqueued, not started on the device';
  if (state === 'enqueued') return 'enqueued, not ended';
  if (state === 'issued') return 'issued, whether it ended there is not known';
  if (state === 'timed_out') return 'timed out';
  if (state === 'ended') return 'ended, whether it completed is not known';
  return state;
}

interface Group {
  index: number;
  lines: number[]; // rows of t.line
  ranks: number[]; // rows of t.rank
  cells: Map<string, number>; // "<line> <rank>": row of t.cell
  isRecorded: boolean;
}

function groupsOf(t: Table): Group[] {
  const groups: Group[] = t.group.name.map((_, index) => ({ index, lines: [], ranks: [], cells: new Map(), isRecorded: t.group.is_recorded[index] === 1 }));
  t.member.group.forEach((group, i) => groups[group!].ranks.push(t.member.rank[i]!));
  t.line.group.forEach((group, i) => groups[group!].lines.push(i));
  t.cell.line.forEach((line, i) => groups[t.line.group[line!]!].cells.set(`${line} ${t.cell.rank[i]}`, i));
  return groups;
}

// Sequence numbers that a finding is about.
function findingsOf(t: Table, group: number, sequence: number | null): number[] {
  return t.finding.group.flatMap((of, i) => (of === group && (sequence === null || t.finding.sequence[i] === sequence) ? [i] : []));
}

// Cells in which the cause of a finding lies: "<group> <sequence> <rank>".
function causesOf(t: Table): Map<string, number> {
  const causes = new Map<string, number>();
  t.finding_rank.finding.forEach((finding, i) =>
    causes.set(`${t.finding.group[finding!]} ${t.finding.sequence[finding!]} ${t.finding_rank.rank[i]}`, finding!),
  );
  return causes;
}

function rankName(t: Table, rank: number): string {
  return t.rank.rank[rank] === null ? (t.rank.name[rank] ?? '') : `rank ${t.rank.rank[rank]}`;
}

function waitText(t: Table, line: number): string {
  if (t.line.last_rank[line] === null) return 'all came at once';
  return `the first rank waited ${duration(t.line.wait_us[line])}${t.line.is_timed_out[line] === 1 ? ' and gave up' : ''}, the last to come was ${rankName(t, t.line.last_rank[line]!)}`;
}

// The line that ranks of a group waited longest in; -1: no wait is known.
function longestWait(t: Table, group: Group): number {
  return group.lines.reduce(
    (longest, line) => (t.line.wait_us[line] !== null && (longest < 0 || t.line.wait_us[line]! > t.line.wait_us[longest]!) ? line : longest),
    -1,
  );
}

// "4 ranks, 16 collectives; longest wait: 18.0 s in number 9 for rank 0"
function GroupSummary({ t, group }: { t: Table; group: Group }) {
  const longest = longestWait(t, group);
  return (
    <span class="quiet">
      {plural(group.ranks.length, 'rank')}, {plural(group.lines.length + (t.group.left_out[group.index] ?? 0), 'collective')}
      {longest >= 0 &&
        `; longest wait: ${duration(t.line.wait_us[longest])} in number ${t.line.sequence[longest]}${t.line.last_rank[longest] === null ? '' : ` for ${rankName(t, t.line.last_rank[longest]!)}`}`}
    </span>
  );
}

const cellWidth = 34;
const rowHeight = 26;

function GroupMatrix({ t, group, chosen, route }: { t: Table; group: Group; chosen: number | null; route: Route }) {
  const box = useRef<HTMLDivElement>(null);
  const rows = useWindow(box, rowHeight, group.ranks.length);
  const columns = useWindow(box, cellWidth, group.lines.length, { horizontal: true });
  const said = useMemo(() => new Set(findingsOf(t, group.index, null).map((i) => t.finding.sequence[i])), [t, group]);
  const causes = useMemo(() => causesOf(t), [t]);
  const shown = group.lines.slice(columns.first, columns.last);
  const width = 130 + group.lines.length * cellWidth;
  const link = (cell: number) => href(['ranks'], { ...Object.fromEntries(route.query), tab: 'collectives', cell });
  const onKeyDown = (event: JSX.TargetedKeyboardEvent<HTMLDivElement>) => {
    const steps: Record<string, [number, number]> = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
    const step = steps[event.key];
    const from = (event.target as HTMLElement).dataset;
    if (!step || from.column === undefined) return;
    box.current?.querySelector<HTMLElement>(`[data-row="${Number(from.row) + step[1]}"][data-column="${Number(from.column) + step[0]}"]`)?.focus();
    event.preventDefault();
  };
  const lines = [];
  for (let r = rows.first; r < rows.last; r++) {
    const rank = group.ranks[r];
    lines.push(
      <div key={rank} role="row" class="matrix-row" style={{ top: `${r * rowHeight}px`, width: `${width}px` }}>
        <div role="rowheader" class="matrix-name" title={t.rank.path[rank] ?? ''}>
          {shorten(rankName(t, rank), 24)}
        </div>
        <div role="presentation" style={{ width: `${columns.first * cellWidth}px`, flex: 'none' }} />
        {shown.map((line, n) => {
          const cell = group.cells.get(`${line} ${rank}`);
          if (cell === undefined) return <div role="gridcell" class="cell cell-none" />;
          const state = states[t.cell.state[cell] ?? 3];
          const isOdd = t.cell.is_odd[cell] === 1;
          const cause = causes.get(`${group.index} ${t.line.sequence[line]} ${rank}`);
          const label = `${rankName(t, rank)}, number ${t.line.sequence[line]}: ${t.cell.title[cell] ?? 'nothing'}, ${stateName(state, group.isRecorded)}${isOdd ? '; most ranks issued something else' : ''}${cause === undefined ? '' : `; ${t.finding.title[cause]}`}`;
          return (
            <div role="gridcell">
              <a
                class={`cell cell-${state} ${isOdd || cause !== undefined ? 'odd' : ''} ${cell === chosen ? 'chosen' : ''}`}
                data-row={r}
                data-column={columns.first + n}
                href={link(cell)}
                title={shorten(label, 400)}
                aria-label={shorten(label, 400)}
              >
                {isOdd ? '≠' : cause !== undefined && (state === 'done' || state === 'ended') ? '!' : signs[state]}
              </a>
            </div>
          );
        })}
      </div>,
    );
  }
  return (
    <div
      class="matrix"
      ref={box}
      role="grid"
      tabIndex={0}
      aria-label={`${t.group.title[group.index]}: ranks by sequence number`}
      aria-rowcount={group.ranks.length + 1}
      onKeyDown={onKeyDown}
      style={{ height: `min(${(group.ranks.length + 1.2) * rowHeight + 12}px, 50vh)` }}
    >
      <div role="row" class="matrix-head" style={{ width: `${width}px` }}>
        <div role="columnheader" class="matrix-name">
          number
        </div>
        <div role="presentation" style={{ width: `${columns.first * cellWidth}px`, flex: 'none' }} />
        {shown.map((line) => {
          const isOdd = said.has(t.line.sequence[line]);
          const waited = t.line.wait_us[line];
          return (
            <div
              role="columnheader"
              class={`cell-head ${isOdd ? 'odd' : ''}`}
              title={`${t.line.usual[line] ?? ''}${waited === null ? '' : `; ${waitText(t, line)}`}`}
            >
              {t.line.sequence[line]}
            </div>
          );
        })}
      </div>
      <div role="presentation" class="matrix-body" style={{ height: `${group.ranks.length * rowHeight}px`, width: `${width}px` }}>
        {lines}
      </div>
    </div>
  );
}

function CellDetail({ model, t, cell, groups, graphs }: { model: Model; t: Table; cell: number; groups: Group[]; graphs: Chunks['graphs'] }) {
  const line = t.cell.line[cell]!;
  const group = groups[t.line.group[line]!];
  const rank = t.cell.rank[cell]!;
  const state = states[t.cell.state[cell] ?? 3];
  const graphRow = t.cell.graph_id[cell] === null ? -1 : graphs.graph.id.indexOf(t.cell.graph_id[cell]);
  const compile = graphRow < 0 ? undefined : model.compileById.get(graphs.graph.compile_id[graphRow]!);
  const codeRecord = graphRow < 0 ? null : graphs.graph.code_record_id[graphRow];
  const start = t.cell.start_us[cell];
  const end = t.cell.end_us[cell];
  const others = useMemo(() => {
    const byTitle = new Map<string, number[]>();
    for (const other of group.ranks) {
      const at = group.cells.get(`${line} ${other}`);
      if (at === undefined || other === rank) continue;
      const what = t.cell.title[at] ?? stateName(states[t.cell.state[at] ?? 3], group.isRecorded);
      byTitle.set(what, [...(byTitle.get(what) ?? []), other]);
    }
    return [...byTitle];
  }, [t, cell]);
  return (
    <section class="detail" aria-label="Collective">
      <h2>
        {rankName(t, rank)}, {t.group.title[group.index]}, number {t.line.sequence[line]}{' '}
        <span class={`tag cell-${state}`}>{stateName(state, group.isRecorded)}</span>
      </h2>
      <p>
        {t.cell.title[cell] === null ? (
          <span class="quiet">
            This rank{' '}
            {state === 'unknown'
              ? 'may have issued it: its file begins with a later number, is not whole or older than the others, is a profile, which covers a part of the job only, or is not among the input.'
              : group.isRecorded
                ? 'did not issue it before its dump was written.'
                : 'has no such entry in its log.'}
          </span>
        ) : (
          <code>{shorten(t.cell.title[cell]!, 600)}</code>
        )}
        {(t.cell.others[cell] ?? 0) > 0 && <span class="quiet"> and {plural(t.cell.others[cell]!, 'entry', 'entries')} more under this number</span>}
      </p>
      {t.cell.title[cell] !== null && (
        <p>
          {compile ? (
            <>
              from graph <CompileLink compile={compile} /> <code>{shorten(compile.function ?? '', 80)}</code> {graphs.graph.direction[graphRow]}
              {graphs.graph.provenance_content_id[graphRow] !== null && <a href={href(['provenance', graphs.graph.id[graphRow]!])}> provenance</a>}
              {t.cell.code_line[cell] !== null && codeRecord !== null && (
                <>
                  ,{' '}
                  <a href={href(['compile', compile.id], { record: codeRecord, lines: t.cell.code_line[cell] })}>
                    line {t.cell.code_line[cell]} of the generated code
                  </a>
                </>
              )}
            </>
          ) : (
            <span class="quiet">outside compiled graphs, or not joined with one</span>
          )}{' '}
          {t.cell.file[cell] && (
            <>
              at <Place file={t.cell.file[cell]} line={t.cell.user_line[cell]} />
            </>
          )}
        </p>
      )}
      {start !== null && (
        <p class="quiet">
          issued {utc(model.originUs + start)}
          {end === null
            ? group.isRecorded && (state === 'waiting' || state === 'not_started' || state === 'enqueued')
              ? ', not completed'
              : ', end unknown'
            : `, took ${duration(end - start)}`}
          {t.line.wait_us[line] !== null && `; ${waitText(t, line)}`}
          {t.cell.thread[cell] && `; thread ${shorten(t.cell.thread[cell]!, 40)}`}
        </p>
      )}
      {others.map(([what, ranks]) => (
        <p>
          <span class="quiet">{ranks.length > 8 ? plural(ranks.length, 'other rank') : ranks.map((other) => rankName(t, other)).join(', ')}:</span>{' '}
          <code>{shorten(what, 600)}</code>
        </p>
      ))}
      {findingsOf(t, group.index, t.line.sequence[line]).map((i) => (
        <p>
          <span class={`tag severity-${t.finding.severity[i]}`}>{t.finding.severity[i]}</span> {shorten(t.finding.title[i] ?? '', 1000)}{' '}
          <span class="quiet">{shorten(t.finding.detail[i] ?? '', 1000)}</span>
        </p>
      ))}
    </section>
  );
}

function Groups({ model, t, graphs, route }: { model: Model; t: Table; graphs: Chunks['graphs']; route: Route }) {
  const groups = useMemo(() => groupsOf(t), [t]);
  const cellText = route.query.get('cell');
  const cell = cellText !== null && Number(cellText) >= 0 && Number(cellText) < t.cell.rows ? Math.floor(Number(cellText)) : null;
  const isOdd = (group: Group) => group.lines.some((line) => t.line.is_odd[line] === 1);
  const onlyOdd = route.query.get('groups') === 'odd';
  const isNamed = (group: Group) => isOdd(group) || findingsOf(t, group.index, null).length > 0;
  const shown = groups.filter((group) => !onlyOdd || isNamed(group)).sort((a, b) => Number(isNamed(b)) - Number(isNamed(a)));
  const most = 40; // groups
  return (
    <div class="issued">
      <div class="toolbar">
        <span class="legend">
          <span class="tag cell-done">✓ done</span>
          <span class="tag cell-waiting">◐ issued, not ended</span>
          <span class="tag cell-missing">✗ not reached</span>
          {t.cell.state.includes(states.indexOf('timed_out')) && <span class="tag cell-timed_out">T timed out</span>}
          {t.cell.state.includes(states.indexOf('ended')) && <span class="tag cell-ended">~ ended, whether it completed is not known</span>}
          {t.cell.state.some((state) => state === states.indexOf('not_started') || state === states.indexOf('enqueued')) && (
            <span class="tag cell-waiting">◔ enqueued</span>
          )}
          {t.cell.state.includes(states.indexOf('issued')) && <span class="tag cell-ended">○ issued, end not known</span>}
          <span class="tag cell-unknown">? unknown</span>
          <span class="tag cell-missing">≠ not what most ranks issued</span>
          <span class="tag cell-missing">! a finding names it</span>
        </span>
        {groups.length > 1 && (
          <label>
            <input type="checkbox" checked={onlyOdd} onChange={(event) => setQuery({ groups: event.currentTarget.checked ? 'odd' : null })} /> only groups with
            differences or findings ({count(groups.filter(isNamed).length)} of {count(groups.length)})
          </label>
        )}
      </div>
      {t.finding.title.slice(0, 8).map((title, i) => (
        <p>
          <span class={`tag severity-${t.finding.severity[i]}`}>{t.finding.severity[i]}</span> {shorten(title ?? '', 1000)}
        </p>
      ))}
      {t.progress.rank.slice(0, 8).map((rank, i) => (
        <p class="quiet">
          {rankName(t, rank!)}: the last call of graph {t.progress.label[i]} ({t.progress.function[i]}) issued {t.progress.reached[i]} of{' '}
          {t.progress.scheduled[i]} collectives{t.progress.next[i] === null ? '' : `; next: ${shorten(t.progress.next[i]!, 300)}`}
        </p>
      ))}
      {t.rank.is_whole.some((whole) => whole === 0) && (
        <p class="caveat">
          The recorder kept only the latest entries of{' '}
          {t.rank.is_whole
            .flatMap((whole, i) => (whole === 0 ? [rankName(t, i)] : []))
            .slice(0, 8)
            .join(', ')}
          : what it issued before is unknown.
        </p>
      )}
      {shown.slice(0, most).map((group) => (
        <Section title={t.group.title[group.index] ?? ''} aside={<GroupSummary t={t} group={group} />}>
          {(t.group.left_out[group.index] ?? 0) > 0 && (
            <p class="quiet">
              {plural(t.group.left_out[group.index]!, 'number')}{' '}
              {(t.group.odd_left_out[group.index] ?? 0) > 0 ? `(${count(t.group.odd_left_out[group.index])} of them odd) ` : '(all ranks alike) '}are not on
              this page: tlparse collectives trace.db --all
            </p>
          )}
          <GroupMatrix t={t} group={group} chosen={cell} route={route} />
          {cell !== null && groups[t.line.group[t.cell.line[cell]!]!] === group && (
            <CellDetail model={model} t={t} cell={cell} groups={groups} graphs={graphs} />
          )}
        </Section>
      ))}
      {shown.length > most && <p class="quiet">{plural(shown.length - most, 'more group')}: tlparse collectives trace.db --all</p>}
    </div>
  );
}

export function Issued({ model, route, none }: { model: Model; route: Route; none: ComponentChildren }) {
  const collectives = useChunk('collectives');
  const graphs = useChunk('graphs');
  return (
    <Waiting pending={collectives}>
      {(t) =>
        t.group.rows === 0 ? (
          none
        ) : (
          <>
            <h2 class="issued-head">Issued, as recorder dumps, profiles and libtrace tell</h2>
            <Waiting pending={graphs}>{(own) => <Groups model={model} t={t} graphs={own} route={route} />}</Waiting>
          </>
        )
      }
    </Waiting>
  );
}
