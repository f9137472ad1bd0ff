import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { compileArtifacts, type Artifact } from '../data/artifact';
import { useAsync, useChunk, type Chunks } from '../data/chunks';
import { isShown, loadBlock, loadText, type Compile, type Model } from '../data/model';
import { buildLinks, levels, panesOf, readGraph, related, type GraphLines, type Level, type Links } from '../data/provenance';
import { loadHeat, profilesOfCompile, type Heat } from '../data/heat';
import { caveatsOf, windowText, type Profile } from '../data/profiles';
import { baseName, count, duration, percent, plural, shorten } from '../lib/format';
import { languageOf } from '../lib/highlight';
import { href, setQuery, type Route } from '../route';
import { CompileLink, Empty, Waiting } from '../ui/bits';
import { onKeys, useStored } from '../ui/keys';
import { Panes } from '../ui/panes';
import { TextView, type Mark } from '../ui/text_view';
import { GraphTable, graphRows } from './provenance_list';
import './provenance.css';
import { heatOfLines, hottestOf, linesOfCode, linesOfGraph, linesOfSources, tagsOf, type LineHeat, type PaneLines } from './provenance_lines';

interface Loaded {
  chunk: Chunks['provenance'];
  contentId: number;
  links: Links;
  pre: string | null;
  post: string | null;
  code: string | null;
  preGraph: GraphLines | null;
  postGraph: GraphLines | null;
  panes: { pre: Artifact | null; post: Artifact | null; code: Artifact | null };
}

async function loadGraph(compile: Compile, graphId: number, contentId: number, codeRecordId: number | null): Promise<Loaded> {
  const [chunk, compileChunk] = await Promise.all([loadBlock('provenance', contentId), loadBlock('compile', compile.id)]);
  const panes = panesOf(compileArtifacts(compileChunk, compile.id), graphId, codeRecordId);
  const text = async (artifact: Artifact | null) => (artifact?.text ? (await loadText(artifact.text)).content : null);
  const [pre, post, code] = await Promise.all([text(panes.pre), text(panes.post), text(panes.code)]);
  const preGraph = pre === null ? null : readGraph(pre);
  const postGraph = post === null ? null : readGraph(post);
  return { chunk, contentId, links: buildLinks(chunk, contentId, preGraph, postGraph), pre, post, code, preGraph, postGraph, panes };
}

// ---- which lines of each pane show which entities

// The times in the margins, and their total.
function HeatLegend({ heat, profiles, graphs }: { heat: Heat; profiles: Profile[]; graphs: string }) {
  return (
    <p class="heat-legend">
      <i class="swatch" /> In the margins: share of {duration(heat.totalUs)}, the time of all kernels in{' '}
      {profiles.length > 1 ? (
        <select aria-label="Profile" value={heat.profile.id} onChange={(event) => setQuery({ profile: event.currentTarget.value })}>
          {profiles.map((profile) => (
            <option value={profile.id}>{shorten(profile.name, 80)}</option>
          ))}
        </select>
      ) : (
        <b title={heat.profile.path}>{shorten(heat.profile.name, 80)}</b>
      )}{' '}
      ({windowText(heat.cost)}). This graph:{' '}
      {heat.graphUs > 0 ? `${percent(heat.graphUs / Math.max(heat.totalUs, 1e-9))}, ${duration(heat.graphUs)}` : 'no kernel of it was measured'}. A fused
      kernel’s time is divided by its nodes, and among Python lines by the nodes that each contributed; in the code it stands at the calls and, their sum, at
      the definition. {caveatsOf(heat.profile).join(' ')} <a href={href(['cost'], { profile: heat.profile.id, q: graphs })}>as a table</a>
    </p>
  );
}

interface PaneProps {
  title: string;
  text: string | null;
  name: string;
  lines: PaneLines;
  pinned: Set<string>;
  pin: string | null;
  hovered: Set<string>;
  hover: string | null;
  onHover: (entity: string | null) => void;
  empty: string;
  link?: string;
  heat?: LineHeat;
  wrap: boolean;
  gutter?: string[];
  links: Links;
}

