import { useLayoutEffect, useMemo, useState } from 'preact/hooks';
import { compileArtifacts, type Artifact } from '../data/artifact';
import { markOf } from '../data/changes';
import { load, useChunk, type Chunks } from '../data/chunks';
import { readFrames, rowsWhere, useBlock, type Compile, type Model } from '../data/model';
import { twinName, twinsOf } from '../data/twins';
import { bytes, count, duration, plural, shorten, utc } from '../lib/format';
import { href, type Route } from '../route';
import { ArtifactView } from '../ui/artifact_view';
import { CompileLink, Empty, PhaseBar, Place, Status, Waiting, phases } from '../ui/bits';
import { ComparePicker } from '../ui/compare';
import { RecordList, type RecordRow } from '../ui/record_list';
import { pairHref } from './compare_pair';
import { Measured, Ops, measuredRows } from './compile_measured';
import { Guards, Metrics, Shapes, Summary, shapeKinds, type Context } from './compile_views';

function Head({ model, compile }: { model: Model; compile: Compile }) {
  const process = model.processById.get(compile.processId);
  const total = (compile.durationUs ?? 0) + (compile.backwardUs ?? 0);
  const twins = twinsOf(model, compile);
  const siblings = model.allCompiles.filter(
    (other) => other.processId === compile.processId && other.frameId !== null && other.frameId === compile.frameId && other.id !== compile.id,
  );
  return (
    <header class="compile-head">
      <h1>
        <span class="compile-id">{compile.title}</span>{' '}
        <code>{shorten(compile.function ?? (compile.isSynthetic ? 'records without a compile id' : 'unknown function'), 300)}</code>{' '}
        <Status status={compile.status} />
      </h1>
      <p class="quiet">
        <Place file={compile.file} line={compile.line} /> <a href={href(['process', compile.processId])}>{process?.name}</a>
        {compile.startUs !== null && <span title={utc(model.originUs + compile.startUs)}> · started {duration(compile.startUs, true)}</span>}
        {compile.attempts > 1 && ` · ${plural(compile.attempts, 'attempt')}`}
        {compile.graphs > 0 && ` · ${plural(compile.graphs, 'graph')}`}
        {compile.ops !== null && ` · ${plural(compile.ops, 'op')}`}
        {compile.guards !== null && ` · ${plural(compile.guards, 'guard')}`}
      </p>
      {total > 0 && (
        <p class="times">
          <b>{duration(total)}</b> <PhaseBar compile={compile} scaleUs={total} />
          {phases.map((phase, i) =>
            compile[phase.key] ? (
              <span class="quiet">
                <i class={`swatch phase-${i}`} /> {phase.name} {duration(compile[phase.key])}
              </span>
            ) : null,
          )}
        </p>
      )}
      {(twins.length > 0 || siblings.length > 0) && (
        <p class="neighbours">
          {twins.length > 0 && (
            <span>
              <span class="quiet">{compile.title} of:</span>{' '}
              {twins.slice(0, 24).map((other) => (
                <>
                  <CompileLink compile={other}>{twinName(model, compile, other)}</CompileLink>{' '}
                </>
              ))}
              {twins.length > 24 && `and ${twins.length - 24} more `}
              <a href={pairHref(twins[0], compile)}>compare</a>
            </span>
          )}
          {siblings.length > 0 && (
            <span>
              <span class="quiet">Same frame:</span>{' '}
              {siblings.slice(0, 24).map((other) => (
                <>
                  <CompileLink compile={other} />{' '}
                </>
              ))}
              <a href={pairHref(siblings[0], compile)}>compare</a>
            </span>
          )}
        </p>
      )}
      {compile.failReason && (
        <p class="failure">
          <b>{compile.failType}</b> {shorten(compile.failReason, 400)}
        </p>
      )}
    </header>
  );
}

// ---- the list at the left: everything in the order it happened

const quietKinds = new Set(['describe_tensor', 'describe_storage', 'describe_source']);

