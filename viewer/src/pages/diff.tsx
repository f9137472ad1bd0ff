import { useMemo, useRef, useState } from 'preact/hooks';
import { loadArtifacts, type Artifact } from '../data/artifact';
import { useAsync } from '../data/chunks';
import { loadText, type Compile, type Model } from '../data/model';
import { changedPart, diff, normalize, type Hunk } from '../lib/diff';
import { plural, prettyJson, shorten } from '../lib/format';
import { Highlighter, languageOf } from '../lib/highlight';
import { href, setQuery, type Route } from '../route';
import { CompileLink, Empty, Waiting } from '../ui/bits';
import { lineHeight } from '../ui/text_view';
import { useWindow } from '../ui/virtual';

interface Side {
  compile: Compile;
  artifact: Artifact;
  text: string;
}

async function loadSide(model: Model, reference: string): Promise<Side> {
  const [compileId, recordId] = reference.split(':').map(Number);
  const compile = model.compileById.get(compileId);
  if (!compile) throw new Error(`There is no compile ${shorten(reference, 40)} in this run.`);
  const artifact = (await loadArtifacts(compile)).find((candidate) => candidate.recordId === recordId);
  if (!artifact?.text) throw new Error(`Compile ${compile.title} has no text ${shorten(reference, 40)}.`);
  return { compile, artifact, text: prettyJson((await loadText(artifact.text)).content) };
}

interface Row {
  kind: 'same' | 'change' | 'gap';
  a: number | null;
  b: number | null;
  hidden?: number; // rows of a gap
  gap?: number;
}

const context = 4;

function rowsOf(hunks: Hunk[], opened: Set<number>, showAll: boolean): Row[] {
  const rows: Row[] = [];
  hunks.forEach((hunk, n) => {
    if (hunk.kind === 'change') {
      const size = Math.max(hunk.a[1] - hunk.a[0], hunk.b[1] - hunk.b[0]);
      for (let i = 0; i < size; i++) {
        rows.push({ kind: 'change', a: hunk.a[0] + i < hunk.a[1] ? hunk.a[0] + i : null, b: hunk.b[0] + i < hunk.b[1] ? hunk.b[0] + i : null });
      }
      return;
    }
    const size = hunk.a[1] - hunk.a[0];
    const head = n === 0 ? 0 : context;
    const tail = n === hunks.length - 1 ? 0 : context;
    const push = (from: number, to: number) => {
      for (let i = from; i < to; i++) rows.push({ kind: 'same', a: hunk.a[0] + i, b: hunk.b[0] + i });
    };
    if (showAll || opened.has(n) || size <= head + tail + 3) push(0, size);
    else {
      push(0, head);
      rows.push({ kind: 'gap', a: null, b: null, hidden: size - head - tail, gap: n });
      push(size - tail, size);
    }
  });
  return rows;
}

function Half({
  text,
  other,
  kind,
  highlighter,
  line,
  side,
}: {
  text: string;
  other: string | null;
  kind: Row['kind'];
  highlighter: Highlighter;
  line: number;
  side: 'a' | 'b';
}) {
  const shown = text.slice(0, 2000);
  if (kind === 'change' && other !== null) {
    const parts = changedPart(text, other);
    const [begin, end] = parts[side];
    if (end - begin < text.length) {
      return (
        <>
          {shown.slice(0, begin)}
          <mark>{shown.slice(begin, end)}</mark>
          {shown.slice(end)}
        </>
      );
    }
  }
  if (text.length > 2000)
    return (
      <>
        {shown}… ({text.length} characters)
      </>
    );
  return <>{highlighter.line(line).map((token) => (token.kind ? <span class={`t-${token.kind}`}>{token.text}</span> : token.text))}</>;
}

