import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { isServed, load, useAsync } from '../data/chunks';
import type { Model, Process } from '../data/model';
import { count, duration, plural, prettyJson, shorten, utc } from '../lib/format';
import { href, setQuery, type Route } from '../route';
import { CompileLink, Empty } from '../ui/bits';
import { cssColor, tickStep } from '../ui/compile_chart';

// Events of one process, laid out: depth is how many events are open around it.
interface Lane {
  process: Process;
  names: string[];
  start: Float64Array;
  length: Float64Array; // 0: instant
  depth: Uint8Array;
  recordId: number[];
  compileId: (number | null)[];
  phase: string[];
  depths: number;
  longest: Float64Array; // per depth: the longest event, so that a search from the left can stop
  byDepth: Int32Array[]; // rows of each depth, by start
}

const maxDepth = 24;

function layOut(process: Process, chunk: Awaited<ReturnType<typeof loadEvents>>): Lane {
  const t = chunk.event;
  const rows: number[] = [];
  for (let i = 0; i < t.rows; i++) if (t.start_us[i] !== null) rows.push(i);
  const lane: Lane = { process, names: rows.map((i) => t.name[i] ?? ''), start: new Float64Array(rows.length), length: new Float64Array(rows.length), depth: new Uint8Array(rows.length), recordId: rows.map((i) => t.record_id[i]!), compileId: rows.map((i) => t.compile_id[i]), phase: rows.map((i) => t.phase[i] ?? ''), depths: 1, longest: new Float64Array(maxDepth), byDepth: [] };
  const open: number[] = []; // ends of the events that are open
  const lists: number[][] = [];
  rows.forEach((row, i) => {
    const start = t.start_us[row]!;
    const length = t.duration_us[row] ?? 0;
    // Events of compile threads overlap without nesting: each takes the first depth that is free.
    let depth = 0;
    while (depth < maxDepth - 1 && open[depth] !== undefined && open[depth] > start) depth++;
    if (length > 0) {
      open[depth] = start + length;
      // What is deeper has ended, or it would not have been free.
      for (let d = depth + 1; d < open.length; d++) if (open[d] <= start) open[d] = -Infinity;
    }
    lane.start[i] = start;
    lane.length[i] = length;
    lane.depth[i] = depth;
    lane.depths = Math.max(lane.depths, depth + 1);
    lane.longest[depth] = Math.max(lane.longest[depth], length);
    (lists[depth] ??= []).push(i);
  });
  for (let depth = 0; depth < lane.depths; depth++) lane.byDepth.push(Int32Array.from(lists[depth] ?? []));
  return lane;
}

function loadEvents(processId: number) {
  return load('events', processId);
}

function useLanes(model: Model, only: number | null): { lanes: Lane[]; total: number; error?: string } {
  const [state, setState] = useState<{ lanes: Lane[]; total: number; error?: string }>({ lanes: [], total: model.processes.length });
  useEffect(() => {
    let current = true;
    const wanted = model.processes.filter((process) => only === null || process.id === only);
    const run = async () => {
      const lanes: Lane[] = [];
      let shown = performance.now();
      for (const process of wanted) {
        lanes.push(layOut(process, await loadEvents(process.id)));
        if (!current) return;
        if (performance.now() - shown > 150) {
          setState({ lanes: lanes.slice(), total: wanted.length });
          shown = performance.now();
          // Let the browser draw and take input between processes.
          await new Promise((resolve) => setTimeout(resolve));
        }
      }
      setState({ lanes, total: wanted.length });
    };
    run().catch((error: Error) => current && setState({ lanes: [], total: 0, error: error.message }));
    return () => {
      current = false;
    };
  }, [model, only]);
  return state;
}

const rowHeight = 15;
const laneGap = 8;
const leftWidth = 96;
const axisHeight = 22;

interface View {
  from: number;
  to: number;
}
interface Hit {
  lane: Lane;
  index: number;
}

function lowerBound(lane: Lane, rows: Int32Array, at: number): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lane.start[rows[middle]] < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

function colorOf(name: string): number {
  let hash = 0;
  for (let i = 0; i < name.length; i++) hash = (hash * 31 + name.charCodeAt(i)) | 0;
  return ((hash % 8) + 8) % 8;
}

