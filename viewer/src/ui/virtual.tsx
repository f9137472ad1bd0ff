// Lists that draw only what is seen: a list of 100,000 rows costs as much as one of fifty.
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

export interface Window {
  first: number;
  last: number; // behind the last
}

// Which rows of a scrolled box are seen; of `horizontal` ones, which columns.
export function useWindow(box: { current: HTMLElement | null }, rowHeight: number, rows: number, horizontal = false): Window {
  const [state, setState] = useState({ start: 0, length: 800 });
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    let frame = 0;
    const read = () => {
      frame = 0;
      const start = horizontal ? element.scrollLeft : element.scrollTop;
      const length = horizontal ? element.clientWidth : element.clientHeight;
      setState((old) => (old.start === start && old.length === length ? old : { start, length }));
    };
    const schedule = () => {
      if (!frame) frame = requestAnimationFrame(read);
    };
    read();
    element.addEventListener('scroll', schedule, { passive: true });
    const observer = new ResizeObserver(schedule);
    observer.observe(element);
    return () => {
      element.removeEventListener('scroll', schedule);
      observer.disconnect();
      if (frame) cancelAnimationFrame(frame);
    };
  }, [rows === 0]);
  const margin = 8;
  const first = Math.max(0, Math.min(rows, Math.floor(state.start / rowHeight) - margin));
  return { first, last: Math.min(rows, first + Math.ceil(state.length / rowHeight) + 2 * margin) };
}

export interface Column<Row> {
  key: string;
  title: string;
  width: string; // a track of the grid
  align?: 'right' | 'left';
  hint?: string;
  cell: (row: Row) => ComponentChildren;
  // What the column is sorted by; without it, it cannot be.
  sort?: (row: Row) => number | string | null;
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
  selected?: string | number | null;
  height?: string;
  empty: ComponentChildren;
}

const rowHeight = 26;

export function sortRows<Row>(rows: Row[], columns: Column<Row>[], sort: string): Row[] {
  const descending = sort.startsWith('-');
  const by = columns.find((column) => column.key === sort.replace(/^-/, ''))?.sort;
  if (!by) return rows;
  const keyed = rows.map((row, i) => ({ row, i, key: by(row) }));
  keyed.sort((a, b) => {
    // What is unknown comes last, whatever the direction.
    if (a.key === null || b.key === null) return a.key === b.key ? a.i - b.i : a.key === null ? 1 : -1;
    const order = a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
    return order === 0 ? a.i - b.i : descending ? -order : order;
  });
  return keyed.map((entry) => entry.row);
}

export function Grid<Row>(props: GridProps<Row>) {
  const { rows, columns } = props;
  const box = useRef<HTMLDivElement>(null);
  const seen = useWindow(box, rowHeight, rows.length);
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

  const open = (row: Row) => {
    props.onSelect?.(row);
    if (props.rowHref) location.hash = props.rowHref(row);
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

  if (rows.length === 0) return <div class="empty">{props.empty}</div>;
  const lines = [];
  for (let i = seen.first; i < seen.last; i++) {
    const row = rows[i];
    const key = props.rowKey(row);
    lines.push(
      <div
        key={key}
        id={`${id}-${i}`}
        role="row"
        aria-rowindex={i + 2}
        aria-selected={i === active}
        class={`grid-row ${i === active ? 'active' : ''} ${key === props.selected ? 'selected' : ''} ${props.rowClass?.(row) ?? ''}`}
        style={{ top: `${i * rowHeight}px`, gridTemplateColumns: template }}
        onClick={(event) => {
          setActive(i);
          if (!(event.target as Element).closest('a,button') && !window.getSelection()?.toString()) open(row);
        }}
      >
        {columns.map((column) => (
          <div role="gridcell" class={column.align === 'right' ? 'right' : undefined}>
            {column.cell(row)}
          </div>
        ))}
      </div>,
    );
  }
  return (
    <div
      class="grid"
      role="grid"
      aria-label={props.label}
      aria-rowcount={rows.length + 1}
      aria-activedescendant={active >= seen.first && active < seen.last ? `${id}-${active}` : undefined}
      tabIndex={0}
      ref={box}
      onKeyDown={onKeyDown}
      style={{ height: props.height ?? `${Math.min(rows.length + 1.2, 24) * rowHeight}px` }}
    >
      <div role="row" aria-rowindex={1} class="grid-head" style={{ gridTemplateColumns: template }}>
        {columns.map((column) => {
          const direction = props.sort === column.key ? 'ascending' : props.sort === `-${column.key}` ? 'descending' : undefined;
          return (
            <div role="columnheader" class={column.align === 'right' ? 'right' : undefined} aria-sort={direction} title={column.hint}>
              {column.sort && props.onSort ? (
                // Numbers are asked for from the top, names from the start.
                <button onClick={() => props.onSort!(direction === undefined ? (column.align === 'right' ? `-${column.key}` : column.key) : direction === 'descending' ? column.key : `-${column.key}`)}>
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
      <div class="grid-body" role="presentation" style={{ height: `${rows.length * rowHeight}px` }}>
        {lines}
      </div>
    </div>
  );
}
