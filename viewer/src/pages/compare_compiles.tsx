// What differs in the compiles of two sides.
import type { Change, CompileChange, LookupChange, OnlyCompile, Side } from '../data/comparison';
import { isServed, searchOf } from '../data/chunks';
import type { Model } from '../data/model';
import { baseName, count, duration, plural, shorten } from '../lib/format';
import { href, hrefOfRun } from '../route';
import { Section } from '../ui/bits';

// Causes of other keys, each once, with the lookups and compiles that have it.
interface SharedCause {
  cause: string;
  text: string;
  lookups: number;
  compiles: Set<CompileChange>;
  explained: number;
}

export function causesOf(compiles: CompileChange[]): SharedCause[] {
  const causes = new Map<string, SharedCause>();
  for (const compile of compiles) {
    for (const { cause, text, explained } of compile.lookups) {
      if (cause === null) continue;
      const own = causes.get(`${cause} ${text}`) ?? { cause, text: text ?? '', lookups: 0, compiles: new Set(), explained: 0 };
      causes.set(`${cause} ${text}`, own);
      own.lookups++;
      own.compiles.add(compile);
      own.explained = Math.max(own.explained, explained);
    }
  }
  return [...causes.values()].sort((a, b) => b.lookups - a.lookups);
}

export function Causes({ causes }: { causes: SharedCause[] }) {
  return (
    <Section title="Why cache keys differ, or one side missed">
      <ul class="compare-list">
        {causes.slice(0, 30).map((own) => (
          <li>
            <b>{own.cause}</b> {own.text}{' '}
            <span class="quiet">
              {plural(own.lookups, 'lookup')} of {plural(own.compiles.size, 'compile')}
              {own.explained > 0 && `; explains up to ${plural(own.explained, 'more component')}`}
            </span>
          </li>
        ))}
      </ul>
    </Section>
  );
}

const signs: Record<string, [string, string]> = { new: ['+', 'added-text'], gone: ['−', 'removed-text'], changed: ['~', ''] };

// Whether the page shows the run of a side.
const isHere = (model: Model, side: Side) =>
  side.database === null && (side.run === null || model.index.run.is_current[model.index.run.id.indexOf(side.run)] === 1);

function ChangeLine({ change, compile, model, sides }: { change: Change; compile: CompileChange; model: Model; sides: [Side, Side] }) {
  const [sign, tone] = signs[change.how] ?? ['', ''];
  return (
    <li>
      <span class={`sign ${tone}`} title={change.how === 'new' ? 'only in b' : change.how === 'gone' ? 'only in a' : 'changed'}>
        {sign}
      </span>{' '}
      <span class="quiet">{change.what}</span>{' '}
      {change.what === 'code' ? (
        sides.every((side) => isHere(model, side)) && change.aRecord !== null ? (
          <a href={href(['diff'], { a: `${compile.aId}:${change.aRecord}`, b: `${compile.bId}:${change.bRecord}` })}>
            generated code{change.text && ` of ${change.text}`} differs
          </a>
        ) : (
          `generated code${change.text ? ` of ${change.text}` : ''} differs`
        )
      ) : change.text === null ? (
        <span class="quiet">and {count(change.count)} more</span>
      ) : (
        <code>{shorten(change.text, 400)}</code>
      )}
      {change.text !== null && change.count > 1 && <span class="quiet"> ×{change.count}</span>}
    </li>
  );
}

function LookupLine({ own }: { own: LookupChange }) {
  const state = (of: string | null) => (of ? of.replace('_', ' ') : 'no lookup');
  return (
    <li>
      <span class="sign">~</span> <span class="quiet">cache</span> {own.lookup}:{' '}
      {own.aState === own.bState ? `${state(own.aState)} on both sides` : `${state(own.aState)} → ${state(own.bState)}`}
      {own.aState && own.bState && (own.hasSameKey ? ', the same key' : ', another key')}
      {own.text && (
        <>
          : {own.cause} <span class="quiet">{shorten(own.text, 300)}</span>
        </>
      )}
      {!own.text && own.fallback && <span class="quiet"> {own.fallback}</span>}
    </li>
  );
}

