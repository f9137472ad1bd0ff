// Schedules work for later frames and idle time.
import { useEffect, useState } from 'preact/hooks';

// Safari has no requestIdleCallback.
export function whenIdle(act: () => void): () => void {
  if (typeof requestIdleCallback === 'function') {
    const id = requestIdleCallback(act);
    return () => cancelIdleCallback(id);
  }
  const id = setTimeout(act, 50);
  return () => clearTimeout(id);
}

// When nobody has pressed or typed anything for a while, the moment when the page was opened included: what is only likely to be asked
// for must not delay what was.
const quietMs = 300;
let busyAt: number | undefined;
export async function whenQuiet(): Promise<void> {
  if (busyAt === undefined) {
    busyAt = performance.now();
    for (const type of ['pointerdown', 'keydown', 'wheel']) window.addEventListener(type, () => (busyAt = performance.now()), { capture: true, passive: true });
  }
  for (let wait; (wait = busyAt + quietMs - performance.now()) > 0;) await new Promise((resolve) => setTimeout(resolve, wait));
  await new Promise<void>(whenIdle);
}

// How many items of a list are drawn: a few when `key` has changed, all of them after that frame.
export function useSteps(key: unknown, few: number, all: number): number {
  const [settled, settle] = useState<unknown>(undefined);
  useEffect(() => settle(key), [key]);
  return settled === key ? all : few;
}

// How many of `parts` costly things are drawn for `key`: one more after each frame, so that none of them delays the view or an input.
export function useTurns(key: unknown, parts: number): number {
  const [turn, setTurn] = useState<{ key: unknown; done: number }>({ key, done: 0 });
  const done = turn.key === key ? turn.done : 0;
  useEffect(() => {
    if (done >= parts) return;
    const { run, cancel } = behindFrame(setTurn);
    run({ key, done: done + 1 });
    return cancel;
  }, [key, done]);
  return done;
}

// Runs after the next frame, once for several calls in a row, with the argument of the last one.
export function behindFrame<T>(act: (value: T) => void): { run: (value: T) => void; cancel: () => void } {
  let frame = 0;
  let timer = 0;
  let last: T;
  const cancel = () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
    frame = timer = 0;
  };
  return {
    run: (value) => {
      last = value;
      if (frame || timer) return;
      frame = requestAnimationFrame(() => {
        frame = 0;
        timer = window.setTimeout(() => {
          timer = 0;
          act(last);
        });
      });
    },
    cancel,
  };
}