function Pane({ title, text, name, lines, pinned, pin, hovered, hover, onHover, empty, link, heat, wrap, gutter, links }: PaneProps) {
  const tags = useMemo(() => tagsOf(links, lines), [links, lines]);
  const marks = new Map<number, Mark>();
  for (const entity of pinned) {
    const [from, to] = lines.bodies?.get(entity) ?? [0, -1];
    for (let line = from; line <= to; line++) marks.set(line, 'body');
  }
  const mark = (entities: Set<string>, own: string | null, strong: 'pin' | 'hover', weak: 'linked' | 'hover') => {
    for (const entity of entities) for (const line of lines.linesOfEntity.get(entity) ?? []) marks.set(line, entity === own ? strong : weak);
  };
  mark(pinned, pin, 'pin', 'linked');
  mark(hovered, hover, 'hover', 'hover');
  // The first linked line comes into view, unless the pane is where the selection was made.
  const linkedLines = [...pinned].flatMap((entity) => lines.linesOfEntity.get(entity) ?? []).sort((a, b) => a - b);
  const [at, setAt] = useState(0);
  useEffect(() => setAt(0), [pin]);
  const step = useRef<(by: number) => unknown>(() => undefined);
  step.current = (by) => linkedLines.length > 0 && setAt((old) => (old + by + linkedLines.length) % linkedLines.length);
  useEffect(() => onKeys({ n: () => step.current(1), p: () => step.current(-1) }), []);
  return (
    <section class="pane">
      <header>
        <h2>{title}</h2>
        {link && <a href={link}>{name}</a>}
        {pin && text !== null && (
          <span class="quiet pane-steps">
            {linkedLines.length > 1 && (
              <button class="link" aria-label={`Previous linked line of ${title}`} title="Previous linked line: p" onClick={() => step.current(-1)}>
                ◂
              </button>
            )}
            {linkedLines.length > 1 ? `${at + 1} of ${count(linkedLines.length)} linked` : linkedLines.length === 1 ? '1 linked' : 'nothing linked'}
            {linkedLines.length > 1 && (
              <button class="link" aria-label={`Next linked line of ${title}`} title="Next linked line: n" onClick={() => step.current(1)}>
                ▸
              </button>
            )}
          </span>
        )}
      </header>
      {text === null ? (
        <Empty>{empty}</Empty>
      ) : (
        <TextView
          label={title}
          text={text}
          language={title === 'Python source' ? 'python' : languageOf(name, text)}
          marks={marks}
          tags={tags}
          heat={heat}
          wrap={wrap}
          gutter={gutter}
          reveal={linkedLines[at] ?? linkedLines[0] ?? (heat && hottestOf(heat))}
          onHover={(line) => onHover(line === null ? null : (lines.entityOfLine.get(line) ?? null))}
          onPick={(line) => {
            const entity = lines.entityOfLine.get(line);
            if (entity) setQuery({ sel: entity === pin ? null : entity }, true);
          }}
        />
      )}
    </section>
  );
}

function describe(links: Links, entity: string): string {
  const at = entity.indexOf(':');
  const level = entity.slice(0, at);
  const key = entity.slice(at + 1);
  const kernel = links.kernels.get(entity);
  if (level === 'kernel') return kernel ? `${kernel.name}${kernel.handle === null ? '' : `:${kernel.handle}`}` : key;
  return level === 'source' ? `${baseName(key)}` : key;
}

const levelNames: Record<Level, [string, string]> = {
  source: ['Python line', 'Python lines'],
  pre: ['pre-grad node', 'pre-grad nodes'],
  post: ['post-grad node', 'post-grad nodes'],
  kernel: ['kernel', 'kernels'],
};

function Chain({ links, pin }: { links: Links; pin: string }) {
  const all = [...related(links, pin)];
  return (
    <div class="prov-chain" role="status">
      {levels.map((level, n) => {
        const own = all.filter((entity) => entity.startsWith(`${level}:`));
        return (
          <>
            {n > 0 && (
              <span class="quiet" aria-hidden="true">
                {' '}
                ↔{' '}
              </span>
            )}
            <span class="prov-step">
              <span class="quiet">
                {own.length === 0 ? `no ${levelNames[level][0]}` : own.length === 1 ? levelNames[level][0] : plural(own.length, ...levelNames[level])}
              </span>{' '}
              {own.slice(0, 6).map((entity) => (
                <button class={`tag ${entity === pin ? 'on' : ''}`} onClick={() => setQuery({ sel: entity }, true)}>
                  {shorten(describe(links, entity), 60)}
                </button>
              ))}
              {own.length > 6 && <span class="quiet">and {own.length - 6} more</span>}
            </span>
          </>
        );
      })}
      <button class="link" onClick={() => setQuery({ sel: null }, true)}>
        clear
      </button>
    </div>
  );
}

