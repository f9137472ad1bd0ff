// Every page in Chromium, from file:// and from `tlparse serve`, on real traces. Screenshots go to <build>/tests/viewer/screenshots.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { after, before, test } from 'node:test';
import { launch, openPage, pageUrl, reportOf, screenshots, serve, settle, tlparse, views, violationsOf, visit } from './support.mjs';

let browser;
before(async () => {
  mkdirSync(screenshots, { recursive: true });
  browser = await launch();
});
after(() => browser.close());

async function tourOf(name, base, options = {}) {
  const { page, context, problems } = await openPage(browser, base.replace(/index\.html$/, ''), options);
  const found = []; // of all views, so that one run tells everything
  for (const [view, hash] of views) {
    await visit(page, base, hash);
    assert.ok((await page.locator('main').innerText()).trim().length > 20, `${name} ${view} says something`);
    await page.screenshot({ path: path.join(screenshots, `${name}-${view}.png`) });
    found.push(...problems.splice(0).map((problem) => `${view}: ${problem}`));
    if (options.isAccessible) found.push(...(await violationsOf(page)).map((violation) => `${view}: ${violation}`));
  }
  await context.close();
  assert.deepEqual(found, [], name);
}

// axe reads every page once, light and dark; what it says does not depend on the report or on who serves it.
test('single rank, file://: every page, no complaint', () => tourOf('single', pageUrl(reportOf('tlparse_meta'))));
test('divergent ranks, file://: every page, accessible, no complaint', () => tourOf('ranks', pageUrl(reportOf('diverge_order')), { isAccessible: true }));
test('dark: accessible too', () => tourOf('dark', pageUrl(reportOf('cache_some_ranks')), { colorScheme: 'dark', isAccessible: true }));
test('half a screen wide', () => tourOf('half', pageUrl(reportOf('failures')), { viewport: { width: 700, height: 800 } }));
test('PyTorch 2.6 and export traces', async () => {
  await tourOf('old', pageUrl(reportOf('recompiles_2_6')));
  await tourOf('dtrace', pageUrl(reportOf('dtrace')));
  await tourOf('killed', pageUrl(reportOf('killed')));
});

test('served: every page, no complaint, the same words as from file://', async () => {
  const report = reportOf('diverge_order');
  const server = await serve(report);
  after(server.stop);
  await tourOf('served', server.url);
  const file = await openPage(browser, 'file:');
  const http = await openPage(browser, server.url);
  for (const hash of ['#/compiles', '#/ranks', '#/ranks?tab=cache', '#/compile/2', '#/import-log']) {
    await visit(file.page, pageUrl(report), hash);
    await visit(http.page, server.url, hash);
    assert.equal(await http.page.locator('main').innerText(), await file.page.locator('main').innerText(), hash);
  }
});

test('no page scrolls sideways at 1280 px or on half a screen', async () => {
  for (const width of [1280, 700]) {
    const { page, context } = await openPage(browser, 'file:', { viewport: { width, height: 800 } });
    for (const [view, hash] of views) {
      await visit(page, pageUrl(reportOf('diverge_order')), hash);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(wide <= 0, `${view} at ${width}: ${wide} px too wide`);
      // What is read has the room for it.
      for (const part of await page.locator('.source-code, .pane').all()) assert.ok((await part.boundingBox()).width > 0.4 * width, `${view} at ${width}`);
    }
    await context.close();
  }
});