function Records({ context, current }: { context: Context; current: Artifact | undefined }) {
  const { compile, artifacts } = context;
  const [filter, setFilter] = useState('');
  const [withQuiet, setWithQuiet] = useState(false);
  const isQuiet = (artifact: Artifact) => quietKinds.has(artifact.kind) || shapeKinds.has(artifact.kind);
  const quiet = useMemo(() => artifacts.filter(isQuiet).length, [artifacts]);
  const all = useChunk(compile.graphs > 1 ? 'graphs' : null).value?.graph;
  const graphs = useMemo(() => graphsOf(artifacts, all), [artifacts, all]);
  const rows = useMemo(() => {
    const needle = filter.toLowerCase();
    const shown = artifacts.filter((artifact) => artifact === current || ((withQuiet || !isQuiet(artifact)) && artifact.title.toLowerCase().includes(needle)));
    return recordRows(compile, shown, graphs, current);
  }, [compile, artifacts, graphs, current, filter, withQuiet]);
  return (
    <>
      <div class="side-tools">
        <input
          type="search"
          placeholder="Filter artifacts"
          aria-label="Filter artifacts"
          value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
      </div>
      <RecordList rows={rows} />
      {quiet > 0 && (
        <label class="quiet side-check">
          <input type="checkbox" checked={withQuiet} onChange={(event) => setWithQuiet(event.currentTarget.checked)} /> {plural(quiet, 'input/symbol record')}
        </label>
      )}
    </>
  );
}

// The steps of a compile in their order, by the names of what they log.
const steps: [string, RegExp][] = [
  ['Caches', /cache/],
  ['Dynamo', /^(dynamo|graph_break|recompile|compile_stack|torch_dynamo|link)|guards?\b|bytecode/],
  ['AOTAutograd', /^(aot|joint|fw_)|autograd|joint_graph|partition/],
  ['Inductor', /inductor|pre_grad|post_grad|fx_graph|output_code|triton|kernel|graph_dump/],
];
const stepOrder = ['Dynamo', 'AOTAutograd', 'Inductor', 'Caches', 'Other records'];

function stepOf({ title }: Artifact): string {
  return steps.find(([, pattern]) => pattern.test(title))?.[0] ?? 'Other records';
}

// Of a compile with several graphs, which graph each record of Inductor is of: the records of a graph follow one another, those that name it last.
function graphsOf(artifacts: Artifact[], graph: Chunks['graphs']['graph'] | undefined): Map<Artifact, string> {
  const names = new Map<number, string>();
  const uses = new Map<string, number>();
  const order = new Map<Artifact, string>();
  for (const artifact of artifacts) {
    const at = artifact.graphId === null || names.has(artifact.graphId) || !graph ? -1 : graph.id.indexOf(artifact.graphId);
    if (at < 0) continue;
    const direction = graph!.direction[at] ?? 'graph';
    uses.set(direction, (uses.get(direction) ?? 0) + 1);
    names.set(artifact.graphId!, uses.get(direction) === 1 ? direction : `${direction} ${uses.get(direction)}`);
  }
  if (names.size < 2) return order;
  let name = '';
  for (const artifact of [...artifacts].reverse()) {
    if (stepOf(artifact) !== 'Inductor' || /pre_grad/.test(artifact.title)) continue;
    if (artifact.graphId !== null) name = names.get(artifact.graphId) ?? name;
    order.set(artifact, name);
  }
  // What follows the last text of a graph is of that graph.
  name = '';
  for (const artifact of artifacts) {
    if (artifact.graphId !== null) name = names.get(artifact.graphId) ?? name;
    else if (name && order.has(artifact) && /provenance|kernel/.test(artifact.title)) order.set(artifact, name);
  }
  return order;
}

// By attempt, step and graph, within these in the order of the log.
function recordRows(compile: Compile, artifacts: Artifact[], graphs: Map<Artifact, string>, current: Artifact | undefined): RecordRow[] {
  const rows: RecordRow[] = [];
  const hasAttempts = compile.attempts > 1 || artifacts.some((artifact) => (artifact.attempt ?? 0) > 0);
  let attempt = 0;
  const placed = artifacts.map((artifact, i) => ({
    artifact,
    i,
    attempt: (attempt = hasAttempts ? (artifact.attempt ?? attempt) : 0),
    step: stepOf(artifact),
  }));
  placed.sort((a, b) => a.attempt - b.attempt || stepOrder.indexOf(a.step) - stepOrder.indexOf(b.step) || a.i - b.i);
  let head = '';
  for (const { artifact, attempt: own, step } of placed) {
    const title = `${hasAttempts ? `attempt ${own}: ` : ''}${step} ${graphs.get(artifact) ?? ''}`.trim();
    if (title !== head) rows.push({ key: `before ${artifact.recordId}`, title });
    head = title;
    rows.push({
      key: artifact.recordId,
      title: shorten(artifact.title.replace(/^inductor_provenance_tracking_/, 'provenance: '), 120), // they are cut at the end
      note: `${artifact.subgraph ? `${artifact.subgraph} ` : ''}${artifact.text ? bytes(artifact.text.sizeBytes) : ''}`,
      link: href(['compile', compile.id], { record: artifact.recordId }),
      isQuiet: !artifact.text,
      isCurrent: artifact === current,
      mark: markOf('compile.record', artifact.recordId),
    });
  }
  return rows;
}

