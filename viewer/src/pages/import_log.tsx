import { useMemo } from 'preact/hooks';
import { useBlocks } from '../data/blocks';
import { markOf } from '../data/changes';
import type { Chunks } from '../data/chunks';
import type { Model } from '../data/model';
import { parseFilter } from '../lib/filter';
import { baseName, count, plural, shorten } from '../lib/format';
import { setQuery, type Route } from '../route';
import { Empty } from '../ui/bits';
import { FilterBox } from '../ui/filter_box';
import { Grid, type Column } from '../ui/virtual';

interface Entry {
  id: number;
  file: string;
  line: number | null;
  offset: number | null;
  lines: number;
  severity: string;
  code: string;
  message: string;
  advice: string;
  text: string | null;
  searched?: string; // what the words of a filter are looked for in, once they were
}

function searchText(entry: Entry): string {
  return (entry.searched ??= `${entry.code} ${entry.message} ${entry.file}:${entry.line} ${entry.text ?? ''}`.toLowerCase());
}

function entriesOf(model: Model): (chunk: Chunks['import_log']) => Entry[] {
  const { log_file: logs, profile } = model.index;
  const paths = new Map(logs.id.map((id, i) => [id, logs.path[i] ?? '']));
  const profilePaths = new Map(profile.id.map((id, i) => [id, profile.path[i] ?? '']));
  return ({ import_log: t }) =>
    t.id.map((id, i) => ({
      id: id!,
      file: paths.get(t.log_file_id[i]) ?? profilePaths.get(t.profile_id[i]) ?? '',
      line: t.line[i],
      offset: t.byte_offset[i],
      lines: t.line_count[i] ?? 0,
      severity: t.severity[i] ?? '',
      code: t.code[i] ?? '',
      message: t.message[i] ?? '',
      advice: t.advice[i] ?? '',
      text: t.text[i],
    }));
}

const columns: Column<Entry>[] = [
  { key: 'severity', title: 'Severity', width: '80px', cell: (row) => <span class={`tag severity-${row.severity}`}>{row.severity}</span> },
  { key: 'code', title: 'Code', width: 'minmax(140px, 1fr)', class: 'mono', cell: (row) => row.code },
  { key: 'message', title: 'What', width: 'minmax(260px, 4fr)', cell: (row) => shorten(row.message, 300), about: (row) => row.message },
  { key: 'file', title: 'File', width: 'minmax(150px, 2fr)', cell: (row) => baseName(row.file), about: (row) => row.file },
  { key: 'line', title: 'Line', width: '84px', align: 'right', cell: (row) => count(row.line) },
];

const unplaced = columns.filter(({ key }) => key !== 'line'); // of files without lines

export function ImportLogPage({ model, route }: { model: Model; route: Route }) {
  const { rows: entries, done, error } = useBlocks(model, 'import_log', entriesOf(model));
  const severity = route.query.get('severity');
  const query = route.query.get('q') ?? '';
  const selected = Number(route.query.get('row'));
  const rows = useMemo(() => {
    const filter = parseFilter(query);
    return entries.filter(
      (entry) =>
        (!severity || entry.severity === severity) &&
        (!query ||
          filter.matches(searchText(entry), (key) =>
            key === 'code' ? entry.code.toLowerCase() : key === 'file' ? entry.file.toLowerCase() : key === 'severity' ? entry.severity : undefined,
          )),
    );
  }, [entries, severity, query]);
  const open = entries.find((entry) => entry.id === selected);
  const severities = ['error', 'warning', 'info'];
  const total = (name: string) =>
    model.index.import_code.entries.reduce<number>((sum, value, i) => sum + (model.index.import_code.severity[i] === name ? value! : 0), 0);
  return (
    <div class="page wide">
      <h1>
        Import log <span class="quiet">what was dropped, odd or damaged while the log was read</span>
      </h1>
      {error && <Empty>{error}</Empty>}
      <div class="toolbar">
        <span class="choice" role="group" aria-label="Severity">
          <button aria-pressed={!severity} onClick={() => setQuery({ severity: null })}>
            all {count(model.counts.get('import_log') ?? 0)}
          </button>
          {severities.map((name) => (
            <button aria-pressed={severity === name} onClick={() => setQuery({ severity: name })} disabled={total(name) === 0}>
              {name} {count(total(name))}
            </button>
          ))}
        </span>
        <FilterBox label="Filter the import log" placeholder="Filter: words, code:…, file:…" value={query} onFilter={(q) => setQuery({ q })} />
        <span class="quiet" role="status">
          {!done ? 'loading…' : rows.length === entries.length ? '' : `${count(rows.length)} of ${count(entries.length)}`}
        </span>
      </div>
      <Grid
        label="Import log"
        rows={rows}
        columns={rows.some((row) => row.line !== null) ? columns : unplaced}
        rowKey={(row) => row.id}
        rowClass={(row) => markOf('import_log.import_log', row.id) ?? ''}
        selected={selected || null}
        onSelect={(row) => setQuery({ row: row.id }, true)}
        height={`min(${(rows.length + 1.4) * 26}px, calc(100vh - ${open ? 420 : 170}px))`}
        empty={
          !done
            ? 'Loading…'
            : entries.length === 0
              ? `Nothing was dropped, odd or damaged: all ${plural(model.counts.get('records') ?? 0, 'record')} were read as PyTorch writes them.`
              : 'Nothing matches.'
        }
      />
      {open && (
        <section class="detail" aria-label="Entry">
          <p>
            <b>{open.message}</b>
          </p>
          <p>{open.advice}</p>
          <p class="quiet">
            {open.file}
            {open.line !== null && `, line ${count(open.line)}`}
            {open.offset !== null && `, byte ${count(open.offset)}`}
            {open.lines > 1 && `, ${plural(open.lines, 'line')}`}
          </p>
          {open.text !== null && <pre>{open.text}</pre>}
        </section>
      )}
    </div>
  );
}
