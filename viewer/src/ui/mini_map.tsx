// A strip beside a text that is not in view as a whole: where its marked lines are, what colour each line has, what is in view. For the
// pointer alone; n and p step through the same lines.
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import type { LineTag, Mark } from './text_view';

// A long text is drawn in so many parts; a part is as its strongest mark and its first colour.
const mostParts = 160;
const strength: Mark[] = ['body', 'linked', 'hover', 'pin'];

interface MiniMapProps {
  lineOfRow: number[];
  marks: Map<number, Mark> | undefined;
  tags: Map<number, LineTag>;
  first: number; // rows in view
  last: number;
  onChoose: (row: number) => void;
}

export function MiniMap({ lineOfRow, marks, tags, first, last, onChoose }: MiniMapProps) {
  const rows = lineOfRow.length;
  const parts = Math.min(rows, mostParts);
  const size = rows / parts;
  const hues = useMemo(() => {
    const found = new Map<number, number>();
    lineOfRow.forEach((line, row) => {
      const hue = tags.get(line)?.hues[0];
      const part = Math.floor(row / size);
      if (hue !== undefined && !found.has(part)) found.set(part, hue);
    });
    return [...found].map(([part, hue]) => <rect class="map-hue" x="0" width="4" y={part * size} height={size} fill={`var(--hue-${hue})`} />);
  }, [lineOfRow, tags, size]);
  const marked = new Map<number, Mark>();
  if (marks?.size)
    lineOfRow.forEach((line, row) => {
      const mark = marks.get(line);
      const part = Math.floor(row / size);
      if (mark && strength.indexOf(mark) > strength.indexOf(marked.get(part)!)) marked.set(part, mark);
    });
  const choose = (event: JSX.TargetedPointerEvent<SVGSVGElement>) => {
    if (event.buttons !== 1) return;
    const { top, height } = event.currentTarget.getBoundingClientRect();
    onChoose(Math.floor(((event.clientY - top) / Math.max(1, height)) * rows));
  };
  return (
    <svg
      class={`mini-map ${first === 0 && last >= rows ? 'of-whole' : ''}`}
      viewBox={`0 0 12 ${Math.max(1, rows)}`}
      preserveAspectRatio="none"
      aria-hidden="true"
      onPointerDown={choose}
      onPointerMove={choose}
    >
      {hues}
      {[...marked].map(([part, mark]) => (
        <rect class={`map-${mark}`} x="5" width="7" y={part * size} height={size} />
      ))}
      <rect class="map-view" x="0" width="12" y={first} height={Math.max(size, Math.min(last, rows) - first)} />
    </svg>
  );
}
