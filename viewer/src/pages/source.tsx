// A Python file as far as the inputs know it, and what came of each of its lines.
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useChunk, type Chunks } from '../data/chunks';
import { highestOf, type Memory } from '../data/memory';
import { useFindings, useText, type Model } from '../data/model';
import { fullestProfile } from '../data/profiles';
import { filesNamed, filesOf, newFacts, saidOf, type LineFacts, type Said, type SourceFile } from '../data/source';
import { Highlighter } from '../lib/highlight';
import { baseName, bytes, count, duration, plural } from '../lib/format';
import { href, setQuery, type Route } from '../route';
import { Empty, Waiting } from '../ui/bits';
import './source.css';
import { LineDetail } from './source_line';

// What a file is listed by: the lines that something came of.
function weightOf(file: SourceFile): number {
  let weight = 0;
  for (const facts of file.facts.values())
    weight += 10 * (facts.breaks.length + facts.recompiles.length + facts.failures.length) + facts.kernelIds.size + facts.nodes.length + facts.begins.length;
  return weight;
}

// The name of each file, with as many of its folders as tell it from others of its name.
function shortNames(files: SourceFile[]): Map<SourceFile, string> {
  const rivals = new Map<string, SourceFile[]>();
  for (const file of files) {
    const name = baseName(file.name);
    rivals.set(name, [...(rivals.get(name) ?? []), file]);
  }
  return new Map(files.map((file) => [file, shortName(file, rivals.get(baseName(file.name))!)]));
}

function shortName(file: SourceFile, rivals: SourceFile[]): string {
  const parts = file.name.split('/');
  for (let n = 1; n < parts.length; n++) {
    const end = parts.slice(-n).join('/');
    if (!rivals.some((other) => other !== file && other.name.endsWith(`/${end}`))) return end;
  }
  return file.name;
}

// Those with a text, and those that something came of.
const knownLines = (file: SourceFile) => new Set([...file.texts.keys(), ...file.facts.keys()]);

// A list that is drawn when it is opened.
function Folded({ title, files, isOpen, list }: { title: string; files: SourceFile[]; isOpen: boolean; list: (files: SourceFile[]) => ComponentChildren }) {
  const [opened, setOpened] = useState(isOpen);
  if (files.length === 0) return null;
  return (
    <details open={isOpen} onToggle={(event) => event.currentTarget.open && setOpened(true)}>
      <summary class="record-group">
        {title} {count(files.length)}
      </summary>
      {(opened || isOpen) && list(files)}
    </details>
  );
}

function FileList({ files, current }: { files: SourceFile[]; current: SourceFile | undefined }) {
  const own = files.filter((file) => !file.isLibrary && !file.whole);
  const libraries = files.filter((file) => file.isLibrary && !file.whole);
  const generated = files.filter((file) => file.whole);
  const names = useMemo(() => shortNames(files), [files]);
  const list = (some: SourceFile[]) => (
    <ul class="records">
      {some.slice(0, 300).map((file) => (
        <li>
          <a href={href(['source', file.name])} title={file.name} aria-current={file === current ? 'page' : undefined}>
            <span class="record-title">
              {baseName(file.name)} <span class="quiet">{names.get(file)!.slice(0, -baseName(file.name).length - 1)}</span>
            </span>
            <span class="quiet">{file.texts.size > 0 ? plural(knownLines(file).size, 'line') : ''}</span>
          </a>
        </li>
      ))}
    </ul>
  );
  return (
    <nav class="side" aria-label="Files">
      {list(own)}
      <Folded title="Libraries" files={libraries} isOpen={current !== undefined && libraries.includes(current)} list={list} />
      <Folded title="Generated code" files={generated} isOpen={current !== undefined && generated.includes(current)} list={list} />
    </nav>
  );
}

// What was measured of a line.
interface Measured {
  runUs: number;
  peakBytes: number;
}
interface Margin {
  key: string;
  title: string;
  hint: string;
  of: (facts: LineFacts, measured: Measured) => string;
  heat?: (measured: Measured) => number; // drawn as a bar beside the largest of the file
}

