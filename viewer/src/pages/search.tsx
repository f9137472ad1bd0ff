import { useEffect, useMemo, useState } from 'preact/hooks';
import { useChunk, type Chunks } from '../data/chunks';
import { filterCompiles } from '../data/compile_filter';
import type { Compile, Model } from '../data/model';
import { count, plural, shorten } from '../lib/format';
import { href, type Route } from '../route';
import { CompileLink, Empty, Place, Section, Status, Waiting } from '../ui/bits';
import { memo } from '../ui/virtual';

const limit = 40;

interface KernelHit {
  name: string;
  handle: number | null;
  id: number;
  graphId: number;
  compile: Compile | undefined;
  graphs: number;
}

// The kernels of graphs that were compiled here, with the text that is searched, made once.
function listKernels(model: Model, kernels: Chunks['kernels'], graphs: Chunks['graphs']): (KernelHit & { text: string })[] {
  const t = kernels.kernel;
  const uses = new Map<number, number[]>();
  graphs.graph.provenance_content_id.forEach((content, i) => {
    if (content === null) return;
    const known = uses.get(content);
    if (known) known.push(i);
    else uses.set(content, [i]);
  });
  return t.id.flatMap((id, i) => {
    const rows = uses.get(t.content_id[i]!);
    if (!rows) return [];
    const name = t.name[i] ?? '';
    const handle = t.debug_handle[i];
    const compileId = graphs.graph.compile_id[rows[0]];
    return { name, handle, id: id!, graphId: graphs.graph.id[rows[0]]!, compile: compileId === null ? undefined : model.compileById.get(compileId), graphs: rows.length, text: `${name}:${handle ?? ''}`.toLowerCase() };
  });
}

// Typing changes few of the hits: those that stay are not drawn again.
const CompileHit = memo(({ compile, process }: { compile: Compile; process: string | undefined }) => (
  <li>
    <CompileLink compile={compile}>
      <b>{compile.title}</b> <code>{shorten(compile.function ?? '', 120)}</code>
    </CompileLink>{' '}
    <Place file={compile.file} line={compile.line} /> <span class="quiet">{process}</span> <Status status={compile.status} />
  </li>
));

const KernelRow = memo(({ kernel }: { kernel: KernelHit }) => (
  <li>
    <a href={href(['provenance', kernel.graphId], { sel: `kernel:${kernel.id}` })}>
      <code>
        {shorten(kernel.name, 160)}
        {kernel.handle === null ? '' : `:${kernel.handle}`}
      </code>
    </a>{' '}
    <span class="quiet">
      {kernel.compile && `${kernel.compile.title} ${shorten(kernel.compile.function ?? '', 60)}`} {kernel.graphs > 1 && `and ${plural(kernel.graphs - 1, 'more graph')}`}
    </span>
  </li>
));

function Results({ model, kernels, graphs, query }: { model: Model; kernels: Chunks['kernels']; graphs: Chunks['graphs']; query: string }) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const isHit = (text: string) => words.every((word) => text.includes(word));
  const compiles = useMemo(() => filterCompiles(model.compiles, query), [model, query]);
  const allKernels = useMemo(() => listKernels(model, kernels, graphs), [model, kernels, graphs]);
  const found = useMemo(() => allKernels.filter((kernel) => isHit(kernel.text)), [allKernels, query]);
  const artifacts = kernels.artifact.title.map((title, i) => ({ title: title ?? '', compileId: kernels.artifact.compile_id[i], recordId: kernels.artifact.record_id[i], records: kernels.artifact.records[i] ?? 0, compiles: kernels.artifact.compiles[i] ?? 0 })).filter((artifact) => isHit(artifact.title.toLowerCase()));
  const keys = useMemo(() => {
    const rows: number[] = [];
    if (words.length === 0 || words.some((word) => word.length <= 5)) return rows;
    graphs.graph.cache_key.forEach((key, i) => {
      if (key && rows.length < limit && isHit(key.toLowerCase())) rows.push(i);
    });
    return rows;
  }, [graphs, query]);
  const total = compiles.length + found.length + artifacts.length + keys.length;
  if (total === 0) return <Empty>Nothing is called “{shorten(query, 200)}”: compiles (id, function, file), kernels, artifacts and cache keys were searched. The text of graphs and code is searched on their own pages.</Empty>;
  return (
    <>
      <p class="quiet" role="status">
        {plural(compiles.length, 'compile')}, {plural(found.length, 'kernel')}, {plural(artifacts.length, 'kind')} of artifacts
      </p>
      {compiles.length > 0 && (
        <Section title="Compiles" aside={compiles.length > limit && <a href={href(['compiles'], { q: query })}>all {count(compiles.length)}</a>}>
          <ul class="hits">
            {compiles.slice(0, limit).map((compile) => (
              <CompileHit key={compile.id} compile={compile} process={model.processes.length > 1 ? model.processById.get(compile.processId)?.name : undefined} />
            ))}
          </ul>
        </Section>
      )}
      {found.length > 0 && (
        <Section title="Kernels">
          <ul class="hits">
            {found.slice(0, limit).map((kernel) => (
              <KernelRow key={kernel.id} kernel={kernel} />
            ))}
          </ul>
        </Section>
      )}
      {artifacts.length > 0 && (
        <Section title="Artifacts and records">
          <ul class="hits">
            {artifacts.slice(0, limit).map((artifact) => (
              <li>
                {artifact.compileId === null ? <span>{artifact.title}</span> : <a href={href(['compile', artifact.compileId], { record: artifact.recordId })}>{artifact.title}</a>}{' '}
                <span class="quiet">
                  {plural(artifact.records, 'record')} in {plural(artifact.compiles, 'compile')}
                </span>
              </li>
            ))}
          </ul>
        </Section>
      )}
      {keys.length > 0 && (
        <Section title="Cache keys">
          <ul class="hits">
            {keys.map((i) => {
              const compile = model.compileById.get(graphs.graph.compile_id[i]!);
              return (
                <li>
                  {compile && <CompileLink compile={compile} />} <code>{graphs.graph.cache_key[i]}</code>
                </li>
              );
            })}
          </ul>
        </Section>
      )}
    </>
  );
}

export function SearchPage({ model, route }: { model: Model; route: Route }) {
  const typed = route.query.get('q') ?? '';
  // Effects run behind a frame: a letter is seen before what it finds, and of letters in a row only the last is searched for.
  const [query, setQuery] = useState(typed);
  useEffect(() => setQuery(typed), [typed]);
  const kernels = useChunk('kernels');
  const graphs = useChunk('graphs');
  return (
    <div class="page">
      <h1>
        Search <span class="quiet">{shorten(typed, 200)}</span>
      </h1>
      {query.trim() === '' ? <Empty>Type in the search box above: / takes you there.</Empty> : <Waiting pending={kernels}>{(value) => <Waiting pending={graphs}>{(other) => <Results model={model} kernels={value} graphs={other} query={query} />}</Waiting>}</Waiting>}
    </div>
  );
}
