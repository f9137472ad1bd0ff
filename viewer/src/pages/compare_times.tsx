// Times of two sides: by phase, by function, of what profiles measured.
import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import type { CompileChange, PhaseChange } from '../data/comparison';
import { notAttributed } from '../data/phases';
import { duration } from '../lib/format';
import { Section } from '../ui/bits';
import { Grid, sortRows, type Column } from '../ui/virtual';

// "+1.20 s", with a bar to the right where b takes longer.
function Delta({ aUs, bUs, mostUs }: { aUs: number; bUs: number; mostUs: number }) {
  const by = bUs - aUs;
  const width = (100 * Math.abs(by)) / Math.max(1, mostUs);
  const more = by > 0;
  return (
    <span class="delta">
      <span class="delta-bar" aria-hidden="true">
        <i class={more ? 'more' : 'less'} style={{ width: `${width / 2}%`, [more ? 'left' : 'right']: '50%' }} />
      </span>
      <span class="delta-number">{by === 0 ? '0 s' : duration(by, true)}</span>
    </span>
  );
}

export function PhaseTable({ phases, totals }: { phases: PhaseChange[]; totals: [number, number] }) {
  const part = (of: (own: PhaseChange) => number) => phases.reduce((sum, own) => sum + of(own), 0);
  const rest: PhaseChange = {
    phase: notAttributed,
    aUs: Math.max(0, totals[0] - part((own) => own.aUs)),
    bUs: Math.max(0, totals[1] - part((own) => own.bUs)),
  };
  const rows = rest.aUs > 0 || rest.bUs > 0 ? [...phases, rest] : phases;
  const most = rows.reduce((most, own) => Math.max(most, Math.abs(own.bUs - own.aUs)), Math.abs(totals[1] - totals[0]));
  return (
    <table class="plain compare-phases">
      <thead>
        <tr>
          <th scope="col">Phase</th>
          <th scope="col" class="right">
            a
          </th>
          <th scope="col" class="right">
            b
          </th>
          <th scope="col">b against a</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(({ phase, aUs, bUs }) => (
          <tr>
            <th scope="row" title={phase.hint}>
              <i class={`swatch ${phase.class}`} /> {phase.name}
            </th>
            <td class="right">{duration(aUs)}</td>
            <td class="right">{duration(bUs)}</td>
            <td>
              <Delta aUs={aUs} bUs={bUs} mostUs={most} />
            </td>
          </tr>
        ))}
        <tr class="sum">
          <th scope="row">all of it</th>
          <td class="right">{duration(totals[0])}</td>
          <td class="right">{duration(totals[1])}</td>
          <td>
            <Delta aUs={totals[0]} bUs={totals[1]} mostUs={most} />
          </td>
        </tr>
      </tbody>
    </table>
  );
}

interface FunctionTime {
  name: string;
  aUs: number;
  bUs: number;
  compiles: number;
}

// Functions by how much longer or shorter b took; of compiles with times on both sides.
export function functionTimes(compiles: CompileChange[]): FunctionTime[] {
  const times = new Map<string, FunctionTime>();
  for (const own of compiles) {
    if (own.aUs === null || own.bUs === null) continue;
    const sum = times.get(own.function) ?? { name: own.function, aUs: 0, bUs: 0, compiles: 0 };
    times.set(own.function, { ...sum, aUs: sum.aUs + own.aUs, bUs: sum.bUs + own.bUs, compiles: sum.compiles + 1 });
  }
  return sortRows([...times.values()], changeColumns('Function', 1), '-change');
}

interface Timed {
  name: string;
  aUs: number;
  bUs: number;
}

function changeColumns<Row extends Timed>(title: string, mostUs: number, cell?: (row: Row) => ComponentChildren): Column<Row>[] {
  return [
    { key: 'name', title, width: 'minmax(90px, 2fr)', about: (row) => row.name, cell: (row) => (cell ? cell(row) : row.name) },
    { key: 'a', title: 'a', width: '64px', align: 'right', cell: (row) => duration(row.aUs) },
    { key: 'b', title: 'b', width: '64px', align: 'right', cell: (row) => duration(row.bUs) },
    {
      key: 'change',
      title: 'b against a',
      width: 'minmax(170px, 1.4fr)',
      sort: (row) => Math.abs(row.bUs - row.aUs),
      cell: (row) => <Delta aUs={row.aUs} bUs={row.bUs} mostUs={mostUs} />,
    },
  ];
}

const mostOf = (rows: Timed[]) => rows.reduce((most, own) => Math.max(most, Math.abs(own.bUs - own.aUs)), 1);

export function TimedTable<Row extends Timed>({
  title,
  heading,
  rows,
  cell,
}: {
  title: string;
  heading: string;
  rows: Row[];
  cell?: (row: Row) => ComponentChildren;
}) {
  const columns = useMemo(() => changeColumns<Row>(heading, mostOf(rows), cell), [rows, heading]);
  if (rows.length === 0) return null;
  return (
    <Section title={title}>
      <Grid label={title} rows={rows} columns={columns} rowKey={(row) => rows.indexOf(row)} height={`${Math.min(rows.length, 12) * 26 + 32}px`} empty="" />
    </Section>
  );
}
