// The picture of the timeline: where lanes and events are on the canvas, and how they are drawn.
import { lowerBound, type Lane } from '../data/lanes';
import { duration } from '../lib/format';
import { cssColor, tickStep } from './compile_chart';

const rowHeight = 15;
const laneGap = 8;
export const leftWidth = 112;
export const axisHeight = 22;

// What is seen of the time axis.
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
  selected: number | null; // record
  needle: string; // in lower case
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
    height += depthsOf(lane, collapsed) * rowHeight + laneGap;
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
  ink: string;
  quiet: string;
  line: string;
  accent: string;
  events: string[];
  letter: number; // width of a letter, about
}

// Fits the canvas to its box and the screen's pixels, and wipes it.
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
  context.font = `11px ${cssColor('--sans')}`;
  context.textBaseline = 'middle';
  return {
    context,
    width,
    height,
    scale: (width - leftWidth) / (view.to - view.from),
    ink: cssColor('--ink'),
    quiet: cssColor('--quiet'),
    line: cssColor('--line'),
    accent: cssColor('--accent'),
    events: Array.from({ length: 8 }, (_, i) => cssColor(`--event-${i}`)),
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
    if (top > height || top + depths * rowHeight + laneGap < axisHeight) return;
    context.fillStyle = pen.line;
    context.fillRect(0, top - laneGap / 2, width, 1);
    context.fillStyle = pen.ink;
    context.fillText(lane.process.name.slice(0, 18), 2, top + rowHeight / 2);
    clipTo(context, leftWidth, axisHeight, width - leftWidth, height);
    for (let depth = 0; depth < depths; depth++) drawDepth(pen, picture, lane, depth, top + depth * rowHeight);
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
    context.fillText(Math.abs(at) < 0.001 ? '0' : duration(Math.round(at * 1000) / 1000), x + 3, 10);
  }
}

function drawDepth(pen: Pen, { view, selected, needle }: Picture, lane: Lane, depth: number, y: number): void {
  const rows = lane.byDepth[depth];
  let lastX = -1; // events narrower than a pixel are drawn once per pixel
  for (let r = lowerBound(lane, rows, view.from - lane.longest[depth]); r < rows.length; r++) {
    const i = rows[r];
    if (lane.start[i] > view.to) break;
    const x = leftWidth + (lane.start[i] - view.from) * pen.scale;
    const wide = lane.length[i] * pen.scale;
    if (x + wide < leftWidth) continue;
    const isFound = needle !== '' && lane.names[i].toLowerCase().includes(needle);
    const isSelected = lane.recordId[i] === selected;
    if (wide < 0.7 && Math.floor(x) === lastX && !isFound && !isSelected) continue;
    lastX = Math.floor(x);
    pen.context.globalAlpha = needle !== '' && !isFound ? 0.25 : 1;
    drawEvent(pen, lane, i, x, y, isSelected);
  }
}

function drawEvent({ context, width, scale, accent, events, letter }: Pen, lane: Lane, i: number, x: number, y: number, isSelected: boolean): void {
  const wide = lane.length[i] * scale;
  context.fillStyle = events[colorOf(lane.names[i])];
  const drawn = Math.max(wide, lane.length[i] === 0 ? 2 : 0.8);
  context.fillRect(x, y, drawn, rowHeight - 2);
  context.globalAlpha = 1;
  if (isSelected) {
    context.strokeStyle = accent;
    context.lineWidth = 2;
    context.strokeRect(x - 1, y - 1, drawn + 2, rowHeight);
  }
  const from = Math.max(x, leftWidth);
  const room = Math.min(x + wide, width) - from - 6;
  if (wide <= 34 || room <= 24) return;
  context.fillStyle = '#10151c';
  const letters = Math.floor(room / letter);
  context.fillText(lane.names[i].length > letters ? `${lane.names[i].slice(0, letters - 1)}…` : lane.names[i], from + 3, y + (rowHeight - 2) / 2 + 0.5, room);
}

function colorOf(name: string): number {
  let hash = 0;
  for (let i = 0; i < name.length; i++) hash = (hash * 31 + name.charCodeAt(i)) | 0;
  return ((hash % 8) + 8) % 8;
}
