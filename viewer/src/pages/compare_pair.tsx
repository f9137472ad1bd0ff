// Two compiles: a verdict, then only what differs.
import { useAsync } from '../data/chunks';
import { loadPair, type CompilePair, type SetChange, type TextChange } from '../data/compile_pair';
import type { Compile, Model } from '../data/model';
import { timedPhases } from '../data/phases';
import { count, duration, plural, shorten } from '../lib/format';
import { href } from '../route';
import { CacheTag, CompileLink, Section, Status, Waiting } from '../ui/bits';
import { diffHref } from '../ui/compare';
import { PhaseTable } from './compare_times';

const most = 40; // of each list

export function pairHref(a: Compile, b: Compile): string {
  return href(['compare'], { a: `c${a.id}`, b: `c${b.id}` });
}

// A recompile and the compile that it could not reuse, where there is one.
export function firstPair(model: Model): [Compile, Compile] | null {
  for (const own of model.compiles) {
    const earlier =
      own.recompiles > 0 &&
      model.compiles.find(
        (other) => other.processId === own.processId && other.frameId === own.frameId && other.generation === own.generation && other.id < own.id,
      );
    if (earlier) return [earlier, own];
  }
  return null;
}

// The two compiles that an address names.
export function pairOf(a: string | null, b: string | null): [number, number] | null {
  const id = (key: string | null) => (/^c\d+$/.test(key ?? '') ? Number(key!.slice(1)) : null);
  const [left, right] = [id(a), id(b)];
  return left !== null && right !== null ? [left, right] : null;
}

const totalUs = (own: Compile) => (own.durationUs ?? 0) + (own.backwardUs ?? 0);

function phasesOf(own: Compile): Record<string, number> {
  const code = Math.min(own.codeGenUs, own.inductorUs);
  return { dynamo: own.dynamoUs, aot: own.aotUs, inductor: own.inductorUs - code, code, backward: own.backwardUs ?? 0 };
}

const changes = (of: SetChange | null) => (of ? of.gone.length + of.added.length : 0);

function verdictOf(pair: CompilePair): string {
  const { a, b } = pair;
  const [aUs, bUs] = [totalUs(a), totalUs(b)];
  const areTimed = aUs > 0 && bUs > 0 && [a, b].every((own) => own.status !== 'unfinished');
  const isAlike = Math.abs(aUs - bUs) * 20 < Math.max(aUs, bUs); // what varies from run to run is no change
  const time = !areTimed ? '' : isAlike ? `Both took about ${duration(bUs)}. ` : `b took ${duration(bUs)}, a ${duration(aUs)}. `;
  const parts = [
    a.status !== b.status && 'how they ended',
    changes(pair.breaks) > 0 && 'graph breaks',
    changes(pair.guards) > 0 && 'guards',
    changes(pair.kernels) > 0 && 'kernels',
    pair.lookups.length > 0 && 'cache lookups',
    pair.texts.length > 0 && plural(pair.texts.length, 'text'),
  ].filter(Boolean);
  return `${time}${parts.length === 0 ? 'Nothing else that was logged differs.' : `They differ in ${parts.join(', ')}.`}`;
}

function Chooser({ model, pair: { a, b } }: { model: Model; pair: CompilePair }) {
  const isOnly = model.allProcesses.length === 1;
  const named = (own: Compile) =>
    `${own.title} ${shorten(own.function ?? '', 40)}${isOnly ? '' : `, ${model.processById.get(own.processId)?.name ?? ''}`}${own.launch === model.launch ? '' : `, launch ${own.launch}`}`;
  // Those of its function first; a run may have too many for a list.
  const likely = model.allCompiles
    .filter((own) => !own.isSynthetic)
    .sort((x, y) => Number(y.function === a.function) - Number(x.function === a.function))
    .slice(0, 400);
  const select = (label: string, value: Compile, link: (own: Compile) => string) => (
    <select aria-label={label} value={value.id} onChange={(event) => (location.hash = link(model.compileById.get(Number(event.currentTarget.value))!))}>
      {(likely.includes(value) ? likely : [value, ...likely]).map((own) => (
        <option value={own.id}>{named(own)}</option>
      ))}
    </select>
  );
  return (
    <div class="toolbar">
      <b>a</b> {select('Compile a', a, (own) => pairHref(own, b))}
      <a class="tag" href={pairHref(b, a)} title="Swap">
        ⇄<span class="unseen">Swap</span>
      </a>
      <b>b</b> {select('Compile b', b, (own) => pairHref(a, own))}
    </div>
  );
}

