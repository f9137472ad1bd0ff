// What a refresh changed: rows that are new, and rows with other values.
export type Change = 'new' | 'changed';

interface Mark {
  change: Change;
  atMs: number;
}

// Tables that are shown as lists: the column that identifies a row, and columns whose changes are not marked (running times).
const watched: Record<string, { key: string; restless?: string[]; onlyNew?: boolean }> = {
  'compiles.compile': { key: 'id' },
  'findings.finding': {
    key: 'id',
    restless: ['since_us', 'parent', 'query', 'place_view', 'place_graph_id', 'place_compile_id', 'place_record_id', 'place_line'],
  },
  'index.process': { key: 'id', onlyNew: true },
  'compile.record': { key: 'id', onlyNew: true },
  'process.record': { key: 'id', onlyNew: true },
  'import_log.import_log': { key: 'id', onlyNew: true },
};
export const markMs = 30_000; // how long a mark is shown

const marks = new Map<string, Mark>();

type Column = (number | string | null)[];
type Table = { rows: number } & Record<string, Column>;

// A sentence that differs in a running time alone ("for 48 s", "for 51 s") has not changed.
const plain = (cell: number | string | null) => (typeof cell === 'string' ? cell.replace(/\d+/g, '0') : cell);

function noteTable(name: string, before: Table, now: Table, isSameOrigin: boolean): void {
  const { key, restless = [], onlyNew } = watched[name];
  const places = new Map(before[key].map((id, row) => [id, row]));
  const columns = Object.keys(now).filter((column) => column !== 'rows' && column in before && !restless.includes(column));
  const isFinding = name === 'findings.finding';
  now[key].forEach((id, row) => {
    const old = places.get(id);
    const differs = () =>
      columns.some((column) => now[column][row] !== before[column][old!] && (!isFinding || plain(now[column][row]) !== plain(before[column][old!])));
    if (old === undefined) marks.set(`${name}/${id}`, { change: 'new', atMs: Date.now() });
    // Times count from the start of the run: if the start has changed, so have they.
    else if (!onlyNew && isSameOrigin && markOf(name, id!) !== 'new' && differs()) marks.set(`${name}/${id}`, { change: 'changed', atMs: Date.now() });
  });
}

export function noteChanges(before: Map<string, unknown>, now: Map<string, unknown>): void {
  for (const [id, mark] of marks) if (Date.now() - mark.atMs > markMs) marks.delete(id);
  const originOf = (chunks: Map<string, unknown>) => {
    const setting = (chunks.get('index') as { setting: { name: Column; value: Column } } | undefined)?.setting;
    return setting?.value[setting.name.indexOf('origin_us')];
  };
  const isSameOrigin = originOf(now) === undefined || originOf(before) === originOf(now);
  for (const [chunk, value] of now) {
    const old = before.get(chunk) as Record<string, Table> | undefined;
    if (!old) continue; // the table was not shown before
    for (const [table, rows] of Object.entries(value as Record<string, Table>)) {
      const name = `${chunk.split('/')[0]}.${table}`;
      if (name in watched && table in old) noteTable(name, old[table], rows, isSameOrigin);
    }
  }
}

// The mark of a row; none after markMs.
export function markOf(table: string, id: number | string): Change | undefined {
  const mark = marks.get(`${table}/${id}`);
  return mark && Date.now() - mark.atMs <= markMs ? mark.change : undefined;
}

// How many rows of a table are marked.
export function countMarks(table: string): Record<Change, number> {
  const counts = { new: 0, changed: 0 };
  for (const [id, mark] of marks) if (id.startsWith(`${table}/`) && Date.now() - mark.atMs <= markMs) counts[mark.change]++;
  return counts;
}
