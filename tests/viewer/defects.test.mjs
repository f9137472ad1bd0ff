// Defects that readers of the page found, each kept away by a test.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { launch, openPage, outDirectory, pageUrl, reportOf, screenshots, source, tlparse, violationsOf, visit } from './support.mjs';

let browser;
before(async () => {
  mkdirSync(screenshots, { recursive: true });
  browser = await launch();
});
after(() => browser.close());

test('texts of the forward and of the backward are listed apart, none of them twice under one head', async () => {
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(reportOf('mlp_train')), '#/compiles');
  await page.locator('.grid-row a').first().click();
  await page.locator('.records .record-group', { hasText: 'Inductor backward' }).waitFor();
  const items = await page.locator('.records li').evaluateAll((rows) => rows.map((row) => [row.className.includes('record-group'), row.querySelector('.record-title')?.textContent ?? row.textContent]));
  const heads = new Map();
  let head;
  for (const [isHead, title] of items) {
    if (isHead) heads.set((head = title), []);
    else if (head) heads.get(head).push(title);
  }
  for (const [title, own] of heads) if (title.startsWith('Inductor')) assert.deepEqual(own, [...new Set(own)], title);
  for (const direction of ['forward', 'backward']) assert.ok(heads.get(`Inductor ${direction}`).includes('inductor_output_code'), direction);
  await page.screenshot({ path: path.join(screenshots, 'artifact-list.png') });
  // Of each graph it is said that passes changed nothing, or what they changed is a click away.
  await page.locator('caption.below').waitFor();
  assert.equal((await page.locator('main').innerText()).match(/post-grad passes changed nothing/g).length, 2);
  assert.equal(await page.locator('caption.below').innerText(), 'pre-grad passes changed nothing');
  await visit(page, pageUrl(reportOf('actors', path.join('fixtures/runs/actors'))), '#/compile/2');
  await page.getByRole('link', { name: 'what post-grad passes changed' }).first().click();
  await page.waitForFunction(() => /before_post_grad_graph[\s\S]*inductor_post_grad_graph[\s\S]*\d+ differences?/.test(document.querySelector('main').innerText));
  assert.deepEqual(problems, []);
});

test('what a backend said of a collective is on the page of its process', async () => {
  const fixture = readFileSync(path.join(source, 'fixtures/artifacts/measured.test'), 'utf8');
  const directory = path.join(outDirectory, 'logs-of-defects');
  mkdirSync(directory, { recursive: true });
  writeFileSync(path.join(directory, 'measured.log'), /=== log\n([\s\S]*?)\n===/.exec(fixture)[1] + '\n');
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(reportOf('collective-errors', directory)), '#/process/1');
  await page.getByRole('heading', { name: 'Collectives issued' }).waitFor();
  const text = await page.locator('main').innerText();
  for (const error of ['empty list', 'peer closed']) assert.ok(text.includes(error), error);
  assert.deepEqual(problems, []);
});

test('a phase has one colour: on the overview, in tables and on the page of time', async () => {
  const { page } = await openPage(browser, 'file:');
  const colours = {};
  const read = async (where, selector) => {
    const found = await page.locator(selector).evaluateAll((swatches) => swatches.map((one) => [one.parentElement.textContent.trim(), getComputedStyle(one).backgroundColor]));
    for (const [name, colour] of found) (colours[name.toLowerCase().replace(/\s*[\d.<].*$/, '')] ??= new Map()).set(where, colour);
  };
  await visit(page, pageUrl(reportOf('mlp_train')), '#/');
  await read('bar', '.went-parts .swatch');
  await read('chart', '.legend .swatch');
  await visit(page, pageUrl(reportOf('mlp_train')), '#/time');
  await read('time', '.went-parts .swatch');
  await read('table', '.grid-row .swatch');
  for (const phase of ['dynamo', 'aotautograd', 'inductor', 'backward']) {
    assert.ok(colours[phase].size >= 3, `${phase}: ${[...colours[phase].keys()]}`);
    assert.equal(new Set(colours[phase].values()).size, 1, `${phase}: ${JSON.stringify([...colours[phase]])}`);
  }
});

