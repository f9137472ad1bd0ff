// The findings as cards of three lines: what and where, what to try; the rest is folded.
import { useEffect, useRef, useState } from 'preact/hooks';
import { markOf } from '../data/changes';
import type { Chunks } from '../data/chunks';
import { cardsOf, cardsOfRank, type Card, type FindingTable } from '../data/findings';
import { isFollowing } from '../data/live';
import type { Model } from '../data/model';
import { plural, shorten, utc, wholePlace } from '../lib/format';
import { href } from '../route';
import { CompileLink, Place } from './bits';

const most = 3; // that are shown at first: a list that fills screens is not read

const tabOf: Record<string, [string, Record<string, string>]> = {
  cold_cache: ['ranks', { tab: 'cache' }],
  cache_bypassed: ['ranks', { tab: 'cache' }],
  remote_cache_error: ['ranks', { tab: 'cache' }],
  config_divergence: ['ranks', { tab: 'cache' }],
  one_key_two_codes: ['ranks', { tab: 'cache' }],
  collective_divergence: ['ranks', { tab: 'collectives' }],
  collective_not_reached: ['ranks', { tab: 'collectives' }],
  execution_divergence: ['ranks', { tab: 'execution' }],
  recompiles: ['compiles', { tab: 'recompiles' }],
  recompile_limit: ['compiles', { tab: 'recompiles' }],
  graph_break: ['compiles', { tab: 'breaks' }],
  compile_failed: ['compiles', { tab: 'failures' }],
  import_errors: ['import-log', {}],
};
const tabNames: Record<string, string> = {
  cache: 'cache states',
  collectives: 'collectives',
  execution: 'execution order',
  recompiles: 'recompiles',
  breaks: 'graph breaks',
  failures: 'failures',
};

// A tab that shows what a finding of this kind is about, if this run has any of it.
function tabOfFinding(model: Model, kind: string): [string, Record<string, string>] | null {
  const tab = tabOf[kind];
  if (!tab || (tab[0] === 'compiles' && model.allCompiles.length === 0)) return null;
  const hasCollectives = (model.counts.get('collectives') ?? 0) > 0 || model.index.profile.collectives.some((n) => (n ?? 0) > 0);
  if (tab[1].tab === 'collectives' && !hasCollectives) return null;
  if (tab[1].tab === 'execution' && !model.counts.get('executions')) return null;
  return tab;
}

// What to try, where it is a command whose answer is a view of this page: that view.
function viewOfCommand(text: string): [string, string] | undefined {
  const [, findings] = /^tlparse findings .*--launch (\d+)$/.exec(text) ?? [];
  if (findings) return [href([], { launch: findings }), `the findings of launch ${findings}`];
  const [, a, b] = /^tlparse diff .*--launch (\d+) (\d+)$/.exec(text) ?? [];
  return a && b ? [href(['compare'], { a: `l${a}`, b: `l${b}` }), `launch ${a} against launch ${b}`] : undefined;
}

