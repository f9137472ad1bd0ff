// Keys of the page, and the list of them and of the words of filters.
import { useEffect, useRef, useState } from 'preact/hooks';
import { prefixWords } from '../data/search';

// Keys without a modifier, while nothing is typed into; returns what takes them away.
export function onKeys(acts: Record<string, () => void>): () => void {
  const listener = (event: KeyboardEvent) => {
    const isTyping = (event.target as Element).closest?.('input,textarea,select,[role=application]');
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey || !(event.key in acts)) return;
    acts[event.key]();
    event.preventDefault();
  };
  window.addEventListener('keydown', listener);
  return () => window.removeEventListener('keydown', listener);
}

// A choice that the browser keeps, where it may.
export function useStored<T>(name: string, initial: T): [T, (change: T | ((old: T) => T)) => void] {
  const [value, setValue] = useState<T>(() => {
    try {
      return JSON.parse(localStorage.getItem(name) ?? '') as T;
    } catch {
      return initial;
    }
  });
  const change = (next: T | ((old: T) => T)) =>
    setValue((old) => {
      const now = typeof next === 'function' ? (next as (old: T) => T)(old) : next;
      try {
        localStorage.setItem(name, JSON.stringify(now));
      } catch {
        // Without storage it holds for this page only.
      }
      return now;
    });
  return [value, change];
}

const keys: [string, string][] = [
  ['/', 'search'],
  ['?', 'this list'],
  ['↑ ↓ Enter', 'in a table: move, open'],
  ['← → + −, w a s d', 'on the timeline: move, zoom; Home: all of it'],
  ['n p', 'among linked lines: next, previous'],
  ['w', 'texts and linked panes: wrap long lines'],
];
const filters: [string, string][] = [
  ['word -word "two words"', 'must be there; must not; as one'],
  ['status:failed rank:3 launch:1 function:f file:a.py cache:miss', 'compiles, by column'],
  ['code:bad_payload severity:error file:x', 'import log'],
  [prefixWords.join(' '), 'search: what is searched'],
];

export function KeyHelp() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => onKeys({ '?': () => dialog.current?.showModal() }), []);
  const list = (rows: [string, string][]) => (
    <dl class="key-list">
      {rows.map(([key, what]) => (
        <>
          <dt>
            <code>{key}</code>
          </dt>
          <dd>{what}</dd>
        </>
      ))}
    </dl>
  );
  return (
    <>
      <button class="theme" title="Keys and words of filters: ?" aria-label="Keys and words of filters" onClick={() => dialog.current?.showModal()}>
        ?
      </button>
      <dialog ref={dialog} aria-label="Keys and words of filters" onClick={(event) => event.target === event.currentTarget && event.currentTarget.close()}>
        <h2>Keys</h2>
        {list(keys)}
        <h2>Words of filters</h2>
        {list(filters)}
        <form method="dialog">
          <button>Close</button>
        </form>
      </dialog>
    </>
  );
}
