// What ran, on the page: costs of recorded profiles, in Chromium.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { launch, openPage, outDirectory, pageUrl, readChunk, reportOf, screenshots, settle, source, tlparse, violationsOf, visit } from './support.mjs';

let browser;
before(async () => {
  mkdirSync(screenshots, { recursive: true });
  browser = await launch();
});
after(() => browser.close());

const runOf = (name) => reportOf(name, path.join('fixtures/runs', name));
const answer = (report, ...question) => JSON.parse(execFileSync(tlparse, [question[0], report, '--json', ...question.slice(1)], { encoding: 'utf8', maxBuffer: 1 << 28 }));

// Each view in both schemes, accessible, and at two widths: no complaint, no page that scrolls sideways.
async function look(name, report, hashes) {
  for (const [colorScheme, width] of [['light', 1280], ['dark', 1280], ['light', 700]]) {
    const { page, context, problems } = await openPage(browser, 'file:', { colorScheme, viewport: { width, height: 800 } });
    const found = [];
    for (const [view, hash] of hashes) {
      await visit(page, pageUrl(report), hash);
      await page.screenshot({ path: path.join(screenshots, `${name}-${view}-${colorScheme}-${width}.png`) });
      found.push(...problems.splice(0), ...(width > 1000 ? await violationsOf(page) : []));
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      if (wide > 0) found.push(`${view}: ${wide} px too wide`);
      found.push(...(await textOutsideItsRow(page)).map((text) => `${view}: ${text} stands outside its row`));
    }
    await context.close();
    assert.deepEqual(found, [], `${name} ${colorScheme} ${width}`);
  }
}

const textOutsideItsRow = (page) =>
  page.locator('.grid-row').evaluateAll((rows) =>
    rows.flatMap((row) => {
      const { top, bottom } = row.getBoundingClientRect();
      return [...row.querySelectorAll('a, span, code')].filter((one) => one.getBoundingClientRect().top < top - 1 || one.getBoundingClientRect().bottom > bottom + 1).map((one) => one.textContent);
    }));

async function column(page, name) {
  const at = (await page.locator('.grid-head > div').allInnerTexts()).findIndex((title) => title.startsWith(name));
  assert.ok(at >= 0, `no column ${name}`);
  await settle(page);
  return page.locator('.grid-row').evaluateAll((rows, i) => rows.map((row) => row.children[i].textContent), at);
}

test('cost: looks', () => look('cost', runOf('p_mlp_train'), [['kernels', '#/cost'], ['lines', '#/cost?tab=lines'], ['graphs', '#/cost?tab=graphs'], ['ops', '#/cost?tab=ops'], ['overview', '#/']]));

test('cost: a kernel of several lines looks', () => look('lines', runOf('p_dynamic'), [['kernels', '#/cost']]));

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

test('heat: beside lines of code, nodes and Python lines, of the time of all kernels', async () => {
  const report = runOf('p_mlp_train');
  const { rows } = answer(report, 'cost', '--by', 'kernel', '--top', '1000');
  const { page, problems } = await openPage(browser, 'file:');
  const sums = { python: 0 };
  for (const [graph, direction] of [[1, 'forward'], [2, 'backward']]) {
    await visit(page, pageUrl(report), `#/provenance/${graph}`);
    await page.locator('.heat-legend').waitFor();
    const marks = (label) => page.getByRole('region', { name: label, exact: true }).locator('.heat-margin[title]').evaluateAll((cells) => cells.map((cell) => [cell.parentElement.innerText, parseFloat(cell.textContent.replace('<', ''))]));
    for (const [, share] of await marks('Python source')) sums.python += share;
    // The most expensive kernel is in view, at its call.
    const top = rows.filter((row) => row.direction === direction)[0];
    const code = await marks('Generated code');
    assert.ok(code.some(([text, share]) => Math.abs(share - 100 * top.share) < 0.06 && text.includes(top.name)), `${top.name} ${JSON.stringify(code)}`);
    assert.match(await page.locator('.heat-legend').innerText(), /share of 53\.5 ms, the time of all kernels in .*3 steps \(2–4\)/);
    // The log of this backward maps no nodes.
    assert.equal((await marks('Post-grad graph')).length > 3, direction === 'forward');
    assert.equal((await marks('Pre-grad graph')).length, 0);
  }
  assert.ok(Math.abs(sums.python - 100) < 0.3, `the Python lines of both graphs have all of the time: ${sums.python}`);
  assert.deepEqual(problems, []);
});

