// The findings, as `tlparse findings` prints them: title, place, suggestion, evidence.
import { useMemo, useState } from 'preact/hooks';
import { markOf } from '../data/changes';
import type { Chunks } from '../data/chunks';
import { isFollowing } from '../data/live';
import type { Compile, Model } from '../data/model';
import { plural, shorten, utc } from '../lib/format';
import { href } from '../route';
import { CompileLink, Place } from './bits';

type Table = Chunks['findings']['finding'];

const most = 15; // that are shown at first: a list that fills screens is not read

// "0-3,6" holds 2.
function holdsRank(ranks: string | null, rank: number | null): boolean {
  if (ranks === null) return true;
  return ranks.split(',').some((part) => {
    const [from, to = from] = part.split('-').map(Number);
    return rank !== null && rank >= from && rank <= to;
  });
}

// The compiles that a finding names, of its launch and the first of its ranks that has them.
function compilesOf(model: Model, t: Table, row: number): Compile[] {
  const labels = (t.compiles[row] ?? '').split(', ').filter(Boolean).slice(0, 8);
  return labels.flatMap((label) => model.compiles.find((compile) => (compile.label === label || compile.title === label) && model.processById.get(compile.processId)?.launch === (t.launch[row] ?? 1) && holdsRank(t.ranks[row], compile.rank)) ?? []);
}

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
const tabNames: Record<string, string> = { cache: 'cache states', collectives: 'collectives', execution: 'execution order', recompiles: 'recompiles', breaks: 'graph breaks', failures: 'failures' };

// The page that shows the line which the finding names.
function placeLink(t: Table, row: number): string | undefined {
  const place = `${t.file[row]}:${t.line[row]}`;
  const compile = t.place_compile_id[row];
  switch (t.place_view[row]) {
    case 'provenance':
      return href(['provenance', t.place_graph_id[row]!], { sel: `source:${place}` });
    case 'text':
      return href(['compile', compile!], { record: t.place_record_id[row], lines: t.place_line[row] });
    case 'compile':
      return href(['compile', compile!]);
  }
  return undefined;
}

function Finding({ model, t, row, evidence }: { model: Model; t: Table; row: number; evidence: number[] }) {
  const compiles = useMemo(() => compilesOf(model, t, row), [model, t, row]);
  const [page, query] = tabOf[t.kind[row] ?? ''] ?? ['', {}];
  const mark = markOf('findings.finding', t.id[row] ?? '');
  return (
    <li class={`finding ${t.severity[row]} ${mark ?? ''}`}>
      <p class="finding-title">
        <span class={`tag severity-${t.severity[row]}`}>{t.severity[row]}</span> {mark && <span class="tag mark">{mark}</span>} <b>{shorten(t.title[row] ?? '', 1000)}</b>
      </p>
      {t.file[row] && (
        <p>
          <Place file={t.file[row]} line={t.line[row]} link={placeLink(t, row)} /> {t.code[row] && <code class="code-quote">{shorten(t.code[row]!, 300)}</code>}
        </p>
      )}
      {t.detail[row] && <p class="quiet">{shorten(t.detail[row]!, 2000)}</p>}
      {t.try[row] && (
        <p>
          <b>Try:</b> {shorten(t.try[row]!, 1000)}
        </p>
      )}
      <p class="finding-links">
        {compiles.map((compile) => (
          <CompileLink compile={compile}>
            {compile.title} <code>{shorten(compile.function ?? '', 60)}</code>
          </CompileLink>
        ))}
        {page && <a href={href([page], query)}>{tabNames[query.tab ?? ''] ?? 'import log'}</a>}
        {t.since_us[row] !== null && <span class="quiet">since {utc(model.originUs + t.since_us[row]!)}</span>}
      </p>
      {evidence.length > 0 && (
        <details>
          <summary>{plural(evidence.length, 'symptom')} of it</summary>
          <ul>
            {evidence.map((one) => (
              <li>
                {shorten(t.title[one] ?? '', 1000)} {t.detail[one] && <span class="quiet">{shorten(t.detail[one]!, 1000)}</span>}
              </li>
            ))}
          </ul>
        </details>
      )}
    </li>
  );
}

// Copies a text; without the permission (a page from file:// may lack it) the text is shown to be copied by hand.
export function CopyButton({ title, text }: { title: string; text: string }) {
  const [state, setState] = useState<'' | 'copied' | 'shown'>('');
  return (
    <>
      <button
        class="link"
        onClick={() => {
          const written = navigator.clipboard ? navigator.clipboard.writeText(text) : Promise.reject(new Error('no clipboard'));
          written.then(() => setState('copied')).catch(() => setState('shown'));
        }}
      >
        {state === 'copied' ? 'Copied' : title}
      </button>
      {state === 'shown' && <textarea class="copy-text" readOnly rows={8} value={text} aria-label={title} ref={(element) => element?.select()} />}
    </>
  );
}

export function Findings({ model, findings }: { model: Model; findings: Chunks['findings'] }) {
  const [all, setAll] = useState(false);
  const t = findings.finding;
  const { tops, evidenceOf } = useMemo(() => {
    const tops: number[] = [];
    const evidenceOf = new Map<number, number[]>();
    t.parent.forEach((parent, row) => {
      if (parent === null) tops.push(row);
      else evidenceOf.set(parent, [...(evidenceOf.get(parent) ?? []), row]);
    });
    return { tops, evidenceOf };
  }, [t]);
  const total = findings.answer.findings[0] ?? tops.length;
  const launches = findings.answer.launch_count[0] ?? 1;
  return (
    <>
      {launches > 1 && (
        <p class="quiet">
          Of launch {findings.answer.launch[0]}, the latest of {launches}; an earlier one that ended otherwise has a note below. All about it: <code>tlparse findings trace.db --launch 1</code>.
        </p>
      )}
      {tops.length === 0 && <p class="quiet">{isFollowing() ? 'No findings by now. What only the end of the logs can show (who stopped first, who lacks compiles) is reported at the end.' : model.index.log_file.rows === 0 ? 'No findings. Of compiles nothing is known: no log was read.' : 'No findings: no compile failed or stopped, and nothing sets ranks apart.'}</p>}
      <ul class="findings">
        {(all ? tops : tops.slice(0, most)).map((row) => (
          <Finding key={`${t.id[row]} ${t.launch[row]}`} model={model} t={t} row={row} evidence={evidenceOf.get(row) ?? []} />
        ))}
      </ul>
      {tops.length > most && (
        <button class="link" onClick={() => setAll(!all)}>
          {all ? 'Show fewer' : `and ${tops.length - most} more`}
        </button>
      )}
      {all && total > tops.length && <p class="quiet">{total - tops.length} more are not on this page: tlparse findings trace.db</p>}
    </>
  );
}
