// The graphs that have kernels.
import type { Chunks } from '../data/chunks';
import type { Compile, Model } from '../data/model';
import { count, plural } from '../lib/format';
import { href, setQuery, type Route } from '../route';
import { CompileLink } from '../ui/bits';
import { FilterBox } from '../ui/filter_box';
import { Grid, type Column } from '../ui/virtual';

interface GraphRow {
  id: number;
  compile: Compile;
  title: string;
  contentId: number;
  kernels: number;
}

export function graphRows(model: Model, graphs: Chunks['graphs'], kernels: Chunks['kernels']): GraphRow[] {
  const counts = new Map<number, number>();
  for (const content of kernels.kernel.content_id) counts.set(content!, (counts.get(content!) ?? 0) + 1);
  const rows: GraphRow[] = [];
  const t = graphs.graph;
  t.id.forEach((id, i) => {
    const compile = model.compileById.get(t.compile_id[i]!);
    const contentId = t.provenance_content_id[i];
    if (!compile || contentId === null) return;
    rows.push({
      id: id!,
      compile,
      contentId,
      kernels: counts.get(contentId) ?? 0,
      title: [t.aot_id[i] ?? `graph ${t.ordinal[i]}`, t.aot_id[i] ? '' : t.direction[i], t.subgraph_name[i]].filter(Boolean).join(' '),
    });
  });
  return rows;
}

export function GraphTable({ model, rows, route }: { model: Model; rows: GraphRow[]; route: Route }) {
  const query = (route.query.get('q') ?? '').toLowerCase();
  const shown = rows.filter((row) =>
    `${row.title} ${row.compile.title} ${row.compile.function} ${model.processById.get(row.compile.processId)?.name}`.toLowerCase().includes(query),
  );
  const columns: Column<GraphRow>[] = [
    { key: 'graph', title: 'Graph', width: 'minmax(120px, 1fr)', cell: (row) => <a href={href(['provenance', row.id])}>{row.title}</a> },
    { key: 'compile', title: 'Compile', width: '80px', cell: (row) => <CompileLink compile={row.compile} /> },
    { key: 'function', title: 'Function', width: 'minmax(140px, 2fr)', cell: (row) => <code>{row.compile.function}</code> },
    { key: 'rank', title: 'Process', width: '110px', cell: (row) => model.processById.get(row.compile.processId)?.name },
    { key: 'kernels', title: 'Kernels', width: '80px', align: 'right', cell: (row) => count(row.kernels) },
  ];
  return (
    <>
      <div class="toolbar">
        <FilterBox label="Filter graphs" placeholder="Filter graphs" value={route.query.get('q') ?? ''} onFilter={(q) => setQuery({ q })} />
        <span class="quiet">{plural(shown.length, 'graph')} with kernels</span>
      </div>
      <Grid
        label="Graphs"
        rows={shown}
        columns={columns}
        rowKey={(row) => row.id}
        rowHref={(row) => href(['provenance', row.id])}
        height={shown.length > 18 ? 'calc(100vh - 190px)' : undefined}
        empty={
          rows.length === 0
            ? 'No graph of this log has kernels: nothing reached Inductor’s code generation. Set INDUCTOR_PROVENANCE=1 (PyTorch 2.9 and later) for node mappings.'
            : 'No graph matches.'
        }
      />
    </>
  );
}
