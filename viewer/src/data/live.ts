// Follows `tlparse watch --serve`: polls the revision of the database, reloads the shown data when it has changed, and detects that the
// connection is lost, that the watch has ended, and that another process or another database answers.
import { useEffect, useState } from 'preact/hooks';
import type { LiveAnswer } from '../../generated/chunks';
import { isLive, isServed, pageName, refresh, shownState } from './chunks';

export interface Live {
  answer?: LiveAnswer; // the latest
  shownAtUs?: number; // time of the data that is shown
  lostSinceUs?: number; // set: no answer since then
  isReplaced?: boolean; // another process answered; the page is about to reload
}

let live: Live = {};
const listeners = new Set<() => void>();
let answeredAtMs = 0;
let clockUs = 0; // the clock of tlparse less that of the browser

function tell(next: Live): void {
  live = next;
  for (const listener of [...listeners]) listener();
}

// Whether the logs that are shown may still grow.
export const isFollowing = (): boolean => isLive && live.answer?.phase !== 'ended';

const noAnswerMs = 7000; // the server delays an answer by two seconds at most
const leastPauseMs = 1000; // between two refreshes
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function ask(): Promise<LiveAnswer | 'another'> {
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), noAnswerMs);
  try {
    const response = await fetch(`api/live?page=${pageName}&after=${live.answer?.sequence ?? 0}`, { signal: abort.signal });
    if (response.status === 404) return 'another'; // of `tlparse serve`
    if (!response.ok) throw new Error(await response.text());
    return (await response.json()) as LiveAnswer;
  } finally {
    clearTimeout(timer);
  }
}

const reloadedKey = 'tlparse-reloaded';

// Another process answers: the data on the page is not from it, so the page reloads.
async function loadAnew(isSameRun: boolean): Promise<void> {
  tell({ ...live, isReplaced: true });
  try {
    sessionStorage.setItem(
      reloadedKey,
      `${new Date().toISOString().slice(11, 19)} UTC: another tlparse process answered here, ${isSameRun ? 'with the same run' : 'with another database'}`,
    );
  } catch {
    // Without storage the reason is not shown after the reload.
  }
  if (!isSameRun) history.replaceState(null, '', '#/'); // ids in the address were those of another database
  await sleep(1500);
  location.reload();
}

// Why the page was reloaded; the stored reason is removed, so that it is shown once.
export function reloadNote(): string | null {
  if (!isServed) return null;
  try {
    const note = sessionStorage.getItem(reloadedKey);
    sessionStorage.removeItem(reloadedKey);
    return note;
  } catch {
    return null;
  }
}

let shownView = 0;
let refreshedAtMs = 0;
let pauseMs = leastPauseMs;

// Reloads the shown data if it is out of date, with a pause after each reload that depends on how long it took.
async function follow(answer: LiveAnswer, isBack: boolean): Promise<void> {
  const isOld = isBack || shownState()?.revision !== answer.revision;
  const isOldView = answer.view !== shownView && Date.now() - refreshedAtMs > 2 * leastPauseMs;
  const isUnseen = document.visibilityState !== 'visible' && answer.phase !== 'ended';
  if (isUnseen || answer.phase === 'ending' || (!isOld && !isOldView)) return;
  const wait = refreshedAtMs + pauseMs - Date.now();
  if (wait > 2 * leastPauseMs) return;
  if (wait > 0) await sleep(wait);
  const began = Date.now();
  await refresh(isOld ? undefined : 'findings').catch(() => undefined);
  shownView = answer.view;
  refreshedAtMs = Date.now();
  pauseMs = Math.max(leastPauseMs, 4 * (refreshedAtMs - began));
}

async function run(): Promise<void> {
  for (;;) {
    let answer: LiveAnswer | 'another';
    try {
      answer = await ask();
    } catch {
      if (live.answer?.phase === 'ended') return; // it has announced its end
      if (live.lostSinceUs === undefined) tell({ ...live, lostSinceUs: (answeredAtMs || Date.now()) * 1000 + clockUs });
      await sleep(leastPauseMs);
      continue;
    }
    const known = live.answer;
    if (answer === 'another') return loadAnew(false);
    if (known && answer.process !== known.process) return loadAnew(answer.run === known.run);
    const isBack = live.lostSinceUs !== undefined;
    answeredAtMs = Date.now();
    clockUs = answer.now_us - answeredAtMs * 1000;
    const knewEnd = known?.phase === 'ended' && shownState()?.revision === answer.revision;
    tell({ answer, shownAtUs: shownAt(answer) });
    await follow(answer, isBack);
    tell({ ...live, shownAtUs: shownAt(answer) });
    if (knewEnd) return;
    // If too many pages poll, the server answers without delay.
    if (answer.sequence === known?.sequence) await sleep(300);
  }
}

function shownAt(answer: LiveAnswer): number | undefined {
  const shown = shownState();
  return shown && (shown.revision === answer.revision ? Math.max(answer.looked_at_us, shown.lookedAtUs) : shown.lookedAtUs);
}

let isRunning = false;

export function useLive(): Live {
  const [, draw] = useState(0);
  useEffect(() => {
    const listener = () => draw((old) => old + 1);
    listeners.add(listener);
    if (isLive && !isRunning) {
      isRunning = true;
      void run();
    }
    // Also without answers: to detect a lost connection, and to remove marks that have expired.
    const timer = isLive ? setInterval(listener, leastPauseMs) : 0;
    return () => {
      listeners.delete(listener);
      clearInterval(timer);
    };
  }, []);
  return live;
}
