// Lists that draw only visible rows: a list of 100,000 rows costs as much as one of fifty.
import { Component, type ComponentChildren, type JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { epochNow, isLive } from '../data/chunks';
import { whenIdle } from '../lib/schedule';
import { go } from '../route';

export interface Window {
  first: number;
  last: number; // behind the last
}

interface WindowOptions {
  horizontal?: boolean;
  most?: number; // rows of the first frame
}

// Which rows of a scrolled box are seen, and some around them, for scrolling; of `horizontal` ones, which columns. The first frame draws
// what a window can show; the next one adds what is missing, and an idle moment the rows around.
export function useWindow(
  box: { current: HTMLElement | null },
  rowHeight: number,
  rows: number,
  { horizontal = false, most = Infinity }: WindowOptions = {},
): Window & { seen: Window } {
  const [seen, setSeen] = useState(() => ({
    first: 0,
    last: Math.min(most, Math.ceil((horizontal ? window.innerWidth : window.innerHeight - aboveLists) / rowHeight)),
  }));
  const [around, setAround] = useState(0);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    let frame = 0;
    const read = () => {
      frame = 0;
      const start = horizontal ? element.scrollLeft : element.scrollTop;
      const length = horizontal ? element.clientWidth : element.clientHeight;
      const first = Math.floor(start / rowHeight);
      const last = Math.ceil((start + length) / rowHeight);
      setSeen((old) => (old.first === first && old.last === last ? old : { first, last }));
    };
    const schedule = () => {
      if (!frame) frame = requestAnimationFrame(read);
    };
    const scrolled = () => {
      setAround(margin);
      schedule();
    };
    element.addEventListener('scroll', scrolled, { passive: true });
    const observer = new ResizeObserver(schedule); // reports the first size too
    observer.observe(element);
    const forget = whenIdle(() => setAround(margin));
    return () => {
      element.removeEventListener('scroll', scrolled);
      observer.disconnect();
      if (frame) cancelAnimationFrame(frame);
      forget();
    };
  }, [rows === 0]);
  const last = Math.min(rows, seen.last);
  const first = Math.max(0, Math.min(last - margin, seen.first));
  return { first: Math.max(0, first - around), last: Math.min(rows, last + around), seen: { first, last } };
}

// Marks a scrolled box that has more at its right than is seen.
function useMoreAtRight(box: { current: HTMLElement | null }, isThere: boolean) {
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const mark = () => element.toggleAttribute('data-more', element.scrollLeft + element.clientWidth < element.scrollWidth - 2);
    element.addEventListener('scroll', mark, { passive: true });
    const observer = new ResizeObserver(mark);
    observer.observe(element);
    return () => {
      element.removeEventListener('scroll', mark);
      observer.disconnect();
    };
  }, [isThere]);
}

const margin = 8; // rows
const aboveLists = 100; // pixels that the bar of the page and the tools of a list take at least

// The rows that a list shows after its rows have changed: the first `few` visible ones at once, the other visible ones a frame later,
// those around them in idle time; until then the old rows.
function useTurn<Row>(rows: Row[], few: number): (i: number, seen: Window) => Row | undefined {
  const [turn, setTurn] = useState({ rows, step: 2 });
  const before = useRef(rows);
  const step = turn.rows === rows ? turn.step : 0;
  if (step === 2) before.current = rows;
  useEffect(() => {
    if (turn.rows === rows) return;
    setTurn({ rows, step: 1 });
    return whenIdle(() => setTurn({ rows, step: 2 }));
  }, [rows]);
  return (i, seen) => (step === 2 || (i >= seen.first && i < (step === 1 ? seen.last : seen.first + few)) ? rows[i] : before.current[i]);
}

// A component that is drawn again only if one of its properties has changed.
export function memo<Props extends object>(draw: (props: Props) => ComponentChildren) {
  return class extends Component<Props> {
    shouldComponentUpdate(next: Props) {
      return (Object.keys(next) as (keyof Props)[]).some((name) => next[name] !== (this.props as Props)[name]);
    }
    render() {
      return draw(this.props as Props);
    }
  };
}

