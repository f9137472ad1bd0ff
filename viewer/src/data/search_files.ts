// Full-text search of a page of files: by the chunks search/… it knows which chunks of texts may hold the text, reads those one after the
// other, keeps none, and answers as `tlparse serve` does.
import type { SearchAnswer } from '../../generated/chunks';
import { load, loadOnce, type Chunks } from './chunks';
import type { Model } from './model';
import type { Asked, FoundText } from './search';

const mostTexts = 200;
const mostLines = 5;
const mostLetters = 240;
const partsAtOnce = 4; // that are being read
const pauseMs = 300; // between two answers, each of which is drawn: drawing takes longer than searching

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

// Hashes of the groups of three letters of a text, of which a filter has the first bits: report/viewer/text_filter.h. Letters that are not
// ASCII have other forms.
function hashesOf(needle: string): number[] {
  const bytes = new TextEncoder().encode(needle.replace(/[A-Z]/g, (letter) => letter.toLowerCase()));
  const hashes: number[] = [];
  for (let i = 2; i < bytes.length; i++) {
    const group = [bytes[i - 2], bytes[i - 1], bytes[i]];
    if (group.every((byte) => byte < 0x80)) hashes.push(Math.imul((group[0] << 16) | (group[1] << 8) | group[2], 0x9e3779b1));
  }
  return hashes;
}

function mayHold(filter: string | null, hashes: number[]): boolean {
  if (filter === null) return true;
  const digits = Math.floor(Math.log2(filter.length * 6)); // of the bits' numbers: a letter is six bits
  // Only the bytes that are asked for are decoded: four letters are three of them.
  return hashes.every((hash) => {
    const bit = hash >>> (32 - digits);
    const byte = bit >> 3;
    const at = Math.floor(byte / 3) * 4;
    return (atob(filter.slice(at, at + 4)).charCodeAt(byte % 3) >> (bit & 7)) & 1;
  });
}

function ranksOf(text: string | null): number[] {
  return (text ?? '')
    .split(',')
    .filter(Boolean)
    .flatMap((part) => {
      const [first, last] = part.split('-').map(Number);
      return Array.from({ length: (last ?? first) - first + 1 }, (_, i) => first + i);
    });
}

// The rows of each part's texts.
function rowsOf({ part, text }: Chunks['search']): number[][] {
  const rows: number[][] = part.name.map(() => []);
  text.part.forEach((own, row) => rows[own!].push(row));
  return rows;
}

// Tells what was found so far, and at the end; stops when `isCurrent` is false.
export async function searchFiles(model: Model, asked: Asked, tell: (answer: SearchAnswer, share: number) => void, isCurrent: () => boolean): Promise<void> {
  const isCaseSensitive = /[A-Z]/.test(asked.text);
  const answer: SearchAnswer = { is_complete: true, is_case_sensitive: isCaseSensitive, read_bytes: 0, texts: [], printed: [] };
  const hashes = hashesOf(asked.text);
  const { setting } = model.index;
  const groups = 16 ** ((setting.value[setting.name.indexOf('text_prefix_digits')] ?? 1) - 1);
  let nextMs = 0; // the first hit is reported without a pause
  const tellNow = (share: number) => {
    nextMs = performance.now() + pauseMs;
    tell({ ...answer, texts: sorted() }, share);
  };
  const sorted = () => [...answer.texts].sort((a, b) => a.record_id - b.record_id).slice(0, mostTexts);
  for (let group = 0; group < groups && answer.is_complete; group++) {
    const chunk = await load('search', group);
    const t = chunk.text;
    const isAsked = (row: number) => !asked.kind || t.kind[row] === asked.kind;
    const parts = [...rowsOf(chunk).entries()].filter(([part, rows]) => rows.some(isAsked) && mayHold(chunk.part.filter[part], hashes));
    const loads: (Promise<Chunks['text']> | undefined)[] = [];
    for (const [i, [, rows]] of parts.entries()) {
      for (let n = loads.length; n < Math.min(i + partsAtOnce, parts.length); n++) {
        loads.push(loadOnce('text', chunk.part.name[parts[n][0]]!));
        loads[n]!.catch(() => undefined); // an error counts when it is its turn
      }
      const { text } = await loads[i]!;
      loads[i] = undefined;
      if (!isCurrent()) return;
      const before = answer.texts.length;
      rows.forEach((row, at) => {
        if (!isAsked(row)) return;
        answer.read_bytes += t.size_bytes[row] ?? 0;
        const { lines, count } = linesOf(text.content[at] ?? '', asked.text, isCaseSensitive);
        if (count === 0) return;
        answer.texts.push({
          kind: t.kind[row] as FoundText['kind'],
          record_id: t.record_id[row]!,
          compile_id: t.compile_id[row],
          title: t.title[row] ?? '',
          direction: t.direction[row] ?? '',
          record_count: t.record_count[row] ?? 1,
          ranks: ranksOf(t.ranks[row]),
          line_count: count,
          lines,
        });
      });
      answer.is_complete = answer.texts.length < mostTexts;
      if (!answer.is_complete) break;
      if (answer.texts.length > before && (before === 0 || performance.now() > nextMs)) tellNow(group / groups);
    }
    if (!isCurrent()) return;
    if (performance.now() > nextMs) tellNow((group + 1) / groups);
  }
  tellNow(1);
}
