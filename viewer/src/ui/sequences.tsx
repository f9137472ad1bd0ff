// Two sequences side by side, aligned, with the first difference marked.
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { isLive } from '../data/chunks';
import type { Process } from '../data/model';
import type { SequenceClass } from '../data/ranks';
import { diff } from '../lib/diff';
import { plural, ranges } from '../lib/format';
import { setQuery, type Route } from '../route';
import { CompileLink, Empty } from './bits';
import { useWindow } from './virtual';

export function names(processes: Process[]): string {
  const ranks = processes.flatMap((process) => (process.rank === null ? [] : [process.rank]));
  if (ranks.length === processes.length && new Set(ranks).size === ranks.length) return `${ranks.length === 1 ? 'rank' : 'ranks'} ${ranges(ranks)}`;
  return processes.length > 6
    ? `${processes
        .slice(0, 6)
        .map((process) => process.name)
        .join(', ')} and ${processes.length - 6} more`
    : processes.map((process) => process.name).join(', ');
}

// What is so of the only sequence that there is.
function agreement({ processes, sequence }: SequenceClass, peers: Process[], what: string): string {
  const without = peers.filter((process) => !processes.includes(process));
  const who =
    processes.length > 1 && without.length === 0 ? `All ${processes.length} processes` : names(processes).replace(/^./, (letter) => letter.toUpperCase());
  const items = plural(sequence.items.length, what);
  const has = processes.length === 1 ? `has ${items}` : sequence.items.length === 1 ? `have the same ${what}` : `have the same ${items} in the same order`;
  return `${who} ${has}.${without.length > 0 ? ` Of ${names(without)} the log holds none.` : ''}`;
}

interface SequencesProps {
  classes: SequenceClass[];
  peers: Process[]; // all that are compared
  what: string;
  route: Route;
  empty: string;
}

export function Sequences({ classes, peers, what, route, empty }: SequencesProps) {
  const left = classes[Math.min(classes.length - 1, Number(route.query.get('a') ?? 0) || 0)];
  const right = classes[Math.min(classes.length - 1, Number(route.query.get('b') ?? 1) || 0)];
  const box = useRef<HTMLDivElement>(null);
  const rows = useMemo(() => {
    if (!left) return [];
    if (left === right) return left.sequence.items.map((_, i) => ({ a: i as number | null, b: i as number | null, same: true }));
    return diff(left.sequence.items, right.sequence.items).flatMap((hunk) => {
      const size = Math.max(hunk.a[1] - hunk.a[0], hunk.b[1] - hunk.b[0]);
      return Array.from({ length: size }, (_, i) => ({
        a: hunk.a[0] + i < hunk.a[1] ? hunk.a[0] + i : null,
        b: hunk.b[0] + i < hunk.b[1] ? hunk.b[0] + i : null,
        same: hunk.kind === 'same',
      }));
    });
  }, [left, right]);
  const first = rows.findIndex((row) => !row.same);
  const differing = rows.filter((row) => !row.same).length;
  const seen = useWindow(box, 22, rows.length);
  useEffect(
    () => {
      if (box.current && first > 0) box.current.scrollTop = Math.max(0, (first - 6) * 22);
    },
    isLive ? [route.query.get('a'), route.query.get('b'), rows.length > 0] : [rows],
  );
  if (classes.length === 0) return <Empty>{empty}</Empty>;
  const drawn = [];
  for (let i = seen.first; i < seen.last; i++) {
    const row = rows[i];
    const side = (sequence: SequenceClass, at: number | null) =>
      at === null ? (
        <span class="seq absent">·</span>
      ) : (
        <span class={`seq ${row.same ? '' : 'differs'}`} title={sequence.sequence.shown[at]}>
          <span class="seq-number">{at + 1}</span> {sequence.sequence.where[at] && <CompileLink compile={sequence.sequence.where[at]!} />}{' '}
          <code>{sequence.sequence.shown[at]}</code>
        </span>
      );
    drawn.push(
      <div key={i} class={`seq-row ${i === first ? 'first' : ''} ${row.same ? '' : 'changed'}`} style={{ top: `${i * 22}px` }}>
        {side(left, row.a)}
        {classes.length > 1 && side(right, row.b)}
      </div>,
    );
  }
  const choose = (key: 'a' | 'b', current: SequenceClass) => (
    <select aria-label={key === 'a' ? 'Left' : 'Right'} value={classes.indexOf(current)} onChange={(event) => setQuery({ [key]: event.currentTarget.value })}>
      {classes.map((entry, i) => (
        <option value={i}>
          {names(entry.processes)}: {entry.sequence.items.length}
        </option>
      ))}
    </select>
  );
  return (
    <>
      <div class="toolbar">
        {classes.length === 1 ? (
          <span role="status">{agreement(left, peers, what)}</span>
        ) : (
          <>
            {choose('a', left)} <span class="quiet">and</span> {choose('b', right)}
            <span role="status">
              {first < 0 ? (
                'equal'
              ) : (
                <>
                  <b>first difference at {(rows[first].a ?? rows[first].b ?? 0) + 1}</b>,{' '}
                  {differing === 1 ? '1 position differs' : `${differing} positions differ`}
                </>
              )}
            </span>
          </>
        )}
      </div>
      <div class="seq-head">
        <b>{names(left.processes)}</b>
        {classes.length > 1 && <b>{names(right.processes)}</b>}
      </div>
      <div
        class="seq-list"
        ref={box}
        tabIndex={0}
        role="region"
        aria-label={`${what}s side by side`}
        style={{ height: `min(${rows.length * 22 + 4}px, calc(100vh - 260px))` }}
      >
        <div style={{ height: `${rows.length * 22}px`, position: 'relative' }}>{drawn}</div>
      </div>
    </>
  );
}
