import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { isServed, ofRun } from '../data/chunks';
import { boundsOf, eventAt, useLanes, type Lane } from '../data/lanes';
import { useMemoryLanes } from '../data/memory';
import type { Model } from '../data/model';
import { measuredProfiles } from '../data/profiles';
import type { ProfileLanes } from '../data/slices';
import { count, duration, plural, shorten, utc } from '../lib/format';
import { href, setQuery, type Route } from '../route';
import { Empty } from '../ui/bits';
import { axisHeight, depthAt, depthsOf, draw, leftWidth, placesOf, stretchAt, type Hit, type Picture, type View } from '../ui/timeline_canvas';
import { useMover, type Mover } from '../ui/timeline_mover';
import { EventDetail, ProfileNote, SliceDetail } from './timeline_event';
import { MemoryMoment, MemoryStrips, showStrips, timeAt } from './timeline_memory';

// In the address an event is its record, a slice "<profile>.<row>".
function keyOf({ lane, index }: Hit): string {
  return lane.profile ? `${lane.profile.id}.${lane.id[index]}` : String(lane.id[index]);
}

function findKey(lanes: Lane[], key: string | null): Hit | null {
  const match = /^(?:(\d+)\.)?(\d+)$/.exec(key ?? '');
  if (!match) return null;
  for (const lane of lanes) {
    if ((lane.profile === null) !== (match[1] === undefined) || (lane.profile && lane.profile.id !== Number(match[1]))) continue;
    const index = lane.id.indexOf(Number(match[2]));
    if (index >= 0) return { lane, index };
  }
  return null;
}

// Names repeat: each is looked at once.
function finderOf(needle: string): ((name: string) => boolean) | null {
  if (!needle) return null;
  const known = new Map<string, boolean>();
  return (name) => {
    let found = known.get(name);
    if (found === undefined) known.set(name, (found = name.toLowerCase().includes(needle)));
    return found;
  };
}

function countNames(lanes: Lane[], isFound: (name: string) => boolean): number {
  return lanes.reduce((sum, lane) => sum + lane.names.reduce((own, name) => own + (isFound(name) ? 1 : 0), 0), 0);
}

// Of the events that are drawn while only the top level is.
function countOnTop(lanes: Lane[], isFound: (name: string) => boolean): number {
  return lanes.reduce((sum, lane) => sum + (lane.byDepth[0] ?? new Int32Array()).reduce((own, i) => own + (isFound(lane.names[i]) ? 1 : 0), 0), 0);
}

type Pointed = Hit & { x: number; y: number }; // index -1 - n: stretch n of the lane's strip

function pointedAt(canvas: HTMLCanvasElement, picture: Picture, event: MouseEvent): Pointed | null {
  const { view, lanes } = picture;
  const box = canvas.getBoundingClientRect();
  const x = event.clientX - box.left;
  const y = event.clientY - box.top;
  if (x < leftWidth || y < axisHeight) return null;
  const pixel = (view.to - view.from) / (box.width - leftWidth);
  const time = view.from + (x - leftWidth) * pixel;
  for (let n = 0; n < lanes.length; n++) {
    const stretch = stretchAt(picture, n, y, time);
    if (stretch >= 0) return { lane: lanes[n], index: -1 - stretch, x, y };
    const depth = depthAt(picture, n, y);
    if (depth < 0 || depth >= depthsOf(lanes[n], picture.collapsed)) continue;
    const index = eventAt(lanes[n], depth, time, 2 * pixel);
    if (index >= 0) return { lane: lanes[n], index, x, y };
  }
  return null;
}

interface CanvasProps {
  model: Model;
  picture: Omit<Picture, 'view'>;
  mover: Mover;
  canvas: { current: HTMLCanvasElement | null };
  events: number;
  scrollBy: ((by: number) => void) | null; // null: all lanes are seen
  hasMoments: boolean; // a click chooses a moment, too
}

