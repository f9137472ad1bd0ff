// Estimated runtimes and outputs of a compile's ops, and libtrace's measurements.
import type { Chunks } from '../data/chunks';
import { rowsWhere } from '../data/model';
import { bytes, count, duration, shorten } from '../lib/format';
import { setQuery, type Route } from '../route';
import { Section } from '../ui/bits';
import { Grid, sortRows, type Column } from '../ui/virtual';

const unknown = <span class="quiet">unknown</span>;
const ns = (value: number | null) => (value === null ? unknown : duration(value / 1000));

// The scheduler's list of a graph: op_runtime and tensor_meta.
export function Ops({
  chunk,
  compileId,
  graphName,
  route,
}: {
  chunk: Chunks['compile'];
  compileId: number;
  graphName: (id: number | null) => string;
  route: Route;
}) {
  const t = chunk.op;
  const hasEstimate = (row: number) => t.assumed_unit[row] !== null;
  const columns: Column<number>[] = [
    { key: 'ordinal', title: '#', width: '52px', align: 'right', cell: (row) => count(t.ordinal[row]! + 1), sort: (row) => row },
    {
      key: 'name',
      title: 'Op',
      width: 'minmax(150px, 1.4fr)',
      about: (row) => t.name[row] ?? '',
      cell: (row) => (t.name[row] === null ? <span class="quiet">no name</span> : <code>{shorten(t.name[row]!, 200)}</code>),
      sort: (row) => t.name[row],
    },
    { key: 'type', title: 'Type', width: '90px', cell: (row) => t.type[row], sort: (row) => t.type[row] },
    {
      key: 'estimate',
      title: 'Estimated',
      width: '92px',
      align: 'right',
      hint: 'What the compiler expects of one run',
      cell: (row) => (hasEstimate(row) ? ns(t.estimated_ns[row]) : unknown),
      sort: (row) => t.estimated_ns[row],
    },
    {
      key: 'outputs',
      title: 'Outputs',
      width: 'minmax(180px, 2.4fr)',
      about: (row) => t.outputs[row] ?? '',
      cell: (row) => (t.outputs[row] === null ? unknown : <code>{shorten(t.outputs[row]!, 400)}</code>),
      sort: (row) => t.outputs[row],
    },
    { key: 'graph', title: 'Graph', width: '110px', cell: (row) => graphName(t.graph_id[row]), sort: (row) => graphName(t.graph_id[row]) },
  ];
  const sort = route.query.get('sort') ?? 'ordinal';
  const rows = rowsWhere(t.compile_id, compileId);
  return (
    <div class="artifact">
      <p class="quiet">
        The scheduler’s list, with the time that the compiler expects and the tensors that each op produces.
        {rows.some((row) => (t.ordinal[row] ?? 0) >= 1999) ? ' Of each list the first 2,000 ops are here.' : ''}
        {rows.some((row) => t.assumed_unit[row] === 'ms') ? ' The log’s numbers are taken for milliseconds.' : ''}
      </p>
      <Grid
        label="Ops"
        rows={sortRows(rows, columns, sort)}
        columns={columns}
        rowKey={(row) => row}
        sort={sort}
        onSort={(next) => setQuery({ sort: next })}
        height="calc(100vh - 240px)"
        empty="No list of ops."
      />
    </div>
  );
}

type Tables = Pick<Chunks['process'], 'measured_op' | 'gpu_activity' | 'model_load' | 'model_package' | 'package_part' | 'run_digest'>;

