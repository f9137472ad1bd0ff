// The page of time: its parts add up to the wall time in which something was timed, its phases are those of the metrics, and every view is an address.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { launch, openPage, pageUrl, reportOf, rowsOfChunk, screenshots, settle, violationsOf, visit } from './support.mjs';

let browser;
before(async () => {
  mkdirSync(screenshots, { recursive: true });
  browser = await launch();
});
after(() => browser.close());

const sum = (rows, of) => rows.reduce((total, row) => total + (of(row) ?? 0), 0);
const isNear = (a, b, slack, what) => assert.ok(Math.abs(a - b) <= slack, `${what}: ${a} is not ${b}`);

// How long some of the spans [start, end] were open.
function unionOf(spans) {
  let [total, until] = [0, -Infinity];
  for (const [start, end] of spans.sort((a, b) => a[0] - b[0])) {
    total += Math.max(0, end - Math.max(start, until));
    until = Math.max(until, end);
  }
  return total;
}

const traces = ['tlparse_meta', 'cache_some_ranks', 'mlp_train', 'mlp_train_2_6', 'failures', 'killed', 'fsdp2', 'recompiles_2_6', 'stalled_compile'];
for (const trace of traces) {
  test(`${trace}: the parts add up to the time in which an event or a compile was open`, () => {
    const report = reportOf(trace);
    const compiles = rowsOfChunk(report, 'compiles').compile;
    const all = rowsOfChunk(report, 'time');
    const processes = readdirSync(path.join(report, 'data')).filter((name) => name.startsWith('time-')).map((name) => Number(name.slice(5, -3)));
    assert.ok(processes.length > 0);
    for (const process of processes) {
      const own = rowsOfChunk(report, `time/${process}`);
      const events = rowsOfChunk(report, `events/${process}`).event.filter((event) => event.start_us !== null && event.duration_us !== null);
      const spans = events.map((event) => [event.start_us, event.start_us + event.duration_us]);
      for (const compile of compiles.filter((one) => one.process_id === process)) {
        if (compile.start_us !== null) spans.push([compile.start_us, compile.start_us + (compile.duration_us ?? 0)]);
        if (compile.backward_start_us !== null) spans.push([compile.backward_start_us, compile.backward_start_us + (compile.backward_duration_us ?? 0)]);
      }
      const whole = unionOf(spans);
      const slack = 1 + 0.001 * events.length; // of times since 1970 a double has a quarter of a microsecond
      isNear(sum(own.node, (row) => row.self_us) + sum(own.compile, (row) => row.not_attributed_us), whole, slack, `${process}: nodes`);
      isNear(sum(own.name, (row) => row.self_us) + sum(own.compile, (row) => row.not_attributed_us), whole, slack, `${process}: names`);
      isNear(sum(own.compile, (row) => row.self_us), whole, slack, `${process}: compiles`);
      assert.equal(sum(own.node, (row) => row.count), events.length);
      for (const row of own.name) {
        const named = events.filter((event) => event.name === row.name);
        assert.ok(row.self_us <= row.total_us + 1 && row.max_us <= row.total_us + 1, `${row.name}: self and longest within total`);
        assert.ok(row.total_us <= sum(named, (event) => event.duration_us) + 1, `${row.name}: total within the sum of its events`);
      }
    }
    // By function it is the same.
    const ofProcesses = processes.flatMap((process) => rowsOfChunk(report, `time/${process}`).node);
    isNear(sum(all.node, (row) => row.self_us), sum(ofProcesses, (row) => row.self_us), 1 + ofProcesses.length, 'all processes');
    assert.equal(sum(all.node, (row) => row.count), sum(ofProcesses, (row) => row.count));
  });
}

for (const trace of ['tlparse_meta', 'mlp_train', 'mlp_train_2_6', 'cache_some_ranks', 'recompiles_2_6']) {
  test(`${trace}: the phases of the events are those of the metrics, which the overview shows`, () => {
    const report = reportOf(trace);
    // The event `dynamo` is a little longer than what the metric counts.
    const of = (phase) => sum(rowsOfChunk(report, 'time').node.filter((row) => row.phase === phase && row.name !== 'dynamo'), (row) => row.self_us);
    const metric = (column) => sum(rowsOfChunk(report, 'compiles').compile, (row) => row[column]);
    const codeUs = metric('code_gen_us');
    const near = (ours, theirs, what) => isNear(ours, theirs, 0.01 * theirs + 1000, what);
    near(of(1), metric('dynamo_us') - metric('aot_autograd_us'), 'Dynamo');
    near(of(2), metric('aot_autograd_us') - metric('inductor_us'), 'AOTAutograd');
    near(of(3), metric('inductor_us') - codeUs, 'Inductor');
    near(of(4), codeUs, 'code generation');
    near(of(5), metric('backward_duration_us'), 'Backward');
  });
}

