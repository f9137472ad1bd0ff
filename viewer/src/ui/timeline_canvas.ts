// The picture of the timeline: where lanes and events are on the canvas, and how they are drawn.
import { colorCount, lowerBound, type Lane, type Strip } from '../data/lanes';
import { mark } from '../lib/format';
import { cssColor, tickStep } from './compile_chart';

const rowHeight = 15;
const laneGap = 8;
const stripHeight = 9;
export const leftWidth = 112;
export const axisHeight = 22;

// The visible part of the time axis.
export interface View {
  from: number;
  to: number;
}

export interface Hit {
  lane: Lane;
  index: number;
}

export interface Picture {
  lanes: Lane[];
  places: Places;
  view: View;
  scroll: number;
  collapsed: boolean; // outermost events only
  selected: Hit | null;
  isFound: ((name: string) => boolean) | null; // null: nothing is looked for
}

// Where lanes begin below the axis, and how high all of them are.
export interface Places {
  tops: number[];
  height: number;
}

export function depthsOf(lane: Lane, collapsed: boolean): number {
  return collapsed ? 1 : lane.depths;
}

export function placesOf(lanes: Lane[], collapsed: boolean): Places {
  let height = lanes.length === 0 ? 0 : laneGap;
  const tops = lanes.map((lane) => {
    const top = height;
    height += depthsOf(lane, collapsed) * rowHeight + (lane.strip ? stripHeight : 0) + laneGap;
    return top;
  });
  return { tops, height };
}

// The depth of lane `n` that a point of the canvas is at; it may be outside of the lane.
export function depthAt(picture: Picture, n: number, y: number): number {
  return Math.floor((y - axisHeight - picture.places.tops[n] + picture.scroll) / rowHeight);
}

interface Pen {
  context: CanvasRenderingContext2D;
  width: number;
  height: number;
  scale: number; // pixels of a microsecond
  sans: string;
  ink: string;
  quiet: string;
  line: string;
  accent: string;
  slices: string[];
  letter: number; // width of a letter, about
}

// Fits the canvas to its box and the screen's pixels, and clears it.
function penOf(canvas: HTMLCanvasElement, view: View): Pen {
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
  const sans = cssColor('--sans');
  context.font = `11px ${sans}`;
  context.textBaseline = 'middle';
  return {
    context,
    width,
    height,
    scale: (width - leftWidth) / (view.to - view.from),
    sans,
    ink: cssColor('--ink'),
    quiet: cssColor('--quiet'),
    line: cssColor('--line'),
    accent: cssColor('--accent'),
    slices: Array.from({ length: colorCount }, (_, i) => cssColor(`--event-${i}`)),
    letter: context.measureText('compile_fx.<locals>.code_gen').width / 28,
  };
}

function clipTo(context: CanvasRenderingContext2D, x: number, y: number, width: number, height: number): void {
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
}

export function draw(canvas: HTMLCanvasElement, picture: Picture): void {
  const pen = penOf(canvas, picture.view);
  const { context, width, height } = pen;
  drawAxis(pen, picture.view);
  clipTo(context, 0, axisHeight, width, height - axisHeight);
  picture.lanes.forEach((lane, n) => {
    const top = axisHeight + picture.places.tops[n] - picture.scroll;
    const depths = depthsOf(lane, picture.collapsed);
    if (top > height || top + depths * rowHeight + stripHeight + laneGap < axisHeight) return;
    context.fillStyle = pen.line;
    context.fillRect(0, top - laneGap / 2, width, 1);
    context.fillStyle = pen.ink;
    context.font = `${lane.profile ? '' : '600 '}11px ${pen.sans}`;
    context.fillText(lane.title.slice(0, 40), 2, top + rowHeight / 2, leftWidth - 6);
    context.font = `11px ${pen.sans}`;
    clipTo(context, leftWidth, axisHeight, width - leftWidth, height);
    for (let depth = 0; depth < depths; depth++) drawDepth(pen, picture, lane, depth, top + depth * rowHeight);
    if (lane.strip) drawStrip(pen, picture.view, lane.strip, top + depths * rowHeight);
    context.restore();
  });
  context.restore();
}