const margins: Margin[] = [
  { key: 'break', title: '✂', hint: 'Graph breaks and failures', of: (facts) => number(facts.breaks.length + facts.failures.length) },
  { key: 'recompile', title: '↻', hint: 'Recompiles that a guard on this line caused', of: (facts) => number(facts.recompiles.length) },
  { key: 'guard', title: 'guards', hint: 'Guards due to this line', of: (facts) => number(facts.guardCount) },
  {
    key: 'kernel',
    title: 'kernels',
    hint: 'Kernels that come from this line; in grey, what a call in it led to',
    of: (facts) => number(facts.kernelIds.size || facts.callerIds.size),
  },
  {
    key: 'run',
    title: 'run',
    hint: 'Measured time of its kernels, in the steps that the profile counts',
    of: (_, { runUs }) => (runUs > 0 ? duration(runUs) : ''),
    heat: ({ runUs }) => runUs,
  },
  {
    key: 'memory',
    title: 'memory',
    hint: 'What blocks that this line allocated held at the peak; of several recordings, of that with the highest',
    of: (_, { peakBytes }) => (peakBytes > 0 ? bytes(peakBytes) : ''),
    heat: ({ peakBytes }) => peakBytes,
  },
  {
    key: 'compile',
    title: 'compile',
    hint: 'Compile time of the function that begins here; of equal ranks the slowest',
    of: (facts) => (facts.compileUs > 0 ? duration(facts.compileUs) : ''),
  },
];
const number = (value: number) => (value > 0 ? count(value) : '');

// By line: time of the fullest profile, memory of the recording with the highest peak.
function measuredLines(cost: Chunks['cost'] | undefined, memory: Memory | undefined, file: SourceFile): Map<number, Measured> {
  const lines = new Map<number, Measured>();
  const at = (line: number) => {
    const own = lines.get(line) ?? { runUs: 0, peakBytes: 0 };
    lines.set(line, own);
    return own;
  };
  cost?.line.file.forEach((name, i) => name === file.name && cost.line.line[i] !== null && (at(cost.line.line[i]!).runUs = cost.line.share_us[i] ?? 0));
  memory?.line.file.forEach((name, i) => name === file.name && (at(memory.line.line[i]!).peakBytes = memory.line.size_bytes[i] ?? 0));
  return lines;
}