export interface Column<Row> {
  key: string;
  title: string;
  width: string; // a track of the grid
  align?: 'right' | 'left';
  hint?: string;
  class?: string; // of its cells
  cell: (row: Row) => ComponentChildren;
  about?: (row: Row) => string; // shown when the pointer is over the cell
  // The value by which the column is sorted; without it the column cannot be sorted.
  sort?: (row: Row) => number | string | null;
  unit?: string; // of the value by which it is sorted
  copy?: ((row: Row) => number | string | null) | null; // the value that is copied, if it is another; null: none is
}

interface GridProps<Row> {
  label: string;
  rows: Row[];
  columns: Column<Row>[];
  rowHref?: (row: Row) => string;
  rowKey: (row: Row) => string | number;
  rowClass?: (row: Row) => string;
  sort?: string; // key, or -key for descending
  onSort?: (sort: string) => void;
  onSelect?: (row: Row) => void;
  onPress?: (row: Row) => void; // a button of the mouse went down on it: it is about to be opened
  selected?: string | number | null;
  height?: string;
  empty: ComponentChildren;
}

const rowHeight = 26;
// Of rows with many cells the top ones are drawn a frame earlier, in a new list and in one that has changed.
const atFirst = 8;
const atOnce = 12;

export function sortRows<Row>(rows: Row[], columns: Column<Row>[], sort: string): Row[] {
  const descending = sort.startsWith('-');
  const by = columns.find((column) => column.key === sort.replace(/^-/, ''))?.sort;
  if (!by) return rows;
  // Places among the different keys, and from them one number per row, which the browser sorts without asking this script.
  const keys = rows.map(by);
  const different = [...new Set(keys)].filter((key) => key !== null);
  if (typeof different[0] === 'number') different.sort((a, b) => (a as number) - (b as number));
  else different.sort();
  const places = new Map<number | string | null, number>(different.map((key, i) => [key, descending ? different.length - i : i]));
  // What is unknown comes last, whatever the direction.
  const order = Float64Array.from(keys, (key, i) => (places.get(key) ?? different.length + 1) * rows.length + i).sort();
  return Array.from(order, (place) => rows[place % rows.length]);
}

interface GridRowProps {
  id: string;
  row: unknown;
  at: number;
  isActive: boolean;
  classes: string;
  columns: Column<never>[]; // of its row
}

// Most of what a table costs is the number of its elements: a cell of text is one.
const GridRow = memo(({ id, row, at, isActive, classes, columns }: GridRowProps) => (
  <div id={id} role="row" aria-rowindex={at + 2} aria-selected={isActive} class={`grid-row ${classes}`} style={{ top: `${at * rowHeight}px` }}>
    {columns.map((column) => (
      <div role="gridcell" class={column.align === 'right' ? 'right' : column.class} title={column.about?.(row as never)}>
        {column.cell(row as never)}
      </div>
    ))}
  </div>
));