test('a link opens the view it was copied from; back and forward walk', async () => {
  const base = pageUrl(reportOf('tlparse_meta'));
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, base, '#/');
  await page.getByRole('link', { name: /^Compiles/ }).first().click();
  await settle(page);
  await page.getByLabel('Filter compiles').fill('status:ok');
  await page.getByRole('button', { name: 'Total' }).click();
  const first = page.locator('.grid-row').first();
  const title = await first.innerText();
  await first.click();
  await settle(page);
  assert.match(page.url(), /#\/compile\/\d+/);
  await page.locator('.records a', { hasText: 'dynamo_output_graph' }).first().click();
  await settle(page);
  await page.locator('.line-number[data-number="3"]').click();
  const copied = page.url();
  assert.match(copied, /record=\d+&lines=3/);
  const there = await openPage(browser, 'file:');
  await there.page.goto(copied);
  await settle(there.page);
  assert.equal(await there.page.locator('.artifact-head h2').innerText(), 'dynamo_output_graph');
  assert.equal(await there.page.locator('.picked').count(), 1);
  await page.goBack();
  await page.goBack();
  await settle(page);
  assert.match(page.url(), /#\/compiles\?.*q=status/);
  assert.equal(await page.locator('.grid-row').first().innerText(), title);
  assert.equal(await page.getByLabel('Filter compiles').inputValue(), 'status:ok');
  await page.goForward();
  await settle(page);
  assert.match(page.url(), /#\/compile\/\d+/);
  assert.deepEqual([...problems, ...there.problems], []);
});

test('search finds compiles, kernels and artifacts, from the keyboard', async () => {
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(reportOf('tlparse_meta')), '#/');
  await page.keyboard.press('/');
  await page.keyboard.type('cpp_fused');
  await settle(page);
  await page.getByRole('heading', { name: 'Kernels' }).waitFor();
  assert.ok((await page.locator('.hits a').count()) > 0);
  await page.screenshot({ path: path.join(screenshots, 'search-kernels.png') });
  await page.getByRole('searchbox', { name: /Search compiles/ }).fill('inductor_output_code');
  await page.getByRole('heading', { name: 'Artifacts and records' }).waitFor();
  await page.locator('.hits a', { hasText: 'inductor_output_code' }).first().click();
  await settle(page);
  assert.equal(await page.locator('.artifact-head h2').innerText(), 'inductor_output_code');
  await page.getByRole('searchbox', { name: /Search compiles/ }).fill('no such thing at all');
  await page.getByText('Nothing is called').waitFor();
  assert.deepEqual(problems, []);
});

test('served, search finds text in graphs, code and guards, and leads to the line', async () => {
  const server = await serve(reportOf('diverge_order'));
  after(server.stop);
  const { page, problems } = await openPage(browser, server.url);
  await visit(page, server.url, '#/search?q=all_gather_into');
  await page.locator('.found-line').first().waitFor();
  await page.screenshot({ path: path.join(screenshots, 'search-texts.png') });
  assert.deepEqual(await violationsOf(page), []);
  assert.deepEqual([...new Set(await page.locator('.text-hits mark').allInnerTexts())], ['all_gather_into']);
  assert.match(await page.locator('main').innerText(), /the same in ranks 0,1,3/);
  // A page of files finds the same.
  const file = await openPage(browser, 'file:');
  for (const query of ['all_gather_into', 'op:RELU', 'd_fcol.py:24']) {
    await visit(page, server.url, `#/search?q=${query}`);
    await visit(file.page, pageUrl(reportOf('diverge_order')), `#/search?q=${query}`);
    for (const own of [page, file.page]) await own.getByText(/each counted once|holds “/).waitFor();
    await settle(file.page);
    assert.equal(await file.page.locator('main').innerText(), await page.locator('main').innerText(), query);
  }
  assert.deepEqual(file.problems, []);
  await page.getByRole('searchbox', { name: /Search compiles/ }).fill('guard:relu');
  await page.waitForFunction(() => document.querySelectorAll('.text-hits mark').length > 0 && [...document.querySelectorAll('.text-hits .tag')].every((tag) => tag.textContent === 'guard'));
  await page.locator('.found-line').first().click();
  await settle(page);
  assert.match((await page.locator('.picked').innerText()).toLowerCase(), /relu/);
  assert.deepEqual(problems, []);
});

test('served, search takes regular expressions: what matches is marked; a wrong one says why, a hostile one ends', async () => {
  const report = reportOf('diverge_order');
  const server = await serve(report);
  after(server.stop);
  const { page, problems } = await openPage(browser, server.url);
  await visit(page, server.url, `#/search?q=${encodeURIComponent('re:\\ball_(gather|reduce)\\w*\\.')}`);
  await page.locator('.found-line').first().waitFor();
  const marked = await page.locator('.text-hits mark').allInnerTexts();
  assert.ok(marked.length > 4);
  for (const text of marked) assert.match(text, /^all_(gather|reduce)\w*\.$/i);
  // As many lines as the texts of the database have.
  const told = JSON.parse(execFileSync(tlparse, ['search', report, 're:\\ball_(gather|reduce)\\w*\\.', '--json'], { encoding: 'utf8' }));
  const contents = JSON.parse(execFileSync(tlparse, ['sql', path.join(report, 'trace.db'), 'SELECT content FROM payload_row WHERE id IN (SELECT payload_id FROM record_row WHERE kind_id IS NOT 1)', '--json'], { encoding: 'utf8', maxBuffer: 64 << 20 }));
  const texts = (contents.rows ?? contents).map((row) => (Array.isArray(row) ? row[0] : (row.content ?? '')));
  const lines = texts.flatMap((text) => String(text).split('\n')).filter((line) => /\ball_(gather|reduce)\w*\./i.test(line));
  assert.equal(told.texts.reduce((sum, text) => sum + text.line_count, 0), lines.length);
  for (const text of told.texts) for (const line of text.lines) for (const [begin, end] of line.marks) assert.match(line.text.slice(begin, end), /^all_(gather|reduce)\w*\.$/i);
  // A path is a path.
  const ask = async (text) => fetch(`${server.url}api/search?text=${encodeURIComponent(text)}`);
  assert.ok((await (await ask('/torch/_inductor/')).json()).texts.every((text) => text.lines.every((line) => line.text.includes('/torch/_inductor/'))));
  await visit(page, server.url, `#/search?q=${encodeURIComponent('re:(')}`);
  await page.getByText('missing ): (').waitFor();
  assert.deepEqual(problems.filter((problem) => !/400 \(Bad Request\)/.test(problem)), []);
  for (const hostile of ['re:(a+)+$b', 're:(.*)*(.*)*(.*)*(.*)*#', 're:(x{1,90}){1,90}y', 're:.{900}\\w{900}#%']) {
    const started = Date.now();
    const answer = await ask(hostile);
    assert.ok(Date.now() - started < 20000, hostile);
    assert.ok([200, 400].includes(answer.status), hostile);
  }
  const file = await openPage(browser, 'file:');
  await visit(file.page, pageUrl(report), '#/search?q=re:relu');
  await file.page.getByText('A regular expression needs the database').waitFor();
  assert.deepEqual(file.problems, []);
});

test('metrics: times of day are times of day, durations are durations', async () => {
  const { page } = await openPage(browser, 'file:');
  await visit(page, pageUrl(reportOf('tlparse_meta')), '#/compile/1?view=metrics');
  const metric = (name) => page.locator('.metrics div', { has: page.getByText(name, { exact: true }) }).locator('dd').innerText();
  for (const name of ['start_time', 'start_time_us', 'end_time_us']) assert.match(await metric(name), /^2026-11-21 09:07:\d\d\.\d{3} UTC$/, name);
  assert.match(await metric('duration_us'), /^\d\.\d\d s$/);
});

test('the grid is walked with the keyboard', async () => {
  const { page } = await openPage(browser, 'file:');
  await visit(page, pageUrl(reportOf('recompiles_2_6')), '#/compiles');
  await page.getByRole('grid').focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  const second = await page.locator('.grid-row.active').innerText();
  assert.ok(second.length > 3);
  // Behind a filter, the same row is the active one.
  await visit(page, pageUrl(reportOf('recompiles_2_6')), `#/compiles?q=${second.split('\n')[0]}`);
  assert.equal(await page.locator('.grid-row.active').innerText(), second);
  assert.equal(await page.locator('.grid-row.active').getAttribute('aria-rowindex'), '2', 'the first row that is left');
  await page.getByRole('grid').focus();
  await page.keyboard.press('Enter');
  await settle(page);
  assert.match(page.url(), /#\/compile\/\d+/);
  assert.ok(second.startsWith(await page.locator('.compile-id').innerText()));
});

test('sorting and filtering a table puts the right rows into it', async () => {
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(reportOf('diverge_order')), '#/compiles');
  const column = async (name) => {
    const at = (await page.locator('.grid-head > div').allInnerTexts()).findIndex((title) => title.startsWith(name));
    await settle(page);
    return page.locator('.grid-row').evaluateAll((rows, i) => rows.map((row) => row.children[i].textContent), at);
  };
  const before = await column('Function');
  await page.getByRole('button', { name: 'Function' }).click();
  const known = before.filter((name) => name !== '');
  const sorted = [...known.sort(), ...before.filter((name) => name === '')]; // what is unknown comes last
  assert.deepEqual(await column('Function'), sorted);
  await page.getByRole('button', { name: 'Function' }).click();
  assert.deepEqual(await column('Function'), [...known.reverse(), ...before.filter((name) => name === '')]);
  await page.getByRole('button', { name: 'Rank' }).click();
  const ranks = (await column('Rank')).map(Number);
  assert.deepEqual(ranks, [...ranks].sort((a, b) => b - a));
  // Letters in quick succession all arrive, and the list is of the last of them.
  const box = page.getByLabel('Filter compiles');
  await box.pressSequentially('rank:2');
  await page.waitForURL(/q=rank%3A2$/);
  assert.equal(await box.inputValue(), 'rank:2');
  assert.deepEqual([...new Set(await column('Rank'))], ['2']);
  // What the row says is what it opens.
  const id = (await column('Id'))[1];
  await page.locator('.grid-row').nth(1).click();
  await settle(page);
  assert.equal(await page.locator('.compile-id').innerText(), id);
  await page.goBack();
  await settle(page);
  assert.equal(await box.inputValue(), 'rank:2');
  await box.fill('constructor:x');
  await page.getByText('No compile matches').waitFor();
  assert.deepEqual(problems, []);
});

test('two texts side by side: before and after a pass, and of two ranks', async () => {
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(reportOf('tlparse_meta')), '#/compile/1');
  await page.locator('.records a', { hasText: 'before_post_grad_graph' }).first().click();
  await settle(page);
  await page.getByLabel('Compare this text with another').selectOption({ index: 1 });
  await page.locator('.diff-row, [role=status]').first().waitFor();
  await settle(page);
  assert.match(page.url(), /#\/diff\?a=1%3A\d+&b=\d+%3A\d+/);
  await page.screenshot({ path: path.join(screenshots, 'diff-pass.png') });
  const copied = page.url();
  await page.reload();
  await settle(page);
  assert.equal(page.url(), copied);

  await visit(page, pageUrl(reportOf('diverge_order')), '#/compiles?q=rank:2');
  await page.locator('.grid-row').first().click();
  await settle(page);
  await page.locator('.records a', { hasText: 'inductor_output_code' }).first().click();
  await settle(page);
  await page.getByLabel('Compare this text with another').selectOption({ label: 'rank 0 (block)' });
  await page.locator('.diff-row.change').first().waitFor();
  assert.match(await page.locator('main').innerText(), /difference/);
  assert.ok((await page.locator('.diff-row .removed, .diff-row .added').count()) > 0);
  await page.screenshot({ path: path.join(screenshots, 'diff-ranks.png') });
  assert.deepEqual(problems, []);
});

test('provenance of 2.14: from a kernel to the Python line and back', async () => {
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(reportOf('tlparse_meta')), '#/provenance');
  await page.locator('.grid-row').first().click();
  await settle(page);
  assert.equal(await page.locator('.pane .text-view').count(), 4, 'source, pre-grad, post-grad, code');
  const pane = (name) => page.locator('.pane', { has: page.getByRole('heading', { name }) });
  const finder = page.getByLabel('Find a kernel, node or file:line');
  await finder.fill('cpp_fused');
  await page.keyboard.press('Enter');
  await settle(page);
  assert.match(page.url(), /sel=kernel%3A\d+/);
  await page.screenshot({ path: path.join(screenshots, 'provenance-kernel.png') });
  assert.deepEqual(await violationsOf(page), []);
  assert.ok((await pane('Generated code').locator('.mark-pin').count()) > 0, 'the kernel itself');
  assert.ok((await pane('Post-grad graph').locator('.mark-linked').count()) > 0, 'its post-grad nodes');
  assert.ok((await pane('Pre-grad graph').locator('.mark-linked').count()) > 0, 'their pre-grad nodes');
  const lines = pane('Python source').locator('.mark-linked');
  assert.ok((await lines.count()) > 0, 'the Python line');
  const kernel = await page.locator('.prov-step .tag.on').innerText();
  const line = await lines.first().innerText();
  await lines.first().click();
  await settle(page);
  assert.match(page.url(), /sel=source%3A/);
  assert.ok((await pane('Generated code').locator('.mark-linked').count()) > 0, `${line} leads to kernels`);
  const chain = await page.locator('.prov-chain').innerText();
  assert.ok(chain.includes(kernel), `${kernel} is among the kernels of ${line}: ${chain}`);
  await page.screenshot({ path: path.join(screenshots, 'provenance-source.png') });
  // Wrapped, no pane scrolls sideways; n goes to the next linked line; the panes are sized with the keyboard.
  await page.keyboard.press('w');
  await page.waitForFunction(() => [...document.querySelectorAll('.pane .text-view')].every((pane) => pane.scrollWidth <= pane.clientWidth));
  await page.keyboard.press('w');
  const steps = pane('Generated code').locator('.pane-steps');
  if (/^1 of/.test(await steps.innerText())) {
    await page.keyboard.press('n');
    await page.waitForFunction(() => [...document.querySelectorAll('.pane-steps')].some((own) => own.textContent.includes('2 of')));
  }
  const wide = async () => (await pane('Python source').boundingBox()).width;
  const before = await wide();
  await page.getByRole('button', { name: /^Sizes of the panes/ }).focus();
  await page.keyboard.press('ArrowLeft');
  assert.ok((await wide()) < before - 20);
  await page.keyboard.press('ArrowRight');
  await page.locator('body').press('?');
  assert.match(await page.getByRole('dialog').innerText(), /linked lines: next/);
  await page.keyboard.press('Escape');
  // Pointing is enough, without a click.
  await page.getByRole('button', { name: 'clear' }).click();
  await pane('Post-grad graph').locator('.code-row', { hasText: ' = torch.ops' }).first().hover();
  await page.waitForFunction(() => document.querySelectorAll('.pane .mark-hover').length > 1);
  // Back returns to the selection.
  await page.goBack();
  await settle(page);
  assert.match(page.url(), /sel=source/);
  assert.deepEqual(problems, []);
});

