// The page with logs and data as nobody wishes for them: hostile, empty, incomplete, very long.
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import * as hostile from './hostile.mjs';
import { launch, openPage, outDirectory, pageUrl, reportOf, screenshots, serve, settle, views, visit } from './support.mjs';

let browser;
before(async () => {
  mkdirSync(screenshots, { recursive: true });
  browser = await launch();
});
after(() => browser.close());

test('lists of 100,000 rows: only what is seen is in the document, and a link opens what is far down', async () => {
  const log = path.join(outDirectory, 'long.log');
  const rows = 100_000;
  const prefix = 'V1121 08:30:01.000000 7 a.py:1]';
  writeFileSync(log, Array.from({ length: rows }, (_, i) => `${prefix} {"artifact": {"name": "event_${i}", "encoding": "string"}}\n`).join(''));
  const base = pageUrl(reportOf('long', log));
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, base, '#/import-log');
  const last = Number(await page.getByRole('grid').getAttribute('aria-rowcount'));
  assert.ok(last > rows, `${last} entries, one of each record at least`);
  await page.getByRole('grid').focus();
  await page.keyboard.press('End');
  await page.locator(`.grid-row[aria-rowindex="${last}"]`).waitFor();
  assert.ok((await page.locator('.grid-row').count()) < 100);
  await visit(page, base, `#/process/1?record=${rows - 5}`);
  assert.equal(await page.locator('.records a').first().getAttribute('aria-current'), null);
  const current = page.locator('.records a[aria-current]');
  await current.waitFor();
  assert.equal(await current.innerText(), `event_${rows - 6}`);
  const [box, side] = [await current.boundingBox(), await page.locator('.side').boundingBox()];
  assert.ok(box.y >= side.y && box.y + box.height <= side.y + side.height, 'it is seen');
  assert.ok((await page.locator('.records a').count()) < 200);
  await page.locator('.side').evaluate((element) => (element.scrollTop = 0));
  await page.locator('.records a', { hasText: /^event_0$/ }).click();
  await page.waitForURL(/record=1$/);
  assert.deepEqual(problems, []);
});

test('text of logs is never HTML, whatever it holds', async () => {
  const input = hostile.writeHostileLog(path.join(outDirectory, 'hostile'));
  const report = reportOf('hostile', input);
  const server = await serve(report);
  after(server.stop);
  for (const base of [pageUrl(report), server.url]) {
    const { page, context, problems } = await openPage(browser, base.replace(/index\.html$/, ''));
    const extra = Array.from({ length: 5 }, (_, i) => [`compile-${i + 1}`, `#/compile/${i + 1}`]);
    for (const [view, hash] of [...views, ...extra, ['search', `#/search?q=${encodeURIComponent(hostile.script)}`], ['filter', `#/compiles?q=${encodeURIComponent(hostile.image)}`], ['odd', `#/${encodeURIComponent(hostile.script)}`], ['odd2', '#/compile/%3Cimg%20src=x%3E'], ['odd3', '#/diff?a=%3Cb%3E&b=x'], ['odd4', '#/%']]) {
      await visit(page, base, hash);
      await page.screenshot({ path: path.join(screenshots, `hostile-${view}.png`) });
      assert.equal(await page.evaluate(() => window.hacked), undefined, view);
      assert.equal(await page.locator('main img, main script, main iframe').count(), 0, view);
      const targets = await page.locator('a').evaluateAll((links) => links.map((anchor) => anchor.protocol));
      assert.ok(targets.every((protocol) => protocol === 'file:' || protocol === 'http:'), `${view}: ${[...new Set(targets)]}`);
    }
    await visit(page, base, '#/compile/1');
    const records = await page.locator('.records a').count();
    assert.ok(records > 4);
    for (let i = 0; i < records; i++) {
      await page.locator('.records a').nth(i).click();
      await settle(page);
    }
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    assert.match(await page.locator('.compile-head').innerText(), /<script>/);
    assert.deepEqual(problems.filter((problem) => !problem.includes('(Not Found)')), []);
    await context.close();
  }
});

test('pages that have nothing to show say why', async () => {
  const { page } = await openPage(browser, 'file:');
  const base = pageUrl(reportOf('simple_2_6'));
  for (const [hash, reason] of [
    ['#/compiles?tab=breaks', /No graph breaks/],
    ['#/compiles?tab=recompiles', /No recompiles/],
    ['#/compiles?tab=failures', /No compile failed/],
    ['#/ranks', /one process/],
    ['#/ranks?tab=nothing', /one process/],
    ['#/compiles?tab=nothing', /s_simple\.py/],
    ['#/ranks?tab=collectives', /No collectives/],
    ['#/ranks?tab=execution', /record_and_log_graph_execution_order/],
    ['#/import-log', /Nothing was dropped|info/],
    ['#/export', /nothing of torch\.export|guard/i],
    ['#/sql', /tlparse serve/],
    ['#/compile/999999', /no compile 999999/],
    ['#/provenance/999999', /no provenance/],
    ['#/nothing', /no page/],
  ]) {
    await visit(page, base, hash);
    assert.match(await page.locator('main').innerText(), reason, hash);
  }
});

test('data that is missing is said, not shown as nothing', async () => {
  const copy = path.join(outDirectory, 'reports', 'incomplete');
  rmSync(copy, { recursive: true, force: true });
  cpSync(reportOf('simple_2_6'), copy, { recursive: true });
  rmSync(path.join(copy, 'data/graphs.js'));
  const { page } = await openPage(browser, 'file:');
  await page.goto(`${pageUrl(copy)}#/provenance`);
  await page.getByText('cannot read data/graphs.js').waitFor();
});
