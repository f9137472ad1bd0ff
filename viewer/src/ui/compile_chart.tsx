// All compiles over time: a lane per process, a bar per compile, its phases as colours.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Chunks } from '../data/chunks';
import { isFollowing } from '../data/live';
import { useFindings, type Compile, type Model, type Process } from '../data/model';
import { count, duration, plural } from '../lib/format';
import { go, href } from '../route';
import { phases } from './bits';

const labelWidth = 116;
const maxLanes = 48;
const fewLanes = 6; // so many are never folded

interface Bar {
  compile: Compile;
  lane: number;
  from: number;
  to: number;
  isBackward: boolean;
  end: string; // what the log ends inside of; empty: the bar has an end
}

function barsOf(model: Model, lanes: Map<number, number>): Bar[] {
  const bars: Bar[] = [];
  for (const compile of model.compiles) {
    const lane = lanes.get(compile.processId);
    if (lane === undefined) continue;
    if (compile.startUs !== null) {
      bars.push({ compile, lane, from: compile.startUs, to: compile.startUs + (compile.durationUs ?? 0), isBackward: false, end: '' });
    }
    if (compile.backwardStartUs !== null && compile.backwardUs) {
      bars.push({ compile, lane, from: compile.backwardStartUs, to: compile.backwardStartUs + compile.backwardUs, isBackward: true, end: '' });
    }
  }
  // Events without an end in the log: open until the end of the log.
  for (const process of model.processes) {
    const lane = lanes.get(process.id);
    const compile = process.end?.compileId ? model.compileById.get(process.end.compileId) : undefined;
    if (lane === undefined || !compile || process.end?.state !== 'compiling') continue;
    const from = process.end.sinceUs ?? compile.startUs;
    const to = Math.max(from ?? -Infinity, process.lastRecordUs ?? -Infinity);
    if (from === null || !Number.isFinite(to)) continue;
    bars.push({ compile, lane, from: Math.min(from, compile.startUs ?? from), to, isBackward: false, end: process.end.phase ?? compile.title });
  }
  return bars;
}

// Ranks that `tlparse ranks` finds alike, by the process that is drawn for them: the first.
function twinsOf(model: Model, classes: Chunks['findings']['rank_class'] | undefined, rows: Process[]): Map<number, Process[]> {
  const twins = new Map<number, Process[]>();
  if (!classes || !model.isOneLaunch || rows.length <= fewLanes || isFollowing()) return twins;
  for (const text of classes.ranks) {
    const parts = (text ?? '').split(',').map((part) => part.split('-').map(Number));
    const own = rows.filter(
      (process) => !process.end && parts.some(([from, to = from]) => process.rank !== null && process.rank >= from && process.rank <= to),
    );
    if (own.length > 2) twins.set(own[0].id, own);
  }
  return twins;
}

