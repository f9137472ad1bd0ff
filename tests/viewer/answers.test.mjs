// Answers of a compile on its page: what was tuned, CUDA graphs, what differs from another compile; columns that stay chosen.
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

const tuning = (name) => reportOf(`tuning-${name}`, path.join('fixtures/tuning', name));
const answer = (report, ...question) => JSON.parse(execFileSync(tlparse, [question[0], report, '--json', ...question.slice(1)], { encoding: 'utf8' }));

// Both schemes and a narrow window: no complaint, nothing too wide.
async function look(report, hash, name) {
  for (const [colorScheme, width] of [['light', 1280], ['dark', 760]]) {
    const { page, context, problems } = await openPage(browser, 'file:', { colorScheme, viewport: { width, height: 800 } });
    await visit(page, pageUrl(report), hash);
    await page.screenshot({ path: path.join(screenshots, `${name}-${width}-${colorScheme}.png`) });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.deepEqual([...problems, ...(await violationsOf(page)), wide > 0 ? `${wide} px too wide` : ''].filter(Boolean), [], `${name} ${width}`);
    await context.close();
  }
}

test('the kernels that were tuned, what won, what failed, and what other ranks chose are those of tlparse autotune', async () => {
  const report = tuning('choices');
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(report), '#/compile/1');
  const rows = await page.locator('table.tuning tbody tr').evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.innerText.replace(/\s+/g, ' ').trim())));
  const { kernels } = answer(report, 'autotune');
  assert.equal(rows.length, kernels.length);
  assert.deepEqual(rows[0].slice(0, 6), ['addmm', '16x128, 16x64, 64x128', '4 + 3 failed', 'triton_mm_0 104 µs', 'the fastest', 'rank 1: addmm 131 µs']);
  assert.deepEqual(rows[1].slice(3, 6), ['addmm 50 µs', 'triton_mm_1 70 µs, place 3', 'rank 1: cpp_CppMicroGemmRef_1 49.7 µs']);
  assert.match(rows[2][3], /tuned when first called/);
  const text = await page.locator('main').innerText();
  assert.match(text, /3 choices could not be compiled/);
  assert.match(text, /needs more than the device has.*out of resource: shared memory/);
  assert.deepEqual(problems, []);
  await look(report, '#/compile/1', 'tuning');
});

test('CUDA graphs of a compile: recordings, or why there is none; of another compile no section', async () => {
  const { page, problems } = await openPage(browser, 'file:');
  const sectionOf = async (report) => {
    await visit(page, pageUrl(report), '#/compile/1');
    const section = page.locator('section', { has: page.getByRole('heading', { name: 'CUDA graphs' }) });
    return (await section.count()) === 0 ? null : section.innerText();
  };
  assert.match(await sectionOf(tuning('graphs')), /forward: 2 recordings 43\.0 ms\s+backward: 1 recording 22\.0 ms/);
  assert.match(await sectionOf(tuning('skip')), /none skipping cudagraphs due to .*cpu device \(primals_1\)/);
  assert.equal(await sectionOf(reportOf('mlp_train')), null);
  assert.equal(await page.getByRole('heading', { name: 'Autotuning' }).count(), 0);
  assert.deepEqual(problems, []);
});

