// A text of any size with line numbers, colours, and marked lines.
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { Highlighter, type Language } from '../lib/highlight';
import { percent } from '../lib/format';
import { MiniMap } from './mini_map';
import './text_view.css';
import { useWindow } from './virtual';

export const lineHeight = 18;
// A line longer than this is shown in several rows: one row of a megabyte would stall the browser.
const maxRowLength = 1200;

export interface TextRow {
  line: number; // 0-based
  begin: number;
  end: number;
}

export function splitRows(lines: readonly string[], longest = maxRowLength): TextRow[] {
  const rows: TextRow[] = [];
  lines.forEach((text, line) => {
    let begin = 0;
    do {
      const end = endOfRow(text, begin, longest);
      rows.push({ line, begin, end });
      begin = end;
    } while (begin < text.length);
  });
  return rows;
}

// Behind the last comma or space that fits, if there is one in the second half of the row.
function endOfRow(text: string, begin: number, longest: number): number {
  const end = begin + longest;
  if (end >= text.length) return text.length;
  const at = Math.max(text.lastIndexOf(' ', end - 1), text.lastIndexOf(',', end - 1));
  return at >= begin + longest / 2 ? at + 1 : end;
}

export function CodeLine({ highlighter, row, text }: { highlighter: Highlighter; row: TextRow; text: string }) {
  if (row.begin > 0 || row.end < text.length) return <>{text.slice(row.begin, row.end)}</>;
  return <>{highlighter.line(row.line).map((token) => (token.kind ? <span class={`t-${token.kind}`}>{token.text}</span> : token.text))}</>;
}

function HeatMargin({ heat }: { heat: { share: number; title: string } | undefined }) {
  if (!heat) return <span class="heat-margin" />;
  const width = Math.min(100, 100 * heat.share);
  return (
    <span class="heat-margin" title={heat.title} style={{ backgroundImage: `linear-gradient(to left, var(--heat) ${width}%, transparent ${width}%)` }}>
      {percent(heat.share)}
    </span>
  );
}

// What a line belongs to: a short text, and a colour of each.
export interface LineTag {
  text: string;
  hues: number[];
  title: string;
}
export const hueCount = 8;
export type Mark = 'pin' | 'hover' | 'linked' | 'body';

function Tag({ tag }: { tag: LineTag | undefined }) {
  if (!tag) return <span class="line-tag" />;
  const part = 100 / tag.hues.length;
  const stripes = tag.hues.map((hue, i) => `var(--hue-${hue}) ${part * i}% ${part * (i + 1)}%`).join(', ');
  return <span class="line-tag" data-tag={tag.text} title={tag.title} style={{ '--stripes': `linear-gradient(${stripes})` }} />;
}

interface TextViewProps {
  label: string;
  text: string;
  language: Language;
  // Marked lines (0-based) and how strongly.
  marks?: Map<number, Mark>;
  // Shares of measured time (0 … 1) by line, shown in the margin, and what each means.
  heat?: Map<number, { share: number; title: string }>;
  // What each line belongs to, at its left; at the right a map of the whole text.
  tags?: Map<number, LineTag>;
  // Brings this line into view when it changes.
  reveal?: number | null;
  onHover?: (line: number | null) => void;
  onPick?: (line: number) => void;
  // 0-based first and last selected line, shown and settable by clicking line numbers.
  selection?: [number, number] | null;
  onSelect?: (selection: [number, number]) => void;
  find?: string;
  height?: string;
  wrap?: boolean; // long lines take several rows, instead of running out of the box
  // What stands in the gutter instead of the numbers of the text's lines.
  gutter?: string[];
}

// Names in the gutter are cut at the left, where they differ least, and end with their line.
const longestName = 26;
const cutName = (name: string) => (name.length > longestName ? `…${name.slice(1 - longestName)}` : name);

// Pixels of the numbers, or of the longest name; all lines begin behind it.
function numberWidth({ gutter }: TextViewProps): number {
  const longest = gutter?.reduce((most, name) => Math.max(most, cutName(name).length), 0);
  return longest === undefined ? 54 : Math.max(120, longest * 7.3 + 22);
}

// Pixels left of the text, as the style has them.
function gutterWidth(props: TextViewProps): number {
  const { tags, heat } = props;
  const numbers = numberWidth(props);
  return numbers + (tags ? 42 : 0) + (heat ? 70 : 0) + 12;
}

// How many letters fit beside the gutter, in steps: a box that is dragged is not laid out anew for every pixel.
function useColumns(box: { current: HTMLElement | null }, wrap: boolean | undefined, aside: number): number {
  const [columns, setColumns] = useState(0);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element || !wrap) return setColumns(0);
    const read = () => setColumns(Math.max(24, 4 * Math.floor((element.clientWidth - aside) / 7.3 / 4)));
    const observer = new ResizeObserver(read);
    observer.observe(element);
    read();
    return () => observer.disconnect();
  }, [wrap, aside]);
  return columns;
}

