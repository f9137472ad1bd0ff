// Which lines of each pane show which entities, and what they cost.
import { related, type GraphLines, type Level, type Links } from '../data/provenance';
import { type Heat } from '../data/heat';
import { duration, ranges } from '../lib/format';
import { hueCount, type LineTag } from '../ui/text_view';

export interface PaneLines {
  entityOfLine: Map<number, string>;
  linesOfEntity: Map<string, number[]>;
  bodies?: Map<string, [number, number]>; // of kernels: from the definition to the last line of their code
}

export function linesOfGraph(graph: GraphLines | null, level: Level): PaneLines {
  const lines: PaneLines = { entityOfLine: new Map(), linesOfEntity: new Map() };
  for (const [line, node] of graph?.nodeOfLine ?? []) {
    lines.entityOfLine.set(line, `${level}:${node}`);
    lines.linesOfEntity.set(`${level}:${node}`, [line]);
  }
  return lines;
}

export function linesOfCode(code: string | null, links: Links): PaneLines {
  const lines: PaneLines = { entityOfLine: new Map(), linesOfEntity: new Map() };
  if (code === null) return lines;
  const definitions = new Map<string, number>();
  const all = code.split('\n');
  lines.bodies = new Map();
  all.forEach((text, i) => {
    const defined = /^(?:def )?(\w+) = async_compile|^def (\w+)\(/.exec(text);
    const name = defined?.[1] ?? defined?.[2];
    if (name && !definitions.has(name)) definitions.set(name, i);
  });
  for (const [entity, kernel] of links.kernels) {
    const own: number[] = [];
    if (kernel.codeLine !== null) {
      own.push(kernel.codeLine - 1);
      lines.entityOfLine.set(kernel.codeLine - 1, entity);
    }
    const start = definitions.get(kernel.name);
    if (start !== undefined) {
      own.push(start);
      const end = bodyEnd(all, start);
      if (end > start) lines.bodies.set(entity, [start, end]);
      if (!lines.entityOfLine.has(start)) lines.entityOfLine.set(start, entity);
    }
    lines.linesOfEntity.set(entity, own);
  }
  return lines;
}

// The last line of the text that a kernel is compiled from, or of a function.
function bodyEnd(lines: string[], start: number): number {
  const quote = /('''|""")[^'"]*$/.exec(lines[start])?.[1];
  const isAfter = quote ? (text: string) => text.includes(quote) : (text: string) => text !== '' && !/^[\s)]/.test(text);
  const end = lines.findIndex((text, i) => i > start && isAfter(text));
  return end < 0 ? start : quote ? end : end - 1;
}

export function linesOfSources(links: Links): PaneLines {
  const lines: PaneLines = { entityOfLine: new Map(), linesOfEntity: new Map() };
  links.sources.forEach((source, i) => {
    lines.entityOfLine.set(i, `source:${source.key}`);
    lines.linesOfEntity.set(`source:${source.key}`, [i]);
  });
  return lines;
}

// Lines of a pane with measured time. If a line shows several entities (calls of one kernel), their sum.
export type LineHeat = Map<number, { share: number; title: string }>;

export function heatOfLines(heat: Heat | null, lines: PaneLines): LineHeat | undefined {
  if (!heat || heat.totalUs <= 0) return undefined;
  const usOfLine = new Map<number, number>();
  for (const [entity, us] of heat.byEntity) for (const line of lines.linesOfEntity.get(entity) ?? []) usOfLine.set(line, (usOfLine.get(line) ?? 0) + us);
  if (usOfLine.size === 0) return undefined; // the log does not say which lines these kernels come from
  return new Map([...usOfLine].map(([line, us]) => [line, { share: us / heat.totalUs, title: `${duration(us)} of ${duration(heat.totalUs)}` }]));
}

export function hottestOf(heat: LineHeat): number | null {
  const [line] = [...heat].reduce<[number | null, number]>((most, [at, { share }]) => (share > most[1] ? [at, share] : most), [null, 0]);
  return line;
}

// The Python lines that each line of a pane comes from, by their numbers in the list of Python lines.
export function tagsOf(links: Links, lines: PaneLines): Map<number, LineTag> {
  const numbers = new Map(links.sources.map(({ key }, i) => [`source:${key}`, i]));
  const sourcesOfLine = new Map<number, Set<number>>();
  for (const [entity, own] of lines.linesOfEntity) {
    const sources = [...related(links, entity)].flatMap((other) => numbers.get(other) ?? []);
    for (const line of own) sourcesOfLine.set(line, new Set([...(sourcesOfLine.get(line) ?? []), ...sources]));
  }
  const tags = new Map<number, LineTag>();
  for (const [line, sources] of sourcesOfLine) {
    if (sources.size === 0) continue;
    const sorted = [...sources].sort((a, b) => a - b);
    tags.set(line, {
      text: ranges(sorted.map((i) => i + 1)),
      hues: [...new Set(sorted.map((i) => i % hueCount))],
      title: sorted.map((i) => `${i + 1}: ${links.sources[i].key}`).join('\n'),
    });
  }
  return tags;
}
