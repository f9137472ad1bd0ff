// The bar of a page that follows a job: the age of its data, what is new, and whether the connection is lost.
import { useState } from 'preact/hooks';
import { countMarks, markMs } from '../data/changes';
import { isLive, loaded } from '../data/chunks';
import { reloadNote, useLive, type Live } from '../data/live';
import { plural, shorten, utc } from '../lib/format';

export const clock = (us: number) => utc(us).slice(11, 19);

// Only rows that a list shows with a mark.
function news(): string {
  const kinds: [string, string, string][] = [
    ['findings.finding', 'finding', 'findings'],
    ['compiles.compile', 'compile', 'compiles'],
    ['index.process', 'process', 'processes'],
  ];
  const counted = kinds.map(([table, one, many]) => ({ one, many, ...countMarks(table) }));
  const list = (change: 'new' | 'changed') =>
    counted
      .filter((kind) => kind[change] > 0)
      .map((kind) => plural(kind[change], kind.one, kind.many))
      .join(', ');
  const parts = [list('new') && `new: ${list('new')}`, list('changed') && `changed: ${list('changed')}`].filter(Boolean);
  return parts.length > 0 ? `In the last ${markMs / 1000} s ${parts.join('; ')}` : '';
}

function sentence(live: Live): [string, string] {
  const { answer, shownAtUs, lostSinceUs } = live;
  const shown = shownAtUs === undefined ? 'nothing is shown yet' : `shown is the state of ${clock(shownAtUs)} UTC`;
  if (live.isReplaced)
    return [
      'lost',
      `Another tlparse process answers here now. What is shown is the state of ${shownAtUs === undefined ? 'none' : `${clock(shownAtUs)} UTC`} of the earlier one; the page is being loaded anew.`,
    ];
  if (lostSinceUs !== undefined) return ['lost', `Connection lost since ${clock(lostSinceUs)} UTC; ${shown}. It is tried again each second.`];
  if (!answer) return ['', 'Asking tlparse how far it is…'];
  if (answer.phase === 'ended') return ['ended', `${answer.end} ${shown[0].toUpperCase()}${shown.slice(1)}.`];
  if (answer.phase === 'ending') return ['ended', `The watch is ending: tlparse is completing the database; ${shown}.`];
  const from = shorten(answer.source, 200);
  if (loaded('index')?.log_file.rows === 0) return ['', `Waiting for the first log in ${from}; ${shown}.`];
  const ageS = shownAtUs === undefined ? 0 : Math.round((answer.now_us - shownAtUs) / 1e6);
  return ['', `Following ${from}; ${shown}${ageS > 10 ? `, ${ageS} s ago` : ''}.`];
}

export function LiveBar() {
  const live = useLive();
  const [note, setNote] = useState(reloadNote);
  const [tone, text] = sentence(live);
  const isConnected = tone === '' && live.answer !== undefined;
  return (
    <>
      {note && (
        <p class="live" role="status">
          The page was loaded anew at {note}.{' '}
          <button class="link" onClick={() => setNote(null)}>
            Hide
          </button>
        </p>
      )}
      {isLive && (
        <div class={`live ${tone}`}>
          <span class={`live-dot ${isConnected ? 'on' : ''}`} aria-hidden="true" />
          {/* What it says each second is not read out: only that it has changed its mind. */}
          <span role="status" aria-live={tone ? 'polite' : 'off'}>
            {text}
          </span>
          <span class="live-news">{news()}</span>
        </div>
      )}
    </>
  );
}

// The state of the ranks, in the same words as on the terminal.
export function RanksNow() {
  const { answer } = useLive();
  if (!isLive || !answer || answer.lines_at_us === null) return null;
  const isEnded = answer.phase === 'ended';
  return (
    <section class="section">
      <header class="section-head">
        <h2>{isEnded ? 'Where the ranks stood' : 'Where the ranks stand'}</h2>
        <div class="aside quiet">at {clock(answer.lines_at_us)} UTC</div>
      </header>
      <ul class="ranks-now">
        {answer.lines.map((line) => (
          <li>{shorten(line, 1000)}</li>
        ))}
      </ul>
    </section>
  );
}