function TimelineCanvas({ model, picture, mover, canvas, events, scrollBy, hasMoments }: CanvasProps) {
  const [hover, setHover] = useState<Pointed | null>(null);
  const drag = useRef<{ x: number; y: number; pressX: number; pressY: number } | null>(null);
  const hitAt = (event: MouseEvent): Pointed | null => {
    const view = mover.current();
    return canvas.current && view ? pointedAt(canvas.current, { ...picture, view }, event) : null;
  };
  const onMouseMove = (event: MouseEvent) => {
    const view = mover.current();
    if (event.buttons !== 1 || !drag.current || !view) return setHover(hitAt(event));
    const shift = ((drag.current.x - event.clientX) / (canvas.current!.clientWidth - leftWidth)) * (view.to - view.from);
    mover.show({ from: view.from + shift, to: view.to + shift });
    scrollBy?.(drag.current.y - event.clientY);
    drag.current = { ...drag.current, x: event.clientX, y: event.clientY };
    setHover(null);
  };
  const onMouseUp = (event: MouseEvent) => {
    const press = drag.current;
    drag.current = null;
    if (!press || Math.abs(press.pressX - event.clientX) + Math.abs(press.pressY - event.clientY) >= 4) return;
    const hit = hitAt(event);
    const time = canvas.current ? timeAt(canvas.current, mover, event) : null;
    setQuery({ sel: hit && hit.index >= 0 ? keyOf(hit) : null, ...(hasMoments ? { t: time } : {}) }, true);
  };
  const onDblClick = (event: MouseEvent) => {
    const hit = hitAt(event);
    if (!hit || hit.index < 0 || hit.lane.length[hit.index] === 0) return;
    const from = hit.lane.start[hit.index];
    const length = hit.lane.length[hit.index];
    mover.show({ from: from - length * 0.05, to: from + length * 1.05 });
  };
  const onWheel = (event: WheelEvent) => {
    event.preventDefault();
    const box = canvas.current!.getBoundingClientRect();
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) mover.pan((event.deltaX || event.deltaY) / 1000);
    else if (scrollBy && event.altKey) scrollBy(event.deltaY);
    else mover.zoom(Math.exp(event.deltaY / 400), Math.max(0, (event.clientX - box.left - leftWidth) / (box.width - leftWidth)));
  };
  const left = () => mover.pan(-0.15);
  const right = () => mover.pan(0.15);
  const closer = () => mover.zoom(0.7);
  const farther = () => mover.zoom(1.4);
  const keys: Record<string, () => void> = {
    ArrowLeft: left,
    a: left,
    ArrowRight: right,
    d: right,
    '+': closer,
    '=': closer,
    w: closer,
    '-': farther,
    s: farther,
    ArrowUp: () => scrollBy?.(-40),
    ArrowDown: () => scrollBy?.(40),
    Home: () => setQuery({ from: null, to: null }),
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
    keys[event.key]();
    event.preventDefault();
  };
  return (
    <>
      <canvas
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-label={`Timeline of ${count(events)} events. Arrow keys move, plus and minus zoom. Use the box above to find events by name.`}
        class={hover ? 'pointing' : ''}
        onMouseMove={onMouseMove}
        onMouseDown={(event) => (drag.current = { x: event.clientX, y: event.clientY, pressX: event.clientX, pressY: event.clientY })}
        onMouseUp={onMouseUp}
        onMouseLeave={() => {
          drag.current = null;
          setHover(null);
        }}
        onDblClick={onDblClick}
        onWheel={onWheel}
        onKeyDown={onKeyDown}
      />
      {hover && <Tooltip model={model} hover={hover} width={canvas.current?.clientWidth ?? 800} />}
    </>
  );
}

function Tooltip({ model, hover, width }: { model: Model; hover: Pointed; width: number }) {
  const { lane, index } = hover;
  const style = { left: `${Math.min(hover.x + 12, Math.max(0, width - 330))}px`, top: `${hover.y + 14}px` };
  if (index < 0) {
    const { count: counts, us, stretchUs } = lane.strip!;
    return (
      <div class="tooltip" style={style}>
        {plural(counts[-1 - index], 'shorter slice')} that began in these {duration(stretchUs)}, {duration(us[-1 - index])} in all
      </div>
    );
  }
  const compileId = lane.compileId[index];
  return (
    <div class="tooltip" style={style}>
      <b>{shorten(lane.names[index], 200)}</b>
      <br />
      {lane.length[index] > 0 ? duration(lane.length[index]) : 'instant'} at {duration(lane.start[index], true)}
      {compileId !== null && `, ${model.compileById.get(compileId)?.title ?? ''}`}
    </div>
  );
}

