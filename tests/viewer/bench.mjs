// How long people wait: first view, interactions, scrolling, from the browser's own performance timeline. Prints a table; judges nothing.
//   node bench.mjs <report directory>…      (tests/bench/bench_viewer.py makes the reports and sets the environment of support.mjs)
// The reports are walked in turn, BENCH_PASSES times (3), so that two builds of the page are compared in the same minutes.
// Each first click is measured in a new browser, at the first view (BENCH_ONLY=cold: nothing else is measured).
// BENCH_ONLY=memory leaves out what is no memory. BENCH_WAYS=file leaves out the server; BENCH_RANGE=1 prints the least and the greatest time beside the median.
import { readdirSync, statSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import path from 'node:path';
import { launch, openPage, pageUrl, serve, settle, visit } from './support.mjs';

const passes = Number(process.env.BENCH_PASSES ?? 3);
const only = process.env.BENCH_ONLY;
const results = new Map(); // what: Map of column: values

function note(column, what, value) {
  if (!results.has(what)) results.set(what, new Map());
  const cells = results.get(what);
  if (!cells.has(column)) cells.set(column, []);
  cells.get(column).push(value);
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}

async function firstView(browser, base, column) {
  for (let i = 0; i < 2; i++) {
    const { page, context } = await openPage(browser, base);
    await page.goto(base);
    await page.waitForFunction(() => performance.getEntriesByName('first-view').length > 0, null, { timeout: 120_000 });
    note(column, 'first view, ms', await page.evaluate(() => performance.getEntriesByName('first-view')[0].startTime));
    await context.close();
  }
}

// From an input to the frame that shows what was asked for, in ms: the longest event that the browser noted (it does so from 16 ms on,
// in steps of 8), or the time from the last input until `there` matches (and says `text`) and nothing says it is loading, if that is longer.
// `of`: something that has to match as well, in place of nothing that says it is loading.
async function interaction(page, there, act, text, of) {
  await page.evaluate(([selector, wanted, other]) => {
    window.watched = { longest: 0, start: 0, shown: undefined };
    window.watcher?.disconnect();
    window.watcher = new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) window.watched.longest = Math.max(window.watched.longest, entry.duration);
    });
    window.watcher.observe({ type: 'event', durationThreshold: 16 });
    const isShown = () => {
      const element = document.querySelector(selector);
      return element && (wanted === undefined || element.textContent === wanted) && (other ? document.querySelector(other) : !document.querySelector('.loading'));
    };
    const { watched } = window;
    const begin = (event) => {
      watched.start = event.timeStamp;
      watched.shown = undefined;
      const isLast = () => watched.start === event.timeStamp;
      // The frame after the one that shows it: by then that one was drawn.
      const end = (now) => isLast() && (watched.shown = now);
      const look = () => isLast() && requestAnimationFrame(isShown() ? end : look);
      requestAnimationFrame(look);
    };
    window.forget?.();
    const types = ['click', 'keydown', 'wheel'];
    for (const type of types) window.addEventListener(type, begin, true);
    window.forget = () => types.forEach((type) => window.removeEventListener(type, begin, true));
  }, [there, text, of]);
  await act();
  await page.waitForFunction(() => window.watched.shown !== undefined, null, { timeout: 120_000 });
  // Events are reported a while after their frame.
  return page.evaluate(async () => {
    await new Promise((resolve) => setTimeout(resolve, 400));
    return Math.max(window.watched.longest, window.watched.shown - window.watched.start);
  });
}

// What a view says of what it found: typing is measured until that is said.
const says = 'main [role=status], main .empty';
async function statusOf(page, base, hash) {
  await visit(page, base, hash);
  return page.locator(says).first().textContent();
}

// A click as the mouse makes it: locator.click() runs scripts in the page between pressing and releasing, which would be counted.
async function click(page, locator) {
  await locator.scrollIntoViewIfNeeded();
  const { x, y, width, height } = await locator.boundingBox();
  await page.mouse.move(x + width / 2, y + height / 2);
  await page.mouse.click(x + width / 2, y + height / 2);
}

// Times of frames while a list is scrolled from top to bottom, a screen or more with every frame.
async function scroll(page, selector) {
  return page.evaluate(
    (wanted) =>
      new Promise((resolve) => {
        const box = document.querySelector(wanted);
        if (!box || box.scrollHeight <= box.clientHeight + 1) return resolve(null);
        const gaps = [];
        let last = 0;
        const step = (now) => {
          if (last > 0) gaps.push(now - last);
          last = now;
          box.scrollTop += Math.max(600, box.scrollHeight / 240);
          if (gaps.length < 240) requestAnimationFrame(step);
          else resolve(gaps.sort((a, b) => a - b));
        };
        requestAnimationFrame(step);
      }),
    selector,
  );
}

