// The list of records at the left of a page. Only the visible part of a long one is in the document.
import { useLayoutEffect, useRef } from 'preact/hooks';
import { useWindow } from './virtual';

export interface RecordRow {
  key: string | number;
  title: string;
  note?: string;
  link?: string; // none: the head of the rows below
  isQuiet?: boolean;
  isCurrent?: boolean;
  mark?: string;
}

const rowHeight = 20;
const alwaysWhole = 500; // rows; what the browser's own search can find is worth some milliseconds
const above = 12; // rows that may be above the list in the box that scrolls

export function RecordList({ rows }: { rows: RecordRow[] }) {
  const list = useRef<HTMLOListElement>(null);
  const box = useRef<HTMLElement | null>(null);
  useLayoutEffect(() => {
    box.current = list.current!.closest('.side');
  }, []);
  const seen = useWindow(box, rowHeight, rows.length);
  const isLong = rows.length > alwaysWhole;
  const first = isLong ? Math.max(0, seen.first - above) : 0;
  const last = isLong ? seen.last : rows.length;
  const current = rows.findIndex((row) => row.isCurrent);
  useLayoutEffect(() => {
    if (current < 0 || !box.current || !list.current) return;
    const top = list.current.offsetTop + current * rowHeight;
    const { scrollTop, clientHeight } = box.current;
    if (top < scrollTop || top + rowHeight > scrollTop + clientHeight) box.current.scrollTop = top - clientHeight / 3;
  }, [current < 0 ? null : rows[current].key]);
  return (
    <ol class="records" ref={list} style={{ paddingTop: `${first * rowHeight}px`, paddingBottom: `${(rows.length - last) * rowHeight}px` }}>
      {rows.slice(first, last).map((row, i) => (
        <li key={row.key} class={row.link ? row.mark : 'record-group'} aria-setsize={rows.length} aria-posinset={first + i + 1}>
          {row.link ? (
            <a href={row.link} title={row.title} aria-current={row.isCurrent ? 'true' : undefined}>
              <span class={`record-title ${row.isQuiet ? 'no-text' : ''}`}>{row.title}</span>
              <span class="quiet">{row.note}</span>
            </a>
          ) : (
            row.title
          )}
        </li>
      ))}
    </ol>
  );
}
