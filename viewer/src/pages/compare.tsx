// Two ranks, launches or runs: a verdict, then only what differs.
import { useMemo } from 'preact/hooks';
import './compare.css';
import { isServed } from '../data/chunks';
import { kinds, kindOf, useComparisons, type Comparison, type Comparisons, type Kind, type MeasuredChange, type Side } from '../data/comparison';
import type { Model } from '../data/model';
import { count, plural } from '../lib/format';
import { href, type Route } from '../route';
import { Empty, Place, Section, Waiting } from '../ui/bits';
import { allTrendsHref, CompareTrend, hasTrends, trendHref } from './compare_trend';
import { ComparePair, firstPair, pairHref, pairOf } from './compare_pair';
import { Causes, causesOf, CompileDifference, hasOnlyKeys, Only } from './compare_compiles';
import { functionTimes, PhaseTable, TimedTable } from './compare_times';

const kindNames: Record<Kind, string> = { ranks: 'Ranks', launches: 'Launches', runs: 'Runs', databases: 'Databases' };

function possibleKinds(model: Model): Kind[] {
  const has: Record<Kind, boolean> = {
    launches: model.launches > 1,
    ranks: model.peers.length > 1,
    runs: model.index.run.rows > 1,
    databases: model.index.served_run.rows > 0,
  };
  const first: Partial<Record<Kind, number>> = { databases: 2, launches: 1 };
  return kinds.filter((kind) => has[kind]).sort((a, b) => (first[b] ?? 0) - (first[a] ?? 0));
}

function servedSides({ index: { served_run: t } }: Model): { key: string; name: string }[] {
  const own = t.database[t.is_current.indexOf(1)];
  return t.id.map((id, i) => ({ key: t.database[i] === own ? `u${id}` : `${t.database[i]}:u${id}`, name: `run ${t.name[i]} of ${t.database_name[i]}` }));
}

// Every side that may be asked for: of a page of files those that were compared.
function sidesOf(model: Model, { kind, sides }: Comparisons): { key: string; name: string }[] {
  const named = (side: Side) => ({
    key: side.key,
    name: side.ranks && kind === 'ranks' && side.ranks !== side.name.replace(/^rank /, '') ? `${side.name}, as ranks ${side.ranks}` : side.name,
  });
  if (!isServed) return sides.map(named);
  if (kind === 'databases') return servedSides(model);
  if (kind === 'launches') return Array.from({ length: model.launches }, (_, i) => ({ key: `l${i + 1}`, name: `launch ${i + 1}` }));
  if (kind === 'runs') return model.index.run.id.map((id, i) => ({ key: `u${id}`, name: `run ${model.index.run.name[i]}` }));
  const known = new Map(sides.map((side) => [side.key, side]));
  return model.peers.map((process) => {
    const side = known.get(`p${process.id}`);
    return side ? named(side) : { key: `p${process.id}`, name: process.name };
  });
}

function WhatIsCompared({ model, current }: { model: Model; current: Kind | 'trend' }) {
  const compiles = firstPair(model);
  return (
    <nav class="choice" aria-label="What is compared">
      {possibleKinds(model).map((kind) => (
        <a href={href(['compare'], { kind })} aria-current={kind === current ? 'true' : undefined}>
          {kindNames[kind]}
        </a>
      ))}
      {hasTrends(model) && (
        <a href={allTrendsHref()} aria-current={current === 'trend' ? 'true' : undefined}>
          Functions over runs
        </a>
      )}
      {compiles && <a href={pairHref(...compiles)}>Compiles</a>}
    </nav>
  );
}

function Chooser({ model, found, a, b }: { model: Model; found: Comparisons; a: string; b: string }) {
  const sides = sidesOf(model, found);
  const select = (label: string, value: string, link: (key: string) => string) => (
    <select aria-label={label} value={value} onChange={(event) => (location.hash = link(event.currentTarget.value))}>
      {!sides.some((side) => side.key === value) && <option value={value}>{value}</option>}
      {sides.map((side) => (
        <option value={side.key}>{side.name}</option>
      ))}
    </select>
  );
  const link = (left: string, right: string) => href(['compare'], { a: left, b: right });
  return (
    <div class="toolbar">
      <WhatIsCompared model={model} current={found.kind} />
      <b>a</b> {select('Side a', a, (key) => link(key, b))}
      <a class="tag" href={link(b, a)} title="Swap">
        ⇄<span class="unseen">Swap</span>
      </a>
      <b>b</b> {select('Side b', b, (key) => link(a, key))}
    </div>
  );
}

const measuredCell = (row: MeasuredChange) =>
  row.kind === 'line' && row.file ? (
    <Place file={row.file} line={row.line} />
  ) : (
    <>
      {row.name}
      {row.graph && <span class="quiet"> {row.graph}</span>}
    </>
  );

const functionCell = (row: { name: string }) => <a href={trendHref(row)}>{row.name}</a>;

