// The page says one thing: its views do not contradict each other, and no link of it leads to nothing.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { launch, openPage, pageUrl, reportOf, screenshots, settle, violationsOf, visit } from './support.mjs';

let browser;
before(async () => {
  mkdirSync(screenshots, { recursive: true });
  browser = await launch();
});
after(() => browser.close());

const tuning = (name) => reportOf(`tuning-${name}`, path.join('fixtures/tuning', name));
const bars = (page) => page.locator('.went-parts[aria-label="Compile time by phase"] li').allInnerTexts();
const spaces = (text) => text.replace(/\s+/g, ' ').trim();

for (const trace of ['recompiles_2_6', 'export', 'aoti_provenance', 'failures', 'crash_segv_in_inductor']) {
  test(`${trace}: the overview and the page of time tell one time, and the same parts of it`, async () => {
    const { page, problems } = await openPage(browser, 'file:');
    await visit(page, pageUrl(reportOf(trace)), '#/');
    const parts = await bars(page);
    const [, whole] = /Where (.*) of compile time went/.exec(await page.locator('h2', { hasText: 'of compile time went' }).innerText());
    await page.locator('.section', { hasText: 'of compile time went' }).getByRole('link', { name: 'by event' }).click();
    await page.getByRole('navigation', { name: 'By' }).getByRole('link', { name: 'phase' }).click();
    await settle(page);
    assert.equal(await page.locator('main h1').innerText(), whole);
    const rows = await page.locator('.grid-row').evaluateAll((all) => all.map((row) => [row.children[0].textContent, row.children[1].textContent]));
    const said = parts.map(spaces);
    for (const [name, self] of rows) assert.ok(said.some((part) => part.startsWith(`${name.trim()} ${self} `)), `${name} ${self}: ${said.join('; ')}`);
    assert.equal(said.length, rows.length);
    assert.deepEqual(problems, []);
  });
}

test('torch.export and ahead-of-time compiles have phases too', async () => {
  const { page } = await openPage(browser, 'file:');
  for (const [trace, phases] of [['export', ['Dynamo', 'AOTAutograd']], ['aoti_provenance', ['AOTAutograd', 'Inductor', 'code generation']]]) {
    await visit(page, pageUrl(reportOf(trace)), '#/');
    const shares = new Map((await bars(page)).map((part) => /^\s*(.*?) [\d.]+ \S+ ([\d.]+) %/.exec(spaces(part))?.slice(1) ?? []));
    for (const phase of phases) assert.ok(shares.has(phase), `${trace}: ${phase} in ${[...shares]}`);
    const unknown = Number(shares.get('not attributed') ?? 0) + Number(shares.get('other events') ?? 0);
    assert.ok(unknown < 15, `${trace}: ${[...shares]}`);
  }
});

test('what a card says of some ranks, the page of ranks does not deny', async () => {
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(tuning('guard')), '#/');
  const card = page.locator('.finding').first();
  const title = await card.locator('h2').innerText();
  assert.match(title, /Ranks 0,2 wait in guard_collective for rank 1/);
  assert.equal(await card.getByRole('link', { name: 'collectives' }).count(), 0, 'the logs hold no collective');
  await page.getByRole('link', { name: 'Ranks', exact: true }).click();
  await page.getByRole('heading', { name: 'What sets ranks apart all the same' }).waitFor();
  await page.getByRole('link', { name: title }).click();
  await settle(page);
  assert.equal(await page.locator('.finding.asked h2').innerText(), title);
  assert.deepEqual(problems, []);
});

test('ranks that ended inside a compile do not differ in what it looked up', async () => {
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(reportOf('crash_segv_in_inductor')), '#/ranks');
  const row = (area) => page.locator('.classes tr', { hasText: area });
  for (const area of ['Cache states', 'Cache keys']) assert.match(await row(area).innerText(), /all agree without 1 compile that did not finish on a rank/);
  await page.screenshot({ path: path.join(screenshots, 'ranks-ended.png') });
  assert.deepEqual(await violationsOf(page), []);
  assert.deepEqual(problems, []);
});

