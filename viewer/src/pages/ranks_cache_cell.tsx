// One lookup: what its key has that those of other ranks have not.
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { useAsync, type Chunks } from '../data/chunks';
import type { Model, Process } from '../data/model';
import { compareKeys, type ComponentDifference, type Lookup, type Slot } from '../data/ranks';
import { changedPart, diff } from '../lib/diff';
import { count, plural, shorten } from '../lib/format';
import { href, setQuery, type Route } from '../route';
import { CacheTag, CompileLink, Waiting, cacheNames } from '../ui/bits';

export interface MatrixRow {
  slot: Slot;
  byProcess: Map<number, Lookup[]>;
  isMixed: boolean;
}

export function CellDetail({
  model,
  cache,
  row,
  all,
  route,
  lookups,
  causes,
}: {
  causes: Map<number, string>;
  model: Model;
  cache: Chunks['cache'];
  row: number;
  all: MatrixRow[];
  route: Route;
  lookups: Map<number, Lookup[]>;
}) {
  const t = cache.cache_event;
  const compile = model.compileById.get(t.compile_id[row]!);
  const process = model.processById.get(t.process_id[row]!);
  const box = useRef<HTMLElement>(null);
  useEffect(() => box.current?.scrollIntoView({ block: 'nearest' }), [row]);
  const slot = all.find((candidate) => compile && candidate.slot.compiles.get(compile.processId)?.id === compile.id)?.slot;
  const own = compile ? (lookups.get(compile.id) ?? []) : [];
  const mine = own.find((lookup) => lookup.row === row);
  const position = own.filter((lookup) => lookup.layer === mine?.layer).indexOf(mine!);
  // The same lookup of the other ranks: same layer, same place among its like.
  const others = useMemo(() => {
    const found: { process: Process; lookup: Lookup }[] = [];
    if (!slot || !mine) return found;
    for (const [processId, other] of slot.compiles) {
      const lookup = (lookups.get(other.id) ?? []).filter((candidate) => candidate.layer === mine.layer)[position];
      const otherProcess = model.processById.get(processId);
      if (lookup && otherProcess && processId !== mine.processId) found.push({ process: otherProcess, lookup });
    }
    return found;
  }, [slot, mine, position]);
  const preferred = others.find((other) => other.lookup.state === 'hit') ?? others.find((other) => other.lookup.key !== mine?.key) ?? others[0];
  const withId = Number(route.query.get('with'));
  const other = others.find((candidate) => candidate.lookup.id === withId) ?? preferred;
  if (!compile || !mine || !process) return null;
  return (
    <section class="detail" ref={box} aria-label="Cache lookup">
      <h2>
        <CompileLink compile={compile} /> <code>{shorten(compile.function ?? '', 60)}</code>, {process.name}
      </h2>
      <div class="toolbar">
        {own.map((lookup) => (
          <a
            class={`tag ${lookup === mine ? 'on' : ''}`}
            href={href(['ranks'], { ...Object.fromEntries(route.query), event: lookup.id, with: null, compile: null })}
          >
            {lookup.layer} {lookup.direction ?? ''}
          </a>
        ))}
        <CacheTag state={mine.state} />
        <code class="key ellipsis" title={mine.key ?? ''}>
          {mine.key ?? 'no key'}
        </code>
        {t.bypass_reason[row] && <span>{t.bypass_reason[row]}</span>}
        {t.guard_expression[row] && <code class="guard">{t.guard_expression[row]}</code>}
      </div>
      {others.length === 0 ? (
        <p class="quiet">No other rank made this lookup.</p>
      ) : (
        <div class="toolbar">
          <label>
            Compare with{' '}
            <select value={other!.lookup.id} onChange={(event) => setQuery({ with: event.currentTarget.value })}>
              {others.map((candidate) => (
                <option value={candidate.lookup.id}>
                  {candidate.process.name}: {cacheNames[candidate.lookup.state]}
                  {candidate.lookup.key === mine.key ? ', same key' : ''}
                </option>
              ))}
            </select>
          </label>
          <CacheTag state={other!.lookup.state} />
          <code class="key ellipsis" title={other!.lookup.key ?? ''}>
            {other!.lookup.key ?? 'no key'}
          </code>
        </div>
      )}
      {causes.has(compile.id) && (
        <p>
          <span class="tag status-failed">cause</span> {shorten(causes.get(compile.id)!, 600)}
        </p>
      )}
      {other && <Components mine={mine} other={other.lookup} names={[process.name, other.process.name]} state={t.components_state[row]} />}
    </section>
  );
}

