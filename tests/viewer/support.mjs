// What the tests of the viewer share: reports of real traces, a server, a browser that notes every complaint.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import vm from 'node:vm';
import { gunzipSync } from 'node:zlib';

function setting(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run the tests through ctest, or see tests/viewer/CMakeLists.txt`);
  return value;
}
export const tlparse = setting('TLPARSE');
export const source = setting('TRACEKIT_SOURCE');
export const outDirectory = setting('VIEWER_OUT');
export const screenshots = path.join(outDirectory, 'screenshots');
export const require = createRequire(path.join(setting('VIEWER_MODULES'), 'package.json'));

const reports = new Map();

// The report of a bundled trace (a name below fixtures/logs) or of any path, made once per test file. Screenshots show the path.
export function reportOf(trace, input = path.join('fixtures/logs', trace), ...options) {
  const key = [trace, ...options].join('');
  if (!reports.has(key)) {
    const directory = path.join(outDirectory, 'reports', `${path.basename(process.argv[1], '.test.mjs')}-${key}`);
    mkdirSync(path.dirname(directory), { recursive: true });
    execFileSync(tlparse, [input, '-o', directory, '--overwrite', ...options], { cwd: source, stdio: ['ignore', 'ignore', 'pipe'] });
    reports.set(key, directory);
  }
  return reports.get(key);
}

export function pageUrl(directory) {
  assert.ok(existsSync(path.join(directory, 'index.html')), `${directory} has no index.html`);
  return pathToFileURL(path.join(directory, 'index.html')).href;
}

export function chunkNames(directory) {
  return readdirSync(path.join(directory, 'data')).map((name) => name.replace(/\.js$/, '').replace('-', '/'));
}

// The document of a chunk: a large one is packed.
const documentOf = (value) => (typeof value === 'string' ? JSON.parse(gunzipSync(Buffer.from(value, 'base64'))) : value);

// The chunks in files of a report, by name.
export function chunksIn(directory, ...names) {
  const chunks = new Map();
  for (const file of names.length > 0 ? names.map((name) => `${name.replace('/', '-')}.js`) : readdirSync(path.join(directory, 'data'))) {
    vm.runInNewContext(readFileSync(path.join(directory, 'data', file), 'utf8'), {
      tlparse_chunk: (name, value) => chunks.set(name, JSON.parse(JSON.stringify(documentOf(value)))),
    });
  }
  return chunks;
}

// The tables of a chunk as rows.
export function rowsOfChunk(directory, name) {
  const chunk = chunksIn(directory, name).get(name);
  const textOf = (cell) => (cell === null ? null : chunk.strings[cell]);
  return Object.fromEntries(Object.entries(chunk.tables).map(([table, { rows, numbers, texts }]) => [table, Array.from({ length: rows }, (_, i) => Object.fromEntries([...Object.entries(numbers).map(([column, cells]) => [column, cells[i]]), ...Object.entries(texts).map(([column, cells]) => [column, textOf(cells[i])])]))]));
}

// `tlparse serve`; resolves when it says where. Call stop().
export async function serve(target, ...options) {
  const child = spawn(tlparse, ['serve', target, '--port', '0', ...options], { stdio: ['ignore', 'pipe', 'pipe'] });
  let complaint = '';
  child.stderr.on('data', (data) => (complaint += data));
  const url = await new Promise((resolve, reject) => {
    let text = '';
    child.stdout.on('data', (data) => {
      text += data;
      if (text.includes('\n')) resolve(text.split('\n')[0]);
    });
    child.on('exit', (code) => reject(new Error(`tlparse serve ended with ${code}: ${complaint}`)));
  });
  const ended = new Promise((resolve) => child.on('exit', resolve));
  return {
    url,
    stop: async () => {
      child.kill('SIGINT');
      return ended;
    },
  };
}

// With few processes, which takes two thirds of the CPU; what measures times passes no arguments.
export async function launch(args = ['--in-process-gpu', '--renderer-process-limit=1', '--no-zygote']) {
  const { chromium } = require('playwright-core');
  // In a container Chromium's own sandbox needs rights that a build user seldom has.
  return chromium.launch({ executablePath: setting('CHROMIUM'), args: ['--no-sandbox', '--disable-gpu', ...args] });
}

// A page that remembers what went wrong on it: console errors, exceptions, and requests that leave its origin.
export async function openPage(browser, origin, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme: 'light', ...options });
  const page = await context.newPage();
  const problems = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') problems.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => problems.push(`exception: ${error.message}`));
  page.on('dialog', (dialog) => {
    problems.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(origin) && !url.startsWith('data:') && !url.startsWith('blob:')) problems.push(`request: ${url}`);
  });
  return { page, context, problems };
}

const axeSource = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');


// What axe says of the page's accessibility.
export async function violationsOf(page) {
  // Injected through the debugger: the page's own policy would refuse it as a script.
  await page.evaluate(axeSource);
  return page.evaluate(async () => (await window.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] })).violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => `${n.target} ${n.any[0]?.message ?? ''}`).join(' | ')}`));
}

// Goes to a view and waits until nothing says it is loading.
export async function visit(page, base, hash) {
  await page.goto(base + hash);
  await settle(page);
}

export async function settle(page) {
  await page.waitForFunction(() => document.querySelector('main:not([aria-busy])') && !document.querySelector('.loading') && !/loading…|comparing ranks…|loading \d/.test(document.querySelector('main').textContent));
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
}

export async function readChunk(page, name) {
  const value = await page.evaluate(
    (wanted) =>
      new Promise((resolve, reject) => {
        const before = window.tlparse_chunk;
        window.tlparse_chunk = (own, value) => {
          if (own === wanted) resolve(value);
          else before(own, value);
        };
        const script = document.createElement('script');
        script.src = `data/${wanted.replace('/', '-')}.js`;
        script.onload = () => (window.tlparse_chunk = before);
        script.onerror = () => reject(new Error(`no ${wanted}`));
        document.head.append(script);
      }),
    name,
  );
  return documentOf(value);
}

// Every page, by the name of its screenshot.
export const views = [
  ['overview', '#/'],
  ['compiles', '#/compiles'],
  ['compiles-sorted', '#/compiles?sort=-duration&q=-status%3Aempty'],
  ['stacks', '#/compiles?tab=stacks'],
  ['recompiles', '#/compiles?tab=recompiles'],
  ['breaks', '#/compiles?tab=breaks'],
  ['failures', '#/compiles?tab=failures'],
  ['compile', '#/compile/1'],
  ['guards', '#/compile/1?view=guards'],
  ['metrics', '#/compile/1?view=metrics'],
  ['process', '#/process/1'],
  ['ranks', '#/ranks'],
  ['cache', '#/ranks?tab=cache'],
  ['collectives', '#/ranks?tab=collectives'],
  ['execution', '#/ranks?tab=execution'],
  ['provenance-list', '#/provenance'],
  ['compare', '#/compare'],
  ['source', '#/source'],
  ['time', '#/time'],
  ['time-events', '#/time?by=event'],
  ['time-flame', '#/time?view=flame'],
  ['timeline', '#/timeline'],
  ['import-log', '#/import-log'],
  ['export', '#/export'],
  ['search', '#/search?q=forward'],
  ['sql', '#/sql'],
];