function draw(canvas: HTMLCanvasElement, tops: number[], lanes: Lane[], view: View, scroll: number, collapsed: boolean, selected: number | null, needle: string): void {
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== width * ratio || canvas.height !== height * ratio) {
    canvas.width = width * ratio;
    canvas.height = height * ratio;
  }
  const context = canvas.getContext('2d')!;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  const ink = cssColor('--ink');
  const quiet = cssColor('--quiet');
  const line = cssColor('--line');
  const palette = Array.from({ length: 8 }, (_, i) => cssColor(`--event-${i}`));
  const accent = cssColor('--accent');
  const span = view.to - view.from;
  const scale = (width - leftWidth) / span;
  const sans = cssColor('--sans');
  context.font = `11px ${sans}`;
  context.textBaseline = 'middle';
  const step = tickStep(span, Math.max(2, Math.floor((width - leftWidth) / 130)));
  for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
    const x = leftWidth + (at - view.from) * scale;
    context.fillStyle = line;
    context.fillRect(x, axisHeight - 4, 1, height);
    context.fillStyle = quiet;
    context.fillText(duration(Math.round(at * 1000) / 1000) || '0', x + 3, 10);
  }
  context.save();
  context.beginPath();
  context.rect(0, axisHeight, width, height - axisHeight);
  context.clip();
  lanes.forEach((lane, n) => {
    const top = axisHeight + tops[n] - scroll;
    const depths = collapsed ? 1 : lane.depths;
    if (top > height || top + depths * rowHeight + laneGap < axisHeight) return;
    context.fillStyle = line;
    context.fillRect(0, top - laneGap / 2, width, 1);
    context.fillStyle = ink;
    context.fillText(lane.process.name.slice(0, 15), 2, top + rowHeight / 2);
    context.save();
    context.beginPath();
    context.rect(leftWidth, axisHeight, width - leftWidth, height);
    context.clip();
    for (let depth = 0; depth < depths; depth++) drawDepth(lane, depth, top + depth * rowHeight);
    context.restore();
  });
  context.restore();

  function drawDepth(lane: Lane, depth: number, y: number): void {
    const rows = lane.byDepth[depth];
    let lastX = -1; // events narrower than a pixel are drawn once per pixel
    for (let r = lowerBound(lane, rows, view.from - lane.longest[depth]); r < rows.length; r++) {
      const i = rows[r];
      if (lane.start[i] > view.to) break;
      const x = leftWidth + (lane.start[i] - view.from) * scale;
      const wide = lane.length[i] * scale;
      const isFound = needle !== '' && lane.names[i].toLowerCase().includes(needle);
      const isSelected = lane.recordId[i] === selected;
      if (x + wide < leftWidth) continue;
      if (wide < 0.7 && Math.floor(x) === lastX && !isFound && !isSelected) continue;
      lastX = Math.floor(x);
      context.globalAlpha = needle !== '' && !isFound ? 0.25 : 1;
      context.fillStyle = palette[colorOf(lane.names[i])];
      const drawn = Math.max(wide, lane.length[i] === 0 ? 2 : 0.8);
      context.fillRect(x, y, drawn, rowHeight - 2);
      context.globalAlpha = 1;
      if (isSelected) {
        context.strokeStyle = accent;
        context.lineWidth = 2;
        context.strokeRect(x - 1, y - 1, drawn + 2, rowHeight);
      }
      if (wide > 34) {
        const from = Math.max(x, leftWidth);
        const room = Math.min(x + wide, width) - from - 6;
        if (room > 24) {
          context.fillStyle = '#10151c';
          const letters = Math.floor(room / 5.6);
          context.fillText(lane.names[i].length > letters ? `${lane.names[i].slice(0, letters - 1)}…` : lane.names[i], from + 3, y + (rowHeight - 2) / 2 + 0.5);
        }
      }
    }
  }
}

