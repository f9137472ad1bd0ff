// Defects that readers of the page found, each kept away by a test.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { launch, openPage, outDirectory, pageUrl, reportOf, screenshots, source, visit } from './support.mjs';

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