test('from a recompile to what differs from the compile that could not be reused, and to the lines', async () => {
  const report = reportOf('recompiles_2_6');
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(report), '#/compile/2');
  await page.getByRole('link', { name: 'compare the two' }).first().click();
  await settle(page);
  const text = await page.locator('main').innerText();
  assert.match(text, /They differ in .*guards/);
  assert.match(text, /Why 0\/0 could not be reused\s+guard failed tensor 'L\['x'\]' dtype mismatch\. expected Float, actual Double/);
  assert.match(text, /−\s*check_tensor\(L\['x'\].*torch\.float32[\s\S]*\+\s*check_tensor\(L\['x'\].*torch\.float64/);
  // Swapped, what was only in b is only in a.
  await page.getByTitle('Swap').click();
  await settle(page);
  assert.match(await page.locator('main').innerText(), /−\s*check_tensor\(L\['x'\].*torch\.float64[\s\S]*\+\s*check_tensor\(L\['x'\].*torch\.float32/);
  const line = page.locator('li', { hasText: 'dynamo_output_graph' });
  const [, removed, added] = /−(\d+) \+(\d+) lines/.exec(await line.innerText());
  await line.getByRole('link').click();
  await settle(page);
  assert.match(await page.locator('main').innerText(), new RegExp(`−${removed} \\+${added} lines`));
  assert.deepEqual(problems, []);
  await look(report, '#/compare?a=c1&b=c2', 'compare-compiles');
});

test('a compile of another rank of a healthy job: texts are equal but for paths', async () => {
  const { page } = await openPage(browser, 'file:');
  await visit(page, pageUrl(reportOf('one_rank_cold')), '#/compile/1');
  await page.locator('.neighbours').getByRole('link', { name: 'compare' }).first().click();
  await settle(page);
  assert.match(await page.locator('main').innerText(), /\d+ texts equal but for addresses and temporary paths/);
  assert.doesNotMatch(await page.locator('main').innerText(), /dynamo_output_graph/);
});

test('columns that are chosen are in the address', async () => {
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(reportOf('mlp_train')), '#/compiles');
  const titles = () => page.locator('.grid-head [role=columnheader]').allInnerTexts();
  const usual = await titles();
  await page.getByRole('button', { name: 'Columns' }).click();
  const choice = page.getByRole('group', { name: 'Columns' });
  await choice.getByLabel('Inductor').check();
  await choice.getByLabel('Guards').uncheck();
  const chosen = await titles();
  assert.ok(chosen.includes('Inductor') && !chosen.includes('Guards'), chosen.join());
  const there = await openPage(browser, 'file:');
  await there.page.goto(page.url());
  await there.page.locator('.grid-row').first().waitFor();
  assert.deepEqual(await there.page.locator('.grid-head [role=columnheader]').allInnerTexts(), chosen);
  await choice.getByLabel('Inductor').uncheck();
  await choice.getByLabel('Guards').check();
  assert.deepEqual(await titles(), usual);
  assert.doesNotMatch(page.url(), /cols=/);
  assert.deepEqual(await violationsOf(page), []);
  assert.deepEqual(problems, []);
});

test('w wraps the lines of a text; the code of a chosen kernel is marked to its end', async () => {
  const { page, problems } = await openPage(browser, 'file:', { viewport: { width: 1280, height: 1600 } });
  await visit(page, pageUrl(reportOf('mlp_train')), '#/compile/1');
  await page.locator('.records a', { hasText: 'inductor_output_code' }).first().click();
  await page.locator('.text-view').waitFor();
  await page.locator('.text-view').click({ position: { x: 300, y: 5 } });
  await page.keyboard.press('w');
  await page.locator('.line-number[data-number="↪"]').first().waitFor();
  const over = await page.locator('.text-view').evaluate((box) => box.scrollWidth - box.clientWidth);
  assert.ok(over <= 0, `${over}`);
  await page.keyboard.press('w');
  await page.waitForFunction(() => !document.querySelector('.line-number[data-number="↪"]'));
  await visit(page, pageUrl(reportOf('mlp_train')), '#/provenance');
  await page.locator('.grid-row a').first().click();
  await settle(page);
  const code = page.getByRole('region', { name: 'Generated code', exact: true });
  await page.getByLabel('Find a kernel, node or file:line').fill('cpp_fused');
  await page.keyboard.press('Enter');
  await page.locator('.mark-body').first().waitFor();
  const marked = await code.locator('.mark-body').allInnerTexts();
  assert.ok(marked.some((line) => line.includes('extern "C"')), marked.join('\n'));
  assert.ok(!marked.some((line) => line.includes('async_compile')), 'not the next kernel');
  assert.deepEqual(problems, []);
});

// Dumps and texts alone: no process has a log.
for (const input of ['p2p_hang', 'coalesced_size', 'torch_logs_2_14']) {
  test(`${input}: what tlparse finds without a log, the page shows`, async () => {
    const report = reportOf(input, path.join('fixtures/inputs', input));
    const { page, problems } = await openPage(browser, 'file:');
    await visit(page, pageUrl(report), '#/');
    const { findings } = answer(report, 'findings');
    assert.ok(findings.length > 0);
    const more = page.getByRole('button', { name: /^and \d+ more/ });
    if (await more.count()) await more.click();
    assert.deepEqual(await page.locator('.finding-title :is(h2, h3)').allInnerTexts(), findings.map((one) => one.title));
    assert.doesNotMatch(await page.locator('main').innerText(), /No findings|nothing is known/);
    const tabs = await page.locator('nav[aria-label=Pages] a').evaluateAll((all) => all.map((one) => one.getAttribute('href').split('?')[0]));
    for (const link of await page.locator('.finding a').evaluateAll((all) => all.map((one) => one.getAttribute('href').split('?')[0]))) assert.ok(tabs.includes(link), link);
    assert.deepEqual(problems, []);
  });
}

test('a map beside each text has the marked lines, and a click on it brings them into view', async () => {
  const { page, context, problems } = await openPage(browser, 'file:', { viewport: { width: 1280, height: 900 } });
  await visit(page, pageUrl(reportOf('tlparse_meta')), '#/provenance/4');
  const pane = (label) => page.locator('.pane', { has: page.getByRole('region', { name: label, exact: true }) });
  await pane('Post-grad graph').locator('.code-row', { hasText: 'div_1:' }).click();
  const code = pane('Generated code');
  await code.locator('.mini-map .map-linked').first().waitFor();
  assert.equal(await pane('Python source').locator('.mini-map').isVisible(), false, 'all of it is in view');
  const height = await code.locator('.code-rows').evaluate((rows) => Math.floor(rows.clientHeight / 18));
  for (const mark of await code.locator('.mini-map .map-linked').all()) {
    const [box, row] = [await mark.boundingBox(), Math.round(Number(await mark.getAttribute('y')))];
    await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
    await settle(page);
    const seen = await code.locator('.mark-linked').evaluateAll((rows) => rows.filter((one) => {
      const [own, view] = [one.getBoundingClientRect(), one.closest('.text-view').getBoundingClientRect()];
      return own.top >= view.top && own.bottom <= view.bottom;
    }).map((one) => Number(one.dataset.row)));
    assert.ok(seen.some((line) => Math.abs(line - row) <= Math.ceil(height / 160)), `row ${row}: in view are ${seen}`);
    const view = await code.locator('.map-view').evaluate((rect) => [Number(rect.getAttribute('y')), Number(rect.getAttribute('height'))]);
    assert.ok(view[0] <= row && row <= view[0] + view[1], `${view} ${row}`);
  }
  assert.deepEqual(await violationsOf(page), []);
  assert.deepEqual(problems, []);
  await context.close();
});

test('a Python line has one number and one hue in all panes: those of what comes from it, light and dark', async () => {
  for (const colorScheme of ['light', 'dark']) {
    const { page, context, problems } = await openPage(browser, 'file:', { colorScheme, viewport: { width: 1280, height: 1600 } });
    await visit(page, pageUrl(reportOf('tlparse_meta')), '#/provenance/4');
    const tagsOf = (label) => page.getByRole('region', { name: label, exact: true }).locator('.code-row').evaluateAll((rows) => rows.flatMap((row) => {
      const tag = row.querySelector('.line-tag');
      return tag?.dataset.tag ? [{ tag: tag.dataset.tag, title: tag.title, stripes: tag.style.getPropertyValue('--stripes'), background: getComputedStyle(tag).backgroundImage, text: row.innerText }] : [];
    }));
    const sources = await tagsOf('Python source');
    assert.ok(sources.length > 2, `${sources.length} lines`);
    assert.deepEqual(sources.map(({ tag }) => tag), sources.map((_, i) => String(i + 1)));
    assert.equal(new Set(sources.slice(0, 8).map(({ background }) => background)).size, Math.min(8, sources.length), 'neighbours have other colours');
    const graph = await tagsOf('Post-grad graph');
    assert.ok(graph.length > 2);
    // The comment above a node names its line: the number says the same.
    const text = await page.getByRole('region', { name: 'Post-grad graph', exact: true }).locator('.code-row').evaluateAll((rows) => rows.map((row) => [row.querySelector('.code').textContent, row.querySelector('.line-tag').dataset.tag]));
    let place = null;
    let checked = 0;
    for (const [line, tag] of text) {
      if (line.trimStart().startsWith('#')) place = /^# Backward of forward node: File: (.+?:\d+) in/.exec(line.trimStart())?.[1] ?? null;
      else if (place && / = /.test(line)) assert.ok(tag, `${line}: comes from ${place}`);
      if (!tag || !place || /[,–]/.test(tag)) continue;
      assert.equal(sources[Number(tag) - 1].title, `${tag}: ${place}`, line);
      checked++;
    }
    assert.ok(checked > 2);
    for (const { tag, stripes } of graph.filter((own) => !/[,–]/.test(own.tag))) assert.equal(stripes, sources[Number(tag) - 1].stripes);
    assert.deepEqual(await violationsOf(page), []);
    await page.screenshot({ path: path.join(screenshots, `provenance-hues-${colorScheme}.png`) });
    assert.deepEqual(problems, []);
    await context.close();
  }
});
