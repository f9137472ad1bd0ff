// What was alive over time: areas by category, one on the other; the peak marked, a point chosen by a click or by arrow keys.
import { useMemo, useState } from 'preact/hooks';
import './memory.css';
import { axisOf, categories, peakOf, pointAt, type Memory } from '../data/memory';
import { bytes, count, duration, percent as shareText } from '../lib/format';
import { tickStep } from './compile_chart';

const wide = 1000;
export const high = 1000; // of the drawing, which is stretched to the room it has

interface Mark {
  at: number; // 0 … 1
  class: string;
  text: string;
}

// Each area as one path, from the first point to `end`: every point holds until the next one.
export function areasOf(memory: Memory, x: (i: number) => number, end: number, most: number): { key: string; path: string }[] {
  const { point } = memory;
  const low = new Array<number>(point.rows).fill(0);
  return categories.flatMap(({ key }) => {
    if (point[key].every((size) => !size)) return [];
    const y = (i: number) => (high - (low[i] / most) * high).toFixed(1);
    const edge = () => {
      let path = '';
      for (let i = 0; i < point.rows; i++) path += `${i === 0 ? '' : `H${x(i).toFixed(1)}`}V${y(i)}`;
      return `${path}H${end}`;
    };
    const bottom: string[] = [];
    for (let i = point.rows - 1; i >= 0; i--) bottom.push(`V${y(i)}H${x(i).toFixed(1)}`);
    for (let i = 0; i < point.rows; i++) low[i] += point[key][i] ?? 0;
    return [{ key, path: `M${x(0).toFixed(1)} ${y(0)}${edge()}${bottom.join('')}Z` }];
  });
}

// What was alive at a point, by category.
export function MemoryLegend({ memory, point }: { memory: Memory; point: number }) {
  const all = memory.point.size_bytes[point] ?? 0;
  return (
    <ul class="memory-legend" aria-label="Bytes by category">
      {categories.map(({ key, about }) => {
        const own = memory.point[key];
        if (own.every((size) => !size)) return null;
        return (
          <li title={about}>
            <i class={`swatch memory-${key}`} /> {key} <b>{bytes(own[point])}</b> <span class="quiet">{all > 0 ? shareText((own[point] ?? 0) / all) : ''}</span>
          </li>
        );
      })}
    </ul>
  );
}

const percent = (share: number) => `${(share * 100).toFixed(2)}%`;

export function MemoryChart({
  memory,
  chosen,
  oomOrdinal,
  onChoose,
  onShow,
}: {
  memory: Memory;
  chosen: number;
  oomOrdinal: number | null;
  onChoose: (point: number) => void;
  onShow: (point: number | null) => void; // the pointer is over it
}) {
  const { point } = memory;
  const { xs, isTime } = useMemo(() => axisOf(memory), [memory]);
  const [hover, setHover] = useState<number | null>(null);
  const peak = peakOf(memory);
  const most = Math.max(1, point.size_bytes[peak] ?? 0);
  const [from, to] = [xs[0], Math.max(xs[xs.length - 1], xs[0] + 1)];
  const share = (x: number) => Math.min(1, Math.max(0, (x - from) / (to - from)));
  const areas = useMemo(() => areasOf(memory, (i) => share(xs[i]) * wide, wide, most), [memory]);
  const label = (x: number) => (isTime ? (x === 0 ? '0' : duration(x)) : count(x + 1));
  const when = (i: number) => (isTime ? `${duration(xs[i])} after the first event` : i === 0 ? 'before the first event' : `after event ${count(xs[i] + 1)}`);

  const step = tickStep(to - from, 6);
  const ticks: number[] = [];
  for (let x = Math.ceil(from / step) * step; x <= to - (to - from) * 0.04; x += step) ticks.push(x);
  const oom = point.ordinal.indexOf(oomOrdinal);
  const marks: Mark[] = [
    { at: share(xs[peak]), class: 'of-peak', text: `peak ${bytes(most)}` },
    ...(oomOrdinal !== null && oom >= 0 ? [{ at: share(xs[oom]), class: 'of-oom', text: 'allocation failed' }] : []),
  ];
  const steps = isTime ? memory.step.end_us.map((end) => share(end ?? 0)) : [];

  const pointOf = (event: MouseEvent & { currentTarget: Element }) => {
    const box = event.currentTarget.getBoundingClientRect();
    return pointAt(xs, from + ((event.clientX - box.left) / Math.max(1, box.width)) * (to - from));
  };
  const show = (next: number | null) => {
    setHover(next);
    onShow(next);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.round(point.rows / 20));
    const moves: Record<string, number> = {
      ArrowRight: 1,
      ArrowUp: 1,
      ArrowLeft: -1,
      ArrowDown: -1,
      PageUp: page,
      PageDown: -page,
      Home: -point.rows,
      End: point.rows,
    };
    if (!(event.key in moves)) return;
    event.preventDefault();
    onChoose(Math.max(0, Math.min(point.rows - 1, chosen + moves[event.key])));
  };
  return (
    <div class="memory-chart">
      <div class="memory-scale" aria-hidden="true">
        {[1, 0.75, 0.5, 0.25, 0].map((part) => (
          <span style={{ top: percent(1 - part) }}>{part === 0 ? '0' : bytes(most * part)}</span>
        ))}
      </div>
      <div
        class="memory-plot"
        role="slider"
        tabIndex={0}
        aria-label="Moment of the recording"
        aria-valuemin={0}
        aria-valuemax={Math.max(0, point.rows - 1)}
        aria-valuenow={chosen}
        aria-valuetext={`${bytes(point.size_bytes[chosen])} alive ${when(chosen)}${chosen === peak ? ', the peak' : ''}`}
        onKeyDown={onKeyDown}
        onMouseMove={(event) => show(pointOf(event))}
        onMouseLeave={() => show(null)}
        onClick={(event) => onChoose(pointOf(event))}
      >
        <svg viewBox={`0 0 ${wide} ${high}`} preserveAspectRatio="none" aria-hidden="true">
          {[0.25, 0.5, 0.75].map((part) => (
            <line x1={0} x2={wide} y1={part * high} y2={part * high} class="rule" />
          ))}
          {areas.map(({ key, path }) => (
            <path d={path} class={`memory-${key}`} />
          ))}
        </svg>
        {steps.map((at) => (
          <i class="memory-step" style={{ left: percent(at) }} />
        ))}
        {hover !== null && hover !== chosen && <i class="memory-line of-hover" style={{ left: percent(share(xs[hover])) }} />}
        <i class="memory-line of-chosen" style={{ left: percent(share(xs[chosen])) }} />
        {marks.map((mark) => (
          <span class={`memory-mark ${mark.class} ${mark.at > 0.6 ? 'to-left' : ''}`} style={{ left: percent(mark.at) }}>
            {mark.text}
          </span>
        ))}
      </div>
      <div class="memory-ticks" aria-hidden="true">
        {ticks.map((x) => (
          <span style={{ left: percent(share(x)) }}>{label(x)}</span>
        ))}
      </div>
      <p class="memory-axis quiet">
        {isTime ? 'Time since the first event' : 'Events: the recording has no times'}
        {steps.length > 0 && '; ticks at the bottom: the end of a step'}
      </p>
    </div>
  );
}