export function TextView(props: TextViewProps) {
  const box = useRef<HTMLDivElement>(null);
  const lines = useMemo(() => props.text.split('\n'), [props.text]);
  const columns = useColumns(box, props.wrap, gutterWidth(props));
  const rows = useMemo(() => splitRows(lines, columns || undefined), [lines, columns]);
  const highlighter = useMemo(() => new Highlighter(lines, props.language), [lines, props.language]);
  const seen = useWindow(box, lineHeight, rows.length);
  const widest = useMemo(() => lines.reduce((width, line) => Math.max(width, Math.min(line.length, maxRowLength)), 0), [lines]);

  useLayoutEffect(() => {
    const element = box.current;
    if (!element || props.reveal === null || props.reveal === undefined) return;
    const row = rows.findIndex((candidate) => candidate.line >= props.reveal!);
    const top = row * lineHeight;
    if (top < element.scrollTop + lineHeight || top > element.scrollTop + element.clientHeight - 2 * lineHeight) {
      element.scrollTop = Math.max(0, top - element.clientHeight / 3);
    }
  }, [props.reveal, rows]);

  const lineOfRow = useMemo(() => rows.map(({ line }) => line), [rows]);
  const lineAt = (event: JSX.TargetedMouseEvent<HTMLElement>): number | null => {
    const row = (event.target as Element).closest<HTMLElement>('[data-row]');
    return row ? rows[Number(row.dataset.row)].line : null;
  };
  const drawn = [];
  for (let i = seen.first; i < seen.last; i++) {
    const row = rows[i];
    const mark = props.marks?.get(row.line);
    const picked = props.selection && row.line >= props.selection[0] && row.line <= props.selection[1];
    const found = props.find && lines[row.line].toLowerCase().includes(props.find);
    drawn.push(
      <div
        key={i}
        data-row={i}
        class={`code-row ${mark ? `mark-${mark}` : ''} ${picked ? 'picked' : ''} ${found ? 'found' : ''}`}
        style={{ top: `${i * lineHeight}px` }}
      >
        {props.tags && <Tag tag={row.begin === 0 ? props.tags.get(row.line) : undefined} />}
        <span
          class="line-number"
          aria-hidden="true"
          data-number={row.begin > 0 ? '↪' : props.gutter ? cutName(props.gutter[row.line] ?? '') : row.line + 1}
          title={props.gutter?.[row.line]}
        />
        {props.heat && <HeatMargin heat={row.begin === 0 ? props.heat.get(row.line) : undefined} />}
        <span class="code">
          <CodeLine highlighter={highlighter} row={row} text={lines[row.line]} />
        </span>
      </div>,
    );
  }
  const view = (
    <div
      class={`text-view ${props.onPick ? 'pickable' : ''} ${props.gutter ? 'named-lines' : ''} ${props.tags ? 'tagged' : ''}`}
      ref={box}
      tabIndex={0}
      role="region"
      aria-label={props.label}
      style={{ height: props.height, '--gutter': props.gutter && `${numberWidth(props)}px` }}
      onMouseOver={props.onHover && ((event) => props.onHover!(lineAt(event)))}
      onMouseLeave={props.onHover && (() => props.onHover!(null))}
      onClick={(event) => {
        const line = lineAt(event);
        if (line === null) return;
        if ((event.target as Element).classList.contains('line-number')) {
          const from = event.shiftKey && props.selection ? props.selection[0] : line;
          props.onSelect?.([Math.min(from, line), Math.max(from, line)]);
        }
        if (!window.getSelection()?.toString()) props.onPick?.(line);
      }}
    >
      <div
        class="code-rows"
        style={{
          height: `${rows.length * lineHeight + 8}px`,
          minWidth: columns > 0 ? undefined : `calc(${widest}ch + ${(props.heat ? 11 : 5.5) + (props.gutter ? 8 : 0) + (props.tags ? 4 : 0)}em)`,
        }}
      >
        {drawn}
      </div>
    </div>
  );
  if (!props.tags) return view;
  const scrollTo = (row: number) => box.current && (box.current.scrollTop = row * lineHeight - box.current.clientHeight / 2);
  return (
    <div class="text-frame">
      {view}
      <MiniMap lineOfRow={lineOfRow} marks={props.marks} tags={props.tags} first={seen.seen.first} last={seen.seen.last} onChoose={scrollTo} />
    </div>
  );
}

// A text with its toolbar: find, wrap of JSON, copy.
export function FindBox({ lines, onFind, onReveal }: { lines: readonly string[]; onFind: (text: string) => void; onReveal: (line: number) => void }) {
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const needle = text.toLowerCase();
  const hits = useMemo(() => {
    const found: number[] = [];
    if (needle.length > 0) lines.forEach((line, i) => line.toLowerCase().includes(needle) && found.push(i));
    return found;
  }, [needle, lines]);
  useEffect(() => onFind(needle), [needle]);
  const step = (by: number) => {
    if (hits.length === 0) return;
    const next = (at + by + hits.length) % hits.length;
    setAt(next);
    onReveal(hits[next]);
  };
  return (
    <span class="find">
      <input
        type="search"
        placeholder="Find in text"
        aria-label="Find in text"
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setAt(-1);
        }}
        onKeyDown={(event) => {
          if (event.key === 'Enter') step(event.shiftKey ? -1 : 1);
        }}
      />
      {text && <span class="quiet">{hits.length === 0 ? 'not found' : `${at + 1 > 0 ? at + 1 : '–'}/${hits.length}`}</span>}
    </span>
  );
}
