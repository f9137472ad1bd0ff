import { useMemo } from 'preact/hooks';
import { isServed, useChunk, type Chunks } from '../data/chunks';
import { filterCompiles } from '../data/compile_filter';
import type { Compile, Model } from '../data/model';
import { prefixWords, readQuery, useTextSearch } from '../data/search';
import { count, plural, shorten } from '../lib/format';
import { remember } from '../lib/remember';
import { useSteps } from '../lib/schedule';
import { href, type Route } from '../route';
import { CompileLink, Empty, Place, Section, Status, Waiting } from '../ui/bits';
import { memo } from '../ui/virtual';
import { FoundTexts } from './search_texts';
import { FoundLogLines } from './torch_logs';

const limit = 40;

interface KernelHit {
  name: string;
  handle: number | null;
  id: number;
  graphId: number;
  compile: Compile | undefined;
  direction: string | null; // of the graph
  graphs: number;
}

// The kernels of graphs that were compiled here, with the text that is searched, made once.
const listKernels = remember((kernels: Chunks['kernels'], model: Model, graphs: Chunks['graphs']): (KernelHit & { text: string })[] => {
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
    return {
      name,
      handle,
      id: id!,
      graphId: graphs.graph.id[rows[0]]!,
      compile: compileId === null ? undefined : model.compileById.get(compileId),
      direction: graphs.graph.direction[rows[0]],
      graphs: rows.length,
      text: `${name}:${handle ?? ''}`.toLowerCase(),
    };
  });
});

const listArtifacts = remember(({ artifact: t }: Chunks['kernels']) =>
  t.title.map((title, i) => ({
    title: title ?? '',
    text: (title ?? '').toLowerCase(),
    compileId: t.compile_id[i],
    recordId: t.record_id[i],
    records: t.records[i] ?? 0,
    compiles: t.compiles[i] ?? 0,
  })),
);

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
      {kernel.compile && `${kernel.compile.title} ${shorten(kernel.compile.function ?? '?', 60)}()`} {kernel.direction && `· ${kernel.direction} graph`}{' '}
      {kernel.graphs > 1 && `and ${plural(kernel.graphs - 1, 'more graph')}`}
    </span>
  </li>
));

function Names({
  model,
  kernels,
  graphs,
  query,
  hasTexts,
}: {
  model: Model;
  kernels: Chunks['kernels'];
  graphs: Chunks['graphs'];
  query: string;
  hasTexts: boolean;
}) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const isHit = (text: string) => words.every((word) => text.includes(word));
  const compiles = useMemo(() => filterCompiles(model.compiles, query), [model, query]);
  const found = useMemo(() => listKernels(kernels, model, graphs).filter((kernel) => isHit(kernel.text)), [kernels, query]);
  const artifacts = useMemo(() => listArtifacts(kernels).filter((artifact) => isHit(artifact.text)), [kernels, query]);
  const keys = useMemo(() => {
    const rows: number[] = [];
    if (words.length === 0 || words.some((word) => word.length <= 5)) return rows;
    graphs.graph.cache_key.forEach((key, i) => {
      if (key && rows.length < limit && isHit(key.toLowerCase())) rows.push(i);
    });
    return rows;
  }, [graphs, query]);
  const shown = useSteps(query, 14, limit); // the sections' first
  const total = compiles.length + found.length + artifacts.length + keys.length;
  if (total === 0 && hasTexts) return null;
  if (total === 0)
    return <Empty>Nothing is called “{shorten(query, 200)}”: compiles (id, function, file), kernels, artifacts and cache keys were searched.</Empty>;
  return (
    <>
      <p class="quiet" role="status">
        {plural(compiles.length, 'compile')}, {plural(found.length, 'kernel')}, {plural(artifacts.length, 'kind')} of artifacts
      </p>
      {compiles.length > 0 && (
        <Section title="Compiles" aside={compiles.length > limit && <a href={href(['compiles'], { q: query })}>all {count(compiles.length)}</a>}>
          <ul class="hits">
            {compiles.slice(0, shown).map((compile) => (
              <CompileHit
                key={compile.id}
                compile={compile}
                process={model.processes.length > 1 ? model.processById.get(compile.processId)?.name : undefined}
              />
            ))}
          </ul>
        </Section>
      )}
      {found.length > 0 && (
        <Section title="Kernels">
          <ul class="hits">
            {found.slice(0, shown).map((kernel) => (
              <KernelRow key={kernel.id} kernel={kernel} />
            ))}
          </ul>
        </Section>
      )}
      {artifacts.length > 0 && (
        <Section title="Artifacts and records">
          <ul class="hits">
            {artifacts.slice(0, shown).map((artifact) => (
              <li>
                {artifact.compileId === null ? (
                  <span>{artifact.title}</span>
                ) : (
                  <a href={href(['compile', artifact.compileId], { record: artifact.recordId })}>{artifact.title}</a>
                )}{' '}
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
            {keys.slice(0, shown).map((i) => {
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

// "common.py:48" is a place, whether or not a text names it.
function PlaceHit({ text }: { text: string }) {
  const match = /^(\S+\.py):(\d+)$/.exec(text);
  if (!match) return null;
  return (
    <p>
      Line of source: <Place file={match[1]} line={Number(match[2])} />
    </p>
  );
}

export function SearchPage({ model, route }: { model: Model; route: Route }) {
  const query = route.query.get('q') ?? '';
  const asked = readQuery(query);
  const kernels = useChunk('kernels');
  const graphs = useChunk('graphs');
  const found = useTextSearch(model, asked);
  const isSearched = asked.texts && asked.text.length >= 2 && (isServed || !asked.isExpression);
  const hasTexts = (found.value?.texts.length ?? 0) > 0;
  return (
    <div class="page">
      <h1>
        Search <span class="quiet">{shorten(query, 200)}</span>
      </h1>
      {query.trim() === '' ? (
        <Empty>
          Type in the search box above: / takes you there. Names, graphs, generated code, guards and other texts of the log are searched; a first word restricts
          it: {prefixWords.join(' ')}; re:… or /…/ is a regular expression, which a served page looks for in each line
        </Empty>
      ) : (
        <>
          <PlaceHit text={asked.text} />
          {asked.isExpression && !isServed && (
            <Empty>
              A regular expression needs the database: run <code>tlparse search</code>, or <code>tlparse serve</code> on this directory.
            </Empty>
          )}
          {asked.names && (
            <Waiting pending={kernels}>
              {(value) => (
                <Waiting pending={graphs}>
                  {(other) => <Names model={model} kernels={value} graphs={other} query={asked.text} hasTexts={isSearched && (hasTexts || found.share < 1)} />}
                </Waiting>
              )}
            </Waiting>
          )}
          {isSearched && found.value && found.share < 1 && <p class="loading">Searching… {Math.round(100 * found.share)} %</p>}
          {isSearched && (
            <Waiting pending={found}>
              {(answer) =>
                answer.texts.length > 0 ? (
                  <FoundTexts model={model} answer={answer} needle={asked.text} />
                ) : asked.names || found.share < 1 ? null : (
                  <Empty>
                    No {asked.kind || 'text'} of the log {asked.isExpression ? 'matches' : 'holds'} “{shorten(asked.text, 200)}”.
                  </Empty>
                )
              }
            </Waiting>
          )}
          {isSearched && !asked.isExpression && (asked.kind === '' || asked.kind === 'log') && <FoundLogLines model={model} needle={asked.text} />}
        </>
      )}
    </div>
  );
}