test('provenance without mappings (2.6) leads from kernels to lines through comments', async () => {
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(reportOf('recompiles_2_6')), '#/provenance');
  await page.locator('.grid-row').first().click();
  await settle(page);
  await page.screenshot({ path: path.join(screenshots, 'provenance-2_6.png') });
  assert.ok((await page.locator('.pane .text-view').count()) >= 2);
  assert.deepEqual(problems, []);
});

test('ranks: a cell of the matrix names what differs from another rank', async () => {
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(reportOf('diverge_config_2_6')), '#/ranks?tab=cache');
  await page.getByRole('link', { name: /^rank 2, / }).first().click();
  await settle(page);
  await page.locator('.differences').first().waitFor();
  await page.screenshot({ path: path.join(screenshots, 'ranks-components.png') });
  assert.match(await page.locator('.detail').innerText(), /max_fusion_size/);
  assert.match(page.url(), /event=\d+/);
  await visit(page, pageUrl(reportOf('diverge_order')), '#/ranks?tab=collectives');
  assert.match(await page.locator('main').innerText(), /first difference at/);
  assert.equal(await page.locator('.seq-row.first').count(), 1);
  await visit(page, pageUrl(reportOf('diverge_order')), '#/');
  assert.match(await page.locator('.findings').innerText(), /[Rr]ank 2/);
  assert.deepEqual(problems, []);
});