// Changes when the box or the colours of a canvas do, which then has to be drawn again.
function useLook(canvas: { current: HTMLCanvasElement | null }, isThere: boolean): number {
  const [look, setLook] = useState(0);
  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const change = () => setLook((old) => old + 1);
    const observer = new ResizeObserver(change);
    observer.observe(element);
    const recolor = new MutationObserver(change);
    recolor.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
    return () => {
      observer.disconnect();
      recolor.disconnect();
    };
  }, [isThere]);
  return look;
}

function withMargin({ from, to }: View): View {
  return { from: from - (to - from) * 0.01, to: to + (to - from) * 0.01 };
}

function spanOf(profiles: ProfileLanes[]): View {
  return { from: Math.min(...profiles.map((own) => own.span.from)), to: Math.max(...profiles.map((own) => own.span.to)) };
}

// Processes, and profiles of processes that have no log.
function ProcessChoice({ model, only, onlyProfile, onChoose }: { model: Model; only: number | null; onlyProfile: number | null; onChoose: () => void }) {
  const alone = measuredProfiles(model).filter((profile) => profile.process === null);
  const choose = (value: string) => {
    onChoose();
    const isProfile = value.startsWith('profile ');
    setQuery({ process: isProfile ? null : value, profile: isProfile ? value.slice(8) : null, from: null, to: null, sel: null });
  };
  return (
    <select aria-label="Process" value={onlyProfile !== null ? `profile ${onlyProfile}` : (only ?? '')} onChange={(event) => choose(event.currentTarget.value)}>
      <option value="">all processes</option>
      {model.processes.map((process) => (
        <option value={process.id}>{process.name}</option>
      ))}
      {alone.map((profile) => (
        <option value={`profile ${profile.id}`}>{shorten(profile.name, 60)}</option>
      ))}
    </select>
  );
}

// Without a log, the profile with most to see: several do not share an axis.
function fullestAlone(model: Model): number | null {
  if (model.processes.length > 0) return null;
  const profiles = measuredProfiles(model);
  return profiles.length > 1 ? profiles.reduce((most, profile) => (profile.keptCount > most.keptCount ? profile : most)).id : null;
}