function drawAxis({ context, width, height, scale, line, quiet }: Pen, view: View): void {
  const step = tickStep(view.to - view.from, Math.max(2, Math.floor((width - leftWidth) / 130)));
  for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
    const x = leftWidth + (at - view.from) * scale;
    context.fillStyle = line;
    context.fillRect(x, axisHeight - 4, 1, height);
    context.fillStyle = quiet;
    context.fillText(mark(at, step), x + 3, 10);
  }
}

// How much of each stretch the slices that are not drawn took.
function drawStrip({ context, scale, quiet, width }: Pen, view: View, strip: Strip, y: number): void {
  context.fillStyle = quiet;
  for (let n = 0; n < strip.at.length; n++) {
    const x = leftWidth + (strip.from + strip.at[n] * strip.stretchUs - view.from) * scale;
    const wide = strip.stretchUs * scale;
    if (x + wide < leftWidth) continue;
    if (x > width) break;
    context.globalAlpha = 0.15 + 0.6 * Math.min(1, strip.us[n] / strip.stretchUs);
    context.fillRect(x, y, Math.max(1, wide), stripHeight - 3);
  }
  context.globalAlpha = 1;
}

function drawDepth(pen: Pen, { view, selected, isFound }: Picture, lane: Lane, depth: number, y: number): void {
  const rows = lane.byDepth[depth];
  const selectedIndex = selected?.lane === lane ? selected.index : -1;
  // Slices narrower than a pixel are drawn once per pixel, and once more where one of them is found.
  let lastX = -1;
  let lastFoundX = -1;
  for (let r = lowerBound(lane, rows, view.from - lane.longest[depth]); r < rows.length; r++) {
    const i = rows[r];
    if (lane.start[i] > view.to) break;
    const x = leftWidth + (lane.start[i] - view.from) * pen.scale;
    const wide = lane.length[i] * pen.scale;
    if (x + wide < leftWidth) continue;
    const pixel = Math.floor(x);
    const isNarrow = wide < 0.7 && pixel === lastX && i !== selectedIndex;
    if (isNarrow && (isFound === null || pixel === lastFoundX)) continue;
    const found = isFound !== null && isFound(lane.names[i]);
    if (isNarrow && !found) continue;
    lastX = pixel;
    if (found) lastFoundX = pixel;
    pen.context.globalAlpha = isFound !== null && !found ? 0.25 : 1;
    drawSlice(pen, lane, i, x, y, i === selectedIndex);
  }
  pen.context.globalAlpha = 1;
}

function drawSlice({ context, width, scale, accent, slices, letter }: Pen, lane: Lane, i: number, x: number, y: number, isSelected: boolean): void {
  const wide = lane.length[i] * scale;
  context.fillStyle = slices[lane.color[i]];
  const drawn = Math.max(wide, lane.length[i] === 0 ? 2 : 0.8);
  // Where a slice goes far beyond the picture its ends are not drawn.
  const left = Math.max(x, leftWidth - 4);
  context.fillRect(left, y, Math.min(x + drawn, width + 4) - left, rowHeight - 2);
  if (isSelected) {
    context.globalAlpha = 1;
    context.strokeStyle = accent;
    context.lineWidth = 2;
    context.strokeRect(left - 1, y - 1, Math.min(x + drawn, width + 4) - left + 2, rowHeight);
  }
  const from = Math.max(x, leftWidth);
  const room = Math.min(x + wide, width) - from - 6;
  if (wide <= 34 || room <= 24) return;
  context.globalAlpha = 1;
  context.fillStyle = '#10151c';
  const letters = Math.floor(room / letter);
  context.fillText(lane.names[i].length > letters ? `${lane.names[i].slice(0, letters - 1)}…` : lane.names[i], from + 3, y + (rowHeight - 2) / 2 + 0.5, room);
}

// The stretch of the strip below lane `n` that a point of the canvas is in; -1: none.
export function stretchAt(picture: Picture, n: number, y: number, time: number): number {
  const { strip } = picture.lanes[n];
  const top = picture.places.tops[n] + depthsOf(picture.lanes[n], picture.collapsed) * rowHeight + axisHeight - picture.scroll;
  if (!strip || y < top || y > top + stripHeight) return -1;
  return strip.at.indexOf(Math.floor((time - strip.from) / strip.stretchUs));
}