// Addresses of PyTorch's own pages in a text are links; another one, which a log may have made up, stays a text.
function WithLinks({ text }: { text: string }) {
  const parts = text.split(/(https:\/\/(?:meta-pytorch\.github\.io|docs\.pytorch\.org|pytorch\.org)\/[\w./#-]*[\w/#-])/);
  return (
    <>
      {parts.map((part, i) =>
        i % 2 === 1 ? (
          <a href={part} target="_blank" rel="noreferrer noopener">
            {part}
          </a>
        ) : (
          part
        ),
      )}
    </>
  );
}

// The view of a compile that shows the line which the finding names.
function viewOfPlace(t: FindingTable, row: number): [string, string] | undefined {
  const place = `${t.file[row]}:${t.line[row]}`;
  const compile = t.place_compile_id[row];
  switch (t.place_view[row]) {
    case 'provenance':
      return [href(['provenance', t.place_graph_id[row]!], { sel: `source:${place}` }), 'its kernels'];
    case 'text':
      return [href(['compile', compile!], { record: t.place_record_id[row], lines: t.place_line[row] }), 'in its text'];
  }
  return undefined;
}

// "7/1 … 7/7 limit_fullgraph"
function Work({ function: name, compiles }: Card['work'][number]) {
  const shown = compiles.length > 3 ? [compiles[0], compiles[compiles.length - 1]] : compiles;
  return (
    <span class="work">
      {shown.map((compile, i) => (
        <>
          {i > 0 && (compiles.length > 3 ? ' … ' : ' ')}
          <CompileLink compile={compile} />
        </>
      ))}{' '}
      <code>{shorten(name ?? '', 60)}</code>
    </span>
  );
}

function Finding({ model, t, card, isLead }: { model: Model; t: FindingTable; card: Card; isLead: boolean }) {
  const { row, evidence, work } = card;
  const [isOpen, setOpen] = useState(false);
  const hasMore = Boolean(t.detail[row]) || evidence.length > 0 || (t.try[row] ?? '').length > 150;
  const element = useRef<HTMLLIElement>(null);
  const isAsked = new URLSearchParams(location.hash.split('?')[1]).get('finding') === card.id;
  useEffect(() => {
    if (isAsked) element.current?.scrollIntoView({ block: 'center' });
  }, []);
  const [page, query] = tabOfFinding(model, t.kind[row] ?? '') ?? ['', {}];
  const command = viewOfCommand(t.try[row] ?? '');
  const mark = markOf('findings.finding', t.id[row] ?? '');
  const shownIn = viewOfPlace(t, row);
  const since = t.since_us[row];
  const title = shorten(t.title[row] ?? '', 1000);
  return (
    <li ref={element} class={`finding ${t.severity[row]} ${mark ?? ''} ${isAsked ? 'asked' : ''}`}>
      <div class="finding-title">
        <span class={`tag severity-${t.severity[row]}`}>{t.severity[row]}</span>
        {mark && <span class="tag mark">{mark}</span>}
        {isLead ? <h2>{title}</h2> : <h3>{title}</h3>}
        <span class="finding-tools">
          {since !== null && (
            <time class="quiet" title={utc(model.originUs + since)}>
              {utc(model.originUs + since).slice(11, 19)}
            </time>
          )}
          {hasMore && (
            <button
              class="link"
              aria-expanded={isOpen}
              aria-label={isOpen ? 'Hide details' : evidence.length > 0 ? plural(evidence.length, 'symptom') : 'Details'}
              onClick={() => setOpen(!isOpen)}
            >
              {evidence.length > 0 ? plural(evidence.length, 'symptom') : 'Details'} {isOpen ? '▾' : '▸'}
            </button>
          )}
          <CopyButton title="Copy as Markdown" short="Copy" text={() => t.markdown[row] ?? ''} />
          <CopyButton
            title="Copy link"
            short="Link"
            text={() => `${location.href.split('#')[0]}${href([], { finding: card.id, launch: model.launches > 1 ? model.launch : null })}`}
          />
        </span>
      </div>
      {(t.file[row] || work.length > 0 || page || command) && (
        <p class="finding-where">
          {t.file[row] &&
            (model.allCompiles.length > 0 ? (
              <Place file={t.file[row]} line={t.line[row]} />
            ) : (
              <span class="place">{wholePlace(t.file[row]!, t.line[row])}</span>
            ))}
          {t.code[row] && <code class="code-quote">{shorten(t.code[row]!, 300)}</code>}
          {work.slice(0, 3).map((one) => (
            <Work {...one} />
          ))}
          {work.length > 3 && <span class="quiet">and {plural(work.length - 3, 'more function')}</span>}
          {shownIn && (
            <a class="shown-in" href={shownIn[0]}>
              {shownIn[1]}
            </a>
          )}
          {page && <a href={href([page], query)}>{tabNames[query.tab ?? ''] ?? 'import log'}</a>}
          {command && <a href={command[0]}>{command[1]}</a>}
        </p>
      )}
      {t.try[row] && !command && (
        <p class={isOpen ? '' : 'finding-try'} title={isOpen ? undefined : t.try[row]!}>
          <b>Try:</b> <WithLinks text={shorten(t.try[row]!, 1000)} />
        </p>
      )}
      {isOpen && (
        <div class="finding-more">
          {t.detail[row] && <p>{shorten(t.detail[row]!, 2000)}</p>}
          {evidence.length > 0 && (
            <ul>
              {evidence.map((one) => (
                <li>
                  {shorten(t.title[one] ?? '', 1000)} {t.detail[one] && <span class="quiet">{shorten(t.detail[one]!, 1000)}</span>}
                </li>
              ))}
            </ul>
          )}
        </div>
      )}
    </li>
  );
}

// Copies a text; without the permission (a page from file:// may lack it) the text is shown to be copied by hand.
export function CopyButton({ title, short, text }: { title: string; short?: string; text: () => string }) {
  const [state, setState] = useState<'' | 'copied' | 'shown'>('');
  return (
    <>
      <button
        class="link"
        title={short && title}
        aria-label={short && state !== 'copied' ? title : undefined}
        onClick={() => {
          const written = navigator.clipboard ? navigator.clipboard.writeText(text()) : Promise.reject(new Error('no clipboard'));
          written.then(() => setState('copied')).catch(() => setState('shown'));
        }}
      >
        {state === 'copied' ? 'Copied' : (short ?? title)}
      </button>
      {state === 'shown' && <textarea class="copy-text" readOnly rows={8} value={text()} aria-label={title} ref={(element) => element?.select()} />}
    </>
  );
}

// What is said where no finding is above a note.
function calm(model: Model, cards: Card[]): string {
  if (isFollowing()) return 'No findings by now. What only the end of the logs can show (who stopped first, who lacks compiles) is reported at the end.';
  const above = cards.length > 0 ? 'No finding above a note' : 'No findings';
  if (model.index.log_file.rows === 0)
    return `${above}. ${cards.length > 0 ? 'No structured trace is among the input.' : 'Of compiles nothing is known: no log was read.'}`;
  const ranks = model.peers.filter((process) => process.rank !== null).length > 1 ? ', and nothing sets ranks apart' : '';
  return cards.length > 0 ? `${above}.` : `${above}: no compile failed or stopped${ranks}.`;
}

export function Findings({ model, findings }: { model: Model; findings: Chunks['findings'] }) {
  const t = findings.finding;
  const cards = cardsOfRank(cardsOf(findings, model), t, model.rank);
  const asked = new URLSearchParams(location.hash.split('?')[1]).get('finding');
  const [all, setAll] = useState(cards.findIndex((card) => card.id === asked) >= most);
  const total = findings.answer.findings[0] ?? cards.length;
  const isCalm = cards.every((card) => t.severity[card.row] === 'note');
  return (
    <>
      {isCalm && <h2 class="verdict">{calm(model, cards)}</h2>}
      <ul class="findings">
        {(all ? cards : cards.slice(0, most)).map((card, i) => (
          <Finding key={`${card.id} ${t.launch[card.row]}`} model={model} t={t} card={card} isLead={i === 0 && !isCalm} />
        ))}
      </ul>
      {cards.length > 1 && (
        <div class="findings-foot">
          {cards.length > most && (
            <button class="link" onClick={() => setAll(!all)}>
              {all ? 'Show fewer' : `and ${cards.length - most} more`}
            </button>
          )}
          <CopyButton title="Copy all as Markdown" text={() => findings.answer.markdown[0] ?? ''} />
        </div>
      )}
      {all && model.rank === null && total > cards.length && <p class="quiet">{total - cards.length} more are not on this page: tlparse findings trace.db</p>}
    </>
  );
}