export function TimelinePage({ model, route }: { model: Model; route: Route }) {
  const only = route.query.get('process') === null ? null : Number(route.query.get('process'));
  const asked = route.query.get('profile');
  const onlyProfile = asked !== null ? Number(asked) : only === null ? fullestAlone(model) : null;
  const { lanes, loaded, total, profiles, others, error } = useLanes(model, { process: only, profile: onlyProfile });
  const canvas = useRef<HTMLCanvasElement>(null);
  const frame = useRef<HTMLDivElement>(null);
  const memory = useMemoryLanes(model, only, onlyProfile, profiles);
  const moment = route.query.get('t') === null ? null : Number(route.query.get('t'));
  const [collapsed, setCollapsed] = useState(model.processes.length > 12 && only === null);
  const [scroll, setScroll] = useState(0);
  const [find, setFind] = useState('');
  const bounds = useMemo(() => boundsOf(lanes), [lanes]);
  const view: View | null = useMemo(() => {
    const from = Number(route.query.get('from') ?? NaN);
    const to = Number(route.query.get('to') ?? NaN);
    return Number.isFinite(from) && Number.isFinite(to) && to > from ? { from, to } : bounds;
  }, [route.query.get('from'), route.query.get('to'), bounds]);
  const places = useMemo(() => placesOf(lanes, collapsed), [lanes, collapsed]);
  const selected = route.query.get('sel');
  const selectedHit = useMemo(() => findKey(lanes, selected), [lanes, selected]);
  const needle = find.toLowerCase();
  const events = lanes.reduce((sum, lane) => sum + lane.start.length, 0);
  const isFound = useMemo(() => finderOf(needle), [needle]);
  const found = useMemo(() => (isFound ? countNames(lanes, isFound) : 0), [lanes, isFound]);
  const onTop = useMemo(() => (isFound ? countOnTop(lanes, isFound) : 0), [lanes, isFound]);
  const picture = { lanes, places, scroll, collapsed, selected: selectedHit, isFound };
  const redraw = () => {
    const current = mover.current();
    if (!canvas.current || !current) return;
    draw(canvas.current, { ...picture, view: current });
    showStrips(frame.current, current);
  };
  const mover = useMover(view, redraw);
  const look = useLook(canvas, lanes.length > 0);
  useEffect(redraw, [view, lanes, scroll, collapsed, selectedHit, needle, look, memory, moment]);

  if (error) return <Empty>{error}</Empty>;
  const content = places.height + axisHeight;
  const height = Math.max(120, Math.min(content + 4, window.innerHeight - (selectedHit ? 330 : 150) - 64 * memory.length - (moment === null ? 0 : 40)));
  const scrollBy = (by: number) => setScroll((old) => Math.max(0, Math.min(content - height, old + by)));
  return (
    <div class="page wide">
      <h1 class="unseen">Timeline</h1>
      <div class="toolbar">
        <input
          type="search"
          class="filter"
          placeholder="Find events by name"
          aria-label="Find events by name"
          value={find}
          onInput={(event) => setFind(event.currentTarget.value)}
        />
        {needle && (
          <span role="status">
            {plural(found, 'event')}
            {collapsed && found > onTop ? `, ${count(found - onTop)} below the top level are not drawn` : ''}
          </span>
        )}
        <button onClick={() => mover.zoom(0.5)} aria-label="Zoom in">
          +
        </button>
        <button onClick={() => mover.zoom(2)} aria-label="Zoom out">
          −
        </button>
        <button onClick={() => setQuery({ from: null, to: null })}>Fit all</button>
        <label>
          <input type="checkbox" checked={collapsed} onChange={(event) => (setCollapsed(event.currentTarget.checked), setScroll(0))} /> top level only
        </label>
        {profiles.length > 0 && <button onClick={() => mover.show(withMargin(spanOf(profiles)))}>Fit {profiles.length === 1 ? 'profile' : 'profiles'}</button>}
        <ProcessChoice model={model} only={only} onlyProfile={onlyProfile} onChoose={() => setScroll(0)} />
        <a
          href={isServed ? `api/timeline.json${ofRun()}` : 'chromium_events.json'}
          download={isServed ? 'timeline.json' : 'chromium_events.json'}
          title={isServed ? 'The run on one clock: open it in Perfetto' : 'Chromium trace of all ranks: open it in Perfetto'}
        >
          Download for Perfetto
        </a>
        <span class="quiet">
          {loaded < total ? `loading ${loaded} of ${total}…` : plural(events, profiles.length > 0 ? 'slice' : 'event')} · wheel zooms, drag moves, arrows and +
          − on the keyboard
        </span>
      </div>
      {loaded === total && events === 0 ? (
        <Empty>No timed Chromium events: this log was written before PyTorch emitted them, or nothing was compiled. No profile of it either.</Empty>
      ) : (
        <div class="timeline-frame" ref={frame}>
          <MemoryStrips lanes={memory} mover={mover} moment={moment} />
          <div class="timeline" style={{ height: `${height}px` }}>
            <TimelineCanvas
              model={model}
              picture={picture}
              mover={mover}
              canvas={canvas}
              events={events}
              scrollBy={content > height ? scrollBy : null}
              hasMoments={memory.length > 0}
            />
          </div>
        </div>
      )}
      <MemoryMoment lanes={memory} moment={moment} />
      {selectedHit &&
        (selectedHit.lane.profile ? <SliceDetail model={model} hit={selectedHit} /> : <EventDetail key={selected} model={model} hit={selectedHit} />)}
      {profiles.map((own) => (
        <ProfileNote own={own} />
      ))}
      {others > 0 && profiles.length === 0 && (
        <p class="quiet small">{plural(others, 'profile')} measured steps, graph calls, ops and kernels: choose a process to see them on the same axis.</p>
      )}
      <p class="quiet small">
        Times count from {model.allCompiles.length > 0 ? 'the first compile of the run' : 'the first event'}, {utc(model.originUs)}.{' '}
        {model.compiles.length > 0 && <a href={href(['compiles'], { sort: '-duration' })}>The slowest compiles as a table</a>}
      </p>
    </div>
  );
}
