// Columns that several tables of measured time have.
import { bytes, count, duration } from '../lib/format';
import { HeatBar } from '../ui/bits';
import { type Column } from '../ui/virtual';

export function shareColumns(us: (row: number) => number, totalUs: number, what: string): Column<number>[] {
  return [
    { key: 'time', title: 'Time', width: '82px', align: 'right', hint: 'Measured, in the steps that are counted', cell: (row) => duration(us(row)), sort: us },
    {
      key: 'share',
      title: 'Share',
      width: '118px',
      hint: `Of ${duration(totalUs)}, ${what}`,
      cell: (row) => <HeatBar share={totalUs > 0 ? us(row) / totalUs : 0} />,
    },
  ];
}

export function callColumns(calls: (row: number) => number | null, us: (row: number) => number, longest: (number | null)[]): Column<number>[] {
  return [
    { key: 'calls', title: 'Calls', width: '62px', align: 'right', cell: (row) => count(calls(row)), sort: calls },
    {
      key: 'mean',
      title: 'Mean',
      width: '76px',
      align: 'right',
      cell: (row) => duration(us(row) / Math.max(1, calls(row) ?? 1)),
      sort: (row) => us(row) / Math.max(1, calls(row) ?? 1),
    },
    {
      key: 'longest',
      title: 'Longest',
      width: '76px',
      align: 'right',
      hint: 'The longest of the calls',
      cell: (row) => duration(longest[row]),
      sort: (row) => longest[row],
    },
  ];
}

// Bytes beside time: no column where no recording of the allocator says anything.
export function bytesColumn(held: (number | null)[]): Column<number>[] {
  if (held.every((cell) => cell === null)) return [];
  return [
    {
      key: 'peak',
      title: 'At peak',
      width: '78px',
      align: 'right',
      hint: 'Bytes that were alive at the peak of a recording of the allocator, of several recordings the most',
      cell: (row) => (held[row] === null ? '' : bytes(held[row])),
      sort: (row) => held[row],
    },
  ];
}