test('from the bar of the overview to a phase, an event, its callers and what it calls', async () => {
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(reportOf('mlp_train')), '#/');
  await page.locator('.went-parts a', { hasText: 'code generation' }).first().click();
  await settle(page);
  assert.match(page.url(), /#\/time\?.*phase=code/);
  const names = await page.locator('.grid-row [role=gridcell]:first-child').allInnerTexts();
  assert.ok(names.some((name) => name.trim() === 'code_gen'), names.join());
  assert.ok(!names.some((name) => name.trim() === 'bytecode_tracing'), 'only what is in the phase');
  await page.getByRole('link', { name: 'code generation ✕' }).click();
  await page.getByRole('navigation', { name: 'By' }).getByRole('link', { name: 'event' }).click();
  await settle(page);
  await page.getByLabel('Filter by event').fill('compile_to_fn');
  await page.locator('.grid-row', { hasText: 'GraphLowering.compile_to_fn' }).click();
  const detail = page.getByRole('region', { name: 'Selected event' });
  await detail.waitFor();
  assert.match(await detail.innerText(), /Called by[\s\S]*fx_codegen_and_compile[\s\S]*Calls[\s\S]*code_gen/);
  await page.screenshot({ path: path.join(screenshots, 'time-sandwich.png') });
  assert.deepEqual(await violationsOf(page), []);
  await detail.getByRole('link', { name: 'code_gen' }).click();
  await detail.getByRole('heading', { name: 'code_gen' }).waitFor();
  const copied = page.url();
  const there = await openPage(browser, 'file:');
  await there.page.goto(copied);
  await there.page.getByRole('region', { name: 'Selected event' }).getByRole('heading', { name: 'code_gen' }).waitFor();
  assert.deepEqual([...problems, ...there.problems], []);
});

test('rows of every table add up to the headline', async () => {
  const { page, problems } = await openPage(browser, 'file:', { viewport: { width: 1280, height: 4000 } });
  const milliseconds = (text) => {
    const units = { min: 60_000, s: 1000, ms: 1, µs: 0.001 };
    return [...text.matchAll(/([\d.]+) (min|s|ms|µs)/g)].reduce((total, [, value, unit]) => total + Number(value) * units[unit], 0);
  };
  for (const by of ['phase', 'event', 'compile', 'function', 'rank']) {
    await visit(page, pageUrl(reportOf('cache_some_ranks')), `#/time?by=${by}`);
    const whole = milliseconds(await page.locator('h1').innerText());
    const cells = await page.locator('.grid-row [role=gridcell]:nth-child(2)').allInnerTexts();
    isNear(cells.reduce((total, cell) => total + milliseconds(cell), 0), whole, 0.01 * whole, by);
  }
  assert.deepEqual(problems, []);
});

test('flame: by the keyboard in and out; left-heavy has the widest first', async () => {
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(reportOf('mlp_train')), '#/time?view=left-heavy');
  const widths = await page.locator('.flame button').evaluateAll((buttons) => buttons.filter((one) => one.style.top === '0px').map((one) => parseFloat(one.style.width)));
  assert.deepEqual(widths, [...widths].sort((a, b) => b - a));
  isNear(widths.reduce((a, b) => a + b, 0), 100, 1, 'the outermost fill the width');
  await page.locator('.flame button').first().focus();
  await page.keyboard.press('ArrowDown');
  const inner = await page.evaluate(() => document.activeElement.textContent);
  await page.keyboard.press('Enter');
  await page.getByRole('region', { name: 'Selected event' }).getByRole('heading', { name: inner }).waitFor();
  assert.equal(await page.locator('.flame button', { hasText: inner }).first().evaluate((one) => one.style.width), '100%');
  assert.deepEqual(await violationsOf(page), []);
  await page.screenshot({ path: path.join(screenshots, 'time-left-heavy.png') });
  await page.getByRole('button', { name: 'Show all' }).click();
  await page.waitForFunction(() => !location.hash.includes('at='));
  assert.deepEqual(problems, []);
});

test('a rank, a launch and a function are looked at alone', async () => {
  const { page, problems } = await openPage(browser, 'file:');
  const base = pageUrl(reportOf('cache_some_ranks'));
  await visit(page, base, '#/time');
  const whole = await page.locator('h1').innerText();
  await page.getByLabel('Rank').selectOption('0');
  await settle(page);
  await page.getByRole('heading', { level: 1 }).waitFor();
  assert.notEqual(await page.locator('h1').innerText(), whole);
  await visit(page, base, '#/time?by=function');
  await page.locator('.grid-row a').first().click();
  await settle(page);
  assert.match(page.url(), /function=/);
  assert.equal(await page.locator('.chip').count(), 1);
  await page.locator('.chip').click();
  await settle(page);
  assert.equal(await page.locator('h1').innerText(), whole);
  assert.deepEqual(problems, []);
});