// A compile of one side; where the page can show it, a link.
function CompileName({ model, id, label, side }: { model: Model; id: number; label: string; side: Side }) {
  if (!isHere(model, side))
    return isServed && side.run !== null ? <a href={hrefOfRun(searchOf(side.run, side.database), ['compile', id])}>{label}</a> : <span>{label}</span>;
  const compile = model.compileById.get(id);
  return compile ? (
    <a href={href(['compile', id])} title={model.processById.get(compile.processId)?.name}>
      {compile.title}
    </a>
  ) : (
    <span>{label}</span>
  );
}

// Whether all that is to be said of a lookup is a cause that is said once for several.
const isSaid = (own: LookupChange, shared: SharedCause[]) =>
  own.aState === own.bState && own.cause !== null && shared.some((one) => one.lookups > 1 && one.cause === own.cause && one.text === own.text);

// Whether other keys, for shared causes, are all that differs.
export function hasOnlyKeys(compile: CompileChange, shared: SharedCause[]): boolean {
  return (
    compile.aStatus === compile.bStatus &&
    compile.graph === null &&
    compile.changes.length === 0 &&
    compile.lacks.length === 0 &&
    compile.lookups.length > 0 &&
    compile.lookups.every((own) => isSaid(own, shared))
  );
}

export function CompileDifference({
  model,
  compile,
  sides,
  shared,
  isOpen,
}: {
  model: Model;
  compile: CompileChange;
  sides: [Side, Side];
  shared: SharedCause[];
  isOpen: boolean;
}) {
  const { changes, lookups } = compile;
  const own = lookups.filter((one) => !isSaid(one, shared));
  const kindsOf = [
    compile.aStatus !== compile.bStatus && 'status',
    compile.graph && 'graph',
    ...['recompile', 'graph break', 'guard', 'kernel', 'code'].map((what) => changes.some((one) => one.what === what) && what),
    lookups.length > 0 && 'cache',
  ].filter(Boolean);
  return (
    <details class="compare-compile" open={isOpen}>
      <summary>
        <b>{compile.aLabel === compile.bLabel ? compile.aLabel : `${compile.aLabel} ↔ ${compile.bLabel}`}</b> <code>{shorten(compile.function, 60)}</code>{' '}
        <span class="quiet">{kindsOf.join(', ')}</span>
        {compile.aUs !== null && compile.bUs !== null && (
          <span class="quiet">
            {' '}
            {duration(compile.aUs)} → {duration(compile.bUs)}
          </span>
        )}
      </summary>
      <ul class="compare-list">
        {(isServed || sides.every((side) => isHere(model, side))) && (
          <li>
            <span class="sign" /> open <CompileName model={model} id={compile.aId} label={compile.aLabel} side={sides[0]} /> of a,{' '}
            <CompileName model={model} id={compile.bId} label={compile.bLabel} side={sides[1]} /> of b
          </li>
        )}
        {compile.aFile && compile.bFile && baseName(compile.aFile) !== baseName(compile.bFile) && (
          <li>
            <span class="sign">~</span> paired by name; the files differ: {baseName(compile.aFile)} → {baseName(compile.bFile)}
          </li>
        )}
        {compile.aStatus !== compile.bStatus && (
          <li>
            <span class="sign">~</span> <span class="quiet">status</span> {compile.aStatus} → {compile.bStatus}
          </li>
        )}
        {compile.graph && (
          <li>
            <span class="sign">~</span> <span class="quiet">Dynamo graph differs</span> {shorten(compile.graph, 500)}
          </li>
        )}
        {compile.lacks.map((text) => (
          <li>
            <span class="sign">~</span> {text}
          </li>
        ))}
        {changes.map((change) => (
          <ChangeLine change={change} compile={compile} model={model} sides={sides} />
        ))}
        {own.map((own) => (
          <LookupLine own={own} />
        ))}
      </ul>
    </details>
  );
}

export function Only({ model, only, side }: { model: Model; only: OnlyCompile[]; side: Side }) {
  return (
    <Section title={`Only in ${side.name}`}>
      <ul class="compare-list">
        {only.slice(0, 100).map((own) => (
          <li>
            <CompileName model={model} id={own.id} label={own.label} side={side} /> <code>{shorten(own.function, 60)}</code>{' '}
            <span class="quiet">{[own.status, own.us === null ? 'time unknown' : duration(own.us)].join(', ')}</span>
            {own.reason && <div class="quiet">recompiled because {shorten(own.reason, 300)}</div>}
          </li>
        ))}
        {only.length > 100 && <li class="quiet">and {count(only.length - 100)} more</li>}
      </ul>
    </Section>
  );
}