export function CompileChart({ model }: { model: Model }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const findings = useFindings(model, model.peers.length > fewLanes);
  const [isUnfolded, setUnfolded] = useState(false);
  const [hover, setHover] = useState<{ bar: Bar; x: number; y: number } | null>(null);
  const [width, setWidth] = useState(0);
  const busyProcesses = useMemo(() => {
    const busy = new Set(model.compiles.map((compile) => compile.processId));
    return model.processes.filter((process) => busy.has(process.id)); // by launch, then rank
  }, [model]);
  const twins = useMemo(() => twinsOf(model, findings.value?.rank_class, busyProcesses), [model, findings.value, busyProcesses]);
  const shown = useMemo(() => {
    const folded = new Set(isUnfolded ? [] : [...twins.values()].flatMap((own) => own.slice(1)));
    const rows = busyProcesses.filter((process) => !folded.has(process));
    // While the job goes, lanes stay where they are.
    if (isFollowing()) return rows.slice(0, maxLanes);
    // Always drawn: the latest launch before others, in it whose log ends inside a compile or whose last compile failed.
    const drawn = new Set([...rows].sort((a, b) => b.launch - a.launch || Number(!a.end) - Number(!b.end)).slice(0, maxLanes));
    // Of one launch they come first.
    return rows
      .filter((process) => drawn.has(process))
      .sort((a, b) => (model.isOneLaunch ? Number(!a.end) - Number(!b.end) || (twins.get(a.id)?.length ?? 1) - (twins.get(b.id)?.length ?? 1) : 0));
  }, [busyProcesses, twins, isUnfolded]);
  const names = shown.map((process) => (!isUnfolded && twins.has(process.id) ? `${twins.get(process.id)!.length} ranks alike` : process.laneName));
  const lanes = useMemo(() => new Map(shown.map((process, i) => [process.id, i])), [shown]);
  const bars = useMemo(() => barsOf(model, lanes), [model, lanes]);
  const laneHeight = shown.length > 16 ? 12 : shown.length > 6 ? 18 : 26;
  const height = shown.length * laneHeight + 22;
  const [from, to] = useMemo(() => {
    let low = Infinity;
    let high = -Infinity;
    for (const bar of bars) {
      low = Math.min(low, bar.from);
      high = Math.max(high, bar.to);
    }
    return [low, Math.max(high, low + 1)];
  }, [bars]);
  const scale = (us: number) => labelWidth + ((us - from) / (to - from)) * (width - labelWidth - 4);

  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    setWidth(element.clientWidth);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const element = canvas.current;
    if (!element || width === 0) return;
    const draw = () => drawChart(element, { width, height, laneHeight, bars, scale, from, to, names });
    draw();
    const media = window.matchMedia('(prefers-color-scheme: dark)');
    media.addEventListener('change', draw);
    const observer = new MutationObserver(draw);
    observer.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
    return () => {
      media.removeEventListener('change', draw);
      observer.disconnect();
    };
  }, [width, height, bars, names.join()]);

  if (bars.length === 0)
    return (
      <p class="quiet">
        {model.compiles.length === 0 ? 'There are no compiles in this log.' : 'No compile of this log has both a known start and a known length.'}
      </p>
    );
  const barAt = (event: MouseEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    const x = event.clientX - box.left;
    const lane = Math.floor((event.clientY - box.top) / laneHeight);
    let best: Bar | null = null;
    for (const bar of bars) {
      if (bar.lane !== lane || x < scale(bar.from) - 2 || x > scale(bar.to) + 2) continue;
      if (!best || bar.to - bar.from < best.to - best.from) best = bar;
    }
    return best && { bar: best, x, y: (lane + 1) * laneHeight };
  };
  return (
    <div class="chart">
      <canvas
        ref={canvas}
        style={{ height: `${height}px` }}
        role="img"
        aria-label={`${model.compiles.length} compiles of ${shown.length} processes over ${duration(to - from)}. The table on the page Compiles lists them.`}
        onMouseMove={(event) => setHover(barAt(event))}
        onMouseLeave={() => setHover(null)}
        onClick={(event) => {
          const hit = barAt(event);
          if (hit) go(href(['compile', hit.bar.compile.id]));
        }}
        class={hover ? 'pointing' : ''}
      />
      {hover && (
        <div class="tooltip" style={{ left: `${Math.min(hover.x + 8, Math.max(0, width - 330))}px`, top: `${hover.y + 4}px` }}>
          <b>{hover.bar.compile.title}</b> {hover.bar.compile.function} {hover.bar.isBackward ? '(backward)' : ''}
          <br />
          {model.processById.get(hover.bar.compile.processId)?.name},{' '}
          {hover.bar.end
            ? `${isFollowing() ? 'by now inside' : 'the log ends inside'} ${hover.bar.end}`
            : `${duration(hover.bar.to - hover.bar.from)}, ${hover.bar.compile.status}`}
        </div>
      )}
      <div class="legend">
        {phases.map((phase, i) =>
          bars.some((bar) => bar.compile[phase.key]) ? (
            <span>
              <i class={`swatch phase-${i}`} /> {phase.name}
              {phase.key === 'inductorUs' && ', code generation included'}
            </span>
          ) : null,
        )}
        {bars.some((bar) => bar.compile.status === 'failed') && (
          <span>
            <i class="swatch swatch-failed" /> failed
          </span>
        )}
        {bars.some((bar) => bar.end) && <span>hatched: {isFollowing() ? 'not finished by now' : 'the log ends inside it'}</span>}
        {twins.size > 0 && (
          <button class="link" aria-expanded={isUnfolded} onClick={() => setUnfolded(!isUnfolded)}>
            {isUnfolded ? 'Fold ranks that are alike' : `Show the ${count([...twins.values()].reduce((sum, own) => sum + own.length, 0))} ranks that are alike`}
          </button>
        )}
        {(isUnfolded || twins.size === 0) && busyProcesses.length > shown.length && (
          <span>
            {shown.length} of {plural(busyProcesses.length, 'process', 'processes')} are drawn; see Timeline for all
          </span>
        )}
      </div>
    </div>
  );
}

