// The tables of measured time: kernels, Python lines, graphs, ops and modules.
import { type Chunks } from '../data/chunks';
import type { Model } from '../data/model';
import { count, duration, percent, shorten } from '../lib/format';
import { href, type Route } from '../route';
import { CompileLink, Place } from '../ui/bits';
import { type Column } from '../ui/virtual';
import { bytesColumn, callColumns, shareColumns } from './cost_columns';

export type Cost = Chunks['cost'];

export interface Context {
  model: Model;
  cost: Cost;
  graphs: Chunks['graphs'];
  route: Route;
}

// A table of the chunk: its columns, what each row can be found by, and what one row of it is.
export interface View {
  columns: Column<number>[];
  text: (row: number) => string;
  totalUs: number;
  rows: number;
  unit: string;
}

function GraphCell({
  context,
  graphId,
  label,
  direction,
  note,
}: {
  context: Context;
  graphId: number | null;
  label: string | null;
  direction: string | null;
  note: string | null;
}) {
  const { graphs, model } = context;
  const at = graphId === null ? -1 : graphs.graph.id.indexOf(graphId);
  const compile = at < 0 ? undefined : model.compileById.get(graphs.graph.compile_id[at]!);
  if (!compile)
    return (
      <span class="quiet" title={note ?? ''}>
        {label ?? 'outside'}
      </span>
    );
  return (
    <>
      <CompileLink compile={compile} />{' '}
      {graphs.graph.provenance_content_id[at] === null ? `${direction ?? ''} graph` : <a href={href(['provenance', graphId!])}>{direction ?? ''} graph</a>}
    </>
  );
}

// "(64, 1, 1)" of a JSON list.
const dimensions = (list: string | null) => (list === null ? <span class="quiet">–</span> : <code>{list.replace(/[[\]\s]/g, '').replace(/,/g, '×')}</code>);

// Of "a.py:12, b.py:3" the first two.
function Lines({ text }: { text: string }) {
  const all = text.split(', ');
  return (
    <span class="places">
      {all.slice(0, 2).map((one) => {
        const at = one.lastIndexOf(':');
        return <Place file={one.slice(0, at)} line={Number(one.slice(at + 1))} />;
      })}
      {all.length > 2 && <span class="quiet">and {all.length - 2} more</span>}
    </span>
  );
}

export function kernelView(context: Context): View {
  const t = context.cost.kernel;
  const windowUs = context.cost.window.window_us[0] ?? 0;
  const us = (row: number) => t.inclusive_us[row] ?? 0;
  const totalUs = context.cost.window.kernel_us[0] ?? 0;
  const name = (row: number) => `${t.name[row]}${t.debug_handle[row] === null ? '' : `:${t.debug_handle[row]}`}`;
  const hasGraph = (row: number) => t.graph_id[row] !== null && t.kernel_id[row] !== null;
  const columns: Column<number>[] = [
    ...shareColumns(us, totalUs, 'the time of all kernels'),
    {
      key: 'name',
      title: 'Kernel',
      width: 'minmax(190px, 3fr)',
      about: name,
      cell: (row) =>
        hasGraph(row) ? (
          <a href={href(['provenance', t.graph_id[row]!], { sel: `kernel:${t.kernel_id[row]}` })}>
            <code>{shorten(name(row), 300)}</code>
          </a>
        ) : (
          <code>{shorten(name(row), 300)}</code>
        ),
      sort: (row) => t.name[row],
    },
    {
      key: 'step',
      title: 'Of the step',
      width: '76px',
      align: 'right',
      hint: `Of ${duration(windowUs)}, the length of the counted steps. Kernels that ran side by side may sum up to more than 100 %.`,
      cell: (row) => (windowUs > 0 ? percent(us(row) / windowUs) : ''),
    },
    ...callColumns((row) => t.calls[row], us, t.longest_us),
    ...bytesColumn(t.peak_bytes),
    {
      key: 'estimate',
      title: 'Estimated',
      width: '80px',
      align: 'right',
      hint: 'What the compiler expected of one call',
      cell: (row) => (t.estimated_us[row] === null ? <span class="quiet">–</span> : duration(t.estimated_us[row])),
      sort: (row) => t.estimated_us[row],
    },
    {
      key: 'grid',
      title: 'Grid',
      width: '84px',
      about: (row) => t.grid[row] ?? 'not in the profile: kernels on the CPU have none',
      cell: (row) => dimensions(t.grid[row]),
    },
    {
      key: 'block',
      title: 'Block',
      width: '74px',
      about: (row) => t.block[row] ?? 'not in the profile: kernels on the CPU have none',
      cell: (row) => dimensions(t.block[row]),
    },
    {
      key: 'graph',
      title: 'Graph',
      width: '134px',
      cell: (row) => <GraphCell context={context} graphId={t.graph_id[row]} label={t.label[row]} direction={t.direction[row]} note={t.join_note[row]} />,
      sort: (row) => `${t.label[row] ?? ''} ${t.direction[row] ?? ''}`,
    },
    {
      key: 'lines',
      title: 'Python lines',
      width: 'minmax(120px, 2fr)',
      about: (row) => t.lines[row] ?? t.join_note[row] ?? '',
      cell: (row) => (t.lines[row] === null ? <span class="quiet">{shorten(t.join_note[row] ?? 'none known', 200)}</span> : <Lines text={t.lines[row]!} />),
      sort: (row) => t.lines[row],
    },
  ];
  // Columns without any value are left out.
  const absent = (column: (string | number | null)[]) => column.every((cell) => cell === null);
  const empty: Record<string, boolean> = {
    estimate: absent(t.estimated_us),
    grid: absent(t.grid),
    block: absent(t.block),
    graph: absent(t.label),
    lines: absent(t.lines),
  };
  return {
    columns: columns.filter((column) => !empty[column.key]),
    text: (row) => `${name(row)} ${t.lines[row] ?? ''} ${t.label[row] ?? ''} ${t.direction[row] ?? ''}`,
    totalUs,
    rows: t.rows,
    unit: 'kernel',
  };
}

