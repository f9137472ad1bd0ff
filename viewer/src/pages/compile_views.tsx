// The views of a compile that are not one record: summary, guards, metrics, symbolic shapes.
import { useMemo } from 'preact/hooks';
import { metadataOf, metadataOfRecord, type Artifact } from '../data/artifact';
import { useChunk, type Chunks } from '../data/chunks';
import { readFrames, rowsWhere, stackOf, type Compile, type Model } from '../data/model';
import { profilesOfCompile } from '../data/heat';
import { count, duration, headline, place, plural, shorten, utc } from '../lib/format';
import { href, setQuery, type Route } from '../route';
import { TextPane } from '../ui/artifact_view';
import { CacheTag, CompileLink, GuardHint, Place, Stack, Waiting } from '../ui/bits';
import { Passes } from '../ui/compare';
import { FilterBox } from '../ui/filter_box';
import { Grid, type Column } from '../ui/virtual';
import { pairHref } from './compare_pair';
import { CompileTuning, TritonKernels } from './compile_tuning';
export { Guards } from './compile_guards';

export interface Context {
  model: Model;
  compile: Compile;
  chunk: Chunks['compile'];
  artifacts: Artifact[];
  route: Route;
}

export function Summary({ context }: { context: Context }) {
  const { model, compile, chunk, artifacts } = context;
  const problems = useChunk('problems');
  const link = (recordId: number) => href(['compile', compile.id], { record: recordId });
  const cache = useChunk('cache');
  return (
    <div class="artifact">
      <Waiting pending={problems}>
        {(value) => {
          const recompiles = rowsWhere(value.recompile.compile_id, compile.id);
          const breaks = rowsWhere(value.graph_break.compile_id, compile.id);
          const failures = rowsWhere(value.failure.compile_id, compile.id);
          const t = value.recompile;
          return (
            <>
              {recompiles.length > 0 && (
                <section>
                  <h2>Why it was recompiled</h2>
                  {recompiles.map((i) => {
                    const prior = t.prior_compile_id[i] === null ? undefined : model.compileById.get(t.prior_compile_id[i]!);
                    return (
                      <p>
                        <span class="quiet">{prior ? <CompileLink compile={prior} /> : t.prior_label[i]} could not be reused: guard failed</span>{' '}
                        <code class="guard">{t.guard[i] ?? t.reason[i]}</code> <Place file={t.user_file[i]} line={t.user_line[i]} />{' '}
                        {prior && <a href={pairHref(prior, compile)}>compare the two</a>}
                        <GuardHint reason={t.reason[i] ?? ''} />
                      </p>
                    );
                  })}
                </section>
              )}
              {failures.length > 0 && (
                <section>
                  <h2>Failures and restarts</h2>
                  {failures.map((i) => (
                    <details open={failures.length < 4}>
                      <summary>
                        {value.failure.kind[i]} {value.failure.type[i]} {place(value.failure.user_file[i], value.failure.user_line[i])}
                      </summary>
                      <Place file={value.failure.user_file[i]} line={value.failure.user_line[i]} />
                      <pre class="reason-text">{value.failure.reason[i]}</pre>
                    </details>
                  ))}
                </section>
              )}
              {breaks.length > 0 && (
                <section>
                  <h2>Graph breaks</h2>
                  {breaks.map((i) => (
                    <details open={breaks.length < 3}>
                      <summary>
                        {shorten(headline(value.graph_break.reason[i]), 200)} {place(value.graph_break.user_file[i], value.graph_break.user_line[i])}
                      </summary>
                      <Place file={value.graph_break.user_file[i]} line={value.graph_break.user_line[i]} />
                      <pre class="reason-text">{value.graph_break.reason[i]}</pre>
                      <pre class="reason-text quiet-text">{value.graph_break.user_stack[i]}</pre>
                    </details>
                  ))}
                </section>
              )}
            </>
          );
        }}
      </Waiting>
      <section>
        <h2>Graphs</h2>
        <GraphList context={context} link={link} />
      </section>
      <CompileTuning model={model} compile={compile} />
      <TritonKernels chunk={chunk} compile={compile} />
      <section>
        <h2>Cache lookups</h2>
        <Waiting pending={cache}>{(value) => <CacheRows model={model} chunk={value} compile={compile} />}</Waiting>
      </section>
      {chunk.attempt.compile_id.some((id, i) => id === compile.id && chunk.attempt.restart_reason[i]) && (
        <section>
          <h2>Restarts of the analysis</h2>
          <ol>
            {rowsWhere(chunk.attempt.compile_id, compile.id).map((i) =>
              chunk.attempt.restart_reason[i] ? (
                <li>
                  attempt {chunk.attempt.attempt[i]}: <span class="quiet">{shorten(chunk.attempt.restart_reason[i]!, 600)}</span>
                </li>
              ) : null,
            )}
          </ol>
        </section>
      )}
      {compile.stackId !== null && (
        <section>
          <h2>Called from</h2>
          <Stack frames={stackOf(model.frames, compile.stackId)} />
        </section>
      )}
      {artifacts.length === 0 && <p class="empty">No record of this compile is in the log but its Chromium events: see Timeline.</p>}
    </div>
  );
}

