// What a page says of what is unknown, damaged, of another launch; and where it shows a line that it names.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { launch, openPage, outDirectory, pageUrl, reportOf, screenshots, settle, source, tlparse, violationsOf, visit } from './support.mjs';

let browser;
before(async () => {
  mkdirSync(screenshots, { recursive: true });
  browser = await launch();
});
after(() => browser.close());

const answer = (report, ...question) => JSON.parse(execFileSync(tlparse, [question[0], report, '--json', ...question.slice(1)], { encoding: 'utf8', maxBuffer: 1 << 28 }));
const db = (report, sql) => JSON.parse(execFileSync(tlparse, ['sql', path.join(report, 'trace.db'), sql, '--json'], { encoding: 'utf8' })).rows;

// A job of hand-made files.
function jobOf(name, files) {
  const directory = path.join(outDirectory, name);
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  for (const [file, data] of Object.entries(files)) writeFileSync(path.join(directory, file), data);
  return reportOf(name, directory);
}

// The logs of a bundled job, by file name.
function logsOf(trace) {
  const directory = path.join(source, 'fixtures/logs', trace);
  const names = readdirSync(directory).filter((name) => name.endsWith('.log.zst'));
  return Object.fromEntries(names.map((name) => [name.replace(/\.zst$/, ''), execFileSync('zstd', ['-dcq', path.join(directory, name)], { maxBuffer: 1 << 28 })]));
}

