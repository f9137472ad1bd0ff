import { useMemo } from 'preact/hooks';
import { useChunk, type Chunks } from '../data/chunks';
import { readExport, type ExportRecord, type ExportRecords } from '../data/export';
import { isShown, readFrames, stackOf, useText, type Frame, type Model } from '../data/model';
import { bytes, headline, plural, prettyJson, shorten } from '../lib/format';
import { href, setQuery, type Route } from '../route';
import { TextPane } from '../ui/artifact_view';
import { Empty, Place, Stack, Tabs, Waiting } from '../ui/bits';
import { Grid, type Column } from '../ui/virtual';

interface Row {
  id: number;
  kind: string;
  what: string;
  detail: string;
  processId: number;
  stackId: number | null;
  extra: string | null;
  nodeId: string | null;
}

function rowsOf(records: ExportRecords, tab: string): Row[] {
  const row = (record: ExportRecord, what: string | null, detail: string, extra: string | null, nodeId: string | null): Row => {
    return { id: record.id, kind: record.kind, what: what ?? '', detail, processId: record.processId, stackId: record.stackId, extra, nodeId };
  };
  if (tab === 'failures') {
    return records.failures.map((record) => {
      if (record.kind.endsWith('_fake_kernel')) return row(record, record.member('op'), record.member('reason') ?? '', null, null);
      const result = record.member('result');
      return row(record, record.member('expr'), result === null ? '' : `taken for ${result}`, null, record.member('expr_node_id'));
    });
  }
  if (tab === 'guards') {
    return records.guards.map((record) =>
      row(record, record.member('expr'), sourcesOf(record.json('symbol_to_sources')), record.json('frame_locals'), record.member('expr_node_id')),
    );
  }
  return records.symbols.map((record) =>
    row(
      record,
      record.member('symbol'),
      [record.member('val'), record.member('vr'), record.member('source')].filter(Boolean).join('  '),
      null,
      record.member('node_id'),
    ),
  );
}

function sourcesOf(json: string | null): string {
  try {
    return Object.entries(JSON.parse(json ?? '{}') as Record<string, unknown>)
      .map(([symbol, source]) => `${symbol} = ${String(source)}`)
      .join(', ');
  } catch {
    return json ?? '';
  }
}

const kindNames: Record<string, string> = {
  propagate_real_tensors: 'data-dependent value',
  propagate_real_tensors_provenance: 'data-dependent value',
  guard_on_data_dependent_error: 'data-dependent error',
  missing_fake_kernel: 'missing fake kernel',
  mismatched_fake_kernel: 'mismatched fake kernel',
  guard_added: 'guard',
  guard_added_fast: 'guard',
  create_symbol: 'symbol',
  create_unbacked_symbol: 'unbacked symbol',
};

// How an expression was computed: the tree of symbolic_expression below a node.
function Derivation({ records, nodeId }: { records: ExportRecords; nodeId: string }) {
  const lines = useMemo(() => {
    const byResult = new Map<string | null, ExportRecord>();
    for (const record of records.expressions) byResult.set(record.member('result_id'), record);
    const symbols = new Map<string | null, string>();
    for (const record of records.symbols) symbols.set(record.member('node_id'), record.member('symbol') ?? '');
    const out: string[] = [];
    const visit = (id: string, depth: number) => {
      if (depth > 12 || out.length > 200) return;
      const record = byResult.get(id);
      if (record === undefined) {
        if (symbols.has(id)) out.push(`${'  '.repeat(depth)}${symbols.get(id)}`);
        return;
      }
      out.push(`${'  '.repeat(depth)}${record.member('result') ?? '?'}  ← ${record.member('method') ?? '?'}(${argumentsOf(record.json('arguments'))})`);
      for (const argument of idsOf(record.json('argument_ids'))) if (argument !== id) visit(argument, depth + 1);
    };
    visit(nodeId, 0);
    return out;
  }, [records, nodeId]);
  if (lines.length === 0) return null;
  return (
    <>
      <h2>How it was computed</h2>
      <pre>{lines.join('\n')}</pre>
    </>
  );
}

// Object ids exceed what a JavaScript number holds exactly: they are compared as text.
function idsOf(json: string | null): string[] {
  return (json ?? '').match(/-?\d+/g) ?? [];
}

function argumentsOf(json: string | null): string {
  try {
    const value: unknown = JSON.parse(json ?? '[]');
    return Array.isArray(value) ? value.map(String).join(', ') : String(value);
  } catch {
    return json ?? '';
  }
}

function Detail({ row, records, frames }: { row: Row; records: ExportRecords; frames: Map<number, Frame> }) {
  const stack = stackOf(frames, row.stackId);
  return (
    <section class="detail" aria-label="Details">
      <p>
        <b>{kindNames[row.kind] ?? row.kind}</b> <code>{row.what}</code>
      </p>
      {row.detail && <pre>{row.detail}</pre>}
      {stack.length > 0 && <Stack frames={stack} />}
      {row.extra && row.extra !== 'null' && (
        <details>
          <summary>Local variables of the frame</summary>
          <pre>{prettyJson(row.extra)}</pre>
        </details>
      )}
      {row.nodeId && <Derivation records={records} nodeId={row.nodeId} />}
    </section>
  );
}