// Calls of a graph that a profile measured.
function callsOf(cost: Chunks['cost'], graphId: number) {
  const rows = rowsWhere(cost.graph.graph_id, graphId);
  if (rows.length === 0) return <span class="quiet">no call in the profile</span>;
  const sum = (column: (number | null)[]) => rows.reduce((total, row) => total + (column[row] ?? 0), 0);
  return `${plural(sum(cost.graph.calls), 'call')}, ${duration(sum(cost.graph.inclusive_us))}`;
}

function GraphList({ context, link }: { context: Context; link: (recordId: number) => string }) {
  const profile = profilesOfCompile(context.model, context.compile)[0];
  const cost = useChunk(profile ? 'cost' : null, profile?.id);
  const graphs = useChunk('graphs');
  return (
    <Waiting pending={graphs}>
      {({ graph }) => {
        const rows = rowsWhere(graph.compile_id, context.compile.id);
        if (rows.length === 0) return <p class="quiet">None: the compile ended before Inductor had a graph, or another backend took it.</p>;
        return (
          <table class="plain">
            <thead>
              <tr>
                <th scope="col">Graph</th>
                <th scope="col">AOT id</th>
                <th scope="col">Texts</th>
                <th scope="col">Provenance</th>
                {cost.value && <th scope="col">Measured</th>}
              </tr>
            </thead>
            <tbody>
              {rows.map((i) => (
                <tr>
                  <th scope="row">
                    {graph.ordinal[i]} {graph.direction[i] ?? ''} {graph.subgraph_name[i] ?? ''}
                  </th>
                  <td>
                    <code>{graph.aot_id[i]}</code>
                  </td>
                  <td>
                    {context.artifacts
                      .filter((artifact) => artifact.graphId === graph.id[i])
                      .map((artifact) => (
                        <a class="inline" href={link(artifact.recordId)}>
                          {artifact.title}
                        </a>
                      ))}
                    <Passes artifacts={context.artifacts} graphId={graph.id[i]} />
                  </td>
                  <td>
                    {graph.provenance_content_id[i] !== null ? (
                      <a href={href(['provenance', graph.id[i]!])}>kernels ↔ Python</a>
                    ) : (
                      <span class="quiet">none logged</span>
                    )}
                  </td>
                  {cost.value && <td>{callsOf(cost.value, graph.id[i]!)}</td>}
                </tr>
              ))}
            </tbody>
            <caption class="below">
              <Passes artifacts={context.artifacts} graphId={null} />
            </caption>
          </table>
        );
      }}
    </Waiting>
  );
}