// A row that is drawn around those seen may lie below a head. The rows of the top are there two frames later.
async function scrollBack(page, selector) {
  await page.evaluate((wanted) => {
    for (const box of document.querySelectorAll(wanted)) box.scrollTop = 0;
    return new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve, 50))));
  }, selector);
}

async function noteScroll(page, column, what, selector) {
  const gaps = await scroll(page, selector);
  if (gaps) for (const [name, share] of [['median', 0.5], ['95 %', 0.95], ['longest', 1]]) note(column, `${what}: frame, ${name}, ms`, gaps[Math.ceil(gaps.length * share) - 1]);
}

async function walk(browser, base, column) {
  const first = await openPage(browser, base);
  const filtered = await statusOf(first.page, base, `#/compiles?q=${encodeURIComponent('-empty for')}`);
  await first.context.close();
  const { page, context } = await openPage(browser, base);
  await visit(page, base, '#/');
  await page.waitForTimeout(1000); // people look before they click; meanwhile the page loads and draws ahead
  const report = async (what, there, act, text, of) => note(column, `${what}, ms`, await interaction(page, there, act, text, of));
  await report('open the compiles', '[aria-label=Compiles] .grid-row', () => click(page, page.getByRole('link', { name: /^Compiles/ }).first()));
  await report('sort by function', '[aria-sort=ascending]', () => click(page, page.getByRole('button', { name: 'Function' })));
  await report('type a filter', says, () => page.getByLabel('Filter compiles').pressSequentially('-empty for', { delay: 30 }), filtered);
  await page.getByLabel('Filter compiles').fill('');
  await page.waitForFunction(() => /^[\d,]+ compiles?$/.test(document.querySelector('main [role=status]').textContent));
  await noteScroll(page, column, 'scroll the compiles', '.grid');
  await scrollBack(page, '.grid');
  await report('open a compile', '.records.views', () => click(page, page.locator('.grid-row').nth(3)));
  if ((await page.locator('.records:not(.views) a').count()) > 1) await report('open a text', '.artifact-head', () => click(page, page.locator('.records:not(.views) a').nth(1)));
  const ranks = page.getByRole('link', { name: 'Ranks' });
  if ((await ranks.count()) > 0) await report('open the ranks', '.classes', () => click(page, ranks.first()));
  await visit(page, base, '#/ranks?tab=cache');
  await noteScroll(page, column, 'scroll the matrix', '.matrix');
  await scrollBack(page, '.matrix');
  const cell = page.locator('a.cell[class*="cache-"]').first();
  if ((await cell.count()) > 0) await report('click a cell', '.detail', () => click(page, cell));
  const importLog = page.getByRole('link', { name: 'Import log' });
  if ((await importLog.count()) > 0) {
    await report('open the import log', '.grid-row, .empty', () => click(page, importLog));
    await settle(page);
    await noteScroll(page, column, 'scroll the import log', '.grid');
    if ((await page.locator('.grid-row').count()) > 0) await report('filter the import log', '.grid-row, .empty', () => page.getByLabel('Filter the import log').pressSequentially('no such', { delay: 30 }), undefined);
  }
  await visit(page, base, '#/process/1');
  await noteScroll(page, column, 'scroll the records of a process', '.side');
  await visit(page, base, '#/timeline');
  await page.waitForFunction(() => !/loading \d/.test(document.querySelector('main').textContent), null, { timeout: 120_000 });
  if ((await page.locator('.timeline canvas').count()) > 0) {
    const box = await page.locator('.timeline canvas').boundingBox();
    await page.mouse.move(box.x + box.width / 2, box.y + 60);
    await report('zoom the timeline', '.timeline', () => page.mouse.wheel(0, -300));
    await report('find events', '.timeline', () => page.getByRole('searchbox', { name: 'Find events by name' }).pressSequentially('backend', { delay: 30 }));
  }
  const search = page.getByRole('searchbox', { name: /Search compiles/ });
  const asked = (text) => [() => search.pressSequentially(text, { delay: 30 }), text];
  await report('search: the first hit', 'h1 .quiet', ...asked('fused'), '.hits li, .found-line, .empty');
  await search.fill('');
  await report('search in texts: the first hit', 'h1 .quiet', ...asked('op:addmm'), '.found-line, .empty');
  await context.close();
}