function Changes({ title, change }: { title: string; change: SetChange | null }) {
  if (changes(change) === 0) return null;
  const list = (sign: string, tone: string, texts: string[]) => (
    <>
      {texts.slice(0, most).map((text) => (
        <li>
          <span class={`sign ${tone}`}>{sign}</span> <code>{shorten(text, 500)}</code>
        </li>
      ))}
      {texts.length > most && <li class="quiet">and {count(texts.length - most)} more</li>}
    </>
  );
  return (
    <Section title={title} aside={<span class="quiet">− only in a, + only in b</span>}>
      <ul class="compare-list">
        {list('−', 'removed-text', change!.gone)}
        {list('+', 'added-text', change!.added)}
      </ul>
    </Section>
  );
}

function TextLine({ text: { title, a, b, removed, added } }: { text: TextChange }) {
  if (!a || !b) {
    const own = (a ?? b)!;
    return (
      <li>
        <span class={`sign ${a ? 'removed-text' : 'added-text'}`}>{a ? '−' : '+'}</span>{' '}
        <a href={href(['compile', own.compileId!], { record: own.recordId })}>{title}</a> <span class="quiet">only in {a ? 'a' : 'b'}</span>
      </li>
    );
  }
  return (
    <li>
      <span class="sign">~</span> <a href={diffHref(a, b)}>{title}</a>{' '}
      {removed === null ? (
        <span class="quiet">too long to be compared in this list</span>
      ) : (
        <>
          <span class="removed-text">−{removed}</span> <span class="added-text">+{added}</span> <span class="quiet">lines</span>
        </>
      )}
    </li>
  );
}

function Both({ model, pair }: { model: Model; pair: CompilePair }) {
  const { a, b } = pair;
  const [aPhases, bPhases] = [phasesOf(a), phasesOf(b)];
  const phases = timedPhases.flatMap((phase) =>
    aPhases[phase.key] || bPhases[phase.key] ? [{ phase, aUs: aPhases[phase.key] ?? 0, bUs: bPhases[phase.key] ?? 0 }] : [],
  );
  const facts: [string, (own: Compile) => number | null][] = [
    ['graphs', (own) => own.graphs],
    ['ops', (own) => own.ops],
    ['guards', (own) => own.guards],
    ['graph breaks', (own) => own.graphBreaks],
    ['attempts', (own) => own.attempts],
  ];
  const differing = facts.filter(([, of]) => of(a) !== of(b));
  return (
    <>
      <Chooser model={model} pair={pair} />
      <p class="verdict">{verdictOf(pair)}</p>
      <p>
        a: <CompileLink compile={a} /> <code>{a.function}</code> <Status status={a.status} /> b: <CompileLink compile={b} /> <code>{b.function}</code>{' '}
        <Status status={b.status} />{' '}
        <span class="quiet">{differing.map(([name, of]) => `${name} ${of(a) ?? 'unknown'} → ${of(b) ?? 'unknown'}`).join(' · ')}</span>
      </p>
      {pair.reasons.length > 0 && (
        <Section title={`Why ${pair.reasons[0].prior} could not be reused`}>
          <ul class="compare-list">
            {pair.reasons.map(({ guard }) => (
              <li>
                <span class="quiet">guard failed</span> <code>{shorten(guard, 500)}</code>
              </li>
            ))}
          </ul>
        </Section>
      )}
      {phases.length > 0 && (
        <Section title="Compile time by phase">
          <PhaseTable phases={phases} totals={[totalUs(a), totalUs(b)]} />
        </Section>
      )}
      <Changes title="Graph breaks" change={pair.breaks} />
      {pair.lookups.length > 0 && (
        <Section title="Cache lookups">
          <ul class="compare-list">
            {pair.lookups.map(({ what, a: left, b: right, hasSameKey }) => (
              <li>
                <span class="sign">~</span> <code>{what}</code> {left ? <CacheTag state={left} /> : 'no lookup'} →{' '}
                {right ? <CacheTag state={right} /> : 'no lookup'} {left && right && <span class="quiet">{hasSameKey ? 'the same key' : 'another key'}</span>}
              </li>
            ))}
          </ul>
        </Section>
      )}
      <Changes title="Guards" change={pair.guards} />
      <Changes title="Kernels" change={pair.kernels} />
      {pair.texts.length > 0 && (
        <Section
          title={`${plural(pair.texts.length, 'text')} ${pair.texts.length === 1 ? 'differs' : 'differ'}`}
          aside={<span class="quiet">a click shows the lines</span>}
        >
          <ul class="compare-list">
            {pair.texts.slice(0, 200).map((text) => (
              <TextLine text={text} />
            ))}
          </ul>
        </Section>
      )}
      {pair.equalTexts > 0 && <p class="quiet">{plural(pair.equalTexts, 'text')} equal but for addresses and temporary paths.</p>}
    </>
  );
}

export function ComparePair({ model, ids: [a, b] }: { model: Model; ids: [number, number] }) {
  const pair = useAsync(`pair ${a} ${b}`, () => loadPair(model, a, b));
  return (
    <div class="page compare">
      <h1>Compare two compiles</h1>
      <Waiting pending={pair}>{(value) => <Both model={model} pair={value} />}</Waiting>
    </div>
  );
}