export function lineView(context: Context): View {
  const t = context.cost.line;
  const us = (row: number) => t.share_us[row] ?? 0;
  const totalUs = context.cost.window.kernel_us[0] ?? 0;
  const columns: Column<number>[] = [
    ...shareColumns(us, totalUs, 'the time of all kernels'),
    {
      key: 'inclusive',
      title: 'Inclusive',
      width: '84px',
      align: 'right',
      hint: 'All of the time of each kernel that the line is part of; the time at the left divides it among the lines of a fused kernel',
      cell: (row) => duration(t.inclusive_us[row]),
      sort: (row) => t.inclusive_us[row],
    },
    { key: 'calls', title: 'Kernel calls', width: '84px', align: 'right', cell: (row) => count(t.calls[row]), sort: (row) => t.calls[row] },
    ...bytesColumn(t.peak_bytes),
    {
      key: 'line',
      title: 'Line',
      width: 'minmax(130px, 1fr)',
      about: (row) => `${t.file[row] ?? ''}:${t.line[row] ?? ''}`,
      cell: (row) =>
        t.file[row] === null ? (
          <span class="quiet">{t.join_note[row] === null ? 'no line known' : `no line known: ${t.join_note[row]}`}</span>
        ) : (
          <Place file={t.file[row]} line={t.line[row]} />
        ),
      sort: (row) => (t.file[row] === null ? null : `${t.file[row]}:${String(t.line[row] ?? 0).padStart(9, '0')}`),
    },
    {
      key: 'code',
      title: 'Code',
      width: 'minmax(180px, 3fr)',
      about: (row) => t.code[row] ?? '',
      cell: (row) => <code>{shorten(t.code[row] ?? '', 300)}</code>,
      sort: (row) => t.code[row],
    },
    {
      key: 'function',
      title: 'Function',
      width: 'minmax(90px, 1fr)',
      cell: (row) => <code>{shorten(t.function[row] ?? '', 200)}</code>,
      sort: (row) => t.function[row],
    },
  ];
  return {
    columns,
    text: (row) => `${t.file[row] ?? ''}:${t.line[row] ?? ''} ${t.code[row] ?? ''} ${t.function[row] ?? ''}`,
    totalUs,
    rows: t.rows,
    unit: 'line',
  };
}

export function graphView(context: Context): View {
  const t = context.cost.graph;
  const us = (row: number) => t.inclusive_us[row] ?? 0;
  const windowUs = context.cost.window.window_us[0] ?? 0;
  const columns: Column<number>[] = [
    ...shareColumns(us, windowUs, 'the length of the counted steps'),
    ...callColumns((row) => t.calls[row], us, t.longest_us),
    ...bytesColumn(t.peak_bytes),
    {
      key: 'device',
      title: 'Device',
      width: '84px',
      align: 'right',
      hint: 'Time of the device kernels that its calls queued',
      cell: (row) => (t.device_us[row] === null ? <span class="quiet">–</span> : duration(t.device_us[row])),
      sort: (row) => t.device_us[row],
    },
    {
      key: 'compile',
      title: 'Compile time',
      width: '92px',
      align: 'right',
      hint: 'One time for the graphs of the forward, one for those of the backward if the log measured its compile; in the row of the graph that cost most',
      cell: (row) => (t.compile_us[row] === null ? <span class="quiet">–</span> : duration(t.compile_us[row])),
      sort: (row) => t.compile_us[row],
    },
    {
      key: 'graph',
      title: 'Graph',
      width: '134px',
      cell: (row) => <GraphCell context={context} graphId={t.graph_id[row]} label={t.label[row]} direction={t.direction[row]} note={t.join_note[row]} />,
      sort: (row) => `${t.label[row] ?? ''} ${t.direction[row] ?? ''}`,
    },
    {
      key: 'function',
      title: 'Function',
      width: 'minmax(140px, 2fr)',
      cell: (row) =>
        t.function[row] === null ? <span class="quiet">{shorten(t.join_note[row] ?? '', 200)}</span> : <code>{shorten(t.function[row]!, 200)}</code>,
      sort: (row) => t.function[row],
    },
  ];
  return { columns, text: (row) => `${t.function[row] ?? ''} ${t.label[row] ?? ''} ${t.direction[row] ?? ''}`, totalUs: windowUs, rows: t.rows, unit: 'graph' };
}

