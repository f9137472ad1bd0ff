// Moves the visible part of the time axis.
import { useEffect, useRef } from 'preact/hooks';
import { setQuery } from '../route';
import type { View } from './timeline_canvas';

export interface Mover {
  current: () => View | null;
  show: (next: View) => void;
  zoom: (factor: number, at?: number) => void;
  pan: (share: number) => void;
}

// The view moves without the router on every frame; the address is updated when the movement ends.
export function useMover(view: View | null, redraw: () => void): Mover {
  const live = useRef<View | null>(null);
  live.current = live.current ?? view;
  const settle = useRef(0);
  const frame = useRef(0);
  const latest = useRef(redraw);
  latest.current = redraw;
  useEffect(() => () => window.clearTimeout(settle.current), []);
  useEffect(() => {
    live.current = view;
  }, [view]);
  const show = (next: View) => {
    const least = 0.5;
    live.current = { from: next.from, to: next.from + Math.max(least, next.to - next.from) };
    frame.current ||= requestAnimationFrame(() => {
      frame.current = 0;
      latest.current();
    });
    window.clearTimeout(settle.current);
    settle.current = window.setTimeout(() => setQuery({ from: Math.round(live.current!.from * 10) / 10, to: Math.round(live.current!.to * 10) / 10 }), 200);
  };
  return {
    current: () => live.current,
    show,
    zoom: (factor, at = 0.5) => {
      const now = live.current;
      if (!now) return;
      const center = now.from + (now.to - now.from) * at;
      show({ from: center - (center - now.from) * factor, to: center + (now.to - center) * factor });
    },
    pan: (share) => {
      const now = live.current;
      if (now) show({ from: now.from + (now.to - now.from) * share, to: now.to + (now.to - now.from) * share });
    },
  };
}
