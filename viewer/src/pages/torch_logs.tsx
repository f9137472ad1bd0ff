// The text of TORCH_LOGS, line by line: as it was printed, with filters.
import { useMemo } from 'preact/hooks';
import type { Model } from '../data/model';
import { searchedText, useLogLines, type LogLine } from '../data/torch_log';
import { parseFilter } from '../lib/filter';
import { baseName, count, shorten } from '../lib/format';
import { href, setQuery, type Route } from '../route';
import { CompileLink, Empty, Section } from '../ui/bits';
import { FilterBox } from '../ui/filter_box';
import { Grid, type Column } from '../ui/virtual';

const compileOf = (line: LogLine) => (line.compile ? <CompileLink compile={line.compile}>{line.label}</CompileLink> : (line.label ?? ''));

const columns: Column<LogLine>[] = [
  { key: 'line', title: 'Line', width: '76px', align: 'right', cell: (row) => count(row.line), about: (row) => `${row.file}:${row.line}` },
  { key: 'rank', title: 'Rank', width: '52px', align: 'right', cell: (row) => row.rank },
  { key: 'artifact', title: 'Artifact', width: '130px', cell: (row) => row.artifact },
  { key: 'compile', title: 'Compile', width: '84px', cell: compileOf },
  { key: 'text', title: 'Text', width: 'minmax(320px, 6fr)', class: 'mono', cell: (row) => shorten(row.text, 400), about: (row) => row.text },
  { key: 'source', title: 'Printed by', width: 'minmax(120px, 1fr)', cell: (row) => baseName(row.source), about: (row) => row.source },
];

export function TorchLogsPage({ model, route }: { model: Model; route: Route }) {
  const { rows: lines, done, error } = useLogLines(model);
  const query = route.query.get('q') ?? '';
  const artifact = route.query.get('artifact') ?? '';
  const artifacts = useMemo(() => [...new Set(lines.map((line) => line.artifact))].sort(), [lines]);
  const rows = useMemo(() => {
    const filter = parseFilter(query);
    const valueOf = (line: LogLine, key: string) => (key === 'compile' ? (line.label ?? '') : key === 'file' ? line.file.toLowerCase() : undefined);
    return lines.filter((line) => (!artifact || line.artifact === artifact) && (!query || filter.matches(searchedText(line), (key) => valueOf(line, key))));
  }, [lines, artifact, query]);
  const files = new Set(lines.map((line) => line.file));
  const shown = columns.filter(({ key }) => key !== 'rank' || lines.some((line) => line.rank !== null));
  return (
    <div class="page wide">
      <h1>
        TORCH_LOGS <span class="quiet">{[...files].map(baseName).join(', ')}: the lines that name their artifact, as printed</span>
      </h1>
      {error && <Empty>{error}</Empty>}
      <div class="toolbar">
        <label>
          Artifact{' '}
          <select value={artifact} onChange={(event) => setQuery({ artifact: event.currentTarget.value || null })}>
            <option value="">all</option>
            {artifacts.map((name) => (
              <option value={name}>{name}</option>
            ))}
          </select>
        </label>
        <FilterBox label="Filter the lines" placeholder="Filter: words, compile:0/0, file:…" value={query} onFilter={(q) => setQuery({ q })} />
        <span class="quiet" role="status">
          {!done ? 'loading…' : `${count(rows.length)} of ${count(lines.length)} lines`}
        </span>
      </div>
      <Grid
        label="Lines of TORCH_LOGS"
        rows={rows}
        columns={shown}
        rowKey={(row) => row.id}
        height={`min(${(rows.length + 1.4) * 26}px, calc(100vh - 170px))`}
        empty={!done ? 'Loading…' : lines.length === 0 ? 'No text of TORCH_LOGS was among the inputs.' : 'Nothing matches.'}
      />
    </div>
  );
}

const mostFound = 20;

// In the search: the lines that hold the text.
export function FoundLogLines({ model, needle }: { model: Model; needle: string }) {
  const { rows } = useLogLines(model);
  const found = useMemo(() => rows.filter((line) => searchedText(line).includes(needle.toLowerCase())), [rows, needle]);
  if (found.length === 0) return null;
  return (
    <Section title="Text of TORCH_LOGS" aside={<a href={href(['torch-logs'], { q: needle })}>all {count(found.length)}</a>}>
      <ul class="hits log-hits">
        {found.slice(0, mostFound).map((line) => (
          <li>
            <code>{shorten(line.text.trim(), 240)}</code>{' '}
            <span class="quiet">
              {line.artifact} {compileOf(line)} · {baseName(line.file)}:{count(line.line)}
            </span>
          </li>
        ))}
      </ul>
    </Section>
  );
}
