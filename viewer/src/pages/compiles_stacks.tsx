import { useMemo, useState } from 'preact/hooks';
import { filterCompiles } from '../data/compile_filter';
import type { Model } from '../data/model';
import { buildTrie, severityClass, trieRows, type TrieRow } from '../data/stack_trie';
import { count, plural } from '../lib/format';
import { href, setQuery, type Route } from '../route';
import { Place } from '../ui/bits';
import { FilterBox } from '../ui/filter_box';
import { Grid, type Column } from '../ui/virtual';

export function StackTree({ model, route }: { model: Model; route: Route }) {
  const query = route.query.get('q') ?? '';
  const [closed, setClosed] = useState<Set<string>>(new Set());
  const trie = useMemo(() => buildTrie(model, filterCompiles(model.compiles, query)), [model, query]);
  const rows = useMemo(() => trieRows(trie.root, closed), [trie, closed]);
  const toggle = (key: string) => {
    const next = new Set(closed);
    if (!next.delete(key)) next.add(key);
    setClosed(next);
  };
  const columns: Column<TrieRow>[] = [
    {
      key: 'frame',
      title: 'Called from',
      width: 'minmax(300px, 3fr)',
      cell: (row) => {
        const last = row.path[row.path.length - 1];
        return (
          <span
            class="called-from"
            style={{ paddingLeft: `${Math.min(row.depth, 30) * 14}px` }}
            title={row.path.map((frame) => `${frame.file}:${frame.line} in ${frame.function}`).join('\n')}
          >
            {row.node.children.size > 0 ? (
              <button class="twist" aria-expanded={!closed.has(row.key)} aria-label={`Frames below ${last.function}`} onClick={() => toggle(row.key)}>
                {closed.has(row.key) ? '▸' : '▾'}
              </button>
            ) : (
              <span class="twist" />
            )}
            <i class={`dot dot-${severityClass[row.node.worst]}`} /> <code>{last.function}</code> <Place file={last.file} line={last.line} />
            {row.path.length > 1 && <span class="quiet"> {plural(row.path.length - 1, 'frame')} above</span>}
          </span>
        );
      },
    },
    {
      key: 'code',
      title: 'Line',
      width: 'minmax(120px, 2fr)',
      cell: (row) => <code class="quiet">{[...row.path].reverse().find((frame) => frame.code)?.code}</code>,
    },
    { key: 'total', title: 'Compiles', width: '76px', align: 'right', cell: (row) => count(row.node.total) },
    {
      key: 'compiles',
      title: 'Ids',
      width: 'minmax(160px, 2fr)',
      cell: (row) => (
        <>
          {row.node.compiles.slice(0, 12).map((compile) => (
            <a
              class={`tag status-${compile.status}`}
              href={href(['compile', compile.id])}
              title={`${compile.status}: ${compile.function ?? ''}, ${model.processById.get(compile.processId)?.name}`}
            >
              {compile.title}
            </a>
          ))}
          {row.node.compiles.length > 12 && <span class="quiet"> and {row.node.compiles.length - 12} more</span>}
        </>
      ),
    },
  ];
  return (
    <>
      <div class="toolbar">
        <FilterBox label="Filter compiles" placeholder="Filter: words, status:failed, rank:3" value={query} onFilter={(q) => setQuery({ q })} />
        <span class="legend">
          {severityClass.map((name) => (
            <span>
              <i class={`dot dot-${name}`} /> {name}
            </span>
          ))}
        </span>
        {trie.without.length > 0 && <span class="quiet">{plural(trie.without.length, 'compile')} without a stack</span>}
      </div>
      <Grid
        label="Stacks that led to compiles"
        rows={rows}
        columns={columns}
        rowKey={(row) => row.key}
        height={rows.length > 20 ? 'calc(100vh - 160px)' : undefined}
        empty="No compile here has a stack: the log has no dynamo_start records, as with AOTInductor and export."
      />
    </>
  );
}
