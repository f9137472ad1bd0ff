// The page says one thing: its views do not contradict each other, and no link of it leads to nothing.
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

const runOf = (name) => reportOf(name, path.join('fixtures/runs', name));

test('who ended with whom is said as tlparse status says it; what the launcher wrote down has a name', async () => {
  const report = runOf('restores_wrong');
  const said = execFileSync(tlparse, ['status', report], { encoding: 'utf8' }).replace(/\s+/g, ' ');
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(report), '#/ranks');
  const ends = await page
    .locator('.roles tbody td:last-child div')
    .evaluateAll((lines) => lines.map((line) => [line.textContent.split(':')[0], line.querySelector('.tag').textContent, line.lastChild.textContent]));
  assert.equal(ends.length, 2);
  for (const [rank, kind, evidence] of ends) assert.ok(said.includes(`end of rank ${rank}: ${kind}: ${evidence.trim()}`), `${rank} ${kind} ${evidence}: ${said}`);
  assert.ok(ends.some(([, kind]) => kind === 'killed, ended with rank 0'));
  await visit(page, pageUrl(report), '#/');
  assert.match(await page.getByRole('grid', { name: 'Profiles and dumps' }).innerText(), /^run\.json\s+ends and output\s+\d+ entries/m);
  assert.deepEqual(problems, []);
});

test('ranks of one role are compared with each other, of two roles not; the only process with none', async () => {
  const { page } = await openPage(browser, 'file:');
  const report = runOf('rollout_raises');
  const said = execFileSync(tlparse, ['ranks', report], { encoding: 'utf8' }).replace(/\s+/g, ' ');
  await visit(page, pageUrl(report), '#/ranks');
  await page.locator('.rank-classes tbody tr').first().waitFor();
  for (const text of await page.locator('.rank-classes tbody tr').evaluateAll((rows) => rows.flatMap((row) => [...row.lastElementChild.querySelectorAll('div')].map((one) => one.textContent))))
    assert.ok(said.includes(text.replace(/\s+/, ': ')), `${text}: ${said}`);
  const roles = (await page.locator('.rank-classes tbody tr td:first-child').allInnerTexts()).filter(Boolean);
  assert.deepEqual(roles, [...said.matchAll(/role: ([^,]+),/g)].map(([, role]) => role));
  await visit(page, pageUrl(reportOf('mlp_train')), '#/ranks');
  assert.match(await page.locator('main').innerText(), /nobody to differ from/);
  assert.equal(await page.locator('.classes').count(), 0);
});

test('a function that several ranks recompiled for the same reasons is one function, and each reason is said once', async () => {
  const { page } = await openPage(browser, 'file:');
  const report = runOf('growing_list');
  const titles = JSON.parse(execFileSync(tlparse, ['findings', report, '--json'], { encoding: 'utf8' })).findings.map((one) => one.title);
  await visit(page, pageUrl(report), '#/compiles?tab=recompiles');
  const heads = await page.locator('.chain h2').allInnerTexts();
  assert.match(await page.locator('main').innerText(), /2 functions recompiled/);
  for (const name of ['forward', 'postprocess']) {
    const [, times] = new RegExp(`^${name} was recompiled (\\S+( times)?) on each of the 2 ranks`).exec(titles.find((title) => title.startsWith(`${name} was recompiled`)));
    assert.match(heads.find((head) => head.startsWith(name)), new RegExp(`ranks 0,1, each recompiled ${times}`));
  }
  for (const reasons of await page.locator('.chain').evaluateAll((chains) => chains.map((chain) => [...chain.querySelectorAll('.reason:not(.quiet)')].map((one) => one.textContent)))) assert.deepEqual(reasons, [...new Set(reasons)]);
});

test('where two sums of a compile time differ, both are named', async () => {
  const { page } = await openPage(browser, 'file:');
  const report = runOf('growing_list');
  await visit(page, pageUrl(report), '#/');
  const [, whole] = /Where (.*) of compile time went/.exec(await page.locator('h2', { hasText: 'of compile time went' }).innerText());
  const said = await page.locator('.section', { hasText: 'of compile time went' }).locator('p.small').innerText();
  const [, clock] = /^(.*) of it by PyTorch’s clock/.exec(said);
  assert.notEqual(clock, whole);
  const rank = /rank (\d)/.exec(await page.locator('.section', { hasText: 'of compile time went' }).locator('.aside').innerText())[1];
  const { rows } = JSON.parse(execFileSync(tlparse, ['sql', report, `SELECT sum(duration_us + coalesce(backward_duration_us, 0)) / 1e6 AS s FROM compile WHERE rank = ${rank}`, '--json'], { encoding: 'utf8' }));
  assert.ok(Math.abs(Number(rows[0].s) - parseFloat(clock)) < 0.06 && / s$/.test(clock), `${rows[0].s} ${clock}`);
});

test('a profile without kernels opens with what it has; a place that no log knows is shown as far as it is known', async () => {
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(runOf('param_server')), '#/cost');
  assert.match(await page.locator('nav.tabs [aria-current=page]').innerText(), /^(Graphs|Ops)/);
  assert.ok((await page.locator('.grid-row').count()) > 0);
  await visit(page, pageUrl(reportOf('mlp_train')), '#/source/%2Flib%2Fqueue.py?line=171');
  assert.match(await page.locator('.source-code').innerText(), /170 lines unknown\s+171\s+text not known/);
  // A name that several files have is that of which more came; the others are named.
  await visit(page, pageUrl(reportOf('dynamic')), '#/source/common.py');
  assert.ok((await page.locator('.source-code tbody tr').count()) > 3);
  assert.match(await page.locator('main').innerText(), /Named so too: \S*common\.py/);
  // In the list the name is read first, then as much of its folder as there is room for.
  assert.match(await page.locator('.side [aria-current=page] .record-title').innerText(), /^common\.py \S/);
  assert.deepEqual(problems, []);
});

test('guards on sizes are no export; what PyTorch says of a break is a link', async () => {
  const { page } = await openPage(browser, 'file:');
  const nav = () => page.locator('header nav a').allInnerTexts();
  await visit(page, pageUrl(reportOf('dynamic')), '#/export');
  assert.ok((await nav()).includes('Shapes') && !(await nav()).includes('Export'));
  await visit(page, pageUrl(reportOf('dtrace')), '#/export');
  assert.ok((await nav()).includes('Export'));
  await visit(page, pageUrl(reportOf('fsdp2')), '#/');
  const [link] = await page.locator('.finding a[href^="https:"]').evaluateAll((all) => all.map((one) => [one.textContent, one.href, one.rel]));
  assert.equal(link[0], link[1]);
  assert.match(link[1], /^https:\/\/meta-pytorch\.github\.io\/compile-graph-break-site\/gb\/gb\d+\.html$/);
  assert.match(link[2], /noreferrer/);
});