test('heat: looks', () => look('heat', runOf('p_mlp_train'), [['forward', '#/provenance/1'], ['backward', '#/provenance/2']]));

// The cells of a group, rank by rank: their signs.
const signsOf = (page, group) => page.getByRole('grid', { name: group }).locator('.matrix-row').evaluateAll((rows) => rows.map((row) => [...row.querySelectorAll('.cell')].map((cell) => cell.textContent).join('')));

test('collectives: who issued what, by sequence number; the odd one is marked, and says what it is', async () => {
  const report = runOf('fr_wrong_op');
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(report), '#/ranks?tab=collectives');
  const { groups, findings } = answer(report, 'collectives').issued;
  assert.equal(groups.length, 4);
  for (const group of groups) {
    const shown = await signsOf(page, `group ${group.description} (${group.name}): ranks by sequence number`);
    assert.equal(shown.length, group.ranks.count);
    assert.ok(shown.every((row) => row.length === group.collectives.length), group.name);
  }
  assert.deepEqual(await signsOf(page, /group dp/), ['✓✓◐', '✓✓◐', '✓✓≠', '✓✓◐']);
  // The group that a finding names comes first.
  assert.match(await page.locator('.issued .section h2').first().innerText(), /group dp/);
  assert.ok((await page.locator('.issued').innerText()).includes(findings[0].title));
  await page.getByRole('grid', { name: /group dp/ }).locator('a.odd').click();
  await settle(page);
  const said = await page.locator('.detail').innerText();
  assert.match(said, /^rank 2, group dp \(1\), number 3 issued, not ended/);
  assert.match(said, /all_gather .*fr_job\.py:\d+/);
  assert.match(said, /rank 0, rank 1, rank 3:\s+all_reduce/);
  assert.ok(said.includes(findings[0].title));
  assert.deepEqual(problems, []);
});

test('collectives: an entry leads to its graph and the line of its code', async () => {
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(runOf('fr_healthy')), '#/ranks?tab=collectives');
  assert.equal(await page.locator('.issued a.odd').count(), 0, 'a healthy job has no odd cell');
  await page.locator('.issued .cell[title*="from graph"]').first().click();
  await settle(page);
  await page.locator('.detail a', { hasText: 'of the generated code' }).click();
  await settle(page);
  assert.match(await page.locator('.picked').innerText(), /all_reduce|all_gather|reduce_scatter/);
  assert.deepEqual(problems, []);
});

test('collectives: who came late is marked', async () => {
  const { page } = await openPage(browser, 'file:');
  await visit(page, pageUrl(runOf('fr_late')), '#/ranks?tab=collectives');
  assert.deepEqual(await signsOf(page, /group dp/), ['✓✓T~', '✓✓T~', '✓✓T~', '✓✓!~']);
  await page.locator('.issued a.odd').click();
  await settle(page);
  assert.match(await page.locator('.detail').innerText(), /the first rank waited 25\.0 s and gave up, the last to come was rank 3/);
});

test('collectives: looks', async () => {
  await look('collectives-late', runOf('fr_late'), [['matrix', '#/ranks?tab=collectives&cell=35']]);
  await look('collectives-wrong', runOf('fr_wrong_op'), [['matrix', '#/ranks?tab=collectives&cell=3']]);
});

const drawn = async (page) => Number(/of ([\d,]+) events/.exec(await page.locator('.timeline canvas').getAttribute('aria-label'))[1].replaceAll(',', ''));
const countOf = (report, sql) => Object.values(JSON.parse(execFileSync(tlparse, ['sql', path.join(report, 'trace.db'), sql, '--json'], { encoding: 'utf8' })).rows[0])[0];