function CacheRows({ model, chunk, compile }: { model: Model; chunk: Chunks['cache']; compile: Compile }) {
  const t = chunk.cache_event;
  const rows = rowsWhere(t.compile_id, compile.id);
  if (rows.length === 0) return <p class="quiet">None: caching was off, or the compile never reached a cache.</p>;
  const rankCount = model.processes.length;
  return (
    <table class="plain">
      <thead>
        <tr>
          <th scope="col">Layer</th>
          <th scope="col">State</th>
          <th scope="col">Direction</th>
          <th scope="col">Key</th>
          <th scope="col" class="right">
            Saved
          </th>
          <th scope="col">Why</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((i) => (
          <tr>
            <th scope="row">
              <code>{t.layer[i]}</code>
            </th>
            <td>
              <CacheTag state={t.state[i] ?? ''} />
            </td>
            <td>{t.direction[i]}</td>
            <td class="ellipsis key" title={t.key[i] ?? ''}>
              <code>{t.key[i]}</code>
            </td>
            <td class="right">{duration(t.time_saved_ns[i] === null ? null : t.time_saved_ns[i]! / 1000)}</td>
            <td>
              {t.bypass_reason[i] ?? t.guard_expression[i] ?? ''}{' '}
              {rankCount > 1 && t.component_set_id[i] !== null && <a href={href(['ranks'], { tab: 'cache', event: t.id[i] })}>compare the key</a>}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function Metrics({ context }: { context: Context }) {
  const { chunk, compile } = context;
  const rows = rowsWhere(chunk.metric.compile_id, compile.id);
  const at = Math.min(rows.length - 1, Number(context.route.query.get('n') ?? 0) || 0);
  const parsed = useMemo(() => metadataOfRecord(chunk.record, chunk.metric.record_id[rows[at]]), [chunk, rows[at]]);
  const query = (context.route.query.get('q') ?? '').toLowerCase();
  const entries = Object.entries(parsed).filter(([name, value]) => value !== null && (!query || name.toLowerCase().includes(query)));
  const short = entries.filter(([, value]) => typeof value !== 'object' && String(value).length < 200);
  const long = entries.filter(([name]) => !short.some(([other]) => other === name));
  const show = (name: string, value: unknown) => {
    const number = typeof value === 'number' ? value : null;
    if (number !== null && /^(start|end)_time(_us)?$/.test(name)) return utc(name.endsWith('_us') ? number : number * 1e6);
    if (number !== null && /_us$/.test(name)) return duration(number);
    if (number !== null && /_s$/.test(name)) return duration(number * 1e6);
    return number === null ? String(value) : count(number);
  };
  return (
    <div class="artifact">
      <div class="toolbar">
        {rows.map((row, i) => (
          <a class={`tag ${i === at ? 'on' : ''}`} href={href(['compile', compile.id], { view: 'metrics', n: i })}>
            {chunk.metric.kind[row]}
          </a>
        ))}
        <FilterBox label="Filter metrics" placeholder="Filter metrics" value={context.route.query.get('q') ?? ''} onFilter={(q) => setQuery({ q })} />
      </div>
      <dl class="metrics">
        {short.map(([name, value]) => (
          <div>
            <dt>{name}</dt>
            <dd title={String(value)}>{show(name, value)}</dd>
          </div>
        ))}
      </dl>
      {long.map(([name, value]) => (
        <details>
          <summary>{name}</summary>
          <TextPane text={typeof value === 'string' ? value : JSON.stringify(value)} name="" label={name} lines={null} height="340px" />
        </details>
      ))}
    </div>
  );
}

export const shapeKinds = new Set([
  'create_symbol',
  'create_unbacked_symbol',
  'guard_added',
  'guard_added_fast',
  'symbolic_shape_specialization',
  'propagate_real_tensors',
  'expression_created',
]);

export function Shapes({ context, frames }: { context: Context; frames: ReturnType<typeof readFrames> }) {
  const rows = context.artifacts.filter((artifact) => shapeKinds.has(artifact.kind));
  const text = (value: unknown) => (typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value));
  const columns: Column<Artifact>[] = [
    { key: 'kind', title: 'What', width: '190px', cell: (row) => row.kind },
    {
      key: 'expression',
      title: 'Symbol or expression',
      width: 'minmax(160px, 2fr)',
      cell: (row) => {
        const data = metadataOf(row);
        return <code>{shorten(text(data.symbol ?? data.expr ?? data.result), 300)}</code>;
      },
    },
    {
      key: 'value',
      title: 'Value, range, source',
      width: 'minmax(160px, 2fr)',
      cell: (row) => {
        const data = metadataOf(row);
        return shorten([data.val, data.value, data.vr, data.source, data.sources, data.reason].map(text).filter(Boolean).join('  '), 300);
      },
    },
    {
      key: 'place',
      title: 'Python line',
      width: 'minmax(100px, 1fr)',
      cell: (row) => {
        const frame = row.userStackId === null ? undefined : frames.get(row.userStackId);
        return frame && <Place file={frame.file} line={frame.line} />;
      },
    },
  ];
  return (
    <div class="artifact">
      <Grid
        label="Symbolic shapes"
        rows={rows}
        columns={columns}
        rowKey={(row) => row.recordId}
        rowHref={(row) => href(['compile', context.compile.id], { record: row.recordId })}
        height="calc(100vh - 220px)"
        empty="No symbols: all shapes of this compile are static."
      />
    </div>
  );
}
