// Full-text search of a page of files: reads the chunks of records and texts one after the other, keeps none, and answers as
// `tlparse serve` does.
import type { SearchAnswer } from '../../generated/chunks';
import { load, loadOnce, type Chunks } from './chunks';
import { textPart, type Model } from './model';
import type { Asked, FoundText } from './search';

const mostTexts = 200;
const mostLines = 5;
const mostLetters = 240;

interface Candidate {
  found: Omit<FoundText, 'lines' | 'line_count'>;
  ranks: Set<number>;
  hash: string;
  sizeBytes: number;
}

interface Records {
  id: (number | null)[];
  kind: (string | null)[];
  name: (string | null)[];
  payload_hash: (string | null)[];
  size_bytes: (number | null)[];
  compile_id?: (number | null)[];
}

// The distinct texts of all records, each with the first record that has it.
class Candidates {
  readonly byHash = new Map<string, Candidate>();

  constructor(
    private readonly model: Model,
    private readonly directions: Map<number, string>, // of graphs
  ) {}

  add(records: Records, processId: number | null, kinds: Map<number, { kind: FoundText['kind']; graphId: number | null }>): void {
    records.id.forEach((id, i) => {
      const hash = records.payload_hash[i];
      if (hash === null) return;
      const compileId = records.compile_id?.[i] ?? null;
      const compile = compileId === null ? undefined : this.model.compileById.get(compileId);
      const rank = compile?.rank ?? (processId === null ? null : (this.model.processById.get(processId)?.rank ?? null));
      const own = kinds.get(id!);
      let known = this.byHash.get(hash);
      if (!known || id! < known.found.record_id) {
        const found = {
          kind: own?.kind ?? ('log' as const),
          record_id: id!,
          compile_id: compileId,
          title: records.name[i] ?? records.kind[i] ?? '',
          direction: own?.graphId ? (this.directions.get(own.graphId) ?? '') : '',
          record_count: known?.found.record_count ?? 0,
          ranks: [],
        };
        known = { found, ranks: known?.ranks ?? new Set(), hash, sizeBytes: records.size_bytes[i] ?? 0 };
        this.byHash.set(hash, known);
      }
      known.found.record_count++;
      if (rank !== null) known.ranks.add(rank);
    });
  }
}

function kindsOf(chunk: Chunks['compile']): Map<number, { kind: FoundText['kind']; graphId: number | null }> {
  const kinds = new Map<number, { kind: FoundText['kind']; graphId: number | null }>();
  chunk.guard_tree.record_id.forEach((id) => kinds.set(id!, { kind: 'guard', graphId: null }));
  chunk.output_code.record_id.forEach((id, i) => kinds.set(id!, { kind: 'code', graphId: chunk.output_code.graph_id[i] }));
  chunk.graph_text.record_id.forEach((id, i) => kinds.set(id!, { kind: 'graph', graphId: chunk.graph_text.graph_id[i] }));
  return kinds;
}

// The lines that hold the text; of long ones what is around it.
function linesOf(content: string, needle: string, isCaseSensitive: boolean): { lines: FoundText['lines']; count: number } {
  const lines: FoundText['lines'] = [];
  let count = 0;
  const searched = isCaseSensitive ? content : content.toLowerCase();
  if (!searched.includes(needle)) return { lines, count };
  const texts = content.split('\n');
  (isCaseSensitive ? texts : texts.map((text) => text.toLowerCase())).forEach((text, i) => {
    const at = text.indexOf(needle);
    if (at < 0) return;
    count++;
    const from = texts[i].length > mostLetters ? Math.max(0, at - mostLetters / 3) : 0;
    if (lines.length < mostLines) lines.push({ line: i + 1, text: texts[i].slice(from, from + mostLetters), marks: [] });
  });
  return { lines, count };
}

async function candidatesOf(model: Model, tell: (share: number) => void, isCurrent: () => boolean): Promise<Candidates> {
  const { block } = model.index;
  const graphs = await load('graphs');
  const candidates = new Candidates(model, new Map(graphs.graph.id.flatMap((id, i) => (graphs.graph.direction[i] ? [[id!, graphs.graph.direction[i]!]] : []))));
  const blocks = block.first_id.flatMap((id, i) =>
    block.kind[i] === 'compile' || block.kind[i] === 'process' ? [{ id: id!, kind: block.kind[i] as 'compile' | 'process' }] : [],
  );
  for (const [n, { id, kind }] of blocks.entries()) {
    if (!isCurrent()) return candidates;
    if (kind === 'compile') {
      const chunk = await loadOnce('compile', id);
      candidates.add(chunk.record, null, kindsOf(chunk));
    } else candidates.add((await loadOnce('process', id)).record, id, new Map());
    tell(n / blocks.length);
  }
  return candidates;
}

// Kept for the next search: what is searched, not the texts.
let known: { model: Model; candidates: Promise<Candidates> } | undefined;

// Tells what was found so far, and at the end; stops when `isCurrent` is false.
export async function searchFiles(model: Model, asked: Asked, tell: (answer: SearchAnswer, share: number) => void, isCurrent: () => boolean): Promise<void> {
  const isCaseSensitive = /[A-Z]/.test(asked.text);
  const answer: SearchAnswer = { is_complete: true, is_case_sensitive: isCaseSensitive, read_bytes: 0, texts: [] };
  if (known?.model.index !== model.index)
    known = {
      model,
      candidates: candidatesOf(
        model,
        (share) => isCurrent() && tell(answer, share / 2),
        () => true,
      ),
    };
  const { byHash } = await known!.candidates;
  const parts = new Map<string, Candidate[]>();
  for (const candidate of byHash.values()) {
    if (asked.kind && candidate.found.kind !== asked.kind) continue;
    const part = textPart(model.index, candidate);
    const own = parts.get(part);
    if (own) own.push(candidate);
    else parts.set(part, [candidate]);
  }
  let done = 0;
  for (const [part, own] of parts) {
    if (!isCurrent()) return;
    const { text } = await loadOnce('text', part);
    const rows = new Map(text.hash.map((hash, i) => [hash, i]));
    for (const { found, ranks, hash, sizeBytes } of own) {
      const row = rows.get(hash);
      answer.read_bytes += sizeBytes;
      const { lines, count } = row === undefined ? { lines: [], count: 0 } : linesOf(text.content[row] ?? '', asked.text, isCaseSensitive);
      if (count > 0) answer.texts.push({ ...found, ranks: [...ranks].sort((a, b) => a - b), line_count: count, lines });
    }
    answer.is_complete = answer.texts.length < mostTexts || done + 1 === parts.size;
    if (!answer.is_complete) break;
    tell({ ...answer, texts: [...answer.texts] }, 0.5 + ++done / parts.size / 2);
  }
  answer.texts.sort((a, b) => a.record_id - b.record_id);
  if (isCurrent()) tell({ ...answer, texts: answer.texts.slice(0, mostTexts) }, 1);
}