test('timeline: compile events and what a profile saw, on one axis', async () => {
  const report = runOf('p_mlp_train');
  const events = countOf(report, 'SELECT count(*) FROM chromium_event WHERE start_us IS NOT NULL');
  const slices = countOf(report, 'SELECT (SELECT count(*) FROM annotation_row) + (SELECT count(*) FROM compiled_slice_row) + (SELECT count(*) FROM op_run_row) + (SELECT count(*) FROM kernel_run_row) + (SELECT count(*) FROM device_copy_row)');
  assert.ok(events > 50 && slices > 400);
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(report), '#/timeline');
  assert.equal(await drawn(page), events + slices);
  // A kernel, as the database has it, by its address.
  const chunk = await readChunk(page, 'slices/1');
  const { track, slice } = chunk.tables;
  const row = slice.numbers.track.findIndex((own, i) => track.numbers.kind[own] === 3 && slice.numbers.graph_id[i] !== null);
  await visit(page, pageUrl(report), `#/timeline?sel=1.${row}`);
  const detail = await page.locator('.detail').innerText();
  assert.ok(detail.startsWith(chunk.strings[slice.texts.name[row]]), detail);
  assert.match(detail, /kernels 29188.* in 0\/0/s);
  await page.locator('.detail a', { hasText: 'cost by kernel' }).click();
  await settle(page);
  // The steps that are counted, and what is in them, fill the picture.
  await page.getByRole('link', { name: 'these steps on the timeline' }).click();
  await settle(page);
  assert.match(page.url(), /from=13054053.*to=13141391/);
  assert.deepEqual(problems, []);
});

test('timeline: the profiles of the only process are shown, numbered in order of time', async () => {
  const report = runOf('p_two_functions');
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(report), '#/timeline');
  const notes = page.getByText(/^\d: .*all [\d,]+ slices/);
  await notes.first().waitFor();
  assert.deepEqual((await notes.allInnerTexts()).map((text) => text.replace(/^(\d): .*?(\w+_reset).*$/s, '$1 $2')), ['1 before_reset', '2 after_reset']);
  await page.getByRole('button', { name: 'Fit profiles' }).click();
  await page.waitForURL(/from=/);
  const span = new URLSearchParams(page.url().split('?')[1]);
  const [from, to] = JSON.parse(execFileSync(tlparse, ['sql', path.join(report, 'trace.db'), 'SELECT max(p.end_us) - min(p.start_us) AS us FROM profile p', '--json'], { encoding: 'utf8' })).rows.map((row) => Object.values(row)[0]).flatMap((us) => [us, us * 1.03]);
  assert.ok(Number(span.get('to')) - Number(span.get('from')) >= from && Number(span.get('to')) - Number(span.get('from')) <= to, page.url());
  assert.deepEqual(problems, []);
});

test('timeline: of several processes, one at a time shows what ran', async () => {
  const report = runOf('p_ddp');
  const { page } = await openPage(browser, 'file:');
  await visit(page, pageUrl(report), '#/timeline');
  const events = await drawn(page);
  await page.getByText('2 profiles measured steps').waitFor();
  await page.getByLabel('Process', { exact: true }).selectOption({ label: 'rank 1' });
  await page.getByText(/rank 1: steps\.rank1.* all [\d,]+ slices/).waitFor();
  assert.ok((await drawn(page)) > events / 2 + 700);
});