test('what needs attention is what tlparse findings tells, and its copy is its Markdown', async () => {
  for (const trace of ['crash_in_compile', 'hang_in_compile', 'restart_manual_other_config', 'one_rank_cold', 'recompiles_2_6']) {
    const report = reportOf(trace);
    const told = (...options) => execFileSync(tlparse, ['findings', path.join(report, 'trace.db'), ...options], { encoding: 'utf8' });
    const { findings } = JSON.parse(told('--json'));
    assert.ok(findings.length > 0, trace);
    const { page, context, problems } = await openPage(browser, 'file:');
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await visit(page, pageUrl(report), '#/');
    const more = page.getByRole('button', { name: /^and \d+ more$/ });
    if (findings.length > 3) await more.click();
    else assert.equal(await more.count(), 0, trace);
    assert.deepEqual(await page.locator('.finding-title :is(h2, h3)').allInnerTexts(), findings.map((one) => one.title.replace(/\s+/g, ' ').trim()), trace);
    assert.deepEqual(await page.locator('.finding-title .tag').allInnerTexts(), findings.map((one) => one.severity), trace);
    for (const closed = page.locator('.finding-tools [aria-expanded=false]'); (await closed.count()) > 0; ) await closed.first().click();
    assert.equal(await page.locator('.finding-more li').count(), findings.reduce((sum, one) => sum + one.evidence.length, 0), trace);
    const copied = async () => {
      await page.getByRole('button', { name: 'Copied' }).last().waitFor();
      return page.evaluate(() => navigator.clipboard.readText());
    };
    await page.getByRole('button', { name: 'Copy as Markdown' }).first().click();
    const own = await copied();
    assert.ok(own.startsWith('- **') && told('--markdown', '--all').includes(`\n${own}`), `${trace}: ${own}`);
    if (findings.length > 1) {
      await page.getByRole('button', { name: 'Copy all as Markdown' }).click();
      assert.equal(await page.getByRole('button', { name: 'Copied' }).count() && (await copied()), told('--markdown', '--all'), trace);
    }
    await page.getByRole('button', { name: 'Copy link' }).last().click();
    await page.goto(await copied());
    await settle(page);
    assert.equal(await page.locator('.finding.asked :is(h2, h3)').innerText(), findings[findings.length - 1].title.replace(/\s+/g, ' ').trim(), trace);
    await page.screenshot({ path: path.join(screenshots, `findings-${trace}.png`) });
    assert.deepEqual(problems, [], trace);
    await context.close();
  }
});