// Finds kernels, nodes and file:line.
function Finder({ links, data }: { links: Links; data: Loaded }) {
  const [text, setText] = useState('');
  const entities = useMemo(() => {
    const all = [...links.kernels.keys(), ...links.sources.map((source) => `source:${source.key}`)];
    for (const node of data.preGraph?.lineOfNode.keys() ?? []) all.push(`pre:${node}`);
    for (const node of data.postGraph?.lineOfNode.keys() ?? []) all.push(`post:${node}`);
    return all.map((entity) => ({ entity, name: `${describe(links, entity)} ${entity.startsWith('source:') ? entity.slice(7) : ''}`.toLowerCase() }));
  }, [links, data]);
  const hits = text ? entities.filter((candidate) => candidate.name.includes(text.toLowerCase())).slice(0, 30) : [];
  return (
    <span class="finder">
      <input
        type="search"
        placeholder="Kernel, node or file:line"
        aria-label="Find a kernel, node or file:line"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && hits[0]) {
            setQuery({ sel: hits[0].entity }, true);
            setText('');
          }
          if (event.key === 'Escape') setText('');
        }}
      />
      {hits.length > 0 && (
        <ul class="finder-hits">
          {hits.map((hit) => (
            <li>
              <button
                onClick={() => {
                  setQuery({ sel: hit.entity }, true);
                  setText('');
                }}
              >
                <span class="quiet">{levelNames[hit.entity.slice(0, hit.entity.indexOf(':')) as Level][0]}</span> {shorten(describe(links, hit.entity), 100)}
              </button>
            </li>
          ))}
        </ul>
      )}
      {text && hits.length === 0 && <span class="quiet">not in this graph; the search at the top looks in all</span>}
    </span>
  );
}

function Workbench({ model, data, compile, route, graphId }: { model: Model; data: Loaded; compile: Compile; route: Route; graphId: number }) {
  const { links } = data;
  const [hover, setHover] = useState<string | null>(null);
  const pin = route.query.get('sel');
  const pinned = useMemo(() => (pin ? related(links, pin) : new Set<string>()), [links, pin]);
  const hovered = useMemo(() => (hover ? related(links, hover) : new Set<string>()), [links, hover]);
  const preLines = useMemo(() => linesOfGraph(data.preGraph, 'pre'), [data]);
  const postLines = useMemo(() => linesOfGraph(data.postGraph, 'post'), [data]);
  const codeLines = useMemo(() => linesOfCode(data.code, links), [data]);
  const sourceLines = useMemo(() => linesOfSources(links), [links]);
  const sourceText = useMemo(() => {
    if (links.sources.length === 0) return null;
    return links.sources.map((source) => source.code ?? `# in ${source.function ?? '?'}`).join('\n');
  }, [links]);
  const sourceNames = useMemo(() => links.sources.map((source) => `${baseName(source.file)}:${source.line}`), [links]);
  const [wrap, setWrap] = useStored('tlparse-wrap', false);
  useEffect(() => onKeys({ w: () => setWrap((old) => !old) }), []);
  const profiles = useMemo(() => profilesOfCompile(model, compile), [model, compile]);
  const profile = profiles.find((candidate) => candidate.id === Number(route.query.get('profile'))) ?? profiles[0];
  const measured = useAsync(profile ? `heat ${graphId} ${profile.id}` : null, () => loadHeat(profile!, graphId, data.contentId, data.chunk));
  const heat = measured.value ?? null;
  const shared = { pinned, pin, hovered, hover, onHover: setHover, wrap, links };
  const link = (artifact: Artifact | null) => (artifact ? href(['compile', compile.id], { record: artifact.recordId }) : undefined);
  return (
    <>
      <div class="toolbar">
        <Finder links={links} data={data} />
        <label title="Long lines take several rows: w">
          <input type="checkbox" checked={wrap} onChange={(event) => setWrap(event.currentTarget.checked)} /> wrap
        </label>
        {pin ? (
          <Chain links={links} pin={pin} />
        ) : (
          <span class="quiet">
            Hover a line to highlight what it maps to; click to pin it. The number at the left, with its colour, is that of the Python line.
          </span>
        )}
      </div>
      {heat && <HeatLegend heat={heat} profiles={profiles} graphs={compile.label} />}
      {measured.error && <p class="caveat">{measured.error.message}</p>}
      <Panes>
        <Pane
          title="Python source"
          gutter={sourceNames}
          text={sourceText}
          name=""
          lines={sourceLines}
          heat={heatOfLines(heat, sourceLines)}
          {...shared}
          empty="Neither the graphs nor the kernels of this log name a source line."
        />
        <Pane
          title="Pre-grad graph"
          text={data.pre}
          name={data.panes.pre?.title ?? ''}
          lines={preLines}
          {...shared}
          link={link(data.panes.pre)}
          empty="This compile logged no pre-grad graph: it came from a cache, or is older than PyTorch 2.7."
        />
        <Pane
          title="Post-grad graph"
          text={data.post}
          name={data.panes.post?.title ?? ''}
          lines={postLines}
          heat={heatOfLines(heat, postLines)}
          {...shared}
          link={link(data.panes.post)}
          empty="This graph has no post-grad text: in PyTorch 2.6 a cache hit writes none."
        />
        <Pane
          title="Generated code"
          text={data.code}
          name={data.panes.code?.path ?? data.panes.code?.title ?? ''}
          lines={codeLines}
          heat={heatOfLines(heat, codeLines)}
          {...shared}
          link={link(data.panes.code)}
          empty="No generated code is in the log."
        />
      </Panes>
    </>
  );
}