function Components({ mine, other, names: sides, state }: { mine: Lookup; other: Lookup; names: [string, string]; state: string | null }) {
  const comparable = mine.setId !== null && other.setId !== null;
  const pending = useAsync(comparable ? `keys ${mine.id} ${other.id}` : null, () => compareKeys(mine, other));
  if (mine.key !== null && mine.key === other.key && mine.state !== other.state) {
    return (
      <p>
        The keys are equal: both ranks asked for the same entry. One found it and the other did not, so their caches hold different entries (a directory of its
        own, or filled at another time).
      </p>
    );
  }
  if (mine.key !== null && mine.key === other.key) return <p class="quiet">The keys are equal.</p>;
  if (!comparable)
    return (
      <p class="quiet">
        This lookup logged no components of its key{state === 'unparsed' ? ' that could be read' : ''}: what differs cannot be told from it. The lookups of
        other layers may have some.
      </p>
    );
  return (
    <Waiting pending={pending}>
      {(value) =>
        value.differences.length === 0 ? (
          <p>The keys differ, but all {count(value.same)} components that were logged are equal: what made them differ is not in the log.</p>
        ) : (
          <>
            <p>
              <b>{plural(value.differences.length, 'component')}</b> of {count(value.same + value.differences.length)}{' '}
              {value.differences.length === 1 ? 'differs' : 'differ'}:
            </p>
            <DifferenceTable differences={value.differences} sides={sides} />
          </>
        )
      }
    </Waiting>
  );
}

// Everywhere a change is read from what most ranks have to what this one has: "64 → 13", the left red, the right green.
function DifferenceTable({ differences, sides }: { differences: ComponentDifference[]; sides: [string, string] }) {
  const value = (text: string | null, hash: string | null, other: string | null) => {
    if (hash === null) return <span class="quiet">not there</span>;
    return (
      <>
        <code title={shorten(text ?? '', 4000)}>
          <Changed text={shorten(text ?? '', 600)} other={other === null ? null : shorten(other, 600)} />
        </code>
        {text === other && <span class="quiet"> (text equal, hash {hash.slice(0, 10)}… not)</span>}
      </>
    );
  };
  const isText = ({ a, b }: ComponentDifference) => a !== null && b !== null && a !== b && (a.includes('\n') || b.includes('\n'));
  return (
    <table class="plain differences">
      <thead>
        <tr>
          <th scope="col">Component</th>
          <th scope="col">{sides[1]}</th>
          <th scope="col">→ {sides[0]}</th>
        </tr>
      </thead>
      <tbody>
        {differences.slice(0, 400).map((difference) => (
          <tr>
            <th scope="row">
              <code>{difference.name}</code>
            </th>
            {isText(difference) ? (
              <td colSpan={2}>
                <LineChanges from={difference.b!} to={difference.a!} />
              </td>
            ) : (
              <>
                <td class="removed">{value(difference.b, difference.bHash, difference.a)}</td>
                <td class="added">{value(difference.a, difference.aHash, difference.b)}</td>
              </>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

// A value, with what the other one does not have marked.
function Changed({ text, other }: { text: string; other: string | null }) {
  if (other === null || text === other) return <>{text}</>;
  const [begin, end] = changedPart(text, other).a;
  return (
    <>
      {text.slice(0, begin)}
      <mark>{text.slice(begin, end)}</mark>
      {text.slice(end)}
    </>
  );
}

const contextLines = 2;
const mostLines = 200;

// A text of several lines (a graph): the lines that changed, and some around them.
function LineChanges({ from, to }: { from: string; to: string }) {
  const [a, b] = useMemo(() => [from.split('\n'), to.split('\n')], [from, to]);
  const lines = useMemo(() => {
    const hunks = diff(a, b);
    return hunks.flatMap((hunk, n) => {
      if (hunk.kind === 'change')
        return [...a.slice(...hunk.a).map((text) => ({ sign: '−', text })), ...b.slice(...hunk.b).map((text) => ({ sign: '+', text }))];
      const [start, end] = hunk.a;
      const head = n === 0 ? start : Math.min(end, start + contextLines);
      const tail = n === hunks.length - 1 ? end : Math.max(head, end - contextLines);
      return [
        ...a.slice(start, head).map((text) => ({ sign: ' ', text })),
        ...(tail > head ? [{ sign: '…', text: plural(tail - head, 'equal line') }] : []),
        ...a.slice(tail, end).map((text) => ({ sign: ' ', text })),
      ];
    });
  }, [a, b]);
  const kinds: Record<string, string> = { '−': 'removed', '+': 'added', '…': 'quiet' };
  return (
    <div class="line-changes">
      {lines.slice(0, mostLines).map(({ sign, text }) => (
        <div class={kinds[sign]}>
          <span class="sign">{sign}</span>
          <code>{shorten(text, 600)}</code>
        </div>
      ))}
      {lines.length > mostLines && <div class="quiet">and {plural(lines.length - mostLines, 'line')} more</div>}
    </div>
  );
}