function DiffView({ a, b, ignore, showAll }: { a: Side; b: Side; ignore: boolean; showAll: boolean }) {
  const [opened, setOpened] = useState<Set<number>>(new Set());
  const box = useRef<HTMLDivElement>(null);
  const linesA = useMemo(() => a.text.split('\n'), [a]);
  const linesB = useMemo(() => b.text.split('\n'), [b]);
  const hunks = useMemo(() => (ignore ? diff(linesA.map(normalize), linesB.map(normalize)) : diff(linesA, linesB)), [linesA, linesB, ignore]);
  const rows = useMemo(() => rowsOf(hunks, opened, showAll), [hunks, opened, showAll]);
  const highlightA = useMemo(() => new Highlighter(linesA, languageOf(a.artifact.path ?? a.artifact.title, a.text)), [linesA]);
  const highlightB = useMemo(() => new Highlighter(linesB, languageOf(b.artifact.path ?? b.artifact.title, b.text)), [linesB]);
  const seen = useWindow(box, lineHeight, rows.length);
  const changes = hunks.filter((hunk) => hunk.kind === 'change');
  const removed = changes.reduce((sum, hunk) => sum + hunk.a[1] - hunk.a[0], 0);
  const added = changes.reduce((sum, hunk) => sum + hunk.b[1] - hunk.b[0], 0);
  const starts = useMemo(() => rows.flatMap((row, i) => (row.kind === 'change' && (i === 0 || rows[i - 1].kind !== 'change') ? [i] : [])), [rows]);
  const step = (by: 1 | -1) => {
    const element = box.current;
    if (!element || starts.length === 0) return;
    const here = element.scrollTop / lineHeight + 3;
    const next =
      by > 0 ? (starts.find((row) => row > here + 0.5) ?? starts[0]) : ([...starts].reverse().find((row) => row < here - 0.5) ?? starts[starts.length - 1]);
    element.scrollTop = (next - 3) * lineHeight;
  };
  const drawn = [];
  for (let i = seen.first; i < seen.last; i++) {
    const row = rows[i];
    if (row.kind === 'gap') {
      drawn.push(
        <div key={i} class="diff-gap" style={{ top: `${i * lineHeight}px` }}>
          <button onClick={() => setOpened(new Set(opened).add(row.gap!))}>⋯ {plural(row.hidden!, 'equal line')}</button>
        </div>,
      );
      continue;
    }
    const textA = row.a === null ? null : linesA[row.a];
    const textB = row.b === null ? null : linesB[row.b];
    drawn.push(
      <div key={i} class={`diff-row ${row.kind}`} style={{ top: `${i * lineHeight}px` }}>
        <span class="line-number" aria-hidden="true" data-number={row.a === null ? '' : row.a + 1} />
        <span class={`code ${row.kind === 'change' ? (row.a === null ? 'absent' : 'removed') : ''}`}>
          {textA !== null && <Half text={textA} other={textB} kind={row.kind} highlighter={highlightA} line={row.a!} side="a" />}
        </span>
        <span class="line-number" aria-hidden="true" data-number={row.b === null ? '' : row.b + 1} />
        <span class={`code ${row.kind === 'change' ? (row.b === null ? 'absent' : 'added') : ''}`}>
          {textB !== null &&
            (row.kind === 'change' && textA !== null ? (
              <HalfB a={textA} b={textB} />
            ) : (
              <Half text={textB} other={null} kind={row.kind} highlighter={highlightB} line={row.b!} side="b" />
            ))}
        </span>
      </div>,
    );
  }
  return (
    <>
      <p class="toolbar">
        {changes.length === 0 ? (
          <b role="status">{a.text === b.text ? 'The two texts are equal.' : 'Equal but for addresses and temporary paths.'}</b>
        ) : (
          <>
            <span role="status">
              {plural(changes.length, 'difference')}: <span class="removed-text">−{removed}</span> <span class="added-text">+{added}</span> lines
            </span>
            <button onClick={() => step(-1)}>Previous</button>
            <button onClick={() => step(1)}>Next</button>
          </>
        )}
        <label>
          <input type="checkbox" checked={ignore} onChange={(event) => setQuery({ exact: event.currentTarget.checked ? null : 1 })} /> ignore addresses and
          temporary paths
        </label>
        <label>
          <input type="checkbox" checked={showAll} onChange={(event) => setQuery({ all: event.currentTarget.checked ? 1 : null })} /> show unchanged lines
        </label>
      </p>
      <div class="diff" ref={box} tabIndex={0} role="region" aria-label="Differences">
        <div class="diff-rows" style={{ height: `${rows.length * lineHeight + 8}px` }}>
          {drawn}
        </div>
      </div>
    </>
  );
}

function HalfB({ a, b }: { a: string; b: string }) {
  const [begin, end] = changedPart(a, b).b;
  const shown = b.slice(0, 2000);
  if (end - begin >= b.length) return <>{shown}</>;
  return (
    <>
      {shown.slice(0, begin)}
      <mark>{shown.slice(begin, end)}</mark>
      {shown.slice(end)}
    </>
  );
}

function SideName({ model, side, other }: { model: Model; side: Side; other: Side }) {
  return (
    <div class="diff-name">
      <a href={href(['compile', side.compile.id], { record: side.artifact.recordId })}>
        <b>{side.artifact.title}</b>
      </a>{' '}
      <span class="quiet">
        of <CompileLink compile={side.compile} /> {shorten(side.compile.function ?? '', 60)}
        {side.compile.processId !== other.compile.processId ? `, ${model.processById.get(side.compile.processId)?.name}` : ''}
        {side.artifact.attempt ? `, attempt ${side.artifact.attempt}` : ''}
      </span>
    </div>
  );
}

export function DiffPage({ model, route }: { model: Model; route: Route }) {
  const a = route.query.get('a') ?? '';
  const b = route.query.get('b') ?? '';
  const pending = useAsync(a && b ? `${a} ${b}` : null, () => Promise.all([loadSide(model, a), loadSide(model, b)]));
  if (!a || !b) {
    return (
      <Empty>
        Choose a text of a <a href={href(['compiles'])}>compile</a> and then “Compare with…” above it.
      </Empty>
    );
  }
  return (
    <div class="page wide">
      <h1 class="unseen">Diff</h1>
      <Waiting pending={pending}>
        {([left, right]) => (
          <>
            <div class="diff-names">
              <SideName model={model} side={left} other={right} />
              <a class="tag" href={href(['diff'], { ...Object.fromEntries(route.query), a: b, b: a })} title="Swap">
                ⇄<span class="unseen">Swap</span>
              </a>
              <SideName model={model} side={right} other={left} />
            </div>
            <DiffView key={`${a} ${b}`} a={left} b={right} ignore={route.query.get('exact') !== '1'} showAll={route.query.get('all') === '1'} />
          </>
        )}
      </Waiting>
    </div>
  );
}