interface Layout {
  width: number;
  height: number;
  laneHeight: number;
  bars: Bar[];
  scale: (us: number) => number;
  from: number;
  to: number;
  names: string[];
}

export function cssColor(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// Round steps so that at most `most` fit into the span.
export function tickStep(spanUs: number, most: number): number {
  const raw = spanUs / most;
  const minute = 60e6;
  if (raw > 20e6)
    return (
      [0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1440].map((factor) => factor * minute).find((step) => step >= raw) ??
      1440 * minute * Math.ceil(raw / (1440 * minute))
    );
  const power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= raw) ?? 10 * power;
}

// Hatched, without an end, with the event inside which the log ends.
function drawOpenBar(context: CanvasRenderingContext2D, bar: Bar, x: number, y: number, wide: number, high: number, color: string, width: number): void {
  context.save();
  context.beginPath();
  context.rect(x, y, Math.max(wide, 3), high);
  context.clip();
  context.strokeStyle = color;
  context.lineWidth = 1.5;
  for (let at = x - high; at < x + wide + high; at += 5) {
    context.beginPath();
    context.moveTo(at, y + high);
    context.lineTo(at + high, y);
    context.stroke();
  }
  context.fillStyle = color;
  context.fillRect(x, y, 2, high);
  context.restore();
  const text = `${isFollowing() ? 'now in' : 'log ends in'} ${bar.end}`.slice(0, 60);
  const room = context.measureText(text).width;
  const behind = x + wide + 4;
  if (behind + room >= width) return; // other bars may be in front of it; the tooltip and the finding say it
  context.fillStyle = color;
  context.fillText(text, behind, y + high / 2);
}

function drawChart(canvas: HTMLCanvasElement, layout: Layout): void {
  const { width, height, laneHeight, bars, scale, from, to } = layout;
  const ratio = window.devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const context = canvas.getContext('2d')!;
  context.scale(ratio, ratio);
  context.clearRect(0, 0, width, height);
  const ink = cssColor('--quiet');
  const line = cssColor('--line');
  const colors = phases.map((_, i) => cssColor(`--phase-${i}`));
  const failed = cssColor('--bad-strong');
  context.font = `11px ${cssColor('--sans')}`;
  context.textBaseline = 'middle';
  const step = tickStep(to - from, 8);
  const bottom = height - 20;
  for (let at = 0; at <= to - from; at += step) {
    const x = scale(from + at);
    context.fillStyle = line;
    context.fillRect(x, 0, 1, bottom + 3);
    context.fillStyle = ink;
    if (x < width - 40) context.fillText(at === 0 ? '0' : duration(at), x + 3, bottom + 11);
  }
  layout.names.forEach((name, lane) => {
    context.fillStyle = ink;
    context.fillText(name.slice(0, 18), 0, lane * laneHeight + laneHeight / 2);
  });
  for (const bar of bars) {
    const y = bar.lane * laneHeight + 2;
    const barHeight = laneHeight - 4;
    const x = scale(bar.from);
    const total = Math.max(1.5, scale(bar.to) - x);
    if (bar.end) {
      drawOpenBar(context, bar, x, y, total, barHeight, failed, width);
      continue;
    }
    context.fillStyle = bar.isBackward ? colors[3] : colors[0];
    context.fillRect(x, y, total, barHeight);
    if (!bar.isBackward && bar.to > bar.from) {
      // The phases follow each other only roughly (a restart repeats them): their shares are from the metrics.
      const span = bar.to - bar.from;
      const aot = (bar.compile.aotUs / span) * total;
      const inductor = (bar.compile.inductorUs / span) * total;
      context.fillStyle = colors[1];
      context.fillRect(x + total - Math.min(total, aot + inductor), y, Math.min(total, aot), barHeight);
      context.fillStyle = colors[2];
      context.fillRect(x + total - Math.min(total, inductor), y, Math.min(total, inductor), barHeight);
    }
    if (bar.compile.status === 'failed' || bar.compile.status === 'unfinished') {
      context.fillStyle = failed;
      context.fillRect(x, y, total, 3);
    }
    const room = total - 8;
    if (laneHeight >= 18 && room > 30) {
      context.fillStyle = '#fff';
      context.save();
      context.beginPath();
      context.rect(x, y, total, barHeight);
      context.clip();
      context.fillText(`${bar.compile.title} ${bar.compile.function ?? ''}`.slice(0, 80), x + 4, y + barHeight / 2 + 1);
      context.restore();
    }
  }
}
