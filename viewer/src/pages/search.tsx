import { useMemo } from 'preact/hooks';
import { useChunk, type Chunks } from '../data/chunks';
import { filterCompiles } from '../data/compile_filter';
import type { Compile, Model } from '../data/model';
import { count, plural, shorten } from '../lib/format';
import { href, type Route } from '../route';
import { CompileLink, Empty, Place, Section, Status, Waiting } from '../ui/bits';

const limit = 40;

interface KernelHit {
  name: string;
  handle: number | null;
  id: number;
  graphId: number;
  compile: Compile | undefined;
  graphs: number;
}

function findKernels(model: Model, kernels: Chunks['kernels'], graphs: Chunks['graphs'], words: string[]): KernelHit[] {
  const t = kernels.kernel;
  const uses = new Map<number, number[]>();
  graphs.graph.provenance_content_id.forEach((content, i) => {
    if (content === null) return;
    const known = uses.get(content);
    if (known) known.push(i);
    else uses.set(content, [i]);
  });
  const hits: KernelHit[] = [];
  for (let i = 0; i < t.rows && hits.length < 500; i++) {
    const name = t.name[i] ?? '';
    const text = `${name}:${t.debug_handle[i] ?? ''}`.toLowerCase();
    if (!words.every((word) => text.includes(word))) continue;
    const rows = uses.get(t.content_id[i]!) ?? [];
    if (rows.length === 0) continue;
    const compileId = graphs.graph.compile_id[rows[0]];
    hits.push({ name, handle: t.debug_handle[i], id: t.id[i]!, graphId: graphs.graph.id[rows[0]]!, compile: compileId === null ? undefined : model.compileById.get(compileId), graphs: rows.length });
  }
  return hits;
}

function Results({ model, kernels, graphs, query }: { model: Model; kernels: Chunks['kernels']; graphs: Chunks['graphs']; query: string }) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const compiles = useMemo(() => filterCompiles(model.compiles, query), [model, query]);
  const found = useMemo(() => findKernels(model, kernels, graphs, words), [model, kernels, graphs, query]);
  const artifacts = kernels.artifact.title.map((title, i) => ({ title: title ?? '', compileId: kernels.artifact.compile_id[i], recordId: kernels.artifact.record_id[i], records: kernels.artifact.records[i] ?? 0, compiles: kernels.artifact.compiles[i] ?? 0 })).filter((artifact) => words.every((word) => artifact.title.toLowerCase().includes(word)));
  const keys = useMemo(() => {
    const rows: number[] = [];
    graphs.graph.cache_key.forEach((key, i) => {
      if (key && words.length > 0 && words.every((word) => word.length > 5 && key.toLowerCase().includes(word)) && rows.length < limit) rows.push(i);
    });
    return rows;
  }, [graphs, query]);
  const total = compiles.length + found.length + artifacts.length + keys.length;
  if (total === 0) return <Empty>Nothing is called “{shorten(query, 200)}”: compiles (id, function, file), kernels, artifacts and cache keys were searched. The text of graphs and code is searched on their own pages.</Empty>;
  return (
    <>
      <p class="quiet" role="status">
        {plural(compiles.length, 'compile')}, {found.length >= 500 ? '500 and more kernels' : plural(found.length, 'kernel')}, {plural(artifacts.length, 'kind')} of artifacts
      </p>
      {compiles.length > 0 && (
        <Section title="Compiles" aside={compiles.length > limit && <a href={href(['compiles'], { q: query })}>all {count(compiles.length)}</a>}>
          <ul class="hits">
            {compiles.slice(0, limit).map((compile) => (
              <li>
                <CompileLink compile={compile}>
                  <b>{compile.title}</b> <code>{shorten(compile.function ?? '', 120)}</code>
                </CompileLink>{' '}
                <Place file={compile.file} line={compile.line} /> <span class="quiet">{model.processes.length > 1 && model.processById.get(compile.processId)?.name}</span> <Status status={compile.status} />
              </li>
            ))}
          </ul>
        </Section>
      )}
      {found.length > 0 && (
        <Section title="Kernels">
          <ul class="hits">
            {found.slice(0, limit).map((kernel) => (
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
  const query = route.query.get('q') ?? '';
  const kernels = useChunk('kernels');
  const graphs = useChunk('graphs');
  return (
    <div class="page">
      <h1>
        Search <span class="quiet">{shorten(query, 200)}</span>
      </h1>
      {query.trim() === '' ? <Empty>Type in the search box above: / takes you there.</Empty> : <Waiting pending={kernels}>{(value) => <Waiting pending={graphs}>{(other) => <Results model={model} kernels={value} graphs={other} query={query} />}</Waiting>}</Waiting>}
    </div>
  );
}
