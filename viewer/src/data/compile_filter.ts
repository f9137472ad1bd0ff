// Finds the compiles that match a filter.
import { parseFilter } from '../lib/filter';
import { cacheStates, type Compile } from './model';

const searchTexts = new WeakMap<Compile, string>();
// The texts in which the words of a filter are searched.
export function searchText(compile: Compile): string {
  let text = searchTexts.get(compile);
  if (text === undefined) {
    text =
      `${compile.title} ${compile.function ?? ''} ${compile.file ?? ''}:${compile.line ?? ''} ${compile.status} ${compile.failType ?? ''} ${compile.failReason ?? ''}`.toLowerCase();
    searchTexts.set(compile, text);
  }
  return text;
}

const columns: Record<string, ((compile: Compile) => string) | undefined> = Object.assign(Object.create(null), {
  id: (compile: Compile) => compile.label,
  status: (compile: Compile) => compile.status,
  rank: (compile: Compile) => String(compile.rank ?? ''),
  launch: (compile: Compile) => String(compile.launch),
  function: (compile: Compile) => (compile.function ?? '').toLowerCase(),
  file: (compile: Compile) => (compile.file ?? '').toLowerCase(),
  frame: (compile: Compile) => String(compile.frameId ?? ''),
  cache: (compile: Compile) => cacheStates.filter((state) => compile.cache[state] > 0).join(' '),
});

export function filterCompiles(compiles: Compile[], query: string): Compile[] {
  if (!query) return compiles;
  const filter = parseFilter(query);
  return compiles.filter((compile) => filter.matches(searchText(compile), (key) => columns[key]?.(compile)));
}
