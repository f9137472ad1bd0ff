// One record: its place in the log, its members, its text.
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { Artifact } from '../data/artifact';
import { useText, type Frame } from '../data/model';
import { stackOf } from '../data/model';
import { languageOf } from '../lib/highlight';
import { bytes, count, duration, prettyJson } from '../lib/format';
import { Stack, Waiting } from './bits';
import { onKeys, useStored } from './keys';
import { FindBox, TextView } from './text_view';
import type { ComponentChildren } from 'preact';
import { setQuery } from '../route';

function parseLines(text: string | null): [number, number] | null {
  const match = /^(\d+)(?:-(\d+))?$/.exec(text ?? '');
  if (!match) return null;
  const first = Number(match[1]) - 1;
  return [first, match[2] ? Number(match[2]) - 1 : first];
}

export function TextPane({
  text,
  name,
  label,
  lines,
  tools,
  height,
}: {
  text: string;
  name: string;
  label: string;
  lines: string | null;
  tools?: ComponentChildren;
  height?: string;
}) {
  const [isRaw, setRaw] = useState(false);
  const [find, setFind] = useState('');
  const [found, setFound] = useState<number | null>(null);
  const pretty = useMemo(() => prettyJson(text), [text]);
  const shown = isRaw ? text : pretty;
  const selection = parseLines(lines);
  const split = useMemo(() => shown.split('\n'), [shown]);
  const [copied, setCopied] = useState(false);
  const [wrap, setWrap] = useStored('tlparse-wrap', false);
  useEffect(() => onKeys({ w: () => setWrap((old) => !old) }), []);
  return (
    <div class="text-pane">
      <div class="text-tools">
        <FindBox lines={split} onFind={setFind} onReveal={setFound} />
        {pretty !== text && (
          <label>
            <input type="checkbox" checked={isRaw} onChange={(event) => setRaw(event.currentTarget.checked)} /> as logged
          </label>
        )}
        <label title="Long lines take several rows: w">
          <input type="checkbox" checked={wrap} onChange={(event) => setWrap(event.currentTarget.checked)} /> wrap
        </label>
        <button
          onClick={() => {
            // On file:// the clipboard is not always there.
            navigator.clipboard?.writeText(text).then(
              () => setCopied(true),
              () => setCopied(false),
            );
          }}
        >
          {copied ? 'Copied' : 'Copy'}
        </button>
        {tools}
        <span class="quiet">{count(split.length)} lines</span>
      </div>
      <TextView
        label={label}
        text={shown}
        language={languageOf(name, shown)}
        find={find}
        reveal={found ?? selection?.[0] ?? null}
        selection={selection}
        onSelect={([first, last]) => setQuery({ lines: first === last ? first + 1 : `${first + 1}-${last + 1}` })}
        height={height}
        wrap={wrap}
      />
    </div>
  );
}

export function ArtifactView({
  artifact,
  frames,
  lines,
  tools,
  height,
}: {
  artifact: Artifact;
  frames: Map<number, Frame>;
  lines: string | null;
  tools?: ComponentChildren;
  height?: string;
}) {
  const text = useText(artifact.text);
  const stack = stackOf(frames, artifact.userStackId ?? artifact.stackId);
  const metadata = artifact.metadata && artifact.metadata !== '{}' ? artifact.metadata : null;
  const hasUsefulMetadata = metadata !== null && artifact.kind !== 'artifact';
  return (
    <div class="artifact">
      <header class="artifact-head">
        <h2>{artifact.title}</h2>
        <span class="quiet">
          line {count(artifact.line)} of the log · {artifact.timeUs === null ? 'no time' : duration(artifact.timeUs, true)}
          {artifact.attempt ? ` · attempt ${artifact.attempt}` : ''}
          {artifact.subgraph ? ` · ${artifact.subgraph}` : ''} · {artifact.source}
          {artifact.text ? ` · ${bytes(artifact.text.sizeBytes)}` : ''}
          {artifact.path ? ` · ${artifact.path}` : ''}
        </span>
        {(artifact.payloadState === 'mismatch' || artifact.payloadState === 'cr_removed') && (
          <span class="tag status-failed" title="The payload is not what its hash says: it was changed after it was written">
            payload {artifact.payloadState === 'mismatch' ? 'damaged' : 'had its line ends changed'}
          </span>
        )}
      </header>
      {stack.length > 0 && (
        <details open={artifact.text === null}>
          <summary>Stack, {stack.length} frames</summary>
          <Stack frames={stack} />
        </details>
      )}
      {hasUsefulMetadata &&
        (artifact.text === null ? (
          <TextPane text={metadata} name="" label={`${artifact.title} metadata`} lines={lines} height={height} />
        ) : (
          <MetadataLine json={metadata} />
        ))}
      {artifact.text !== null && (
        <Waiting pending={text}>
          {(value) => (
            <>
              {value.isBinary && <p class="quiet">Not all of this payload is text: such bytes are shown as �.</p>}
              {value.content === '' ? (
                <p class="empty">The payload is empty.</p>
              ) : (
                <TextPane text={value.content} name={artifact.path ?? artifact.title} label={artifact.title} lines={lines} tools={tools} height={height} />
              )}
            </>
          )}
        </Waiting>
      )}
      {artifact.text === null && !hasUsefulMetadata && stack.length === 0 && (
        <p class="empty">This record says only that it happened: it has neither metadata nor a payload.</p>
      )}
    </div>
  );
}

function MetadataLine({ json }: { json: string }) {
  if (json.length < 200)
    return (
      <p class="metadata">
        <code>{json}</code>
      </p>
    );
  return (
    <details>
      <summary>Metadata, {bytes(json.length)}</summary>
      <pre class="metadata">{prettyJson(json).slice(0, 200_000)}</pre>
    </details>
  );
}