function Standing({ a, b }: Comparison) {
  const many = (side: Side) => side.ranks !== null && /^[\d\s]+[-,–][-,–\d\s]*$/.test(side.ranks);
  const versions = [
    a.torch !== b.torch && `PyTorch ${a.torch ?? '(not in the log)'} → ${b.torch ?? '(not in the log)'}`,
    a.python !== b.python && `Python ${a.python?.split(' ')[0] ?? '(not in the log)'} → ${b.python?.split(' ')[0] ?? '(not in the log)'}`,
  ].filter(Boolean);
  const alone = [a.alone && `ranks only in a: ${a.alone}`, b.alone && `ranks only in b: ${b.alone}`].filter(Boolean);
  return (
    <p class="quiet">
      {[many(a) && `a: ranks ${a.ranks} compiled the same`, many(b) && `b: ranks ${b.ranks} compiled the same`, ...versions, ...alone]
        .filter(Boolean)
        .join(' · ')}
    </p>
  );
}

function OneComparison({ model, one }: { model: Model; one: Comparison }) {
  const causes = useMemo(() => causesOf(one.compiles), [one]);
  const onlyKeys = one.compiles.filter((compile) => !compile.isEqual && hasOnlyKeys(compile, causes)).length;
  const differing = one.compiles.filter((compile) => !compile.isEqual && !hasOnlyKeys(compile, causes));
  const equal = one.compiles.length - differing.length - onlyKeys;
  const functions = useMemo(() => functionTimes(one.compiles), [one]);
  return (
    <section aria-label={`${one.a.name} and ${one.b.name}`}>
      <p class="verdict">{one.verdict}</p>
      <Standing {...one} />
      <div class="columns">
        <div>
          {one.totals && one.phases.length > 0 && (
            <Section title="Compile time by phase" aside={<span class="quiet">compiles that both finished</span>}>
              <PhaseTable phases={one.phases} totals={one.totals} />
            </Section>
          )}
        </div>
        <div>
          {functions.length > 0 && (
            <TimedTable title="Compile time by function" heading="Function" rows={functions} cell={hasTrends(model) ? functionCell : undefined} />
          )}
        </div>
      </div>
      {causes.length > 0 && <Causes causes={causes} />}
      {differing.length > 0 && (
        <Section
          title={`${plural(differing.length, 'compile')} ${differing.length === 1 ? 'differs' : 'differ'}${onlyKeys > 0 ? ' in more' : ''}`}
          aside={<span class="quiet">− only in a, + only in b, ~ changed</span>}
        >
          {differing.slice(0, 200).map((compile, i) => (
            <CompileDifference model={model} sides={[one.a, one.b]} compile={compile} shared={causes} isOpen={i < 5} />
          ))}
          {differing.length > 200 && <p class="quiet">and {count(differing.length - 200)} more</p>}
        </Section>
      )}
      {[false, true].map((isB) => {
        const only = one.only.filter((own) => own.isB === isB);
        return only.length > 0 && <Only model={model} only={only} side={isB ? one.b : one.a} />;
      })}
      {onlyKeys > 0 && <p class="quiet">{plural(onlyKeys, 'compile')} equal but for times and these cache keys.</p>}
      {equal > 0 && <p class="quiet">{plural(equal, 'compile')} equal but for times.</p>}
      <TimedTable
        title={`Measured lines, kernels and ops${one.isPerStep ? ', per step' : ', per call'}`}
        heading="Line, kernel or op"
        rows={one.measured}
        cell={measuredCell}
      />
      {one.leftOut > 0 && <p class="quiet">{plural(one.leftOut, 'more pair')} of classes of ranks not compared.</p>}
    </section>
  );
}

export function ComparePage({ model, route }: { model: Model; route: Route }) {
  if (route.path[1] === 'trend')
    return (
      <div class="page compare">
        <h1>Compare</h1>
        <div class="toolbar">
          <WhatIsCompared model={model} current="trend" />
        </div>
        <CompareTrend model={model} route={route} />
      </div>
    );
  const asked = pairOf(route.query.get('a'), route.query.get('b'));
  const first = possibleKinds(model).length === 0 ? firstPair(model) : null;
  const ids = asked ?? (first && [first[0].id, first[1].id]);
  return ids ? <ComparePair model={model} ids={ids} /> : <CompareSides model={model} route={route} />;
}

function CompareSides({ model, route }: { model: Model; route: Route }) {
  const [a, b] = [route.query.get('a'), route.query.get('b')];
  const possible = possibleKinds(model);
  const asked = kinds.find((kind) => kind === route.query.get('kind'));
  const found = useComparisons(a, b, asked && !kindOf(a, b) ? [asked] : possible);
  return (
    <div class="page compare">
      <h1>Compare</h1>
      <Waiting pending={found}>
        {(value) => {
          if (value === null) return <Empty>There is nothing to compare: one process, one launch, one run.</Empty>;
          const [left, right] = [a ?? value.chosen[0]?.a.key ?? '', b ?? value.chosen[0]?.b.key ?? ''];
          return (
            <>
              <Chooser model={model} found={value} a={left} b={right} />
              {value.chosen.map((one) => (
                <OneComparison model={model} one={one} />
              ))}
              {value.chosen.length === 0 && (
                <Empty>
                  {left === right
                    ? 'Both sides are the same: choose another one.'
                    : 'These two were not compared when the report was made: the page of files has one rank of each group of equal ranks, and neighbouring launches, and none where there are more than 100,000 collectives. A served page compares any two.'}
                </Empty>
              )}
            </>
          );
        }}
      </Waiting>
    </div>
  );
}
