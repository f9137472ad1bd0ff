// The stacks that led to compiles, as a tree, and its rows as a list shows them.
import type { Compile, Frame, Model } from './model';

export interface TrieNode {
  frame: Frame | null;
  children: Map<number, TrieNode>;
  compiles: Compile[];
  total: number;
  worst: number;
}

const severity: Record<string, number> = { ok: 0, loaded: 0, empty: 1, skipped: 2, restarted: 2, unfinished: 3, failed: 4 };
export const severityClass = ['ok', 'empty', 'restarted', 'unfinished', 'failed'];

export function buildTrie(model: Model, compiles: Compile[]): { root: TrieNode; without: Compile[] } {
  const make = (frame: Frame | null): TrieNode => ({ frame, children: new Map(), compiles: [], total: 0, worst: 0 });
  const root = make(null);
  const nodes = new Map<number, TrieNode>();
  const nodeOf = (id: number): TrieNode => {
    const known = nodes.get(id);
    if (known) return known;
    const frame = model.frames.get(id)!;
    const node = make(frame);
    nodes.set(id, node);
    const parent = frame.parentId !== null && model.frames.has(frame.parentId) && frame.parentId < id ? nodeOf(frame.parentId) : root;
    parent.children.set(id, node);
    return node;
  };
  const without: Compile[] = [];
  for (const compile of compiles) {
    if (compile.stackId === null || !model.frames.has(compile.stackId)) without.push(compile);
    else nodeOf(compile.stackId).compiles.push(compile);
  }
  const sum = (node: TrieNode): void => {
    node.total = node.compiles.length;
    node.worst = node.compiles.reduce((worst, compile) => Math.max(worst, severity[compile.status] ?? 0), 0);
    for (const child of node.children.values()) {
      sum(child);
      node.total += child.total;
      node.worst = Math.max(node.worst, child.worst);
    }
  };
  sum(root);
  return { root, without };
}

export interface TrieRow {
  node: TrieNode;
  depth: number;
  path: Frame[]; // a chain of frames with one child each is one row
  key: string;
}

export function trieRows(root: TrieNode, closed: Set<string>): TrieRow[] {
  const rows: TrieRow[] = [];
  const visit = (start: TrieNode, depth: number) => {
    const path = [start.frame!];
    let node = start;
    while (node.children.size === 1 && node.compiles.length === 0) {
      node = [...node.children.values()][0];
      path.push(node.frame!);
    }
    const key = String(node.frame!.id);
    rows.push({ node, depth, path, key });
    if (!closed.has(key)) for (const child of node.children.values()) visit(child, depth + 1);
  };
  for (const child of root.children.values()) visit(child, 0);
  return rows;
}