export function opView(context: Context): View {
  const t = context.cost.op;
  const hasDevice = t.device_us.some((value) => value !== null);
  const shared = hasDevice ? t.device_us : t.self_us;
  const us = (row: number) => shared[row] ?? 0;
  const totalUs = shared.reduce<number>((sum, value) => sum + (value ?? 0), 0) + leftOutUs(context.cost, 'op');
  const columns: Column<number>[] = [
    ...shareColumns(
      us,
      totalUs,
      hasDevice
        ? 'the time of all kernels on devices, each counted for the op that enqueued it'
        : 'the time of all ops on the CPU, each without the ops inside it',
    ),
    {
      key: 'inclusive',
      title: 'With ops inside',
      width: '104px',
      align: 'right',
      cell: (row) => duration(t.inclusive_us[row]),
      sort: (row) => t.inclusive_us[row],
    },
    { key: 'calls', title: 'Calls', width: '70px', align: 'right', cell: (row) => count(t.calls[row]), sort: (row) => t.calls[row] },
    {
      key: 'cpu',
      title: 'On the CPU',
      width: '90px',
      align: 'right',
      hint: 'Without the ops inside',
      cell: (row) => (t.self_us[row] === null ? <span class="quiet">–</span> : duration(t.self_us[row])),
      sort: (row) => t.self_us[row],
    },
    {
      key: 'name',
      title: 'Op',
      width: 'minmax(180px, 3fr)',
      about: (row) => t.name[row] ?? '',
      cell: (row) => <code>{shorten(t.name[row] ?? '', 300)}</code>,
      sort: (row) => t.name[row],
    },
  ];
  return { columns: columns.filter((column) => hasDevice || column.key !== 'cpu'), text: (row) => t.name[row] ?? '', totalUs, rows: t.rows, unit: 'op' };
}

export function moduleView(context: Context): View {
  const t = context.cost.module;
  const us = (row: number) => t.share_us[row] ?? 0;
  const hasDevice = t.device_us.some((value) => value !== null);
  const totalUs = t.share_us.reduce<number>((sum, value) => sum + (value ?? 0), 0) + leftOutUs(context.cost, 'module');
  const name = (row: number) => t.name[row] ?? 'no module was open';
  const columns: Column<number>[] = [
    ...shareColumns(
      us,
      totalUs,
      hasDevice
        ? 'the time of all kernels; a kernel belongs to the module that was open where and when it was enqueued, one of a backward to none'
        : 'the time of all modules on the CPU, each without the modules inside it',
    ),
    {
      key: 'inclusive',
      title: 'With modules inside',
      width: '128px',
      align: 'right',
      cell: (row) => duration(t.inclusive_us[row]),
      sort: (row) => t.inclusive_us[row],
    },
    {
      key: 'cpu',
      title: 'On the CPU',
      width: '90px',
      align: 'right',
      hint: 'Without the modules inside',
      cell: (row) => (t.cpu_us[row] === null ? <span class="quiet">–</span> : duration(t.cpu_us[row])),
      sort: (row) => t.cpu_us[row],
    },
    {
      key: 'calls',
      title: 'Calls',
      width: '70px',
      align: 'right',
      cell: (row) => (t.name[row] === null ? '' : count(t.calls[row])),
      sort: (row) => t.calls[row],
    },
    {
      key: 'name',
      title: 'Module',
      width: 'minmax(180px, 3fr)',
      about: name,
      cell: (row) => (t.name[row] === null ? <span class="quiet">{name(row)}</span> : <code>{shorten(name(row), 300)}</code>),
      sort: (row) => t.name[row],
    },
  ];
  return { columns: columns.filter((column) => hasDevice || column.key !== 'cpu'), text: name, totalUs, rows: t.rows, unit: 'module' };
}

function leftOutUs(cost: Cost, table: string): number {
  const at = cost.left_out.table.indexOf(table);
  return at < 0 ? 0 : (cost.left_out.us[at] ?? 0);
}