test('the place of a finding leads to its line of source, and to the view of a compile that shows it', async () => {
  const seen = new Set();
  for (const [trace, input] of [['diverge_order'], ['dynamic'], ['failures'], ['tlparse_meta'], ['fr_wrong_op', 'fixtures/runs/fr_wrong_op']]) {
    const report = reportOf(trace, input);
    const base = pageUrl(report);
    const { page, context, problems } = await openPage(browser, 'file:');
    await visit(page, base, '#/');
    const more = page.getByRole('button', { name: /^and \d+ more$/ });
    if ((await more.count()) > 0) await more.click();
    const places = answer(report, 'findings').findings.filter(({ place }) => place).length;
    assert.equal(await page.locator('.finding .place').count(), places, trace);
    const links = await page.locator('.finding-where').evaluateAll((all) => all.flatMap((where) => [...where.querySelectorAll('a.place, a.shown-in')].map((anchor) => [anchor.getAttribute('href'), where.querySelector('.place').title])));
    for (const [target, place] of links) {
      await visit(page, base, target);
      const what = `${trace} ${place}: ${target}`;
      if (target.startsWith('#/provenance/')) {
        seen.add('Python line');
        assert.ok((await page.locator('.prov-chain .tag.on').innerText()).includes(path.basename(place)), what);
        assert.equal(await page.locator('.pane', { has: page.getByRole('heading', { name: 'Python source' }) }).locator('.mark-pin').count(), 1, what);
      } else if (target.includes('record=')) {
        seen.add('text');
        assert.ok((await page.locator('.picked').innerText()).includes(place), what);
      } else {
        seen.add('source');
        assert.match(target, /^#\/source\//, what);
        assert.equal(await page.locator('.source-code tr.picked .source-number').innerText(), place.slice(place.lastIndexOf(':') + 1), what);
      }
    }
    assert.deepEqual(problems, [], trace);
    await context.close();
  }
  assert.deepEqual([...seen].sort(), ['Python line', 'source', 'text']);
});

test('source: what came of a line is what the database has of it, in all ranks', async () => {
  const report = reportOf('recompile_one', 'fixtures/logs/recompiles_2_6');
  const single = reportOf('tlparse_meta');
  const { page, problems } = await openPage(browser, 'file:');
  const [top] = db(single, 'SELECT f.text AS file, s.line, count(DISTINCT s.kernel_id) AS n FROM kernel_source_row s JOIN text_row f ON f.id = s.file_id WHERE NOT EXISTS (SELECT 1 FROM kernel_source_row t WHERE t.kernel_id = s.kernel_id AND t.stack_ordinal = s.stack_ordinal AND t.frame_ordinal > s.frame_ordinal) GROUP BY 1, 2 ORDER BY n DESC LIMIT 1');
  await visit(page, pageUrl(single), `#/source/${encodeURIComponent(top.file)}?line=${top.line}`);
  assert.equal(Number(await page.locator('tr.picked .margin-kernel').innerText()), top.n);
  assert.match(await page.locator('.source-detail').innerText(), /Kernels[\s\S]*forward graph/);
  await visit(page, pageUrl(reportOf('diverge_order')), '#/source/d_fcol.py?line=24');
  assert.match(await page.locator('.source-detail').innerText(), /0\/0[\s\S]*rank 2/);
  // From a table to the line, and from the line to a compile.
  await visit(page, pageUrl(report), '#/compiles');
  await page.locator('.grid-row a.place').first().click();
  await settle(page);
  const line = await page.locator('tr.picked .source-number').innerText();
  assert.ok(db(report, `SELECT count(*) AS n FROM compile WHERE line = ${line}`)[0].n > 0);
  await page.locator('.source-detail section', { hasText: 'the function that begins here' }).locator('a').first().click();
  await settle(page);
  assert.match(await page.locator('.compile-head').innerText(), new RegExp(`:${line}\\b`));
  assert.deepEqual(problems, []);
});

test('the tab of recompiles counts as the card does', async () => {
  const report = reportOf('recompile_limit_2_6');
  const limits = answer(report, 'findings').findings.filter(({ kind }) => kind === 'recompile_limit');
  assert.ok(limits.length > 0);
  const { page } = await openPage(browser, 'file:');
  await visit(page, pageUrl(report), '#/compiles?tab=recompiles');
  const heads = await page.locator('.chain h2').allInnerTexts();
  for (const { title } of limits) {
    const [refused] = /\d+ (further )?attempts? (was|were) refused/.exec(title);
    assert.ok(heads.some((head) => head.includes(refused)), `${title}: ${heads.join(' | ')}`);
  }
});

test('cost by module is that of tlparse cost, where the profile names modules', async () => {
  const slice = (cat, name, ts, dur, args, more = {}) => ({ ph: 'X', cat, name, pid: 9, tid: 9, ts: 1e15 + ts, dur, args, ...more });
  const module = (name, ts, dur, id) => slice('python_function', `nn.Module: ${name}`, ts, dur, { 'Python id': id, 'Python module id': id });
  const kernel = (n, ts, dur) => [
    slice('cpu_op', 'aten::mm', ts, 8, { 'External id': n }),
    slice('cuda_runtime', 'cudaLaunchKernel', ts + 2, 2, { 'External id': n, correlation: n }),
    slice('kernel', `k${n}`, ts + 500, dur, { 'External id': n, correlation: n, device: 0, stream: 7 }, { pid: 0, tid: 7 }),
  ];
  const traceEvents = [module('Model_0', 0, 100, 1), module('<b>Linear_0', 10, 30, 2), module('Linear_1', 50, 30, 3), ...kernel(1, 15, 40), ...kernel(2, 55, 25), ...kernel(3, 90, 5), ...kernel(4, 200, 3)];
  const report = jobOf('modules', { 'p.json': JSON.stringify({ schemaVersion: 1, traceEvents }) });
  const { rows } = answer(report, 'cost', '--by', 'module');
  assert.ok(rows.length === 4 && rows.some(({ name }) => name === null));
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(report), '#/cost');
  const column = async (name) => {
    const at = (await page.locator('.grid-head > div').allInnerTexts()).findIndex((title) => title.startsWith(name));
    assert.ok(at >= 0, name);
    return page.locator('.grid-row').evaluateAll((all, i) => all.map((row) => row.children[i].textContent), at);
  };
  assert.deepEqual(await column('Longest'), answer(report, 'cost', '--by', 'kernel').rows.map((row) => `${row.longest_us} µs`));
  await page.getByRole('link', { name: 'Modules' }).click();
  await settle(page);
  assert.deepEqual(await column('Module'), rows.map(({ name }) => name ?? 'no module was open'));
  assert.deepEqual(await column('Share'), rows.map(({ share }) => `${(100 * share).toFixed(1)} %`));
  assert.deepEqual(await column('With modules'), rows.map((row) => `${row.inclusive_us} µs`));
  assert.deepEqual(await column('Calls'), rows.map(({ name, calls }) => (name === null ? '' : String(calls))));
  assert.deepEqual(await violationsOf(page), []);
  await page.screenshot({ path: path.join(screenshots, 'cost-modules.png') });
  await visit(page, pageUrl(reportOf('p_mlp_train', 'fixtures/runs/p_mlp_train')), '#/cost?tab=modules');
  assert.equal(await page.getByRole('link', { name: 'Modules' }).count(), 0);
  assert.equal(await page.locator('.tabs [aria-current=page]').innerText(), `Kernels${await page.locator('.tabs [aria-current=page] .count').innerText()}`);
  assert.deepEqual(problems, []);
});