export function ProvenancePage({ model, route, graphId }: { model: Model; route: Route; graphId: number | null }) {
  const graphs = useChunk('graphs');
  const kernels = useChunk('kernels');
  const rows = useMemo(() => (graphs.value && kernels.value ? graphRows(model, graphs.value, kernels.value) : null), [model, graphs.value, kernels.value]);
  const row = rows?.find((candidate) => candidate.id === graphId);
  const codeRecord = row && graphs.value ? graphs.value.graph.code_record_id[graphs.value.graph.id.indexOf(row.id)] : null;
  const data = useAsync(row ? `provenance ${row.id}` : null, () => loadGraph(row!.compile, row!.id, row!.contentId, codeRecord));
  const error = graphs.error ?? kernels.error;
  if (error) return <Waiting pending={{ error }}>{() => null}</Waiting>;
  if (!rows) return <p class="loading">Loading…</p>;
  if (graphId === null) {
    return (
      <div class="page wide">
        <h1>
          Provenance <span class="quiet">from a kernel to its Python line and back: choose a graph, or search for a kernel</span>
        </h1>
        <GraphTable model={model} rows={rows.filter((own) => isShown(model, own.compile))} route={route} />
      </div>
    );
  }
  if (!row) {
    return (
      <Empty>
        Graph {String(graphId)} has no provenance. <a href={href(['provenance'])}>All graphs that have</a>
      </Empty>
    );
  }
  const siblings = rows.filter((other) => other.compile.id === row.compile.id);
  return (
    <div class="page wide provenance">
      <h1>
        <a href={href(['provenance'])}>Provenance</a> <span class="quiet">of</span> <CompileLink compile={row.compile} />{' '}
        <code>{shorten(row.compile.function ?? '', 80)}</code>{' '}
        <span class="graph-links">
          {siblings.map((other) => (
            <a class={`tag ${other.id === row.id ? 'on' : ''}`} href={href(['provenance', other.id])} aria-current={other.id === row.id ? 'page' : undefined}>
              {other.title}
            </a>
          ))}
        </span>
      </h1>
      <Waiting pending={data}>{(value) => <Workbench key={row.id} model={model} data={value} compile={row.compile} route={route} graphId={row.id} />}</Waiting>
    </div>
  );
}