function EventDetail({ model, hit }: { model: Model; hit: Hit }) {
  const { lane, index } = hit;
  const recordId = lane.recordId[index];
  const args = useAsync(`args ${recordId}`, async () => {
    const { event_args: t } = await load('args', Math.floor(recordId / 1024));
    return t.args[t.record_id.indexOf(recordId)] ?? '';
  });
  const compile = lane.compileId[index] === null ? undefined : model.compileById.get(lane.compileId[index]!);
  const phases: Record<string, string> = { i: 'instant', B: 'never closed: the log ends inside it', X: '' };
  return (
    <section class="detail event" aria-label="Event">
      <h2>{lane.names[index]}</h2>
      <p>
        {lane.length[index] > 0 && <b>{duration(lane.length[index])} </b>}
        <span class="quiet">
          at +{duration(lane.start[index])}, {utc(model.originUs + lane.start[index])}, {lane.process.name} {phases[lane.phase[index]] ?? ''}
        </span>{' '}
        {compile && (
          <>
            in <CompileLink compile={compile} /> <code>{shorten(compile.function ?? '', 60)}</code>
          </>
        )}
      </p>
      {args.value && args.value !== 'null' && <pre>{shorten(prettyJson(args.value), 40_000)}</pre>}
      {args.error && <p class="quiet">{args.error.message}</p>}
    </section>
  );
}