test('a log that ends inside a compile has an open bar and comes first; launches are told apart by number', async () => {
  const { page, problems } = await openPage(browser, 'file:');
  const legend = page.locator('.chart .legend');
  await visit(page, pageUrl(reportOf('hang_in_compile')), '#/');
  assert.match(await legend.innerText(), /hatched: the log ends inside it/);
  await page.locator('.chart canvas').hover({ position: { x: 200, y: 10 } });
  assert.match(await page.locator('.tooltip').innerText(), /rank 2/);
  await visit(page, pageUrl(reportOf('crash_in_compile')), '#/');
  assert.doesNotMatch(await legend.innerText(), /hatched/);
  const report = reportOf('restart_manual_other_config');
  await visit(page, pageUrl(report), '#/?launch=all');
  assert.match(await page.locator('main').innerText(), /rank 3 \(launch 1\)/);
  await visit(page, pageUrl(report), '#/ranks?tab=cache');
  assert.deepEqual(await page.locator('.cell-head').allInnerTexts(), ['0', '1', '2', '3'], 'the latest launch alone');
  await visit(page, pageUrl(report), '#/ranks');
  assert.match(await page.locator('main').innerText(), /started 2 times/);
  assert.doesNotMatch(await page.locator('main').innerText(), /launch 1\)|[0-9]_[a-z0-9_]{8}/);
  assert.deepEqual(problems, []);
});