test('the rows of a table, as filtered and sorted, are copied as CSV and Markdown; a text of the log is no formula and no markup', async () => {
  const { page, context, problems } = await openPage(browser, 'file:');
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await visit(page, pageUrl(reportOf('failures')), '#/compiles?sort=-duration&q=status%3Afailed');
  const shown = Number((await page.locator('[role=grid]').getAttribute('aria-rowcount'))) - 1;
  const first = await page.locator('.grid-row [role=gridcell]').first().innerText();
  await page.getByRole('button', { name: 'Copy the rows as CSV' }).click();
  await page.getByRole('button', { name: 'Copied' }).waitFor();
  const lines = (await page.evaluate(() => navigator.clipboard.readText())).split(/\r?\n/);
  assert.match(lines[0], /^Id,.*Total \(µs\)/);
  assert.equal(lines.length - 2, shown);
  assert.equal(lines[1].split(',')[0], first);
  assert.ok(!lines.some((line) => /(^|,)[=+@-]/.test(line)), 'no formula');
  await page.getByRole('button', { name: 'Copy the rows as Markdown' }).click();
  await page.waitForFunction(() => document.querySelectorAll('.toolbar button').length > 0 && [...document.querySelectorAll('.toolbar button')].filter((one) => one.textContent === 'Copied').length === 2);
  const rows = (await page.evaluate(() => navigator.clipboard.readText())).trim().split('\n');
  assert.equal(rows.length - 2, shown);
  assert.ok(rows.some((row) => row.includes('&lt;lambda\\>')), rows.join('\n'));
  assert.equal(new Set(rows.map((row) => row.replaceAll('\\|', '').split('|').length)).size, 1, 'as many cells in each row');
  assert.deepEqual(problems, []);
});

test('where a place does not fit its column, the line number is still read', async () => {
  const { page } = await openPage(browser, 'file:', { viewport: { width: 700, height: 800 } });
  await visit(page, pageUrl(reportOf('recompiles_2_6')), '#/compiles');
  const cut = await page.locator('.grid-row a.place').evaluateAll((places) => places.map((place) => [place.textContent, place.scrollWidth - place.clientWidth, place.lastElementChild.getBoundingClientRect().right - place.parentElement.getBoundingClientRect().right]));
  assert.ok(cut.length > 0);
  for (const [text, over, right] of cut) {
    assert.match(text, /:\d+$/);
    assert.ok(over <= 0 && right <= 0, `${text}: ${over}, ${right}`);
  }
});

test('the text of TORCH_LOGS is listed by artifact, and the search finds its lines', async () => {
  const input = path.join('fixtures/runs/p_torch_logs');
  const printed = execFileSync('zstd', ['-dc', path.join(source, input, 'torch_logs.txt.zst')], { encoding: 'utf8' }).split('\n');
  const refusals = printed.filter((line) => line.includes('cannot fuse')).length;
  const recompiles = printed.filter((line) => line.includes('[__recompiles]')).length;
  assert.ok(refusals > 2 && recompiles > 2);
  const { page, problems } = await openPage(browser, 'file:');
  const report = pageUrl(reportOf('torch-logs', input));
  await visit(page, report, '#/');
  await page.getByRole('link', { name: 'TORCH_LOGS' }).click();
  const rows = async () => Number(await page.locator('[role=grid]').getAttribute('aria-rowcount')) - 1;
  await page.getByRole('combobox', { name: 'Artifact' }).selectOption('recompiles');
  await page.waitForFunction((wanted) => document.querySelector('[role=grid]').getAttribute('aria-rowcount') === String(wanted + 1), recompiles);
  await visit(page, report, '#/torch-logs?q=cannot+fuse');
  await page.locator('.grid-row').first().waitFor();
  assert.equal(await rows(), refusals);
  assert.deepEqual(await violationsOf(page), []);
  await visit(page, report, '#/search?q=cannot+fuse');
  await page.getByRole('link', { name: `all ${refusals}` }).waitFor();
  assert.match(await page.locator('.log-hits li').first().innerText(), /cannot fuse .* fusion/s);
  // Of logs as of a report.
  assert.equal(JSON.parse(execFileSync(tlparse, ['search', input, 'cannot fuse', '--json'], { cwd: source, encoding: 'utf8' })).printed.length, refusals);
  const search = (...options) => JSON.parse(execFileSync(tlparse, ['search', reportOf('torch-logs', input), ...options, '--json'], { encoding: 'utf8' })).printed;
  const found = search('cannot fuse');
  assert.deepEqual(found.map(({ line }) => line), printed.flatMap((line, i) => (line.includes('cannot fuse') ? [i + 1] : [])));
  assert.ok(found.every(({ artifact, text, label }) => artifact === 'fusion' && text.startsWith('cannot fuse') && /^\d+\/\d+$/.test(label)));
  assert.deepEqual([search('re:cannot +fuse op0').every(({ marks }) => marks[0][0] === 0), search('cannot fuse', '--kind', 'graph').length], [true, 0]);
  assert.deepEqual(problems, []);
});
