import { useEffect, useState } from 'preact/hooks';
import { isServed, ofRun } from '../data/chunks';
import { count, plural, shorten } from '../lib/format';
import { setQuery, type Route } from '../route';
import { Empty } from '../ui/bits';
import { Grid, type Column } from '../ui/virtual';

interface Answer {
  columns: string[];
  rows: (string | number | null)[][];
  is_truncated: boolean;
  elapsed_ms: number;
}

const examples: [string, string][] = [
  ['Slowest compiles', 'SELECT rank, label, function, status, duration_us / 1e6 AS seconds\nFROM compile ORDER BY duration_us DESC LIMIT 50'],
  ['Guards that failed most', 'SELECT guard, count(*) AS recompiles FROM recompile\nGROUP BY guard ORDER BY recompiles DESC LIMIT 50'],
  [
    'Cache misses by rank',
    'SELECT rank, layer, count(*) AS misses\nFROM cache_event e JOIN cache_state s ON s.name = e.state\nWHERE s.is_miss GROUP BY rank, layer ORDER BY misses DESC',
  ],
  [
    'What fills the log',
    'SELECT kind, name, count(*) AS records, sum(size_bytes) AS bytes\nFROM record r JOIN payload p ON p.hash = r.payload_hash\nGROUP BY kind, name ORDER BY bytes DESC LIMIT 50',
  ],
  ['Tables and views', "SELECT type, name FROM sqlite_master\nWHERE type IN ('table', 'view') AND name NOT LIKE '%\\_row' ESCAPE '\\' ORDER BY name"],
];

export function SqlPage({ route }: { route: Route }) {
  const [text, setText] = useState(route.query.get('q') ?? examples[0][1]);
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [problem, setProblem] = useState('');
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    const fromAddress = route.query.get('q');
    if (fromAddress !== null && fromAddress !== text) setText(fromAddress);
  }, [route.query.get('q')]);
  if (!isServed) {
    return (
      <Empty>
        SQL needs the database behind the page: run <code>tlparse serve</code> on this directory, or <code>tlparse sql trace.db "SELECT …"</code>.
      </Empty>
    );
  }
  const run = async () => {
    setQuery({ q: text }, true);
    setBusy(true);
    setProblem('');
    try {
      const response = await fetch(`api/sql${ofRun()}`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ sql: text }),
      });
      if (!response.ok) throw new Error((await response.text()).trim() || `the server answered ${response.status}`);
      setAnswer((await response.json()) as Answer);
    } catch (error) {
      setAnswer(null);
      setProblem((error as Error).message);
    }
    setBusy(false);
  };
  return (
    <div class="page wide">
      <h1 class="unseen">SQL</h1>
      <div class="sql">
        <textarea
          aria-label="SQL query"
          spellcheck={false}
          rows={7}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) void run();
          }}
        />
        <div class="toolbar">
          <button class="primary" onClick={() => void run()} disabled={isBusy}>
            {isBusy ? 'Running…' : 'Run'}
          </button>
          <span class="quiet">Ctrl+Enter; reads only.</span>
          <select
            aria-label="Example queries"
            onChange={(event) => {
              if (event.currentTarget.value) setText(examples[Number(event.currentTarget.value)][1]);
              event.currentTarget.value = '';
            }}
          >
            <option value="">Examples…</option>
            {examples.map(([title], i) => (
              <option value={i}>{title}</option>
            ))}
          </select>
          {answer && (
            <span role="status">
              {plural(answer.rows.length, 'row')} in {count(Math.round(answer.elapsed_ms))} ms
              {answer.is_truncated ? ': there are more; this is where the console stops' : ''}
            </span>
          )}
        </div>
      </div>
      {problem && (
        <Empty>
          <span role="alert">{problem}</span>
        </Empty>
      )}
      {answer && <AnswerGrid answer={answer} />}
    </div>
  );
}

function AnswerGrid({ answer }: { answer: Answer }) {
  interface Row {
    id: number;
    cells: (string | number | null)[];
  }
  const [open, setOpen] = useState<Row | null>(null);
  const rows = answer.rows.map((cells, id) => ({ id, cells }));
  const columns: Column<Row>[] = answer.columns.map((title, i) => ({
    key: String(i),
    title: shorten(title, 60),
    width: answer.rows.some((row) => typeof row[i] === 'string' && (row[i] as string).length > 30) ? 'minmax(160px, 3fr)' : 'minmax(80px, 1fr)',
    align: answer.rows.length > 0 && answer.rows.every((row) => row[i] === null || typeof row[i] === 'number') ? 'right' : 'left',
    cell: (row) => (row.cells[i] === null ? <span class="quiet">NULL</span> : shorten(String(row.cells[i]), 300)),
  }));
  return (
    <>
      <div class="scroll-x">
        <div style={{ minWidth: `${answer.columns.length * 90}px` }}>
          <Grid
            label="Answer"
            rows={rows}
            columns={columns}
            rowKey={(row) => row.id}
            selected={open?.id ?? null}
            onSelect={setOpen}
            height={`min(${(rows.length + 1.4) * 26}px, calc(100vh - ${open ? 560 : 300}px))`}
            empty="The query has no rows."
          />
        </div>
      </div>
      {open && (
        <section class="detail" aria-label="Row">
          <dl class="row-detail">
            {answer.columns.map((title, i) => (
              <>
                <dt>{title}</dt>
                <dd>
                  <pre>{open.cells[i] === null ? 'NULL' : String(open.cells[i]).slice(0, 100_000)}</pre>
                </dd>
              </>
            ))}
          </dl>
        </section>
      )}
    </>
  );
}