test('timeline: what is too much is summed up, and that is said', async () => {
  const input = path.join(outDirectory, 'many.pt.trace.json');
  const traceEvents = [];
  for (let i = 0; i < 105_000; i++) traceEvents.push({ ph: 'X', cat: 'cpu_op', name: `aten::op${i % 7}`, pid: 9, tid: 9, ts: 1e15 + i * 10, dur: 1 + (i % 9) });
  writeFileSync(input, JSON.stringify({ schemaVersion: 1, traceEvents }));
  const report = reportOf('many', input);
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(report), '#/timeline');
  assert.equal(await drawn(page), 100_000);
  const { strip, slice } = (await readChunk(page, 'slices/1')).tables;
  assert.equal(strip.numbers.count.reduce((sum, n) => sum + n, 0), 5_000);
  assert.equal(slice.rows, 100_000);
  await page.getByText('of 105,000 slices the 100,000 longest (from 1 µs) are drawn one by one').waitFor();
  // Without a log nothing is said of compiles.
  await visit(page, pageUrl(report), '#/');
  const overview = await page.locator('main').innerText();
  assert.match(overview, /Of compiles nothing is known: no log was read\./);
  assert.doesNotMatch(overview, /no compile failed|There are no compiles|No cache lookups|cache hit rate/);
  assert.doesNotMatch((await page.locator('nav[aria-label=Pages] a').allInnerTexts()).join(' '), /Compiles|Ranks|Provenance|Source|Export/);
  assert.deepEqual(problems, []);
});

// What a frame costs, counted: rectangles that are filled, of 100,000 slices in one row. A screen has so many pixels, not slices.
test('timeline: a frame draws no more than the screen has pixels', async () => {
  const input = path.join(outDirectory, 'dense.pt.trace.json');
  const traceEvents = [];
  for (let i = 0; i < 100_000; i++) traceEvents.push({ ph: 'X', cat: 'cpu_op', name: `aten::op${i % 7}`, pid: 9, tid: 9, ts: 1e15 + i * 10, dur: 1 + (i % 9) });
  writeFileSync(input, JSON.stringify({ schemaVersion: 1, traceEvents }));
  const report = reportOf('dense', input);
  const { page, problems } = await openPage(browser, 'file:');
  await page.addInitScript(() => {
    window.work = { filled: 0, frames: [] };
    const { fillRect, clearRect } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.fillRect = function (...box) {
      window.work.filled++;
      return fillRect.apply(this, box);
    };
    // Every drawing begins with it.
    CanvasRenderingContext2D.prototype.clearRect = function (...box) {
      window.work.frames.push(0);
      window.work.filled = 0;
      queueMicrotask(() => (window.work.frames[window.work.frames.length - 1] = window.work.filled));
      return clearRect.apply(this, box);
    };
  });
  await visit(page, pageUrl(report), '#/timeline');
  assert.equal(await drawn(page), 100_000);
  const canvas = page.locator('canvas').first();
  const box = await canvas.boundingBox();
  const most = () => page.evaluate(() => Math.max(...window.work.frames));
  const frames = () => page.evaluate(() => window.work.frames.length);
  const limit = 2 * box.width + 200; // and the axis
  assert.ok((await most()) > box.width / 2, 'it was drawn');
  assert.ok((await most()) <= limit, `all of it: ${await most()} rectangles`);
  // All of them are found.
  await page.getByPlaceholder('Find events by name').fill('aten');
  await settle(page);
  assert.ok((await most()) <= limit, `found: ${await most()} rectangles`);
  // Zoom and move.
  const before = await frames();
  await page.mouse.move(box.x + box.width / 2, box.y + 60);
  for (let i = 0; i < 12; i++) await page.mouse.wheel(0, i < 8 ? -200 : 200);
  await settle(page);
  assert.ok((await frames()) > before, 'the wheel draws');
  assert.ok((await most()) <= limit, `zoomed: ${await most()} rectangles`);
  assert.deepEqual(problems, []);
});

test('timeline: looks', () => look('timeline-run', runOf('p_mlp_train'), [['all', '#/timeline'], ['steps', '#/timeline?from=13054053&to=13141391']]));

test('a compile has its ops with estimates and outputs, and its graphs what was measured', async () => {
  const report = runOf('p_estimates');
  const ops = JSON.parse(execFileSync(tlparse, ['sql', path.join(report, 'trace.db'), 'SELECT name, estimated_ns FROM op_runtime WHERE compile_id = 1 ORDER BY record_id, ordinal', '--json'], { encoding: 'utf8' })).rows;
  assert.ok(ops.length > 3);
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(report), '#/compile/1?view=ops');
  assert.deepEqual((await column(page, 'Op')).slice(0, 8), ops.slice(0, 8).map(({ name }) => name ?? 'no name'));
  assert.match((await column(page, 'Outputs'))[0], /^\S+ \[/);
  await visit(page, pageUrl(runOf('p_mlp_train')), '#/compile/1');
  assert.match(await page.locator('.artifact').innerText(), /Measured[\s\S]*3 calls, 38\.\d ms[\s\S]*3 calls, 1\d\.\d ms/);
  assert.deepEqual(problems, []);
});

