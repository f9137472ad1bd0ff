// Chooses the other side of a diff: another text of this compile, the same text of another rank or another compile.
import { useState } from 'preact/hooks';
import { loadArtifacts, type Artifact } from '../data/artifact';
import type { Compile, Model } from '../data/model';
import { twinName, twinsOf } from '../data/twins';
import { go, href } from '../route';

// Pairs that belong together by name: the input and output of a pass.
const partners: Record<string, string> = {
  before_pre_grad_graph: 'after_pre_grad_graph',
  before_joint_graph: 'after_joint_graph',
  before_post_grad_graph: 'inductor_post_grad_graph',
  after_pre_grad_graph: 'before_pre_grad_graph',
  after_joint_graph: 'before_joint_graph',
  inductor_post_grad_graph: 'before_post_grad_graph',
  aot_forward_graph: 'aot_backward_graph',
};

function isPartner(artifact: Artifact, other: Artifact): boolean {
  return other.title === (partners[artifact.title] ?? artifact.title.replace('before', 'after')) && other.graphId === artifact.graphId;
}

// The record of another compile that corresponds to `artifact`.
export function sameArtifact(mine: Artifact[], artifact: Artifact, others: Artifact[]): Artifact | undefined {
  const key = (other: Artifact) => other.title === artifact.title && other.kind === artifact.kind;
  const ordinal = mine.filter(key).indexOf(artifact);
  const candidates = others.filter((other) => other.text !== null && key(other));
  return candidates[Math.min(ordinal, candidates.length - 1)];
}

export function diffHref(a: Artifact, b: Artifact): string {
  return href(['diff'], { a: `${a.compileId}:${a.recordId}`, b: `${b.compileId}:${b.recordId}` });
}

// What the passes of a stage changed: of a graph, or without one of the whole compile.
export function Passes({ artifacts, graphId }: { artifacts: Artifact[]; graphId: number | null }) {
  const own = artifacts.filter((artifact) => artifact.graphId === graphId && artifact.title.startsWith('before_') && artifact.title in partners);
  return (
    <>
      {own.map((before) => {
        const after = artifacts.find((other) => isPartner(before, other));
        const stage = before.title.slice('before_'.length, -'_graph'.length).replace('_', '-');
        if (!after) return null;
        return before.text && before.text.hash === after.text?.hash ? (
          <span class="inline quiet">{stage} passes changed nothing</span>
        ) : (
          <a class="inline" href={diffHref(before, after)}>
            what {stage} passes changed
          </a>
        );
      })}
    </>
  );
}

export function ComparePicker({ model, compile, artifact, artifacts }: { model: Model; compile: Compile; artifact: Artifact; artifacts: Artifact[] }) {
  const [problem, setProblem] = useState('');
  const texts = artifacts.filter((other) => other.text !== null && other !== artifact);
  const first = [...texts].sort(
    (a, b) => Number(isPartner(artifact, b)) - Number(isPartner(artifact, a)) || Number(b.title === artifact.title) - Number(a.title === artifact.title),
  );
  const twins = twinsOf(model, compile).slice(0, 200);
  const siblings = model.allCompiles
    .filter(
      (other) => other.id !== compile.id && other.processId === compile.processId && (other.frameId === compile.frameId || other.function === compile.function),
    )
    .slice(0, 100);
  const choose = async (value: string) => {
    setProblem('');
    const [kind, id] = value.split(':');
    if (kind === 'record') {
      go(
        diffHref(
          artifact,
          artifacts.find((other) => other.recordId === Number(id))!,
        ),
      );
      return;
    }
    const other = model.compileById.get(Number(id));
    if (!other) return;
    const found = sameArtifact(artifacts, artifact, await loadArtifacts(other));
    if (found) go(diffHref(artifact, found));
    else setProblem(`${other.title} has no ${artifact.title}`);
  };
  return (
    <>
      <select
        aria-label="Compare this text with another"
        value=""
        onChange={(event) => {
          const value = event.currentTarget.value;
          event.currentTarget.value = '';
          if (value) void choose(value).catch((error: Error) => setProblem(error.message));
        }}
      >
        <option value="">Compare with…</option>
        {twins.length > 0 && (
          <optgroup label={`${compile.title} of another process`}>
            {twins.map((other) => (
              <option value={`compile:${other.id}`}>{twinName(model, compile, other)}</option>
            ))}
          </optgroup>
        )}
        {siblings.length > 0 && (
          <optgroup label="another compile of this function">
            {siblings.map((other) => (
              <option value={`compile:${other.id}`}>
                same text in {other.title} {other.function}
              </option>
            ))}
          </optgroup>
        )}
        <optgroup label="another text of this compile">
          {first.slice(0, 400).map((other) => (
            <option value={`record:${other.recordId}`}>
              {other.title}
              {other.attempt ? ` (attempt ${other.attempt})` : ''}
              {other.subgraph ? ` ${other.subgraph}` : ''} (line {other.line} of the log)
            </option>
          ))}
        </optgroup>
      </select>
      {problem && (
        <span class="tag status-failed" role="alert">
          {problem}
        </span>
      )}
    </>
  );
}