test('Total of a compile holds its backward, and failures are told once', async () => {
  const { page } = await openPage(browser, 'file:');
  const report = reportOf('crash_in_compile');
  const db = (sql) => JSON.parse(execFileSync(tlparse, ['sql', path.join(report, 'trace.db'), sql, '--json'], { encoding: 'utf8' })).rows;
  await visit(page, pageUrl(report), '#/compiles?sort=-duration');
  const first = await page.locator('.grid-row').first().innerText();
  const [{ label, rank }] = db('SELECT label, rank FROM compile ORDER BY coalesce(duration_us, 0) + coalesce(backward_duration_us, 0) DESC LIMIT 1');
  assert.match(first, new RegExp(`^${label}\\s+${rank}\\s`));
  await visit(page, pageUrl(report), '#/compiles?tab=failures');
  assert.equal(await page.locator('.grid-row').count(), 1, 'one exception is one row');
});

test('timeline: zoom, select, permalink', async () => {
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(reportOf('mlp_train')), '#/timeline');
  const canvas = page.locator('.timeline canvas');
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + 40);
  await page.mouse.wheel(0, -400);
  await page.waitForURL(/from=/);
  await page.getByRole('button', { name: 'All' }).click();
  await page.waitForURL((url) => !url.href.includes('from='));
  await page.mouse.click(box.x + 140, box.y + 22 + 8 + 6);
  await page.locator('.detail.event').waitFor();
  assert.match(page.url(), /sel=\d+/);
  await page.screenshot({ path: path.join(screenshots, 'timeline-event.png') });
  const name = await page.locator('.detail.event h2').innerText();
  await page.reload();
  await page.locator('.detail.event').waitFor();
  assert.equal(await page.locator('.detail.event h2').innerText(), name);
  await canvas.focus();
  await page.keyboard.press('+');
  await page.waitForURL(/from=/);
  assert.equal(await page.getByRole('link', { name: 'Download for Perfetto' }).getAttribute('href'), 'chromium_events.json');
  assert.deepEqual(problems, []);
});

