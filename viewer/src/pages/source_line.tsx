// Everything that came of one line, by kind and compile.
import type { Model } from '../data/model';
import { callersOf, type Outcome, type OutcomeKind, type Said, type SourceFile } from '../data/source';
import { duration, plural, ranges, shorten } from '../lib/format';
import { href } from '../route';
import { CompileLink, Place } from '../ui/bits';

const most = 60;

const kinds: { kind: OutcomeKind; title: string }[] = [
  { kind: 'begins', title: 'Compiles of the function that begins here' },
  { kind: 'failures', title: 'Failures' },
  { kind: 'breaks', title: 'Graph breaks' },
  { kind: 'recompiles', title: 'Recompiles' },
  { kind: 'kernels', title: 'Kernels' },
  { kind: 'nodes', title: 'Graph nodes' },
  { kind: 'guards', title: 'Guards' },
];

function targetOf({ compile, recordId, graphId, entity }: Outcome): string {
  if (graphId !== null) return href(['provenance', graphId], { sel: entity });
  return href(['compile', compile.id], { record: recordId });
}

// "· ranks 0–3", where they are not all of the run.
function Who({ model, outcome }: { model: Model; outcome: Outcome }) {
  const all = new Set(model.processes.flatMap((process) => process.rank ?? [])).size;
  if (outcome.ranks.length === 0 || all < 2) return outcome.compiles > 1 ? <span class="quiet">×{outcome.compiles}</span> : null;
  return <span class="quiet">{outcome.ranks.length === all ? 'all ranks' : `${outcome.ranks.length > 1 ? 'ranks' : 'rank'} ${ranges(outcome.ranks)}`}</span>;
}

function Row({ model, outcome, kind }: { model: Model; outcome: Outcome; kind: OutcomeKind }) {
  const { compile, text, direction } = outcome;
  const us = (compile.durationUs ?? 0) + (compile.backwardUs ?? 0);
  return (
    <li>
      <CompileLink compile={compile} />{' '}
      {kind === 'begins' ? (
        <span>
          {text}
          {us > 0 && `, ${duration(us)}`}
        </span>
      ) : (
        <a href={targetOf(outcome)}>
          <code>{shorten(text, 240)}</code>
        </a>
      )}{' '}
      {direction && <span class="quiet">{direction} graph</span>} <Who model={model} outcome={outcome} />
    </li>
  );
}

interface LineDetailProps {
  model: Model;
  files: Map<string, SourceFile>;
  file: SourceFile;
  line: number | null;
  said: Said[];
}

export function LineDetail({ model, files, file, line, said }: LineDetailProps) {
  const facts = line === null ? undefined : file.facts.get(line);
  if (line === null) return <aside class="source-detail quiet">Choose a line: what came of it in every compile, forward and backward, is shown here.</aside>;
  const callers = facts ? callersOf(files, facts.kernelIds) : [];
  return (
    <aside class="source-detail" aria-label={`Line ${line}`}>
      <h2>Line {line}</h2>
      {said.length > 0 && (
        <section>
          <h3>Findings</h3>
          <ul class="hits">
            {said.map(({ id, severity, title }) => (
              <li>
                <span class={`tag severity-${severity}`}>{severity}</span> <a href={href([], { finding: id })}>{shorten(title, 300)}</a>
              </li>
            ))}
          </ul>
        </section>
      )}
      {!facts && <p class="quiet">{said.length > 0 ? 'Of compiles nothing' : 'Nothing'} came of this line that the inputs tell.</p>}
      {facts &&
        kinds.map(({ kind, title }) => {
          const own = facts[kind];
          if (own.length === 0) return null;
          return (
            <section>
              <h3>
                {title} <span class="count">{own.length}</span>
              </h3>
              <ul class="hits">
                {own.slice(0, most).map((outcome) => (
                  <Row model={model} outcome={outcome} kind={kind} />
                ))}
              </ul>
              {own.length > most && <p class="quiet">and {own.length - most} more</p>}
            </section>
          );
        })}
      {callers.length > 0 && (
        <section>
          <h3>Called from</h3>
          <ul class="hits">
            {callers.slice(0, most).map((caller) => (
              <li>
                <Place file={caller.file} line={caller.line} /> <span class="quiet">{plural(caller.kernels, 'kernel')}</span>
              </li>
            ))}
          </ul>
        </section>
      )}
      {facts && facts.kernelIds.size === 0 && facts.callerIds.size > 0 && (
        <p class="quiet">A call in this line led to {plural(facts.callerIds.size, 'kernel')}.</p>
      )}
    </aside>
  );
}
