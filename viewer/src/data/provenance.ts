// Links from a Python line to a kernel: source line ↔ pre-grad node ↔ post-grad node ↔ kernel, many to many.
import type { Artifact } from './artifact';
import type { Chunks } from './chunks';
import { rowsWhere } from './model';

export const levels = ['source', 'pre', 'post', 'kernel'] as const;
export type Level = (typeof levels)[number];

export interface Kernel {
  id: number;
  name: string;
  handle: number | null;
  codeLine: number | null; // 1-based
}

export interface SourceLine {
  key: string; // file:line
  file: string;
  line: number;
  function: string | null;
  code: string | null;
}

// Entities are named level:key, as in the URL.
export interface Links {
  kernels: Map<string, Kernel>;
  sources: SourceLine[];
  // Neighbours towards the source and towards the kernel.
  left: Map<string, Set<string>>;
  right: Map<string, Set<string>>;
}

// Lines of a printed graph: which node each defines, and the source line that the comment above it names.
export interface GraphLines {
  nodeOfLine: Map<number, string>;
  lineOfNode: Map<string, number>;
  sourceOfNode: Map<string, SourceLine>;
}

const definition = /^\s*([A-Za-z_]\w*)\s*(?::\s*(?:"[^"]*"|'[^']*'|[^=]*?))?\s*=\s/;
// Annotations may stand before the file: "# Backward of forward node: File: …".
const comment = /^\s*#(?: .*?)? File: (.+?):(\d+) in (.+?)(?:, code: (.*))?$/;
// What comes after another comment, or in another function, is of no line that is known.
const border = /^\s*(#|class |def )/;

export function readGraph(text: string): GraphLines {
  const lines: GraphLines = { nodeOfLine: new Map(), lineOfNode: new Map(), sourceOfNode: new Map() };
  let source: SourceLine | null = null;
  text.split('\n').forEach((line, i) => {
    const place = comment.exec(line);
    if (place) {
      source = { key: `${place[1]}:${place[2]}`, file: place[1], line: Number(place[2]), function: place[3], code: place[4] ?? null };
      return;
    }
    if (border.test(line)) {
      source = null;
      return;
    }
    const node = definition.exec(line)?.[1];
    // In generated modules "x = None" only frees x: the first definition is the node.
    if (node === undefined || lines.lineOfNode.has(node)) return;
    lines.nodeOfLine.set(i, node);
    lines.lineOfNode.set(node, i);
    if (source) lines.sourceOfNode.set(node, source);
  });
  return lines;
}

function add(map: Map<string, Set<string>>, from: string, to: string): void {
  const known = map.get(from);
  if (known) known.add(to);
  else map.set(from, new Set([to]));
}

export function buildLinks(chunk: Chunks['provenance'], contentId: number, pre: GraphLines | null, post: GraphLines | null): Links {
  const links: Links = { kernels: new Map(), sources: [], left: new Map(), right: new Map() };
  const connect = (near: string, far: string) => {
    add(links.right, near, far);
    add(links.left, far, near);
  };
  const sources = new Map<string, SourceLine>();
  const ids = new Set<number>();
  for (const i of rowsWhere(chunk.kernel.content_id, contentId)) {
    const id = chunk.kernel.id[i]!;
    ids.add(id);
    links.kernels.set(`kernel:${id}`, { id, name: chunk.kernel.name[i] ?? '', handle: chunk.kernel.debug_handle[i], codeLine: chunk.kernel.code_line[i] });
  }
  chunk.kernel_node.kernel_id.forEach((id, i) => {
    if (ids.has(id!)) connect(`post:${chunk.kernel_node.post_grad_node[i]}`, `kernel:${id}`);
  });
  for (const i of rowsWhere(chunk.node_mapping.content_id, contentId)) {
    connect(`pre:${chunk.node_mapping.pre_grad_node[i]}`, `post:${chunk.node_mapping.post_grad_node[i]}`);
  }
  // The innermost frame of each stack of a kernel is the line that made it; the frames above say who called it.
  const innermost = new Map<string, number>();
  const t = chunk.kernel_source;
  t.kernel_id.forEach((id, i) => {
    if (ids.has(id!) && t.file[i] !== null && t.line[i] !== null) innermost.set(`${id} ${t.stack_ordinal[i]}`, i);
  });
  for (const i of innermost.values()) {
    const key = `${t.file[i]}:${t.line[i]}`;
    if (!sources.has(key)) sources.set(key, { key, file: t.file[i]!, line: t.line[i]!, function: t.function[i], code: t.code[i] });
    connect(`source:${key}`, `kernel:${t.kernel_id[i]}`);
  }
  for (const [graph, level] of [
    [pre, 'pre'],
    [post, 'post'],
  ] as const) {
    for (const [node, source] of graph?.sourceOfNode ?? []) {
      const known = sources.get(source.key);
      if (!known) sources.set(source.key, source);
      else if (!known.code) known.code = source.code;
      connect(`source:${source.key}`, `${level}:${node}`);
    }
  }
  links.sources = [...sources.values()].sort((a, b) => (a.file < b.file ? -1 : a.file > b.file ? 1 : a.line - b.line));
  return links;
}

// Everything linked to an entity: from it towards the kernels, and from it towards the source, never back again (a fused kernel
// would otherwise mark unrelated lines).
export function related(links: Links, entity: string): Set<string> {
  const found = new Set<string>([entity]);
  for (const direction of [links.left, links.right]) {
    let edge = [entity];
    while (edge.length > 0) {
      const next: string[] = [];
      for (const at of edge) {
        for (const neighbour of direction.get(at) ?? []) {
          if (found.has(neighbour)) continue;
          found.add(neighbour);
          next.push(neighbour);
        }
      }
      edge = next;
    }
  }
  return found;
}

const preStages = ['before_pre_grad_graph', 'inductor_pre_grad_graph', 'after_pre_grad_graph', 'dynamo_output_graph'];
const postStages = [
  'inductor_post_grad_graph',
  'after_post_grad_graph',
  'before_post_grad_graph',
  'aot_forward_graph',
  'aot_backward_graph',
  'aot_inference_graph',
];

export interface Panes {
  pre: Artifact | null;
  post: Artifact | null;
  code: Artifact | null;
}

// The texts that a graph's provenance links.
export function panesOf(artifacts: Artifact[], graphId: number, codeRecordId: number | null): Panes {
  const code =
    artifacts.find((artifact) => artifact.recordId === codeRecordId) ??
    artifacts.find((artifact) => artifact.graphId === graphId && artifact.kind === 'inductor_output_code') ??
    null;
  const limit = code?.recordId ?? Infinity;
  const withText = artifacts.filter((artifact) => artifact.text !== null && artifact.recordId <= limit + 100000);
  const pick = (stages: string[], own: boolean): Artifact | null => {
    for (const stage of stages) {
      const candidates = withText.filter((artifact) => artifact.title === stage && (own ? artifact.graphId === graphId : artifact.recordId <= limit));
      if (candidates.length > 0) return candidates[candidates.length - 1];
    }
    return null;
  };
  return { pre: pick(preStages, false), post: pick(postStages, true), code };
}