function Rows({ titles, rows }: { titles: [string, boolean][]; rows: (string | number | null | preact.JSX.Element)[][] }) {
  const most = 500;
  return (
    <>
      <div class="table-box">
        <table class="plain">
          <thead>
            <tr>
              {titles.map(([title, isRight]) => (
                <th scope="col" class={isRight ? 'right' : undefined}>
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, most).map((cells) => (
              <tr>
                {cells.map((cell, i) => (
                  <td class={titles[i][1] ? 'right' : undefined}>{cell}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > most && <p class="quiet">and {count(rows.length - most)} more</p>}
    </>
  );
}

export function measuredRows(tables: Tables, compileId: number | null): Record<'ops' | 'activities' | 'loads' | 'packages' | 'digests', number[]> {
  const own = (table: { rows: number; compile_id?: (number | null)[] }) =>
    compileId === null || !table.compile_id ? Array.from({ length: table.rows }, (_, i) => i) : rowsWhere(table.compile_id, compileId);
  return {
    ops: own(tables.measured_op),
    activities: own(tables.gpu_activity),
    loads: own(tables.model_load),
    packages: own(tables.model_package),
    digests: own(tables.run_digest),
  };
}

// A package that a model was loaded from, and its content.
function Package({ tables, row }: { tables: Tables; row: number }) {
  const { model_package: m, package_part: p } = tables;
  const weights = m.weight_size_bytes[row];
  const facts = [m.kind[row], m.size_bytes[row] === null ? null : bytes(m.size_bytes[row]), weights ? `weights ${bytes(weights)}` : null];
  return (
    <>
      <p>
        <code>{shorten(m.path[row] ?? '', 300)}</code> <span class="quiet">{facts.filter(Boolean).join(' · ')}</span>
      </p>
      <Rows
        titles={[
          ['Part', false],
          ['Name', false],
          ['About', false],
          ['Bytes', true],
        ]}
        rows={rowsWhere(p.record_id, m.record_id[row]!).map((part) => [
          p.what[part],
          <code>{shorten(p.name[part] ?? '', 200)}</code>,
          shorten(p.about[part] ?? '', 300),
          p.size_bytes[part] === null ? '' : bytes(p.size_bytes[part]),
        ])}
      />
    </>
  );
}

// Of one compile; null: of what the chunk has.
export function Measured({ tables, compileId }: { tables: Tables; compileId: number | null }) {
  const { measured_op: o, gpu_activity: g, model_load: m, run_digest: d } = tables;
  const { ops, activities, loads, packages, digests } = measuredRows(tables, compileId);
  const size = (value: number | null) => (value === null ? unknown : bytes(value));
  const change = (before: number | null, after: number | null) =>
    before === null || after === null ? unknown : `${after < before ? '−' : '+'}${bytes(Math.abs(after - before))}`;
  const hasDevices = loads.some((row) => m.device_peak_after_bytes[row] !== null);
  return (
    <>
      {loads.length > 0 && (
        <Section title="Models loaded">
          <Rows
            titles={[
              ['Model', false],
              ['Kind', false],
              ['State', false],
              ['Took', true],
              ['Weights', true],
              ['Memory of the process', true],
              ...(hasDevices ? [['GPU peak', true] as [string, boolean]] : []),
            ]}
            rows={loads.map((row) => [
              <code>{shorten(m.model[row] ?? '', 200)}</code>,
              m.kind[row],
              m.state[row],
              ns(m.duration_ns[row]),
              size(m.weight_size_bytes[row]),
              change(m.memory_before_bytes[row], m.memory_after_bytes[row]),
              ...(hasDevices ? [change(m.device_peak_before_bytes[row], m.device_peak_after_bytes[row])] : []),
            ])}
          />
        </Section>
      )}
      {packages.length > 0 && (
        <Section title="Packages">
          {packages.map((row) => (
            <Package tables={tables} row={row} />
          ))}
        </Section>
      )}
      {digests.length > 0 && (
        <Section title="Hashes of what runs used and gave">
          <Rows
            titles={[
              ['Graph', false],
              ['Call', true],
              ['Kind', false],
              ['Name', false],
              ['Type or choice', false],
              ['Hash', false],
            ]}
            rows={digests.map((row) => [
              shorten(d.graph[row] ?? '', 100),
              d.call[row] === null ? unknown : count(d.call[row]),
              d.kind[row],
              <code>{shorten(d.name[row] ?? '', 100)}</code>,
              shorten(d.value[row] ?? '', 100),
              <code>{(d.hash[row] ?? '').slice(0, 12)}</code>,
            ])}
          />
        </Section>
      )}
      {ops.length > 0 && (
        <Section title="Ops as libtrace measured them">
          <Rows
            titles={[
              ['Op', false],
              ['Node', false],
              ['Clock', false],
              ['Runs', true],
              ['Total', true],
              ['Least', true],
              ['Most', true],
              ['Estimated, one run', true],
            ]}
            rows={ops.map((row) => [
              <code>{shorten(o.name[row] ?? '', 200)}</code>,
              shorten(o.node[row] ?? '', 100),
              o.clock[row],
              count(o.count[row]),
              ns(o.total_ns[row]),
              ns(o.min_ns[row]),
              ns(o.max_ns[row]),
              o.estimated_ns[row] === null ? <span class="quiet">none</span> : ns(o.estimated_ns[row]),
            ])}
          />
        </Section>
      )}
      {activities.length > 0 && (
        <Section title="GPU activity, by kernel and op">
          <Rows
            titles={[
              ['Kind', false],
              ['Name', false],
              ['Op', false],
              ['Device', true],
              ['Runs', true],
              ['Total', true],
              ['Bytes', true],
            ]}
            rows={activities.map((row) => [
              g.kind[row],
              <code>{shorten(g.name[row] ?? '', 200)}</code>,
              <code>{shorten(g.op[row] ?? '', 100)}</code>,
              count(g.device[row]),
              count(g.count[row]),
              ns(g.total_ns[row]),
              g.kind[row] === 'kernel' ? '' : bytes(g.size_bytes[row]),
            ])}
          />
        </Section>
      )}
    </>
  );
}

export function IssuedCollectives({ table: t }: { table: Chunks['process']['issued_collective'] }) {
  if (t.rows === 0) return null;
  const hasErrors = t.error.some((error) => error !== null);
  return (
    <Section title="Collectives issued, as libtrace logged them">
      <Rows
        titles={[
          ['Group', false],
          ['Number', true],
          ['Collective', false],
          ['Inputs', false],
          ['Type', false],
          ['Reduction', false],
          ['Graph', false],
          ['Issued', true],
          ['Took', true],
          ...(hasErrors ? [['Error', false] as [string, boolean]] : []),
        ]}
        rows={t.op.map((op, row) => [
          shorten(t.group_name[row] ?? '', 60),
          t.sequence_number[row] === null ? unknown : count(t.sequence_number[row]),
          <code>{shorten(op ?? '', 80)}</code>,
          <code>{shorten(t.input_shapes[row] ?? '', 120)}</code>,
          t.dtype[row],
          t.reduce_op[row],
          t.label[row],
          t.start_us[row] === null ? unknown : duration(t.start_us[row], true),
          ns(t.duration_ns[row]),
          ...(hasErrors ? [<span class="removed-text">{shorten(t.error[row] ?? '', 400)}</span>] : []),
        ])}
      />
    </Section>
  );
}