test('what to try is no command where a view of the page answers it', async () => {
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(reportOf('restart_elastic')), '#/');
  assert.doesNotMatch(await page.locator('main').innerText(), /<db>/);
  await page.getByRole('link', { name: 'the findings of launch 1' }).click();
  await settle(page);
  assert.match(await page.locator('.finding').first().innerText(), /Rank 2's log ends after 0\/0 forward/);
  await visit(page, pageUrl(reportOf('restart_manual_other_config')), '#/');
  await page.getByRole('link', { name: 'launch 1 against launch 2' }).click();
  await settle(page);
  assert.match(await page.locator('main').innerText(), /max_fusion_size\]: 64 → 13/);
  assert.deepEqual(problems, []);
});

test('of processes without ranks it is not said that nothing sets ranks apart; a job has the name of its script', async () => {
  const { page } = await openPage(browser, 'file:');
  await visit(page, pageUrl(reportOf('two-without-ranks', path.join('fixtures/runs/p_cache_hit'))), '#/');
  const text = await page.locator('main').innerText();
  assert.match(text, /2 processes/);
  assert.match(text, /No findings: no compile failed or stopped\./);
  assert.equal(await page.locator('main h1').innerText(), 'p_cache_hit.py');
});

test('a compile whose graph or code holds a text comes before one whose options name it; no count is cut', async () => {
  const { page } = await openPage(browser, 'file:');
  await visit(page, pageUrl(reportOf('recompiles_2_6')), '#/search?q=relu');
  await page.locator('.text-hits').first().waitFor();
  await page.waitForFunction(() => !/Searching/.test(document.querySelector('main').textContent));
  const kinds = await page.locator('.text-hits').evaluateAll((groups) => groups.map((group) => [...group.querySelectorAll('.tag')].every((tag) => tag.textContent === 'log')));
  assert.ok(kinds.includes(true) && kinds.includes(false), kinds.join());
  assert.deepEqual(kinds, [...kinds].sort());
  await visit(page, pageUrl(reportOf('crash_segv_in_inductor')), '#/');
  const cut = await page.locator('.grid .tag').evaluateAll((tags) => tags.filter((tag) => tag.getBoundingClientRect().right > tag.closest('.grid').getBoundingClientRect().right).map((tag) => tag.textContent));
  assert.deepEqual(cut, []);
});

test('the head of the page is one row at 1280 pixels, and at 760 no link of a table is cut', async () => {
  const wide = await openPage(browser, 'file:');
  await visit(wide.page, pageUrl(reportOf('restart_elastic')), '#/');
  assert.ok((await wide.page.locator('header.top').boundingBox()).height < 50);
  const narrow = await openPage(browser, 'file:', { viewport: { width: 760, height: 800 } });
  await visit(narrow.page, pageUrl(reportOf('mlp_train')), '#/compile/1');
  const cut = await narrow.page.locator('.artifact table.plain a').evaluateAll((links) => links.filter((link) => link.getBoundingClientRect().right > document.documentElement.clientWidth).map((link) => link.textContent));
  assert.deepEqual(cut, []);
});

test('a list that has columns beyond its right edge shows it, until they are scrolled to', async () => {
  const { page } = await openPage(browser, 'file:', { viewport: { width: 760, height: 800 } });
  const grid = page.locator('.grid');
  const hasMore = () => grid.evaluate((one) => one.hasAttribute('data-more'));
  await visit(page, pageUrl(reportOf('mlp_train')), '#/compiles');
  await page.waitForFunction(() => document.querySelector('.grid[data-more]'));
  await grid.evaluate((one) => one.scrollTo(one.scrollWidth, 0));
  await page.waitForFunction(() => !document.querySelector('.grid[data-more]'));
  await page.setViewportSize({ width: 1500, height: 800 });
  await page.waitForFunction(() => document.querySelector('.grid').scrollWidth <= document.querySelector('.grid').clientWidth);
  assert.equal(await hasMore(), false);
});