test('the pictures of the README: viewer/screenshots holds copies of them', async () => {
  const { page, problems } = await openPage(browser, 'file:', { viewport: { width: 1240, height: 560 } });
  const take = async (name) => assert.ok((await page.screenshot({ path: path.join(screenshots, name) })).length < 200_000, `${name} is small`);
  await visit(page, pageUrl(reportOf('diverge_order')), '#/');
  assert.ok((await page.locator('.finding').count()) > 0);
  await take('overview.png');
  await visit(page, pageUrl(reportOf('tlparse_meta')), '#/provenance');
  await page.locator('.grid-row').first().click();
  await settle(page);
  await page.getByLabel('Find a kernel, node or file:line').fill('cpp_fused_add_embedding');
  await page.keyboard.press('Enter');
  await settle(page);
  await take('provenance.png');
  assert.deepEqual(problems, []);
});

test('SQL console: a query, its error, its address', async () => {
  const server = await serve(reportOf('tlparse_meta'));
  after(server.stop);
  const { page, problems } = await openPage(browser, server.url);
  await visit(page, server.url, '#/sql');
  await page.getByLabel('SQL query').fill('SELECT label, status FROM compile ORDER BY id');
  await page.keyboard.press('Control+Enter');
  await page.locator('.grid-row').first().waitFor();
  await page.screenshot({ path: path.join(screenshots, 'sql-answer.png') });
  await page.getByLabel('SQL query').fill('DELETE FROM compile');
  await page.getByRole('button', { name: 'Run' }).click();
  await page.getByText('only queries are allowed').waitFor();
  // The refusal is an HTTP error, which Chromium tells the console about; nothing else may be there.
  assert.deepEqual(problems.filter((problem) => !problem.includes('400 (Bad Request)')), []);
  const there = await openPage(browser, server.url);
  await visit(there.page, server.url, '#/sql?q=SELECT%201');
  assert.equal(await there.page.getByLabel('SQL query').inputValue(), 'SELECT 1');
  assert.equal(await there.page.locator('.grid-row').count(), 0, 'a link does not run anything');
});

test('plain pages of code number their lines', async () => {
  const report = reportOf('tlparse_meta');
  const code = readdirSync(report, { recursive: true }).find((name) => /inductor_output_code.*\.html$/.test(name));
  const { page, context, problems } = await openPage(browser, 'file:');
  await page.goto(pathToFileURL(path.join(report, code)).href);
  // The numbers are made by the style sheet: only the accessibility tree has them as text.
  const session = await context.newCDPSession(page);
  const { nodes } = await session.send('Accessibility.getFullAXTree');
  const texts = nodes.filter((node) => node.role?.value === 'StaticText').map((node) => node.name.value.trim());
  const lines = (await page.locator('.code span').allInnerTexts()).length;
  assert.ok(lines > 3);
  const first = texts.indexOf('1');
  assert.deepEqual([texts.includes('3'), texts.includes(`${lines}`), texts.indexOf('2') > first], [true, true, true]);
  await context.close();
  assert.deepEqual(problems, []);
});
