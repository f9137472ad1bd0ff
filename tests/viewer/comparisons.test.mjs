// What the page compares: ranks, not the workers that they start; by what they did, not in which order it was logged; in one form of a time.
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { launch, openPage, pageUrl, reportOf, visit } from './support.mjs';

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

const areasOf = (page) =>
  page.locator('.classes tbody tr').evaluateAll((rows) => Object.fromEntries(rows.map((row) => [row.children[0].textContent, [...row.querySelectorAll('.tag')].map((tag) => tag.textContent)])));

test('workers of a loader are no ranks: ranks that compiled the same agree, and no compile of a worker stands beside one of a rank', async () => {
  const { page, problems } = await openPage(browser, 'file:');
  const report = pageUrl(reportOf('children', path.join('fixtures/runs/loader_workers')));
  await visit(page, report, '#/ranks');
  const roles = await page.locator('.roles tbody tr').evaluateAll((rows) => rows.map((row) => row.innerText));
  assert.equal(roles.filter((text) => /loader worker/.test(text)).length, 1, 'the workers are a row of the tree');
  const names = roles.map((text) => text.split('\t')[0]);
  assert.deepEqual(names, [...new Set(names)], 'a row for each role, whatever the ends of its ranks');
  const areas = await areasOf(page);
  for (const area of ['Compiles: ids and functions', 'Outcome of each compile']) assert.deepEqual(areas[area], ['all agree'], area);
  await visit(page, report, '#/');
  const shown = await page.getByRole('grid', { name: 'Processes' }).locator('.grid-row a[href^="#/process"]').allInnerTexts();
  assert.ok(shown.includes('└ loader worker'), shown.join());
  assert.match(shown[0], /^rank \d+$/, 'children stand below their rank');
  await visit(page, report, '#/ranks?tab=cache');
  const heads = await page.locator('.cell-head').allInnerTexts();
  assert.deepEqual(heads, [...new Set(heads)], 'a column for each rank');
  await visit(page, report, '#/compiles');
  await page.locator('.grid-row a[href^="#/compile/"]').first().waitFor();
  const ids = new Set(await page.locator('.grid-row a[href^="#/compile/"]').evaluateAll((links) => links.map((link) => link.getAttribute('href'))));
  for (const id of ids) {
    await visit(page, report, id);
    const own = await page.locator('.compile-head h1 code').innerText();
    for (const twin of await page.locator('.neighbours span', { hasText: ' of:' }).locator('a[href^="#/compile/"]').evaluateAll((links) => links.map((link) => link.getAttribute('href')))) {
      await visit(page, report, twin);
      assert.equal(await page.locator('.compile-head h1 code').innerText(), own, `${id} and ${twin}`);
    }
  }
  assert.deepEqual(problems, []);
});

test('a compile of another function is told apart from the same compile of another rank', async () => {
  const { page, problems } = await openPage(browser, 'file:');
  const report = pageUrl(reportOf('diverge_order'));
  await visit(page, report, '#/compiles');
  await page.locator('.grid-row a[href^="#/compile/"]', { hasText: '0/0' }).first().click();
  await page.locator('.neighbours a').first().waitFor();
  const twins = await page.locator('.neighbours span', { hasText: ' of:' }).locator('a[href^="#/compile/"]').allInnerTexts();
  assert.deepEqual(twins, ['rank 1', 'rank 3', 'rank 2 (block_other_order)']);
  assert.deepEqual(problems, []);
});

test('a rank that missed under the same keys has the same keys, though a miss is logged in another order', async () => {
  const { page } = await openPage(browser, 'file:');
  await visit(page, pageUrl(reportOf('one_rank_cold')), '#/ranks');
  const areas = await areasOf(page);
  assert.deepEqual(areas['Cache keys'], ['all agree']);
  assert.equal(areas['Cache states'].length, 2);
  assert.doesNotMatch(await page.locator('main').innerText(), /alike in .*caches/);
  await visit(page, pageUrl(reportOf('one_rank_cold')), '#/');
  assert.match(await page.locator('.finding h2').first().innerText(), /hit under the same keys/);
});

test('names of process groups set no rank apart, and one time has one form', async () => {
  const { page } = await openPage(browser, 'file:');
  const report = pageUrl(reportOf('mesh', path.join('fixtures/runs/mesh_full_disk')));
  for (const view of ['#/', '#/ranks', '#/compare']) {
    await visit(page, report, view);
    const text = await page.locator('main').innerText();
    if (view !== '#/compare') assert.doesNotMatch(text, /differ\w* (from those of .* )?in names of process groups|process-group name differs/, view);
    assert.doesNotMatch(text, /\b(\d{2,}\.\d\d|[6-9]\d\.\d|\d{3,}(\.\d+)?) s\b/, view);
  }
});
