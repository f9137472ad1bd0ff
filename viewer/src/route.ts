// Every view is a location.hash (#/path?name=value): it works the same from file:// and over HTTP, can be shared, and back and
// forward work.
import { useEffect, useState } from 'preact/hooks';

export interface Route {
  path: string[]; // ["compile", "12"]
  query: URLSearchParams;
}

export type Query = Record<string, string | number | null | undefined>;

export function parseRoute(hash: string): Route {
  const text = hash.replace(/^#\/?/, '');
  const at = text.indexOf('?');
  const path = (at < 0 ? text : text.slice(0, at))
    .split('/')
    .filter(Boolean)
    .map((part) => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part;
      }
    });
  return { path, query: new URLSearchParams(at < 0 ? '' : text.slice(at + 1)) };
}

// What is chosen at the top of the page stays chosen: links carry it.
const chosenNames = ['launch', 'rank'];
let chosenOf: { hash: string; chosen: Query } | undefined;
function chosen(): Query {
  if (chosenOf?.hash !== location.hash) {
    const { query } = parseRoute(location.hash);
    chosenOf = { hash: location.hash, chosen: Object.fromEntries(chosenNames.map((name) => [name, query.get(name)])) };
  }
  return chosenOf.chosen;
}

export function href(path: (string | number)[], query: Query = {}): string {
  const pairs = Object.entries({ ...query, ...Object.fromEntries(Object.entries(chosen()).filter(([name]) => !(name in query))) }).filter(
    ([, value]) => value !== null && value !== undefined && value !== '',
  );
  const search = new URLSearchParams(pairs.map(([name, value]) => [name, String(value)])).toString();
  return `#/${path.map((part) => encodeURIComponent(part)).join('/')}${search ? `?${search}` : ''}`;
}

// A view of another run, in which nothing is chosen yet. `search`: the address of that run.
export function hrefOfRun(search: string, path: (string | number)[]): string {
  return `${location.pathname}${search}#/${path.map((part) => encodeURIComponent(part)).join('/')}`;
}

let askedFor = 0; // number of views requested so far; only the last is shown

// Shows a view at once: the browser reports its own changes of the address a task and often a frame later.
function show(target: string): void {
  askedFor++;
  document.querySelector('main')?.removeAttribute('aria-busy');
  location.hash = target;
  window.dispatchEvent(new HashChangeEvent('hashchange'));
}

type Prepare = (route: Route) => Promise<unknown> | undefined;
let prepare: Prepare | undefined;

// Shows a view with its data, if they load quickly, so that a half empty view is not drawn first.
export function go(target: string): void {
  const ready = prepare?.(parseRoute(target));
  if (!ready) return show(target);
  const asked = ++askedFor;
  const pathOf = () => parseRoute(location.hash).path.join('/');
  const from = pathOf();
  const main = document.querySelector('main');
  const showIfStillAsked = () => {
    if (asked !== askedFor) return;
    if (pathOf() === from) show(target);
    else main?.removeAttribute('aria-busy'); // the user went back meanwhile
  };
  main?.setAttribute('aria-busy', 'true');
  void Promise.race([ready.catch(() => undefined), new Promise((resolve) => setTimeout(resolve, 80))]).then(showIfStillAsked);
}

// Handles links that open in this window. `prepareRoute` loads the data of a view as soon as the mouse button is pressed on its link;
// it returns nothing if all is loaded.
export function followLinks(prepareRoute: Prepare): void {
  prepare = prepareRoute;
  const targetOf = (event: MouseEvent): string | undefined => {
    if (event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return undefined;
    const target = (event.target as Element).closest?.('a')?.getAttribute('href');
    return target?.startsWith('#') ? target : undefined;
  };
  document.addEventListener('pointerdown', (event) => {
    const target = targetOf(event);
    if (target) prepareRoute(parseRoute(target))?.catch(() => undefined);
  });
  document.addEventListener('click', (event) => {
    const target = targetOf(event);
    if (!target) return;
    event.preventDefault();
    go(target);
  });
}

// Changes the query of the current view. `push` makes a step that "back" returns from; typing in a filter does not.
export function setQuery(changes: Query, push = false): void {
  const route = parseRoute(location.hash);
  const query: Query = Object.fromEntries(route.query);
  Object.assign(query, changes);
  const target = href(route.path, query);
  if (target === location.hash) return;
  if (push) show(target);
  else {
    history.replaceState(null, '', target);
    window.dispatchEvent(new HashChangeEvent('hashchange'));
  }
}

export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const update = () => setHash(location.hash);
    window.addEventListener('hashchange', update);
    return () => window.removeEventListener('hashchange', update);
  }, []);
  return parseRoute(hash);
}