test('a compile time that no log tells is unknown, not 0', async () => {
  const record = (rank, frame) => `V1121 08:45:41.01400${frame} 10 torch/a.py:1] {"dynamo_start": {"stack": []}, "frame_id": ${frame}, "frame_compile_id": 0, "attempt": 0, "rank": ${rank}}\n`;
  const report = jobOf('untimed', Object.fromEntries([0, 1, 2].map((rank) => [`dedicated_log_torch_trace_rank_${rank}_abcdefgh.log`, record(rank, 0) + (rank === 2 ? record(rank, 1) : '')])));
  assert.deepEqual(answer(report, 'ranks').classes.map((one) => one.median_compile_s), [null, null]);
  const { page } = await openPage(browser, 'file:');
  await visit(page, pageUrl(report), '#/ranks');
  assert.deepEqual(await page.locator('.rank-classes td.right').allInnerTexts(), ['unknown', 'unknown']);
});

test('damaged logs are marked, and lead to what the import log says of them', async () => {
  const logs = logsOf('one_rank_cold');
  const names = Object.keys(logs).sort();
  const damaged = logs[names[1]];
  const header = damaged.indexOf('] {', damaged.indexOf('\nV', damaged.length / 2));
  damaged.fill('#', header + 3, header + 30);
  logs[names[2]] = logs[names[2]].subarray(0, logs[names[2]].length - 30);
  const report = jobOf('damaged_logs', logs);
  const entries = (rank) => db(report, `SELECT count(*) AS n FROM import_log i JOIN log_file f ON f.id = i.log_file_id WHERE f.name_rank = ${rank}`)[0].n;
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(report), '#/ranks');
  const links = page.locator('.caveat a');
  assert.deepEqual(await links.allInnerTexts(), ['rank 1 damaged', 'rank 2 cut off or damaged at its end']);
  for (const rank of [1, 2]) {
    await visit(page, pageUrl(report), '#/ranks');
    await links.nth(rank - 1).click();
    await settle(page);
    assert.equal(await page.locator('.grid-row').count(), entries(rank), `rank ${rank}`);
  }
  await visit(page, pageUrl(report), '#/ranks?tab=cache');
  assert.deepEqual(await page.locator('.cell-head.odd').allInnerTexts(), ['1', '2']);
  await visit(page, pageUrl(report), '#/');
  assert.equal(await page.getByRole('grid', { name: 'Processes' }).locator('a.severity-warning').count(), 2);
  assert.deepEqual(problems, []);
});

test('what a cache answered is unknown where the compile did not finish', async () => {
  const report = reportOf('killed_2_6');
  const open = db(report, "SELECT c.label FROM compile c WHERE status = 'unfinished' AND NOT EXISTS (SELECT 1 FROM cache_event e WHERE e.compile_id = c.id)");
  assert.ok(open.length > 0);
  const { page } = await openPage(browser, 'file:');
  await visit(page, pageUrl(report), '#/ranks?tab=cache');
  for (const { label } of open) assert.equal(await page.getByRole('link', { name: `, ${label}: unknown, the compile did not finish` }).innerText(), '?');
  assert.equal(await page.getByRole('link', { name: /: no lookup/ }).count(), 0);
});

