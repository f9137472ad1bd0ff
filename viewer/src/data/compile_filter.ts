// Which compiles a typed filter matches.
import { parseFilter } from '../lib/filter';
import type { Compile } from './model';

const searchTexts = new WeakMap<Compile, string>();
// What the words of a filter are looked for in.
export function searchText(compile: Compile): string {
  let text = searchTexts.get(compile);
  if (text === undefined) {
    text = `${compile.title} ${compile.function ?? ''} ${compile.file ?? ''}:${compile.line ?? ''} ${compile.status} ${compile.failType ?? ''} ${compile.failReason ?? ''}`.toLowerCase();
    searchTexts.set(compile, text);
  }
  return text;
}

export function filterCompiles(compiles: Compile[], query: string): Compile[] {
  if (!query) return compiles;
  const filter = parseFilter(query);
  return compiles.filter((compile) =>
    filter.matches(searchText(compile), {
      id: compile.label,
      status: compile.status,
      rank: String(compile.rank ?? ''),
      function: (compile.function ?? '').toLowerCase(),
      file: (compile.file ?? '').toLowerCase(),
      frame: String(compile.frameId ?? ''),
      cache: (Object.entries(compile.cache) as [string, number][]).filter(([, value]) => value > 0).map(([state]) => state).join(' '),
    }),
  );
}
