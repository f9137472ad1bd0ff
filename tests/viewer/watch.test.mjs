// `tlparse watch --serve`: a page that changes while logs grow. What one looks at stays where it is, what is old is never shown as new.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { appendFileSync, mkdirSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import * as hostile from './hostile.mjs';
import { launch, openPage, outDirectory, require, screenshots, settle, source, tlparse, violationsOf } from './support.mjs';

const limit = { timeout: 240_000 }; // of whatever is waited for: no test depends on speed
let browser;
const started = [];
before(async () => {
  mkdirSync(screenshots, { recursive: true });
  browser = await launch();
});
after(async () => {
  for (const child of started) child.kill('SIGKILL');
  await browser.close();
});

// A job whose logs are written by hand: the log of one process, as that of several ranks.
function job(name, ranks = 6) {
  const folder = path.join(outDirectory, 'watched', name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(path.join(folder, 'logs'), { recursive: true });
  const fixture = path.join(source, 'fixtures/logs/recompiles_2_6');
  const text = gunzipSync(readFileSync(path.join(fixture, readdirSync(fixture).find((file) => file.endsWith('.gz')))));
  const written = new Array(ranks).fill(0);
  return {
    folder,
    log: (rank) => path.join(folder, 'logs', `dedicated_log_torch_trace_rank_${rank}_abcdefgh.log`),
    // Lets the logs of some ranks grow to a share of the whole.
    grow(share, of = [...written.keys()]) {
      for (const rank of of) {
        const end = Math.floor(text.length * share);
        appendFileSync(this.log(rank), text.subarray(written[rank], end));
        written[rank] = Math.max(written[rank], end);
      }
    },
  };
}

async function watch(folder, { port = 0, database = 'w.db', options = [] } = {}) {
  const child = spawn(tlparse, ['watch', 'logs', '--db', database, `--serve=127.0.0.1:${port}`, ...options], { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
  started.push(child);
  const url = await new Promise((resolve, reject) => {
    let text = '';
    child.stderr.on('data', (data) => {
      text += data;
      const match = /the page is (\S+)\n/.exec(text);
      if (match) resolve(match[1]);
    });
    child.on('exit', (code) => reject(new Error(`tlparse watch ended with ${code}: ${text}`)));
  });
  const ended = new Promise((resolve) => child.on('exit', (code, signal) => resolve(code ?? signal)));
  return {
    url,
    port: new URL(url).port,
    stop: (signal = 'SIGINT') => {
      child.kill(signal);
      return ended;
    },
  };
}

// Waits until the database has so many compiles.
async function hasCompiles(folder, least) {
  for (const end = Date.now() + limit.timeout; Date.now() < end; await new Promise((resolve) => setTimeout(resolve, 200))) {
    const { stdout } = spawnSync(tlparse, ['sql', 'w.db', 'SELECT count(*) AS n FROM compile', '--json'], { cwd: folder, encoding: 'utf8' });
    if (Number(/\d+/.exec(stdout)?.[0]) >= least) return;
  }
  assert.fail(`${least} compiles did not come`);
}

const bar = (page) => page.locator('div.live');
const says = (page, text) => bar(page).getByText(text).waitFor(limit);
const rowCount = async (page) => Number(await page.getByRole('grid', { name: 'Compiles' }).getAttribute('aria-rowcount')) - 1;
const until = (page, act, ...args) => page.waitForFunction(act, ...args, limit);
const moreRows = (page, than) => until(page, (n) => Number(document.querySelector('[aria-label="Compiles"]')?.getAttribute('aria-rowcount')) - 1 > n, than);
// A request that fails while the connection is cut is what the test wants.
const unexpected = (problems) => problems.filter((problem) => !/net::ERR_|503/.test(problem));

test('rows arrive while one looks: scroll, selection and filter stay, what is new is marked', async () => {
  const made = job('arrive');
  const grow = made.grow.bind(made);
  const server = await watch(made.folder);
  const { page, problems, context } = await openPage(browser, server.url);
  await page.goto(server.url);
  await says(page, /Waiting for the first log in logs; shown is the state of \d\d:\d\d:\d\d UTC/);
  grow(0.5, [0, 1, 2]);
  await says(page, /Following logs; shown is the state of/);
  await until(page, () => /3 ranks \(0-2\)/.test(document.querySelector('.ranks-now')?.textContent));
  await settle(page);
  await page.screenshot({ path: path.join(screenshots, 'watch-early.png') });
  assert.deepEqual(await violationsOf(page), []);

  await page.goto(`${server.url}#/compiles?sort=rank`);
  await page.getByLabel('Filter compiles').fill('-status:failed');
  await until(page, () => /q=-status/.test(location.hash)); // the list is filtered a frame after the last letter
  const grid = page.getByRole('grid', { name: 'Compiles' });
  await grid.focus();
  await page.keyboard.press('End');
  const active = page.locator('.grid-row.active');
  await active.waitFor(limit);
  const readActive = async () => ({ text: (await active.innerText()).split('\n').slice(0, 3).join(' '), at: Number(await active.getAttribute('aria-rowindex')), y: Math.round((await active.boundingBox()).y) });
  const was = await readActive();
  const hadRows = await rowCount(page);
  // Rows of rank 0 come above those of rank 2.
  grow(1, [0]);
  await moreRows(page, hadRows);
  await settle(page);
  const now = await readActive();
  assert.equal(now.text, was.text);
  assert.equal(now.y, was.y, 'the row one looks at is where it was');
  assert.ok(now.at > was.at, `row ${was.at} is row ${now.at}`);
  assert.equal(await page.getByLabel('Filter compiles').inputValue(), '-status:failed');
  assert.match(await page.evaluate(() => location.hash), /sort=rank.*q=-status/);
  await page.keyboard.press('Home');
  // Rows of other ranks that came after the page was opened are marked as well; those of the rank whose log grew last come first.
  await until(page, () => [...document.querySelectorAll('.grid-row.new')].some((row) => row.innerText.split('\n')[1] === '0'));
  assert.match(await bar(page).innerText(), /In the last 30 s new: .*\d+ compiles/);

  // An open compile takes in what comes to it; its list keeps its filter.
  await page.goto(`${server.url}#/compile/1`);
  await page.getByLabel('Filter artifacts').fill('graph');
  grow(1);
  await page.goto(`${server.url}#/`);
  await until(page, () => /6 ranks \(0-5\)/.test(document.querySelector('.ranks-now')?.textContent));
  await settle(page);
  await page.screenshot({ path: path.join(screenshots, 'watch-later.png') });
  assert.deepEqual(unexpected(problems), []);

  // The end.
  const end = server.stop();
  await says(page, /The job is not followed any more: tlparse was asked to stop\. What its logs held by then stays in w\.db\. Shown is the state of/);
  assert.equal(await end, 0);
  assert.match(await page.locator('.section-head', { hasText: 'Where the ranks stood' }).innerText(), /at \d\d:/);
  await page.screenshot({ path: path.join(screenshots, 'watch-ended.png') });
  await context.close();
});

test('a lost connection is said, and comes back with what came meanwhile', async () => {
  const made = job('lost');
  const server = await watch(made.folder);
  made.grow(0.5);
  const { page, context, problems } = await openPage(browser, server.url);
  await page.goto(`${server.url}#/compiles`);
  await until(page, () => document.querySelector('.grid-row'));
  await says(page, /Following logs/);
  const rows = await rowCount(page);
  await context.setOffline(true);
  await says(page, /Connection lost since \d\d:\d\d:\d\d UTC; shown is the state of \d\d:\d\d:\d\d UTC/);
  await page.screenshot({ path: path.join(screenshots, 'watch-lost.png') });
  const stateOf = async () => /state of (\S+)/.exec(await bar(page).innerText())[1];
  const state = await stateOf();
  made.grow(1);
  await hasCompiles(made.folder, rows + 1);
  assert.equal(await stateOf(), state, 'old data is not shown as new');
  assert.equal(await rowCount(page), rows);
  await context.setOffline(false);
  await says(page, /Following logs/);
  await moreRows(page, rows);
  assert.notEqual(await stateOf(), state);
  assert.deepEqual(unexpected(problems), []);
  await server.stop('SIGKILL');
  await context.close();
});

test('a page of an earlier process or database says so and is loaded anew', async () => {
  const made = job('again', 2);
  const first = await watch(made.folder);
  made.grow(0.5);
  const { page, context } = await openPage(browser, first.url);
  await page.goto(`${first.url}#/compiles`);
  await until(page, () => document.querySelector('.grid-row'));
  await first.stop('SIGKILL');
  await says(page, /Connection lost since/);
  const second = await watch(made.folder, { port: first.port });
  await page.getByText(/The page was loaded anew at .* UTC: another tlparse process answered here, with the same run/).waitFor(limit);
  await says(page, /Following logs/);
  assert.equal(await page.evaluate(() => location.hash), '#/compiles');
  await second.stop('SIGKILL');
  const third = await watch(made.folder, { port: first.port, database: 'other.db' });
  await page.getByText(/another tlparse process answered here, with another database/).waitFor(limit);
  assert.equal(await page.evaluate(() => location.hash), '#/', 'an id in the address was of the other database');
  await says(page, /Following logs/);
  await third.stop('SIGKILL');
  await context.close();
});

test('hostile text stays text, and requests of others are refused', async () => {
  const made = job('hostile <img src=x onerror=window.hacked=1>', 0);
  hostile.writeHostileLog(path.join(made.folder, 'logs'));
  const server = await watch(made.folder);
  const { page, context, problems } = await openPage(browser, server.url);
  for (const hash of ['#/', '#/compiles', '#/compile/1', '#/import-log', '#/search?q=img', '#/process/1']) {
    await page.goto(server.url + hash);
    await says(page, /Following/);
    await settle(page);
    assert.equal(await page.evaluate(() => window.hacked), undefined, hash);
    assert.equal(await page.locator('main img, main script, main iframe, .live img').count(), 0, hash);
  }
  for (const target of ['api/live', 'api/chunks?names=index']) {
    assert.equal((await fetch(server.url + target, { headers: { Origin: 'http://evil.example' } })).status, 403, target);
  }
  assert.equal((await fetch(`${server.url}api/chunks?names=`)).status, 400);
  assert.equal((await fetch(`${server.url}api/chunks?names=${Array(300).fill('index')}`)).status, 400);
  const together = await (await fetch(`${server.url}api/chunks?names=index,none,../w.db`)).json();
  assert.deepEqual(Object.keys(together.chunks), ['index']);
  assert.deepEqual(Object.keys(together.errors), ['none', '../w.db']);
  const Ajv = require('ajv').default;
  const validate = new Ajv({ strict: false }).compile(JSON.parse(readFileSync(path.join(source, 'schemas/json/viewer/live.schema.json'), 'utf8')));
  assert.ok(validate(await (await fetch(`${server.url}api/live?after=0&page=${'x'.repeat(1000)}`)).json()), JSON.stringify(validate.errors));
  // Many that wait do not stop the page.
  const waiting = Array.from({ length: 12 }, async (_, i) => (await fetch(`${server.url}api/live?after=${i}&page=${i}`)).status);
  assert.equal((await fetch(`${server.url}api/chunk/index`)).status, 200);
  assert.deepEqual(new Set(await Promise.all(waiting)), new Set([200]));
  assert.deepEqual(unexpected(problems), []);
  await server.stop('SIGKILL');
  await context.close();
});