test('what libtrace measured is with its compile; what it issued with its process', async () => {
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(reportOf('libtrace_torchscript')), '#/compile/1?view=measured');
  const said = await page.locator('.artifact').innerText();
  assert.match(said, /Models loaded[\s\S]*regressor/);
  await visit(page, pageUrl(reportOf('libtrace_torchscript')), '#/compile/2?view=measured');
  assert.match(await page.locator('.artifact').innerText(), /Ops as libtrace measured them[\s\S]*aten::/);
  await visit(page, pageUrl(reportOf('libtrace_aoti')), '#/compile/1?view=measured');
  assert.match(await page.locator('.artifact').innerText(), /Packages\s[\s\S]*\.pt2[\s\S]*kernel\s+cpp_fused_\w+[\s\S]*weight\s[\s\S]*float32[\s\S]*file\s/);
  await visit(page, pageUrl(reportOf('libtrace_collectives')), '#/process/1');
  assert.match(await page.locator('main').innerText(), /How it ended: silent its log ends[\s\S]*Collectives issued, as libtrace logged them[\s\S]*all_?reduce/);
  assert.deepEqual(problems, []);
});

test('a cause in a key is read from the others to this rank, texts line by line', async () => {
  const { page, problems } = await openPage(browser, 'file:');
  const report = reportOf('diverge_order');
  await visit(page, pageUrl(report), '#/ranks?tab=cache&layer=fx_graph');
  await page.locator('a.cell.apart').first().click();
  await page.locator('.differences').waitFor();
  const heads = await page.locator('.differences th[scope=col]').allInnerTexts();
  assert.match(heads[1], /^rank [013]$/);
  assert.equal(heads[2], '→ rank 2');
  const lines = (kind) => page.locator(`.line-changes .${kind}`).allInnerTexts();
  assert.ok((await lines('removed')).some((line) => line.includes('mm = torch.ops.aten.mm.default')));
  assert.ok((await lines('added')).some((line) => line.includes('relu = torch.ops.aten.relu.default')));
  assert.deepEqual(problems, []);
});

test('sections: looks', async () => {
  await look('ops', runOf('p_estimates'), [['ops', '#/compile/1?view=ops']]);
  await look('libtrace', reportOf('libtrace_torchscript'), [['measured', '#/compile/1?view=measured']]);
  await look('issued', reportOf('libtrace_collectives'), [['process', '#/process/1']]);
});

test('a hostile profile: text stays text, times that no clock has break nothing, what is unknown is not 0', async () => {
  const input = path.join(outDirectory, 'hostile.pt.trace.json');
  const evil = '<img src=x onerror=alert(1)></script><script>alert(2)</script>\u202e"\'&';
  const kernel = (name, ts, dur, more = {}) => ({ ph: 'X', cat: 'kernel', name, pid: 0, tid: 7, ts, dur, args: { device: 0, stream: 7, grid: [evil, 1, 1], block: [1, -1, 1e300], ...more } });
  const traceEvents = [
    kernel(evil, 1e15, 5),
    kernel('b'.repeat(50_000), 1e15 + 10, 9e15),
    kernel('c', 1e15 + 20, 9e15),
    kernel('d', -9e15, 9e15),
    { ph: 'X', cat: 'cpu_op', name: evil, pid: evil, tid: evil, ts: 1e15, dur: 7, args: { 'External id': 1 } },
    { ph: 'X', cat: 'user_annotation', name: `ProfilerStep#9223372036854775807${evil}`, pid: 1, tid: 1, ts: 1e15, dur: 100 },
    { ph: 'M', name: 'thread_name', pid: evil, tid: evil, args: { name: evil } },
  ];
  writeFileSync(input, JSON.stringify({ schemaVersion: 1, traceEvents }));
  const report = reportOf('hostile', input);
  const { page, problems } = await openPage(browser, 'file:');
  for (const hash of ['#/', '#/cost', '#/cost?tab=lines', '#/cost?tab=graphs', '#/cost?tab=ops', '#/timeline', '#/timeline?sel=1.0', '#/timeline?profile=1&from=-1e300&to=1e300', '#/ranks?tab=collectives&cell=999999999']) {
    await visit(page, pageUrl(report), hash);
    assert.ok((await page.locator('main').innerText()).trim().length > 20, hash);
    assert.equal(await page.locator('main img, main script').count(), 0, hash);
  }
  assert.deepEqual(problems, []);
});

