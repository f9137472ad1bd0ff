// The guard tree of a compile.
import { rowsWhere, useBlock } from '../data/model';
import { parseFilter } from '../lib/filter';
import { plural, shorten } from '../lib/format';
import { setQuery, type Route } from '../route';
import { Place, Waiting } from '../ui/bits';
import { FilterBox } from '../ui/filter_box';
import { Grid, type Column } from '../ui/virtual';

interface GuardRow {
  id: number;
  depth: number;
  kind: string;
  expression: string;
  source: string | null;
  file: string | null;
  line: number | null;
  code: string | null;
}

export function Guards({ contentId, route }: { contentId: number; route: Route }) {
  const chunk = useBlock('guards', contentId);
  const query = route.query.get('q') ?? '';
  const withManagers = route.query.get('managers') === '1';
  return (
    <Waiting pending={chunk}>
      {({ guard }) => {
        const all: GuardRow[] = rowsWhere(guard.content_id, contentId).map((i) => ({
          id: guard.ordinal[i]!,
          depth: guard.depth[i] ?? 0,
          kind: guard.kind[i] ?? '',
          expression: guard.expression[i] ?? '',
          source: guard.source[i],
          file: guard.user_file[i],
          line: guard.user_line[i],
          code: guard.user_code[i],
        }));
        const filter = parseFilter(query);
        const isManager = (row: GuardRow) => /Manager$/.test(row.kind);
        const rows = all.filter(
          (row) =>
            (withManagers || !isManager(row)) &&
            (!query ||
              filter.matches(`${row.kind} ${row.expression} ${row.source} ${row.file}:${row.line} ${row.code}`.toLowerCase(), (key) =>
                key === 'kind' ? row.kind.toLowerCase() : undefined,
              )),
        );
        const columns: Column<GuardRow>[] = [
          {
            key: 'kind',
            title: 'Guard',
            width: 'minmax(150px, 1fr)',
            cell: (row) => <span style={{ paddingLeft: withManagers ? `${Math.min(row.depth, 20) * 10}px` : 0 }}>{row.kind}</span>,
          },
          {
            key: 'expression',
            title: 'Check',
            width: 'minmax(240px, 4fr)',
            cell: (row) => <code title={shorten(row.expression, 2000)}>{shorten(row.expression, 400)}</code>,
          },
          {
            key: 'source',
            title: 'On',
            width: 'minmax(100px, 2fr)',
            cell: (row) => <code title={row.source ?? ''}>{row.source && shorten(row.source, 200)}</code>,
          },
          {
            key: 'place',
            title: 'Python line',
            width: 'minmax(100px, 1fr)',
            cell: (row) => (
              <span title={row.code ?? ''}>
                <Place file={row.file} line={row.line} />
              </span>
            ),
          },
        ];
        return (
          <div class="artifact">
            <div class="toolbar">
              <FilterBox label="Filter guards" placeholder="Filter guards: words, kind:tensor_match" value={query} onFilter={(q) => setQuery({ q })} />
              <label>
                <input type="checkbox" checked={withManagers} onChange={(event) => setQuery({ managers: event.currentTarget.checked ? 1 : null })} /> tree
              </label>
              <span class="quiet">{plural(rows.length, 'check')}</span>
            </div>
            <Grid
              label="Guards"
              rows={rows}
              columns={columns}
              rowKey={(row) => row.id}
              height="calc(100vh - 250px)"
              empty={all.length === 0 ? 'The guard tree is empty.' : 'No guard matches.'}
            />
          </div>
        );
      }}
    </Waiting>
  );
}