export function Grid<Row>(props: GridProps<Row>) {
  const { rows, columns } = props;
  const box = useRef<HTMLDivElement>(null);
  const turned = useTurn(rows, atOnce);
  const rowAt = isLive ? (i: number) => rows[i] : turned;
  const drawn = useWindow(box, rowHeight, rows.length, { most: atFirst });
  useMoreAtRight(box, rows.length > 0);
  const [active, setActive] = useState(-1);
  const id = useRef(`grid-${Math.random().toString(36).slice(2)}`).current;
  const template = columns.map((column) => column.width).join(' ');

  const reveal = (row: number) => {
    const element = box.current;
    if (!element) return;
    const top = row * rowHeight;
    const head = rowHeight + 4;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + rowHeight > element.scrollTop + element.clientHeight - head) element.scrollTop = top + rowHeight - element.clientHeight + head;
  };
  useEffect(() => {
    const at = props.selected === null || props.selected === undefined ? -1 : rows.findIndex((row) => props.rowKey(row) === props.selected);
    if (at >= 0) {
      setActive(at);
      reveal(at);
    }
  }, [props.selected]);

  // The active row stays the same one, wherever sorting, a filter or a refresh moves it. A refresh also keeps the visible rows in place
  // if it adds others above them.
  const before = useRef({ epoch: epochNow(), rows });
  useLayoutEffect(() => {
    const old = before.current;
    before.current = { epoch: epochNow(), rows };
    const isRefresh = old.epoch !== before.current.epoch;
    if (old.rows === rows || (active < 0 && !isRefresh)) return;
    const places = new Map(rows.map((row, i) => [props.rowKey(row), i]));
    const placeOf = (i: number) => (old.rows[i] === undefined ? undefined : places.get(props.rowKey(old.rows[i])));
    if (active >= 0) setActive(placeOf(active) ?? -1);
    const element = box.current;
    if (!isRefresh || !element || element.scrollTop < rowHeight) return; // at the top of the list the first rows stay visible
    const first = Math.floor(element.scrollTop / rowHeight);
    for (let i = first; i < first + atOnce; i++) {
      const now = placeOf(i);
      if (now === undefined) continue;
      if (now !== i) element.scrollTop += (now - i) * rowHeight;
      return;
    }
  }, [rows]);

  const open = (row: Row) => {
    props.onSelect?.(row);
    if (props.rowHref) go(props.rowHref(row));
  };
  const onKeyDown = (event: JSX.TargetedKeyboardEvent<HTMLDivElement>) => {
    const page = Math.max(1, Math.floor((box.current?.clientHeight ?? 400) / rowHeight) - 2);
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -rows.length, End: rows.length };
    if (event.target !== event.currentTarget) return;
    if (event.key in steps) {
      const next = Math.max(0, Math.min(rows.length - 1, active + steps[event.key]));
      setActive(next);
      reveal(next);
      event.preventDefault();
    } else if (event.key === 'Enter' && rows[active]) open(rows[active]);
  };
  const indexOf = (target: Element) => Number(target.closest('.grid-row')?.getAttribute('aria-rowindex') ?? 1) - 2; // -1: none
  const onClick = (event: JSX.TargetedMouseEvent<HTMLDivElement>) => {
    const target = event.target as Element;
    const at = indexOf(target);
    if (at < 0) return;
    setActive(at);
    if (!target.closest('a,button') && !window.getSelection()?.toString()) open(rows[at]);
  };
  const onPointerDown = (event: JSX.TargetedPointerEvent<HTMLDivElement>) => {
    const row = rows[indexOf(event.target as Element)];
    if (row) props.onPress?.(row);
  };

  if (rows.length === 0) return <div class="empty">{props.empty}</div>;
  const lines = [];
  for (let i = drawn.first; i < drawn.last; i++) {
    const row = rowAt(i, drawn.seen);
    if (row === undefined) continue;
    const classes = `${i === active ? 'active' : ''} ${props.rowKey(row) === props.selected ? 'selected' : ''} ${props.rowClass?.(row) ?? ''}`;
    // By its place, so that sorting and filtering put other texts into the elements that are there.
    lines.push(<GridRow key={i} id={`${id}-${i}`} row={row} at={i} isActive={i === active} classes={classes} columns={columns} />);
  }
  return (
    <div
      class="grid"
      role="grid"
      aria-label={props.label}
      aria-rowcount={rows.length + 1}
      aria-activedescendant={active >= drawn.first && active < drawn.last ? `${id}-${active}` : undefined}
      tabIndex={0}
      ref={box}
      onKeyDown={onKeyDown}
      style={{ height: props.height ?? `${Math.min(rows.length + 1.2, 24) * rowHeight}px`, '--columns': template }}
    >
      <div role="row" aria-rowindex={1} class="grid-head">
        {columns.map((column) => {
          const direction = props.sort === column.key ? 'ascending' : props.sort === `-${column.key}` ? 'descending' : undefined;
          return (
            <div role="columnheader" class={column.align === 'right' ? 'right' : undefined} aria-sort={direction} title={column.hint}>
              {column.sort && props.onSort ? (
                // Numbers are asked for from the top, names from the start.
                <button
                  onClick={() =>
                    props.onSort!(
                      direction === undefined
                        ? column.align === 'right'
                          ? `-${column.key}`
                          : column.key
                        : direction === 'descending'
                          ? column.key
                          : `-${column.key}`,
                    )
                  }
                >
                  {column.title}
                  <span aria-hidden="true">{direction === 'ascending' ? ' ▲' : direction === 'descending' ? ' ▼' : ''}</span>
                </button>
              ) : (
                column.title
              )}
            </div>
          );
        })}
      </div>
      <div class="grid-body" role="presentation" style={{ height: `${rows.length * rowHeight}px` }} onClick={onClick} onPointerDown={onPointerDown}>
        {lines}
      </div>
    </div>
  );
}
