// Four panes whose sizes are dragged at their crossing, or changed with the arrow keys on it.
import type { ComponentChildren, JSX } from 'preact';
import { useRef } from 'preact/hooks';
import { useStored } from './keys';

const least = 15; // percent
const within = (share: number) => Math.round(Math.max(least, Math.min(100 - least, share)));

export function Panes({ children }: { children: ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null);
  const [{ x, y }, setShares] = useStored('tlparse-panes', { x: 50, y: 50 });
  const onPointerMove = (event: JSX.TargetedPointerEvent<HTMLButtonElement>) => {
    if (!event.currentTarget.hasPointerCapture(event.pointerId)) return;
    const { left, top, width, height } = box.current!.getBoundingClientRect();
    setShares({ x: within((100 * (event.clientX - left)) / width), y: within((100 * (event.clientY - top)) / height) });
  };
  const onKeyDown = (event: JSX.TargetedKeyboardEvent<HTMLButtonElement>) => {
    const steps: Record<string, [number, number]> = { ArrowLeft: [-5, 0], ArrowRight: [5, 0], ArrowUp: [0, -5], ArrowDown: [0, 5] };
    const step = steps[event.key];
    if (!step) return;
    setShares({ x: within(x + step[0]), y: within(y + step[1]) });
    event.preventDefault();
  };
  return (
    <div
      class="panes"
      ref={box}
      style={{ '--x': `${x}fr`, '--rest-x': `${100 - x}fr`, '--y': `${y}fr`, '--rest-y': `${100 - y}fr`, '--at-x': `${x}%`, '--at-y': `${y}%` }}
    >
      {children}
      <button
        class="crossing"
        title="Drag to size the panes; double-click: all alike"
        aria-label="Sizes of the panes: drag, or arrow keys"
        onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
        onPointerMove={onPointerMove}
        onKeyDown={onKeyDown}
        onDblClick={() => setShares({ x: 50, y: 50 })}
      />
    </div>
  );
}