function Body({ context }: { context: Context }) {
  const { compile, chunk, artifacts, route } = context;
  const frames = useMemo(() => readFrames(chunk.frame), [chunk]);
  const recordId = Number(route.query.get('record'));
  const view = route.query.get('view') ?? 'summary';
  const current = artifacts.find((artifact) => artifact.recordId === recordId);
  const guardRows = rowsWhere(chunk.guard_tree.compile_id, compile.id);
  const metrics = rowsWhere(chunk.metric.compile_id, compile.id).length;
  const shapes = artifacts.filter((artifact) => shapeKinds.has(artifact.kind)).length;
  const ops = rowsWhere(chunk.op.compile_id, compile.id).length;
  const hasMeasured = Object.values(measuredRows(chunk, compile.id)).some((rows) => rows.length > 0);
  const views = [
    { key: 'summary', title: 'Summary', shown: true },
    { key: 'guards', title: 'Guards', count: null, shown: guardRows.length > 0 },
    { key: 'metrics', title: 'Metrics', count: metrics > 1 ? metrics : null, shown: metrics > 0 },
    { key: 'ops', title: 'Ops', count: ops, shown: ops > 0 },
    { key: 'measured', title: 'Measured', count: null, shown: hasMeasured },
    { key: 'shapes', title: 'Symbolic shapes', count: shapes, shown: shapes > 0 },
  ];
  const graphs = useChunk(ops > 0 ? 'graphs' : null).value?.graph;
  const graphName = (id: number | null) => {
    const at = id === null || !graphs ? -1 : graphs.id.indexOf(id);
    return at < 0 ? '' : (graphs!.aot_id[at] ?? graphs!.direction[at] ?? `graph ${graphs!.ordinal[at]}`);
  };
  const guardContent = guardRows.length > 0 ? chunk.guard_tree.content_id[guardRows[guardRows.length - 1]]! : 0;
  return (
    <div class="split">
      <nav class="side" aria-label="Artifacts of this compile">
        <ul class="records views">
          {views
            .filter((entry) => entry.shown)
            .map((entry) => (
              <li>
                <a
                  href={href(['compile', compile.id], { view: entry.key === 'summary' ? null : entry.key })}
                  aria-current={!current && entry.key === view ? 'true' : undefined}
                >
                  <b>{entry.title}</b>
                  <span class="quiet">{entry.count ? count(entry.count) : ''}</span>
                </a>
              </li>
            ))}
        </ul>
        <Records context={context} current={current} />
      </nav>
      {current ? (
        <ArtifactView
          key={current.recordId}
          artifact={current}
          frames={frames}
          lines={route.query.get('lines')}
          tools={current.text && <ComparePicker model={context.model} compile={compile} artifact={current} artifacts={artifacts} />}
        />
      ) : recordId > 0 ? (
        <Empty>Record {recordId} is not part of this compile.</Empty>
      ) : view === 'guards' && guardRows.length > 0 ? (
        <Guards contentId={guardContent} route={route} />
      ) : view === 'metrics' && metrics > 0 ? (
        <Metrics context={context} />
      ) : view === 'ops' && ops > 0 ? (
        <Ops chunk={chunk} compileId={compile.id} graphName={graphName} route={route} />
      ) : view === 'measured' && hasMeasured ? (
        <div class="artifact">
          <Measured tables={chunk} compileId={compile.id} />
        </div>
      ) : view === 'shapes' && shapes > 0 ? (
        <Shapes context={context} frames={frames} />
      ) : (
        <Summary context={context} />
      )}
    </div>
  );
}

export function CompilePage({ model, route, id }: { model: Model; route: Route; id: number }) {
  const compile = model.compileById.get(id);
  const chunk = useBlock('compile', compile ? id : null);
  // The data of the summary, loaded at the same time.
  useLayoutEffect(() => (['problems', 'cache', 'graphs'] as const).forEach((stem) => void load(stem)), []);
  const artifacts = useMemo(() => (chunk.value ? compileArtifacts(chunk.value, id) : []), [chunk.value, id]);
  if (!compile) {
    return (
      <Empty>
        There is no compile {String(id)} in this run. <a href={href(['compiles'])}>All compiles</a>
      </Empty>
    );
  }
  return (
    <div class="page wide">
      <Head model={model} compile={compile} />
      <Waiting pending={chunk}>{(value) => <Body context={{ model, compile, chunk: value, artifacts, route }} />}</Waiting>
    </div>
  );
}
