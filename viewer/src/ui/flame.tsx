// The events of all compiles below the events around them, as wide as the time they take.
import type { JSX } from 'preact';
import { useMemo, useRef } from 'preact/hooks';
import { timedPhases } from '../data/phases';
import type { TimeNode, Times } from '../data/time';
import { duration, percent, plural } from '../lib/format';

interface Box {
  node: TimeNode;
  depth: number;
  from: number; // shares of the width
  width: number;
}

const least = 0.0012; // what is narrower is not drawn
const joint = ' › ';

export function pathOf(node: TimeNode): string {
  return (node.parent ? pathOf(node.parent) + joint : '') + node.name;
}

function nodeAt(roots: TimeNode[], path: string | null): TimeNode | null {
  let [among, node] = [roots, null as TimeNode | null];
  for (const name of (path ?? '').split(joint)) {
    node = among.find((one) => one.name === name) ?? null;
    if (!node) return null;
    among = node.children;
  }
  return node;
}

// The chosen node over the whole width, those around it above it, what is inside of it below.
function boxesOf(times: Times, zoomed: TimeNode | null, isLeftHeavy: boolean): { boxes: Box[]; hidden: number } {
  const boxes: Box[] = [];
  let hidden = 0;
  const around: TimeNode[] = [];
  for (let at = zoomed?.parent ?? null; at; at = at.parent) around.unshift(at);
  around.forEach((node, depth) => boxes.push({ node, depth, from: 0, width: 1 }));
  const wholeUs = zoomed ? zoomed.totalUs : times.wholeUs;
  const lay = (nodes: TimeNode[], depth: number, fromUs: number) => {
    const order = isLeftHeavy ? [...nodes].sort((a, b) => b.totalUs - a.totalUs) : nodes;
    for (const node of order) {
      const width = node.totalUs / wholeUs;
      if (width < least) hidden++;
      else {
        boxes.push({ node, depth, from: fromUs / wholeUs, width });
        lay(node.children, depth + 1, fromUs);
      }
      fromUs += node.totalUs;
    }
  };
  lay(zoomed ? [zoomed] : times.roots, around.length, 0);
  return { boxes, hidden };
}

export function Flame({
  times,
  isLeftHeavy,
  selected,
  at,
  onChoose,
}: {
  times: Times;
  isLeftHeavy: boolean;
  selected: string | null;
  at: string | null;
  onChoose: (name: string | null, at: string | null) => void;
}) {
  const zoomed = useMemo(() => nodeAt(times.roots, at), [times, at]);
  const { boxes, hidden } = useMemo(() => boxesOf(times, zoomed, isLeftHeavy), [times, zoomed, isLeftHeavy]);
  const box = useRef<HTMLDivElement>(null);
  const depths = boxes.reduce((most, own) => Math.max(most, own.depth + 1), 1);
  const onKeyDown = (event: JSX.TargetedKeyboardEvent<HTMLDivElement>) => {
    const buttons = [...(box.current?.querySelectorAll<HTMLElement>('button') ?? [])];
    const now = boxes[buttons.indexOf(document.activeElement as HTMLElement)];
    if (!now) return;
    const beside = (step: number) => boxes.filter((own) => own.depth === now.depth).at(boxes.filter((own) => own.depth === now.depth).indexOf(now) + step);
    const next: Record<string, Box | undefined> = {
      ArrowUp: boxes.find((own) => own.node === now.node.parent),
      ArrowDown: boxes.find((own) => own.node.parent === now.node),
      ArrowLeft: beside(-1),
      ArrowRight: beside(1),
    };
    if (event.key === 'Escape') onChoose(null, null);
    if (!(event.key in next)) return;
    if (next[event.key]) buttons[boxes.indexOf(next[event.key]!)].focus();
    event.preventDefault();
  };
  return (
    <>
      <div
        class="flame"
        role="group"
        aria-label="Events by the events around them: arrow keys move, Enter enlarges"
        ref={box}
        style={{ height: `${depths * 20 + 2}px` }}
        onKeyDown={onKeyDown}
      >
        {boxes.map(({ node, depth, from, width }, i) => (
          <button
            key={i}
            tabIndex={node === zoomed || (!zoomed && i === 0) ? 0 : -1}
            class={`${timedPhases[node.phase].class}-slice ${node.name === selected ? 'chosen' : ''}`}
            style={{ left: `${100 * from}%`, width: `${100 * width}%`, top: `${depth * 20}px` }}
            title={`${node.name}\n${duration(node.totalUs)}, ${percent(node.totalUs / times.wholeUs)}; itself ${duration(node.selfUs)}; ${plural(node.count, 'event')}\n${timedPhases[node.phase].name}`}
            onClick={() => onChoose(node.name, pathOf(node))}
          >
            {node.name}
          </button>
        ))}
      </div>
      <p class="quiet small">
        {isLeftHeavy ? 'What takes longest is at the left.' : 'In the order in which they first occurred.'} Equal paths of all compiles are one.
        {times.notAttributedUs > 0 && !zoomed && ` The gap at the right, ${duration(times.notAttributedUs)}, is in no event.`}
        {hidden > 0 && ` ${plural(hidden, 'event')} too narrow to draw, with what they call.`}{' '}
        {zoomed && (
          <button class="link" onClick={() => onChoose(selected, null)}>
            Show all
          </button>
        )}
      </p>
    </>
  );
}
