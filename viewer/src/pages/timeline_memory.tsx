// What was alive, above the lanes of the timeline and on their axis.
import { useMemo } from 'preact/hooks';
import { pointAt, type MemoryLane } from '../data/memory';
import { bytes, duration, mark, shorten } from '../lib/format';
import { href, setQuery } from '../route';
import { areasOf, high, MemoryLegend } from '../ui/memory_chart';
import { leftWidth, type View } from '../ui/timeline_canvas';
import type { Mover } from '../ui/timeline_mover';

// The time below the pointer, of an element whose axis begins behind the names of the lanes.
export function timeAt(element: Element, mover: Mover, event: MouseEvent): number | null {
  const view = mover.current();
  const box = element.getBoundingClientRect();
  if (!view) return null;
  const share = (event.clientX - box.left - leftWidth) / (box.width - leftWidth);
  return share < 0 ? null : Math.round(10 * (view.from + share * (view.to - view.from))) / 10;
}

// Shows the part of the curves that the lanes show, and the chosen moment.
export function showStrips(frame: HTMLElement | null, view: View): void {
  if (!frame) return;
  for (const svg of frame.querySelectorAll<SVGElement>('.memory-strip svg'))
    svg.setAttribute('viewBox', `${view.from - Number(svg.dataset.from)} 0 ${view.to - view.from} ${high}`);
  const mark = frame.querySelector<HTMLElement>('.moment');
  if (!mark) return;
  const at = (Number(mark.dataset.at) - view.from) / (view.to - view.from);
  mark.hidden = at < 0 || at > 1;
  mark.style.left = `${leftWidth + 1 + at * (frame.clientWidth - 2 - leftWidth)}px`;
}

function Strip({ lane, mover, isOnly }: { lane: MemoryLane; mover: Mover; isOnly: boolean }) {
  const { memory, xs, to, most, recording } = lane;
  const areas = useMemo(() => areasOf(memory, (i) => xs[i] - xs[0], to - xs[0], Math.max(1, most)), [lane]);
  return (
    <div
      class="memory-strip"
      onClick={(event) => setQuery({ t: timeAt(event.currentTarget, mover, event) }, true)}
      onWheel={(event) => {
        event.preventDefault();
        const box = event.currentTarget.getBoundingClientRect();
        if (event.shiftKey) mover.pan(event.deltaY / 1000);
        else mover.zoom(Math.exp(event.deltaY / 400), Math.max(0, (event.clientX - box.left - leftWidth) / (box.width - leftWidth)));
      }}
    >
      <a href={href(['memory'], { recording: recording.id })} title={recording.name}>
        {isOnly ? 'memory' : shorten(recording.name, 40)}
      </a>
      <span class="memory-strip-most">{bytes(most)}</span>
      <svg preserveAspectRatio="none" data-from={xs[0]} role="img" aria-label={`Memory of ${recording.name}: ${bytes(most)} at the peak`}>
        {areas.map(({ key, path }) => (
          <path d={path} class={`memory-${key}`} />
        ))}
      </svg>
    </div>
  );
}

export function MemoryStrips({ lanes, mover, moment }: { lanes: MemoryLane[]; mover: Mover; moment: number | null }) {
  if (lanes.length === 0) return null;
  return (
    <>
      {lanes.map((lane) => (
        <Strip key={lane.recording.id} lane={lane} mover={mover} isOnly={lanes.length === 1} />
      ))}
      {moment !== null && <i class="moment" data-at={moment} />}
    </>
  );
}

// What was alive at the chosen moment.
export function MemoryMoment({ lanes, moment }: { lanes: MemoryLane[]; moment: number | null }) {
  if (lanes.length === 0 || moment === null) return null;
  return (
    <section class="moment-detail" aria-label="Memory at the moment" role="status">
      {lanes.map(({ recording, memory, xs, to }) => {
        if (moment < xs[0] || moment > to)
          return (
            <p class="quiet">
              {recording.name}: no recording at {duration(moment, true)}.
            </p>
          );
        const point = pointAt(xs, moment);
        return (
          <>
            <b>
              {bytes(memory.point.size_bytes[point])} alive at +{mark(xs[point], (to - xs[0]) / 100)}
            </b>
            <a href={href(['memory'], { recording: recording.id, at: memory.point.ordinal[point] })}>who holds it</a>
            <MemoryLegend memory={memory} point={point} />
          </>
        );
      })}
    </section>
  );
}
