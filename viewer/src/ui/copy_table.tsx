// The rows of a table, as filtered and sorted, for a spreadsheet or a chat.
import { CopyButton } from './findings';
import type { Column } from './virtual';

type Cell = string | number | null;

function cellsOf<Row>(rows: Row[], columns: Column<Row>[]): { titles: string[]; cells: Cell[][] } {
  const copied = columns.flatMap((column) => {
    const value = column.copy === undefined ? column.sort : column.copy;
    return value ? [{ title: column.unit ? `${column.title} (${column.unit})` : column.title, value }] : [];
  });
  return { titles: copied.map((column) => column.title), cells: rows.map((row) => copied.map((column) => column.value(row))) };
}

// A text that a spreadsheet would take for a formula gets an apostrophe: it may come from a log.
function csvCell(cell: Cell): string {
  if (typeof cell !== 'string') return cell === null ? '' : String(cell);
  const text = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

// Nothing of a text is read as Markdown or HTML.
function markdownCell(cell: Cell): string {
  return cell === null
    ? ''
    : String(cell)
        .replace(/\s+/g, ' ')
        .replace(/[\\`*_{}[\]<>#|&~!]/g, (one) => (one === '<' ? '&lt;' : one === '&' ? '&amp;' : `\\${one}`));
}

export function csvOf<Row>(rows: Row[], columns: Column<Row>[]): string {
  const { titles, cells } = cellsOf(rows, columns);
  return [titles, ...cells].map((row) => row.map(csvCell).join(',')).join('\r\n') + '\r\n';
}

export function markdownOf<Row>(rows: Row[], columns: Column<Row>[]): string {
  const { titles, cells } = cellsOf(rows, columns);
  const isNumber = titles.map((_, i) => cells.some((row) => typeof row[i] === 'number'));
  return (
    [titles, isNumber.map((is) => (is ? '--:' : '---')), ...cells]
      .map((row, i) => `| ${row.map((cell) => (i === 1 ? cell : markdownCell(cell as Cell))).join(' | ')} |`)
      .join('\n') + '\n'
  );
}

export function CopyTable<Row>({ rows, columns }: { rows: Row[]; columns: Column<Row>[] }) {
  return (
    <span class="quiet">
      Copy as <CopyButton title="Copy the rows as CSV" short="CSV" text={() => csvOf(rows, columns)} />{' '}
      <CopyButton title="Copy the rows as Markdown" short="Markdown" text={() => markdownOf(rows, columns)} />
    </span>
  );
}