export function TimelinePage({ model, route }: { model: Model; route: Route }) {
  const only = route.query.get('process') === null ? null : Number(route.query.get('process'));
  const { lanes, total, error } = useLanes(model, only);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [collapsed, setCollapsed] = useState(model.processes.length > 12 && only === null);
  const [scroll, setScroll] = useState(0);
  const [size, setSize] = useState(0);
  const [hover, setHover] = useState<(Hit & { x: number; y: number }) | null>(null);
  const [find, setFind] = useState('');
  const bounds = useMemo(() => {
    let from = Infinity;
    let to = -Infinity;
    for (const lane of lanes) {
      for (let i = 0; i < lane.start.length; i++) {
        from = Math.min(from, lane.start[i]);
        to = Math.max(to, lane.start[i] + lane.length[i]);
      }
    }
    const margin = (to - from) * 0.01;
    return from < to ? { from: from - margin, to: to + margin } : null;
  }, [lanes]);
  const view: View | null = useMemo(() => {
    const from = Number(route.query.get('from') ?? NaN);
    const to = Number(route.query.get('to') ?? NaN);
    return Number.isFinite(from) && Number.isFinite(to) && to > from ? { from, to } : bounds;
  }, [route.query.get('from'), route.query.get('to'), bounds]);
  const tops = useMemo(() => {
    let top = laneGap;
    return lanes.map((lane) => {
      const own = top;
      top += (collapsed ? 1 : lane.depths) * rowHeight + laneGap;
      return own;
    });
  }, [lanes, collapsed]);
  const content = lanes.length === 0 ? 0 : tops[tops.length - 1] + (collapsed ? 1 : lanes[lanes.length - 1].depths) * rowHeight + laneGap;
  const selected = Number(route.query.get('sel')) || null;
  const needle = find.toLowerCase();
  const selectedHit = useMemo((): Hit | null => {
    for (const lane of lanes) {
      const index = selected === null ? -1 : lane.recordId.indexOf(selected);
      if (index >= 0) return { lane, index };
    }
    return null;
  }, [lanes, selected]);
  const events = lanes.reduce((sum, lane) => sum + lane.start.length, 0);
  const found = useMemo(() => (needle ? lanes.reduce((sum, lane) => sum + lane.names.reduce((own, name) => own + (name.toLowerCase().includes(needle) ? 1 : 0), 0), 0) : 0), [lanes, needle]);

  // The view moves without going through the router on every frame; the address follows when the hand rests.
  const live = useRef<View | null>(null);
  live.current = live.current ?? view;
  const settle = useRef(0);
  const redraw = () => {
    if (canvas.current && live.current) draw(canvas.current, tops, lanes, live.current, scroll, collapsed, selected, needle);
  };
  const frame = useRef(0);
  const show = (next: View) => {
    const least = 0.5;
    const width = Math.max(least, next.to - next.from);
    live.current = { from: next.from, to: next.from + width };
    if (!frame.current) {
      frame.current = requestAnimationFrame(() => {
        frame.current = 0;
        redraw();
      });
    }
    window.clearTimeout(settle.current);
    settle.current = window.setTimeout(() => setQuery({ from: Math.round(live.current!.from * 10) / 10, to: Math.round(live.current!.to * 10) / 10 }), 200);
  };
  useEffect(() => () => window.clearTimeout(settle.current), []);
  useEffect(() => {
    live.current = view;
    redraw();
  }, [view, lanes, scroll, collapsed, selected, needle, size]);
  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setSize(element.clientWidth * 10000 + element.clientHeight));
    observer.observe(element);
    const recolor = new MutationObserver(() => setSize((old) => old + 0.001));
    recolor.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
    return () => {
      observer.disconnect();
      recolor.disconnect();
    };
  }, [lanes.length === 0]);

  if (error) return <Empty>{error}</Empty>;
  const zoom = (factor: number, at = 0.5) => {
    const current = live.current;
    if (!current) return;
    const center = current.from + (current.to - current.from) * at;
    show({ from: center - (center - current.from) * factor, to: center + (current.to - center) * factor });
  };
  const pan = (share: number) => {
    const current = live.current;
    if (current) show({ from: current.from + (current.to - current.from) * share, to: current.to + (current.to - current.from) * share });
  };
  const hitAt = (event: MouseEvent): (Hit & { x: number; y: number }) | null => {
    const element = canvas.current;
    const current = live.current;
    if (!element || !current) return null;
    const box = element.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    if (x < leftWidth || y < axisHeight) return null;
    const time = current.from + ((x - leftWidth) / (box.width - leftWidth)) * (current.to - current.from);
    const slack = (2 / (box.width - leftWidth)) * (current.to - current.from);
    for (let n = 0; n < lanes.length; n++) {
      const lane = lanes[n];
      const depth = Math.floor((y - axisHeight - tops[n] + scroll) / rowHeight);
      if (depth < 0 || depth >= (collapsed ? 1 : lane.depths)) continue;
      const rows = lane.byDepth[depth];
      let best = -1;
      for (let r = lowerBound(lane, rows, time - lane.longest[depth] - slack); r < rows.length; r++) {
        const i = rows[r];
        if (lane.start[i] > time + slack) break;
        if (time >= lane.start[i] - slack && time <= lane.start[i] + lane.length[i] + slack) best = i;
      }
      if (best >= 0) return { lane, index: best, x, y };
    }
    return null;
  };
  const height = Math.max(120, Math.min(content + axisHeight + 4, window.innerHeight - (selectedHit ? 330 : 150)));
  const canScroll = content + axisHeight > height;
  const scrollBy = (by: number) => setScroll((old) => Math.max(0, Math.min(content + axisHeight - height, old + by)));
  return (
    <div class="page wide">
      <h1 class="unseen">Timeline</h1>
      <div class="toolbar">
        <input type="search" class="filter" placeholder="Find events by name" aria-label="Find events by name" value={find} onInput={(event) => setFind(event.currentTarget.value)} />
        {needle && <span role="status">{plural(found, 'event')}</span>}
        <button onClick={() => zoom(0.5)} aria-label="Zoom in">
          +
        </button>
        <button onClick={() => zoom(2)} aria-label="Zoom out">
          −
        </button>
        <button onClick={() => setQuery({ from: null, to: null })}>All</button>
        <label>
          <input type="checkbox" checked={collapsed} onChange={(event) => (setCollapsed(event.currentTarget.checked), setScroll(0))} /> outermost events only
        </label>
        <select aria-label="Process" value={only ?? ''} onChange={(event) => (setScroll(0), setQuery({ process: event.currentTarget.value, from: null, to: null }))}>
          <option value="">all processes</option>
          {model.processes.map((process) => (
            <option value={process.id}>{process.name}</option>
          ))}
        </select>
        <a href={isServed ? 'api/chromium_events.json' : 'chromium_events.json'} download="chromium_events.json" title="Chromium trace of all ranks: open it in Perfetto">
          Download for Perfetto
        </a>
        <span class="quiet">
          {lanes.length < total ? `loading ${lanes.length} of ${total}…` : plural(events, 'event')} · wheel zooms, drag moves, arrows and + − on the keyboard
        </span>
      </div>
      {lanes.length === total && events === 0 ? (
        <Empty>No timed Chromium events: this log was written before PyTorch emitted them, or nothing was compiled.</Empty>
      ) : (
        <div class="timeline" style={{ height: `${height}px` }}>
          <canvas
            ref={canvas}
            tabIndex={0}
            role="application"
            aria-label={`Timeline of ${count(events)} events. Arrow keys move, plus and minus zoom. Use the box above to find events by name.`}
            class={hover ? 'pointing' : ''}
            onMouseMove={(event) => {
              const element = event.currentTarget;
              if (event.buttons === 1 && element.dataset.drag) {
                const [x, y] = element.dataset.drag.split(',').map(Number);
                const width = element.clientWidth - leftWidth;
                const current = live.current!;
                const shift = ((x - event.clientX) / width) * (current.to - current.from);
                show({ from: current.from + shift, to: current.to + shift });
                if (canScroll) scrollBy(y - event.clientY);
                element.dataset.drag = `${event.clientX},${event.clientY}`;
                setHover(null);
              } else setHover(hitAt(event));
            }}
            onMouseDown={(event) => {
              event.currentTarget.dataset.drag = `${event.clientX},${event.clientY}`;
              event.currentTarget.dataset.press = `${event.clientX},${event.clientY}`;
            }}
            onMouseUp={(event) => {
              const [x, y] = (event.currentTarget.dataset.press ?? '0,0').split(',').map(Number);
              delete event.currentTarget.dataset.drag;
              if (Math.abs(x - event.clientX) + Math.abs(y - event.clientY) < 4) {
                const hit = hitAt(event);
                setQuery({ sel: hit ? hit.lane.recordId[hit.index] : null }, true);
              }
            }}
            onMouseLeave={(event) => {
              delete event.currentTarget.dataset.drag;
              setHover(null);
            }}
            onDblClick={(event) => {
              const hit = hitAt(event);
              if (!hit || hit.lane.length[hit.index] === 0) return;
              const from = hit.lane.start[hit.index];
              const length = hit.lane.length[hit.index];
              show({ from: from - length * 0.05, to: from + length * 1.05 });
            }}
            onWheel={(event) => {
              event.preventDefault();
              const box = event.currentTarget.getBoundingClientRect();
              if (event.shiftKey || (Math.abs(event.deltaX) > Math.abs(event.deltaY))) pan((event.deltaX || event.deltaY) / 1000);
              else if (canScroll && event.altKey) scrollBy(event.deltaY);
              else zoom(Math.exp(event.deltaY / 400), Math.max(0, (event.clientX - box.left - leftWidth) / (box.width - leftWidth)));
            }}
            onKeyDown={(event) => {
              const actions: Record<string, () => void> = { ArrowLeft: () => pan(-0.15), ArrowRight: () => pan(0.15), ArrowUp: () => scrollBy(-40), ArrowDown: () => scrollBy(40), '+': () => zoom(0.7), '=': () => zoom(0.7), '-': () => zoom(1.4), a: () => pan(-0.15), d: () => pan(0.15), w: () => zoom(0.7), s: () => zoom(1.4), Home: () => setQuery({ from: null, to: null }) };
              if (actions[event.key] && !event.ctrlKey && !event.metaKey) {
                actions[event.key]();
                event.preventDefault();
              }
            }}
          />
          {hover && (
            <div class="tooltip" style={{ left: `${Math.min(hover.x + 12, Math.max(0, (canvas.current?.clientWidth ?? 800) - 330))}px`, top: `${hover.y + 14}px` }}>
              <b>{shorten(hover.lane.names[hover.index], 200)}</b>
              <br />
              {hover.lane.length[hover.index] > 0 ? duration(hover.lane.length[hover.index]) : 'instant'} at +{duration(hover.lane.start[hover.index])}
              {hover.lane.compileId[hover.index] !== null && `, ${model.compileById.get(hover.lane.compileId[hover.index]!)?.title ?? ''}`}
            </div>
          )}
        </div>
      )}
      {selected !== null && selectedHit && <EventDetail key={selected} model={model} hit={selectedHit} />}
      <p class="quiet small">
        Times count from the first compile, {utc(model.originUs)}. <a href={href(['compiles'], { sort: '-duration' })}>The slowest compiles as a table</a>
      </p>
    </div>
  );
}