// Frames while the pointer moves over the curve of memory and its wheel zooms the timeline below it.
async function noteFrames(page, column, what, selector, act) {
  if ((await page.locator(selector).count()) === 0) return;
  const box = await page.locator(selector).first().boundingBox();
  await page.evaluate(() => {
    window.gaps = [];
    let last = 0;
    const step = (now) => {
      if (last > 0) window.gaps.push(now - last);
      last = now;
      if (window.gaps) requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  });
  for (let i = 0; i < 120; i++) await act(box, i);
  const gaps = await page.evaluate(() => {
    const own = window.gaps.sort((a, b) => a - b);
    window.gaps = null;
    return own;
  });
  for (const [name, share] of [['median', 0.5], ['95 %', 0.95], ['longest', 1]]) note(column, `${what}: frame, ${name}, ms`, gaps[Math.ceil(gaps.length * share) - 1]);
}

async function walkMemory(browser, base, column) {
  const { page, context } = await openPage(browser, base);
  await visit(page, base, '#/memory');
  if ((await page.locator('.memory-plot').count()) > 0) {
    await noteFrames(page, column, 'move over the memory', '.memory-plot', (box, i) => page.mouse.move(box.x + (box.width * i) / 120, box.y + 50));
    note(column, 'choose a moment, ms', await interaction(page, '.memory h2', () => page.mouse.click(700, 300)));
    await visit(page, base, '#/timeline');
    await noteFrames(page, column, 'zoom memory and timeline', '.memory-strip', (box, i) => page.mouse.move(box.x + 600, box.y + 20).then(() => page.mouse.wheel(0, i < 60 ? -30 : 30)));
  }
  await context.close();
}

// The first click after the first view, at once, in a browser that has seen nothing; what was read until the first view.
const firstClicks = [
  ['the compiles', /^Compiles/, '[aria-label=Compiles] .grid-row'],
  ['the ranks', /^Ranks/, '.classes, .grid-row'],
  ['the source', /^Source/, '.source-code, .side'],
  ['the provenance', /^Provenance/, '.grid-row'],
  ['the time', /^Time$/, '.grid-row'],
  ['the timeline', /^Timeline/, '.timeline canvas'],
  ['the memory', /^Memory/, '.memory-plot'],
];
async function cold(base, column) {
  for (const [what, name, there] of firstClicks) {
    const own = await launch([]);
    const { page } = await openPage(own, base);
    const read = [];
    page.on('requestfinished', (request) => read.push(request));
    await page.goto(base);
    await page.waitForFunction(() => performance.getEntriesByName('first-view').length > 0, null, { timeout: 120_000 });
    note(column, 'cold: first view, ms', await page.evaluate(() => performance.getEntriesByName('first-view')[0].startTime));
    const sizes = await Promise.all(read.splice(0).map(async (request) => (base.startsWith('file:') ? statSync(new URL(request.url().replace(/#.*/, ''))).size : (await request.sizes()).responseBodySize)));
    note(column, 'cold: page and data read before it, MB', sizes.reduce((sum, size) => sum + size, 0) / 1e6);
    const link = page.locator('.top nav').getByRole('link', { name });
    if ((await link.count()) > 0) note(column, `cold: first click, ${what}, ms`, await interaction(page, there, () => click(page, link.first())));
    await own.close();
  }
}

function printTable(columns) {
  const round = (value) => value.toFixed(value < 10 ? 2 : 0);
  const range = (values) => (process.env.BENCH_RANGE && values.length > 1 ? ` (${round(Math.min(...values))}–${round(Math.max(...values))})` : '');
  const cell = (values) => (values ? round(median(values)) + range(values) : '–');
  console.log(`\n| | ${columns.join(' | ')} |\n|---|${columns.map(() => '---').join('|')}|`);
  for (const [what, cells] of results) console.log(`| ${what} | ${columns.map((column) => cell(cells.get(column))).join(' | ')} |`);
}

const load = () => loadavg()[0].toFixed(1);
const before = load();
const columns = new Map(); // name: address
const servers = [];
const browser = await launch([]);
for (const directory of process.argv.slice(2)) {
  const size = (file) => statSync(path.join(directory, file)).size;
  const name = path.basename(directory);
  columns.set(`${name}, file`, pageUrl(directory));
  note(`${name}, file`, 'page and data before the first view, MB', (size('index.html') + size('data/index.js') + size('data/compiles.js') + size('data/findings.js')) / 1e6);
  note(`${name}, file`, 'all data, MB', readdirSync(path.join(directory, 'data')).reduce((sum, file) => sum + size(`data/${file}`), 0) / 1e6);
  if (process.env.BENCH_WAYS === 'file') continue;
  servers.push(await serve(directory));
  columns.set(`${name}, served`, servers.at(-1).url);
}
// The first page starts the browser's processes.
await (await openPage(browser, 'about:blank')).page.goto([...columns.values()][0]);
for (let i = 0; i < passes; i++) {
  for (const [column, base] of columns) {
    if (only !== 'memory') await cold(base, column);
    if (only !== 'cold') await walkMemory(browser, base, column);
    if (only) continue;
    await firstView(browser, base, column);
    await walk(browser, base, column);
  }
  console.error(`walk ${i + 1} of ${passes}`);
}
for (const server of servers) await server.stop();
await browser.close();
printTable([...columns.keys()]);
console.log(`\nMedians of ${passes} walks (first view: ${2 * passes}); ${cpus().length} cores; load ${before} before, ${load()} after.`);