// `said`: what findings quote of the file, by line; the line that is asked for is shown whether or not its text is known.
function Code({ file, line, measured, said }: { file: SourceFile; line: number | null; measured: Map<number, Measured>; said: Map<number, Said[]> }) {
  const chosen = useRef<HTMLTableRowElement>(null);
  const lines = useMemo(
    () =>
      [...new Set([...knownLines(file), ...measured.keys(), ...said.keys(), ...(line === null ? [] : [line])])].filter((at) => at > 0).sort((a, b) => a - b),
    [file, measured, said, line],
  );
  const textsOf = (at: number) => file.texts.get(at) ?? (said.get(at) ?? []).flatMap(({ code }) => (code ? [code] : [])).slice(0, 1);
  const of = (margin: Margin, at: number) => margin.of(file.facts.get(at) ?? none, measured.get(at) ?? unmeasured);
  const shown = margins.filter((margin) => lines.some((at) => of(margin, at) !== ''));
  const barOf = ({ heat }: Margin, at: number) => {
    const percent = heat ? (100 * heat(measured.get(at) ?? unmeasured)) / Math.max(1, ...[...measured.values()].map(heat)) : 0;
    return percent > 0 ? { backgroundImage: `linear-gradient(to left, var(--heat) ${percent}%, transparent ${percent}%)` } : undefined;
  };
  useLayoutEffect(() => chosen.current?.scrollIntoView({ block: 'center' }), [file, line]);
  return (
    <div class="source-code" tabIndex={0} role="region" aria-label={`Lines of ${baseName(file.name)}`}>
      <table>
        <thead>
          <tr>
            {shown.map((margin) => (
              <th scope="col" title={margin.hint}>
                {margin.title}
              </th>
            ))}
            <th scope="col">line</th>
            <th scope="col" class="source-text">
              {plural(knownLines(file).size, 'known line')}
            </th>
          </tr>
        </thead>
        <tbody>
          {lines.map((at, i) => {
            const facts = file.facts.get(at) ?? none;
            const gap = at - (lines[i - 1] ?? 0) - 1;
            const isChosen = at === line;
            return (
              <>
                {gap > 0 && (
                  <tr class="source-gap">
                    <td colSpan={shown.length + 1} />
                    <td>{gap === 1 ? `line ${at - 1} unknown` : `${count(gap)} lines unknown`}</td>
                  </tr>
                )}
                <tr ref={isChosen ? chosen : undefined} class={isChosen ? 'picked' : ''} onClick={() => setQuery({ line: at }, true)}>
                  {shown.map((margin) => (
                    <td class={`margin-${margin.key} ${margin.key === 'kernel' && facts.kernelIds.size === 0 ? 'quiet' : ''}`} style={barOf(margin, at)}>
                      {of(margin, at)}
                    </td>
                  ))}
                  <td class="source-number">
                    <a href={href(['source', file.name], { line: at })} aria-current={isChosen ? 'true' : undefined}>
                      {at}
                    </a>
                  </td>
                  <td class="source-text">
                    {textsOf(at).map((text, n) => (
                      <div>
                        {n > 0 && <span class="quiet">or: </span>}
                        {new Highlighter([text], 'python')
                          .line(0)
                          .map((token) => (token.kind ? <span class={`t-${token.kind}`}>{token.text}</span> : token.text))}
                      </div>
                    ))}
                    {textsOf(at).length === 0 && <span class="quiet">text not known</span>}
                  </td>
                </tr>
              </>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
const none = newFacts();
const unmeasured: Measured = { runUs: 0, peakBytes: 0 };

// A file that a payload holds: all of its lines are known, and its record shows them.
function Whole({ whole, line, name }: { whole: NonNullable<SourceFile['whole']>; line: number | null; name: string }) {
  const text = useText(whole);
  return (
    <Empty>
      {baseName(name)} is generated code:{' '}
      <a href={href(['compile', whole.compileId], { record: whole.recordId, lines: line })}>
        all of its {text.value ? plural(text.value.content.split('\n').length, 'line') : 'lines'}
      </a>
      {line !== null && text.value && (
        <pre>
          {text.value.content
            .split('\n')
            .slice(Math.max(0, line - 4), line + 3)
            .join('\n')}
        </pre>
      )}
    </Empty>
  );
}

function View({ model, chunk, graphs, route }: { model: Model; chunk: Chunks['source']; graphs: Chunks['graphs']; route: Route }) {
  const files = filesOf(chunk, model, graphs);
  const sorted = useMemo(
    () =>
      [...files.values()]
        .map((file) => ({ file, weight: weightOf(file) }))
        .sort((a, b) => b.weight - a.weight || (a.file.name < b.file.name ? -1 : 1))
        .map(({ file }) => file),
    [files],
  );
  const asked = route.path[1];
  const line = route.query.get('line') === null ? null : Number(route.query.get('line'));
  const [known, ...namesakes] = asked === undefined ? sorted.filter((own) => !own.isLibrary && !own.whole).slice(0, 1) : filesNamed(files, asked, line);
  const findings = useFindings(model);
  const said = useMemo(() => saidOf(findings.value, known?.name ?? asked ?? ''), [findings.value, known, asked]);
  // A place of which no log holds a line, as where an exception was raised or a collective was called.
  const isNamed = asked !== undefined && (line !== null || said.size > 0);
  const named = useMemo(
    (): SourceFile => ({
      name: asked ?? '',
      texts: new Map(),
      facts: new Map(),
      whole: null,
      isLibrary: false,
    }),
    [asked],
  );
  const file = known ?? (isNamed ? named : undefined);
  const profile = useMemo(() => fullestProfile(model), [model]);
  const cost = useChunk(profile ? 'cost' : null, profile?.id).value;
  const recording = useMemo(() => highestOf(model), [model]);
  const memory = useChunk(recording ? 'memory' : null, recording?.id).value;
  const measured = useMemo(() => (file ? measuredLines(cost, memory, file) : new Map<number, Measured>()), [cost, memory, file]);
  if (sorted.length === 0) return <Empty>No input tells a line of Python.</Empty>;
  return (
    <>
      <h1 class="source-head">
        {file ? baseName(file.name) : 'Source'} <span class="quiet">{file?.name}</span>
      </h1>
      {namesakes.length > 0 && (
        <p class="quiet">
          Named so too:{' '}
          {namesakes.slice(0, 5).map((other, i) => (
            <>
              {i > 0 && ', '}
              <a href={href(['source', other.name], { line })}>{other.name}</a>
            </>
          ))}
        </p>
      )}
      <div class="source">
        <FileList files={sorted} current={file} />
        {file === undefined ? (
          <Empty>No input tells a line of {asked}.</Empty>
        ) : file.whole ? (
          <Whole whole={file.whole} line={line} name={file.name} />
        ) : (
          <Code file={file} line={line} measured={measured} said={said} />
        )}
        {file && !file.whole && <LineDetail model={model} files={files} file={file} line={line} said={said.get(line ?? -1) ?? []} />}
      </div>
    </>
  );
}

export function SourcePage({ model, route }: { model: Model; route: Route }) {
  const chunk = useChunk('source');
  const graphs = useChunk('graphs');
  return (
    <div class="page wide">
      <Waiting pending={chunk}>
        {(value) => <Waiting pending={graphs}>{(own) => <View model={model} chunk={value} graphs={own} route={route} />}</Waiting>}
      </Waiting>
    </div>
  );
}
