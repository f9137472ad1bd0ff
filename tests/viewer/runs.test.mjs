// What ran, on the page: costs of recorded profiles, in Chromium.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { launch, openPage, pageUrl, reportOf, screenshots, settle, tlparse, violationsOf, visit } from './support.mjs';

let browser;
before(async () => {
  mkdirSync(screenshots, { recursive: true });
  browser = await launch();
});
after(() => browser.close());

const runOf = (name) => reportOf(name, path.join('fixtures/runs', name));
const answer = (report, ...question) => JSON.parse(execFileSync(tlparse, [question[0], report, '--json', ...question.slice(1)], { encoding: 'utf8', maxBuffer: 1 << 28 }));

// Each view at both widths and in both schemes: accessible, no complaint, no page that scrolls sideways.
async function look(name, report, hashes) {
  for (const [colorScheme, width] of [['light', 1280], ['dark', 1280], ['light', 700]]) {
    const { page, context, problems } = await openPage(browser, 'file:', { colorScheme, viewport: { width, height: 800 } });
    const found = [];
    for (const [view, hash] of hashes) {
      await visit(page, pageUrl(report), hash);
      await page.screenshot({ path: path.join(screenshots, `${name}-${view}-${colorScheme}-${width}.png`) });
      found.push(...problems.splice(0), ...(await violationsOf(page)));
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      if (wide > 0) found.push(`${view}: ${wide} px too wide`);
    }
    await context.close();
    assert.deepEqual(found, [], `${name} ${colorScheme} ${width}`);
  }
}

async function column(page, name) {
  const at = (await page.locator('.grid-head > div').allInnerTexts()).findIndex((title) => title.startsWith(name));
  assert.ok(at >= 0, `no column ${name}`);
  await settle(page);
  return page.locator('.grid-row').evaluateAll((rows, i) => rows.map((row) => row.children[i].textContent), at);
}

test('cost: looks', () => look('cost', runOf('p_mlp_train'), [['kernels', '#/cost'], ['lines', '#/cost?tab=lines'], ['graphs', '#/cost?tab=graphs'], ['ops', '#/cost?tab=ops'], ['overview', '#/']]));

test('cost: the kernels are those of tlparse cost, and can be sorted and filtered', async () => {
  const report = runOf('p_mlp_train');
  const { rows, profiles } = answer(report, 'cost', '--by', 'kernel', '--top', '1000');
  assert.ok(rows.length > 10);
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(report), '#/');
  await page.getByRole('link', { name: 'Cost', exact: true }).click();
  await settle(page);
  const kernelNames = rows.map((row) => `${row.name}${row.debug_handle === null ? '' : `:${row.debug_handle}`}`);
  assert.deepEqual(await column(page, 'Kernel'), kernelNames);
  assert.deepEqual(await column(page, 'Calls'), rows.map((row) => String(row.calls)));
  const shares = rows.map((row) => (row.share < 0.0005 ? '< 0.1 %' : `${(100 * row.share).toFixed(1)} %`));
  assert.deepEqual(await column(page, 'Share'), shares);
  const said = await page.locator('main').innerText();
  assert.match(said, /Counted: 3 steps \(2–4\), 87\.3 ms/);
  assert.ok(profiles[0].steps === 3);
  await page.getByRole('button', { name: 'Kernel', exact: true }).click();
  assert.deepEqual(await column(page, 'Kernel'), rows.map((_, i) => i).sort((a, b) => (rows[a].name < rows[b].name ? -1 : rows[a].name > rows[b].name ? 1 : a - b)).map((i) => kernelNames[i]));
  await page.getByLabel('Filter the table').fill('backward');
  await page.getByText(/^\d+ kernels$/).waitFor();
  await settle(page);
  assert.equal((await column(page, 'Kernel')).length, rows.filter((row) => `${row.name} ${row.direction}`.includes('backward')).length);
  assert.deepEqual(problems, []);
});

test('cost: of several ranks each has its own, by its profile', async () => {
  const report = runOf('p_ddp');
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(report), '#/cost?tab=lines');
  for (const rank of [0, 1]) {
    await page.getByLabel('Profile').selectOption({ index: rank });
    await settle(page);
    const { rows } = answer(report, 'cost', '--by', 'line', '--rank', String(rank), '--top', '1000');
    assert.deepEqual(await column(page, 'Kernel calls'), rows.map((row) => String(row.calls)), `rank ${rank}`);
  }
  assert.deepEqual(problems, []);
});

test('a run without profiles has no page of costs', async () => {
  const { page } = await openPage(browser, 'file:');
  await visit(page, pageUrl(reportOf('tlparse_meta')), '#/');
  assert.equal(await page.getByRole('link', { name: 'Cost', exact: true }).count(), 0);
  assert.equal(await page.getByText('Profiles and dumps').count(), 0);
});