test('cards link to the compiles of their rows, also where logs without ranks repeat labels', async () => {
  const directory = path.join(outDirectory, 'mixed');
  mkdirSync(directory, { recursive: true });
  for (const trace of ['failures', 'tlparse_meta', 'unicode']) for (const name of readdirSync(path.join(source, 'fixtures/logs', trace))) copyFileSync(path.join(source, 'fixtures/logs', trace, name), path.join(directory, name));
  const report = reportOf('mixed', directory);
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(report), '#/');
  await page.getByRole('button', { name: /^and \d+ more$/ }).click();
  const cards = await page.locator('.finding').evaluateAll((all) => all.map((card) => ({ title: card.querySelector('h2, h3').textContent, compiles: [...card.querySelectorAll('.work a')].map((link) => Number(/compile\/(\d+)/.exec(link.href)[1])) })));
  const { findings } = answer(report, 'findings');
  let linked = 0;
  for (const card of cards) {
    const rows = new Set(db(report, findings.find((one) => one.title.replace(/\s+/g, ' ').trim() === card.title.replace(/\s+/g, ' ').trim()).query).map((row) => row.compile_id));
    for (const id of card.compiles) assert.ok(rows.has(id), `${card.title}: compile ${id} is none of ${[...rows]}`);
    linked += card.compiles.length;
  }
  assert.ok(linked > 8);
  assert.deepEqual(problems, []);
});

test('a launch and a rank that are chosen stay chosen, and everything is of them; all launches are by launch, then rank', async () => {
  const report = reportOf('restart_manual_other_config');
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(report), '#/');
  const { compiles, graphs } = db(report, 'SELECT count(*) AS compiles, (SELECT count(*) FROM graph g JOIN compile c ON c.id = g.compile_id JOIN process p ON p.id = c.process_id JOIN launch n ON n.id = p.launch_id WHERE n.ordinal = 2) AS graphs FROM compile c JOIN process p ON p.id = c.process_id JOIN launch n ON n.id = p.launch_id WHERE n.ordinal = 2')[0];
  const lookups = db(report, 'SELECT count(*) AS n FROM cache_event e JOIN process p ON p.id = e.process_id JOIN launch n ON n.id = p.launch_id WHERE n.ordinal = 2')[0].n;
  assert.ok(compiles < db(report, 'SELECT count(*) AS n FROM compile')[0].n);
  const facts = page.locator('.facts');
  assert.match(await page.locator('.job').innerText(), /launch 2 of 2/);
  assert.match(await facts.innerText(), new RegExp(`^${compiles} compiles\\s+${graphs} graphs\\s[\\s\\S]*of ${lookups} cache lookups`));
  await page.getByLabel('Launch').selectOption('1');
  await settle(page);
  const first = answer(report, 'findings', '--launch', '1').findings;
  assert.deepEqual(await page.locator('.finding :is(h2, h3)').allInnerTexts(), first.slice(0, 3).map((one) => one.title));
  await page.getByLabel('Rank').selectOption('3');
  await page.getByRole('link', { name: /^Compiles/ }).first().click();
  await settle(page);
  assert.match(page.url(), /#\/compiles\?.*launch=1.*rank=3/);
  const [{ n }] = db(report, 'SELECT count(*) AS n FROM compile c JOIN process p ON p.id = c.process_id JOIN launch l ON l.id = p.launch_id WHERE l.ordinal = 1 AND p.rank = 3');
  assert.equal(await page.locator('[role=status]').first().innerText(), `${n} compiles`);
  await page.getByLabel('Launch').selectOption('all');
  await page.getByRole('link', { name: 'Overview' }).click();
  await settle(page);
  const inOrder = [1, 2].flatMap((number) => [0, 1, 2, 3].map((rank) => `rank ${rank} (launch ${number})`));
  assert.deepEqual(await page.getByRole('grid', { name: 'Processes' }).locator('.grid-row a[href^="#/process"]').allInnerTexts(), inOrder);
  // The lanes of the chart, by what is under the pointer in the middle of each.
  const lanes = [];
  const chart = await page.locator('.chart canvas').boundingBox();
  const high = (chart.height - 22) / inOrder.length;
  for (let lane = 0; lane < inOrder.length; lane++) {
    for (let x = 120; x < chart.width && lanes.length === lane; x += 6) {
      await page.mouse.move(chart.x + x, chart.y + (lane + 0.5) * high);
      if ((await page.locator('.tooltip').count()) > 0) lanes.push(/rank \d \(launch \d\)/.exec(await page.locator('.tooltip').innerText())[0]);
    }
  }
  assert.deepEqual(lanes, inOrder);
  await visit(page, pageUrl(report), '#/timeline?launch=all');
  assert.deepEqual((await page.getByLabel('Process', { exact: true }).locator('option').allInnerTexts()).slice(1), inOrder);
  assert.deepEqual(problems, []);
});
