// Full-text search: what `tlparse serve` answers, or what a page of files finds itself, grouped by compile.
import type { SearchAnswer } from '../../generated/chunks';
import { useEffect, useState } from 'preact/hooks';
import { isServed, ofRun, type Pending } from './chunks';
import { isShown, type Compile, type Model } from './model';
import { searchFiles } from './search_files';

export type FoundText = SearchAnswer['texts'][number];

// What a prefix word restricts: `op:aten.addmm`, `guard:x`, `code:acc`.
const prefixes: Record<string, string> = { op: 'graph', graph: 'graph', code: 'code', guard: 'guard', log: 'log', text: '', file: '' };
// Those that names are searched for; the other sections are left out.
const namePrefixes = new Set(['kernel', 'function', 'compile']);

export interface Asked {
  text: string;
  prefix: string; // empty: none
  kind: string; // of texts; empty: all
  names: boolean; // compiles, kernels, artifacts are searched too
  texts: boolean;
  isExpression: boolean; // the text is a regular expression, re:… or /…/
}

export function readQuery(query: string): Asked {
  const match = /^([a-z]+):(.*)$/s.exec(query.trim());
  const prefix = match && (match[1] in prefixes || namePrefixes.has(match[1])) ? match[1] : '';
  const text = (prefix ? match![2] : query).trim();
  // As ExpressionOf of tlparse/src/answers/search.
  const isExpression = /^re:|^\/([^/]|\\\/)+\/$/.test(text);
  return {
    text,
    prefix,
    kind: prefixes[prefix] ?? '',
    names: !isExpression && (prefix === '' || namePrefixes.has(prefix)),
    texts: !namePrefixes.has(prefix),
    isExpression,
  };
}

export const prefixWords = [...Object.keys(prefixes), ...namePrefixes, 're'].map((word) => `${word}:`);

export interface FoundIn {
  compile: Compile | undefined; // nothing: outside compiles
  texts: FoundText[];
}

// By compile, those of the chosen launch and rank.
export function byCompile(model: Model, answer: SearchAnswer): FoundIn[] {
  const groups = new Map<number | null, FoundIn>();
  for (const text of answer.texts) {
    const compile = text.compile_id === null ? undefined : model.compileById.get(text.compile_id);
    const isOfRank = model.rank === null || text.ranks.includes(model.rank);
    // A text of several ranks is named by the first: with a rank chosen only its ranks count.
    if (compile && !(model.rank === null ? isShown(model, compile) : isOfRank)) continue;
    const group = groups.get(text.compile_id);
    if (group) group.texts.push(text);
    else groups.set(text.compile_id, { compile, texts: [text] });
  }
  // Options and keys of the log name much that a compile does not use: where only they match comes last.
  const isOfLog = (group: FoundIn) => Number(group.texts.every((text) => text.kind === 'log'));
  return [...groups.values()].sort((a, b) => isOfLog(a) - isOfLog(b));
}

export interface Searching extends Pending<SearchAnswer> {
  share: number; // of what is to be read; 1: done
}

async function askServer({ text, kind }: Asked, signal: AbortSignal): Promise<SearchAnswer> {
  const response = await fetch(`api/search${ofRun({ text, kind })}`, { signal });
  if (!response.ok) throw new Error((await response.text()) || `the server answered ${response.status}`);
  return (await response.json()) as SearchAnswer;
}

export function useTextSearch(model: Model, asked: Asked): Searching {
  const [state, setState] = useState<Searching & { key: string }>({ key: '', share: 0 });
  const key = asked.texts && asked.text.length >= 2 && (isServed || !asked.isExpression) ? `${asked.kind} ${asked.text}` : '';
  useEffect(() => {
    if (!key) return;
    const abort = new AbortController();
    const tell = (value: SearchAnswer, share: number) => abort.signal.aborted || setState({ key, value, share });
    const search = () =>
      isServed ? askServer(asked, abort.signal).then((answer) => tell(answer, 1)) : searchFiles(model, asked, tell, () => !abort.signal.aborted);
    // Letters in quick succession are one search.
    const timer = setTimeout(() => void search().catch((error: Error) => abort.signal.aborted || setState({ key, error, share: 1 })), isServed ? 120 : 300);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [key, model]);
  return state.key === key && key ? state : { share: 0 };
}
