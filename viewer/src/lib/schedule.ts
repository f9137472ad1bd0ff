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

// How many items of a list are drawn: a few when `key` has changed, all of them after that frame.
export function useSteps(key: unknown, few: number, all: number): number {
  const [settled, settle] = useState<unknown>(undefined);
  useEffect(() => settle(key), [key]);
  return settled === key ? all : few;
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