function Programs({ chunk, route }: { chunk: Chunks['export']; route: Route }) {
  const t = chunk.exported_program;
  const selected = Number(route.query.get('row') ?? t.record_id[0]);
  const i = Math.max(0, t.record_id.indexOf(selected));
  const text = useText(t.payload_hash[i] ? { hash: t.payload_hash[i]!, sizeBytes: t.size_bytes[i] ?? 0 } : null);
  return (
    <>
      <div class="toolbar">
        {t.record_id.map((id, n) => (
          <a class={`tag ${n === i ? 'on' : ''}`} href={href(['export'], { tab: 'programs', row: id })}>
            program {n + 1}, {bytes(t.size_bytes[n])}
          </a>
        ))}
      </div>
      {t.payload_hash[i] ? (
        <Waiting pending={text}>
          {(value) => <TextPane text={value.content} name="program.py" label="Exported program" lines={route.query.get('lines')} />}
        </Waiting>
      ) : (
        <Empty>This record has no program.</Empty>
      )}
    </>
  );
}

export function ExportPage({ model, route }: { model: Model; route: Route }) {
  const chunk = useChunk('export');
  // torch.compile writes guards and symbols of sizes as well.
  const isExport = (model.counts.get('is_export') ?? 0) > 0;
  return (
    <div class="page wide">
      <h1>
        {isExport ? 'Export report' : 'Shapes'}{' '}
        <span class="quiet">{isExport ? 'what torch.export could not prove, and what it assumed' : 'what the compiles assumed of sizes that vary'}</span>
      </h1>
      <Waiting pending={chunk}>{(value) => <Report model={model} chunk={value} route={route} />}</Waiting>
    </div>
  );
}

function Report({ model, chunk, route }: { model: Model; chunk: Chunks['export']; route: Route }) {
  const frames = useMemo(() => readFrames(chunk.frame), [chunk]);
  const records = useMemo(() => readExport(chunk), [chunk]);
  const failures = records.failures.length;
  const total = failures + records.guards.length + records.symbols.length + chunk.exported_program.rows;
  const tab = route.query.get('tab') ?? (failures > 0 ? 'failures' : chunk.exported_program.rows > 0 ? 'programs' : 'guards');
  // By process, then in the order of the log; those of the chosen launch and rank.
  const rows = useMemo(
    () =>
      rowsOf(records, tab)
        .filter((row) => isShown(model, model.processById.get(row.processId)))
        .sort((a, b) => a.processId - b.processId || a.id - b.id),
    [model, records, tab],
  );
  const processes = new Set(rows.map((row) => row.processId)).size;
  if (total === 0)
    return (
      <Empty>
        This log holds nothing of torch.export. Draft export (torch.export.draft_export) and TORCH_DTRACE write such records; torch.compile does not.
      </Empty>
    );
  const selected = Number(route.query.get('row'));
  const open = rows.find((row) => row.id === selected);
  const columns: Column<Row>[] = [
    ...(processes > 1 ? [{ key: 'process', title: 'Process', width: '110px', cell: (row: Row) => model.processById.get(row.processId)?.name }] : []),
    { key: 'kind', title: 'Kind', width: '160px', cell: (row) => kindNames[row.kind] ?? row.kind },
    {
      key: 'what',
      title: tab === 'symbols' ? 'Symbol' : 'Expression or operator',
      width: 'minmax(180px, 2fr)',
      cell: (row) => <code>{shorten(row.what, 300)}</code>,
    },
    {
      key: 'detail',
      title: tab === 'symbols' ? 'Value, range, source' : 'Detail',
      width: 'minmax(180px, 2fr)',
      cell: (row) => <span title={shorten(row.detail, 1000)}>{shorten(headline(row.detail), 200)}</span>,
    },
    {
      key: 'place',
      title: 'Python line',
      width: 'minmax(120px, 1fr)',
      cell: (row) => {
        // The innermost frame whose file the log names.
        const frame = stackOf(frames, row.stackId)
          .reverse()
          .find((own) => own.file && !own.file.startsWith('<'));
        return frame && <Place file={frame.file} line={frame.line} />;
      },
    },
  ];
  const tabs = [
    { key: 'failures', title: 'Failures', count: failures },
    { key: 'guards', title: 'Guards', count: records.guards.length },
    { key: 'symbols', title: 'Symbols', count: records.symbols.length },
    { key: 'programs', title: 'Exported programs', count: chunk.exported_program.rows },
  ];
  return (
    <>
      <Tabs tabs={tabs} current={tab} link={(key) => href(['export'], { tab: key })} />
      {tab === 'programs' ? (
        chunk.exported_program.rows > 0 ? (
          <Programs chunk={chunk} route={route} />
        ) : (
          <Empty>No exported program is in the log: the export did not finish, or this is torch.compile.</Empty>
        )
      ) : (
        <>
          <Grid
            label={tab}
            rows={rows}
            columns={columns}
            rowKey={(row) => row.id}
            selected={selected || null}
            onSelect={(row) => setQuery({ row: row.id }, true)}
            height={`min(${(rows.length + 1.4) * 26}px, ${open ? '45vh' : 'calc(100vh - 200px)'})`}
            empty={
              tab === 'failures'
                ? `No failures: ${plural(records.guards.length, 'guard')} and no expression whose value had to come from real tensors, no missing or mismatched fake kernel.`
                : 'None in this log.'
            }
          />
          {open && <Detail row={open} records={records} frames={frames} />}
        </>
      )}
    </>
  );
}