test('a cut profile says so where its numbers are', async () => {
  const whole = execFileSync('zstd', ['-dc', path.join(source, 'fixtures/runs/p_mlp_train/steps.pt.trace.json.zst')], { maxBuffer: 1 << 28 });
  const directory = path.join(outDirectory, 'cut_profile');
  mkdirSync(directory, { recursive: true });
  for (const name of readdirSync(path.join(source, 'fixtures/runs/p_mlp_train'))) if (name.endsWith('.log.zst')) copyFileSync(path.join(source, 'fixtures/runs/p_mlp_train', name), path.join(directory, name));
  writeFileSync(path.join(directory, 'cut.pt.trace.json'), whole.subarray(0, whole.length * 0.7));
  const report = reportOf('cut_profile', directory);
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(report), '#/cost');
  assert.match(await page.locator('.caveat').first().innerText(), /damaged or incomplete/);
  await visit(page, pageUrl(report), '#/');
  assert.equal(await page.getByRole('link', { name: 'damaged' }).count(), 1);
  await visit(page, pageUrl(report), '#/provenance/1');
  assert.match(await page.locator('.heat-legend').innerText(), /damaged or incomplete/);
  await visit(page, pageUrl(report), '#/timeline');
  assert.match(await page.locator('main').innerText(), /damaged or incomplete/);
  assert.deepEqual(problems, []);
});

test('a run without profiles has no page of costs', async () => {
  const { page } = await openPage(browser, 'file:');
  await visit(page, pageUrl(reportOf('tlparse_meta')), '#/');
  assert.equal(await page.getByRole('link', { name: 'Cost', exact: true }).count(), 0);
  assert.equal(await page.getByText('Profiles and dumps').count(), 0);
});

test('a rank that is chosen at the top is that of Cost and Timeline; a link to another one is followed', async () => {
  const report = runOf('p_ddp');
  const { page, context, problems } = await openPage(browser, 'file:');
  for (const rank of [1, 0]) {
    await visit(page, pageUrl(report), `#/cost?rank=${rank}`);
    assert.match(await page.locator('h1').innerText(), new RegExp(`rank ${rank}:`));
    assert.equal(await page.getByLabel('Profile').count(), 0, 'it has one');
    await visit(page, pageUrl(report), `#/timeline?rank=${rank}`);
    const text = await page.locator('main').innerText();
    assert.match(text, new RegExp(`rank ${rank}: `));
    assert.doesNotMatch(text, new RegExp(`rank ${1 - rank}: `));
  }
  await visit(page, pageUrl(report), '#/?rank=1');
  await page.getByRole('link', { name: /^rank 0: / }).first().click();
  await settle(page);
  assert.match(await page.getByLabel('Profile').locator('option:checked').innerText(), /^rank 0:/);
  assert.deepEqual(problems, []);
  await context.close();
});

test('without a log, Ranks shows what ranks issued and no empty comparison of logs', async () => {
  const { page, context, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(reportOf('dumps_alone', path.join('fixtures/runs', 'fr_wrong_op'), '--only', 'profiles')), '#/ranks');
  assert.deepEqual(await page.getByRole('navigation', { name: 'Views' }).getByRole('link').allInnerTexts(), ['Collectives']);
  assert.doesNotMatch(await page.locator('main').innerText(), /one process|compiled graphs/);
  assert.deepEqual(problems, []);
  await context.close();
});
