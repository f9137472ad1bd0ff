// The page of memory: its points are what another program counts, its peak is exact, a click names the holders of a moment, and every moment is an address.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { launch, openPage, outDirectory, pageUrl, reportOf, rowsOfChunk, screenshots, serve, settle, source, tlparse, violationsOf, visit } from './support.mjs';

let browser;
before(async () => {
  mkdirSync(screenshots, { recursive: true });
  browser = await launch();
});
after(() => browser.close());

// A report of a snapshot that the documented generator writes, and the snapshot as JSON.
function made(name, ...options) {
  const file = path.join(outDirectory, `${name}.json`);
  execFileSync('python3', [path.join(source, 'tests/tools/memory_snapshot.py'), file, '--format', 'json', ...options]);
  return { report: reportOf(name, file), snapshot: JSON.parse(readFileSync(file, 'utf8')) };
}
const leaking = () => made('memory_leaking', '--events', '4000', '--steps', '12', '--leak', '1000000', '--oom');

// What is alive after each event, in the plainest way.
function aliveAfter(events) {
  let now = 0;
  const sizes = new Map();
  return events.map(({ action, addr, size }) => {
    if (action === 'alloc') sizes.set(addr, size);
    if (action === 'alloc') now += size;
    if (action === 'free_completed') now -= sizes.get(addr);
    return now;
  });
}

test('every point is what was alive, the peak is exact, categories and holders add up', () => {
  const { report, snapshot } = leaking();
  const [recording] = rowsOfChunk(report, 'index').memory;
  const { point: points, holder: holders, site: sites, step: steps } = rowsOfChunk(report, `memory/${recording.id}`);
  const events = snapshot.device_traces[0];
  const alive = aliveAfter(events);
  assert.ok(points.length > 100 && points.length <= 803, `${points.length} points`);
  for (const point of points) {
    if (point.ordinal < 0) continue;
    assert.equal(point.size_bytes, alive[point.ordinal]);
    assert.equal(point.time_us, events[point.ordinal].time_us - events[0].time_us);
  }
  const most = Math.max(...alive);
  assert.equal(Math.max(...points.map((point) => point.size_bytes)), most);
  assert.equal(recording.peak_bytes, most);
  assert.ok(points.some((point) => point.ordinal === recording.peak_ordinal && point.size_bytes === most));
  assert.ok(points.some((point) => point.ordinal === recording.oom_ordinal));
  const categories = Object.keys(points[0]).filter((key) => !['ordinal', 'time_us', 'size_bytes'].includes(key));
  points.forEach((point, i) => {
    assert.equal(categories.reduce((sum, key) => sum + point[key], 0), point.size_bytes);
    const own = holders.filter((holder) => holder.point === i);
    assert.ok(own.length <= 8 && own.every((holder, n) => n === 0 || holder.size_bytes <= own[n - 1].size_bytes));
    assert.ok(own.reduce((sum, holder) => sum + holder.size_bytes, 0) <= point.size_bytes);
  });
  const last = holders.filter((holder) => holder.point === points.length - 1).map((holder) => sites[holder.site]);
  assert.ok(last.some((site) => site.file === '/job/metrics.py' && site.line === 7), 'the leak is among the largest at the end');
  assert.equal(steps.length, 12);
});

for (const colorScheme of ['light', 'dark']) {
  for (const width of [1280, 760]) {
    test(`the page, ${colorScheme}, ${width} px: the peak, a click, an address, axe`, async () => {
      const { report } = leaking();
      const [recording] = rowsOfChunk(report, 'index').memory;
      const url = pageUrl(report);
      const { page, context, problems } = await openPage(browser, url.slice(0, url.lastIndexOf('/')), { colorScheme, viewport: { width, height: 800 } });
      await visit(page, url, '#/memory');
      assert.match(await page.textContent('.memory h2'), new RegExp(`^At the peak, after event ${new Intl.NumberFormat('en').format(recording.peak_ordinal + 1)}`));
      await page.screenshot({ path: path.join(screenshots, `memory-${colorScheme}-${width}.png`) });
      assert.deepEqual(await violationsOf(page), []);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth), false, 'nothing is cut at the right');
      const box = await page.locator('.memory-plot').boundingBox();
      await page.mouse.click(box.x + box.width * 0.25, box.y + box.height / 2);
      await settle(page);
      assert.match(page.url(), /at=\d+/);
      assert.match(await page.textContent('.memory h2'), /^after event/);
      const chosen = await page.textContent('.memory h2');
      assert.match(await page.textContent('[role=grid]'), /layers\.py|model\.py|linear\.py|metrics\.py/);
      await page.reload();
      await settle(page);
      assert.equal(await page.textContent('.memory h2'), chosen, 'the moment is in the address');
      await page.focus('.memory-plot');
      await page.keyboard.press('ArrowRight');
      await settle(page);
      assert.notEqual(await page.textContent('.memory h2'), chosen);
      assert.deepEqual(problems, []);
      await context.close();
    });
  }
}

test('a served page shows the same, and several recordings can be chosen', async () => {
  const { snapshot } = leaking();
  const file = path.join(outDirectory, 'memory_two.json');
  execFileSync('python3', ['-c', `import json, sys
snapshot = json.load(open(sys.argv[1]))
snapshot["device_traces"].append(snapshot["device_traces"][0][:200])
json.dump(snapshot, open(sys.argv[2], "w"))`, path.join(outDirectory, 'memory_leaking.json'), file]);
  assert.ok(snapshot);
  const server = await serve(reportOf('memory_two', file));
  const { page, context, problems } = await openPage(browser, server.url.replace(/\/$/, ''));
  await visit(page, server.url, '#/memory');
  const first = await page.textContent('.memory h2');
  await page.selectOption('select[aria-label=Recording]', { index: 1 });
  await settle(page);
  await page.waitForFunction((before) => document.querySelector('.memory h2')?.textContent !== before, first);
  assert.deepEqual(problems, []);
  await context.close();
  await server.stop();
});

test('sizes are written as the commands write them', async () => {
  const { report } = leaking();
  const told = execFileSync(tlparse, ['memory', report, '--by', 'category', '--at', 'peak'], { encoding: 'utf8' });
  const sizes = new Set(told.match(/\d+(\.\d)? (B|kB|MB|GB)\b/g));
  const { page } = await openPage(browser, 'file:');
  await visit(page, pageUrl(report), '#/memory');
  const legend = await page.locator('.memory-legend b').allInnerTexts();
  assert.ok(legend.length > 2);
  for (const size of legend) assert.ok(size === '0 B' || sizes.has(size), `${size} is not in\n${told}`);
  assert.doesNotMatch(await page.locator('body').innerText(), /\d [KMGT]i?B\b(?<!MB|GB|TB)/);
});

test('the source page says what the blocks of each line held at the peak', async () => {
  const { snapshot } = leaking();
  const log = reportOf('mlp_train', 'fixtures/logs/mlp_train');
  const own = rowsOfChunk(log, 'source').source_line.find(({ file }) => file.startsWith('/') && !/site-packages|\/lib\//.test(file)).file;
  const file = path.join(outDirectory, 'memory_of_log.json');
  writeFileSync(file, JSON.stringify(snapshot).replaceAll('/job/metrics.py', own));
  const report = reportOf('memory_source', 'fixtures/logs/mlp_train', file);
  const told = execFileSync(tlparse, ['memory', report, '--by', 'line', '--at', 'peak', '--json'], { encoding: 'utf8' });
  const lines = JSON.parse(told).devices[0].rows.filter((row) => row.file === own);
  assert.ok(lines.length > 0);
  const { page, context, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(report), `#/source/${encodeURIComponent(own)}`);
  await page.locator('.source-code th', { hasText: 'memory' }).waitFor();
  const shown = await page.locator('.source-code tbody tr:not(.source-gap)').evaluateAll((rows) => rows.map((row) => [Number(row.querySelector('.source-number').innerText), row.querySelector('.margin-memory').innerText]).filter(([, text]) => text !== ''));
  assert.deepEqual(shown.map(([line]) => line).sort((a, b) => a - b), lines.map(({ line }) => line).sort((a, b) => a - b));
  await page.screenshot({ path: path.join(screenshots, 'memory-source.png') });
  assert.deepEqual(problems, []);
  await context.close();
});

test('the curve and the timeline have one axis: the same range, and a moment chosen in one is shown in the other', async () => {
  const report = reportOf('memory_timeline', 'fixtures/memory');
  const [recording] = rowsOfChunk(report, 'index').memory;
  const { point: points } = rowsOfChunk(report, `memory/${recording.id}`);
  for (const [colorScheme, width] of [['light', 1280], ['dark', 1280], ['light', 760]]) {
    const { page, context, problems } = await openPage(browser, 'file:', { colorScheme, viewport: { width, height: 900 } });
    await visit(page, pageUrl(report), '#/memory');
    const [, alive] = /: (.+) alive/.exec(await page.textContent('.memory h2'));
    await page.getByRole('link', { name: 'on the timeline' }).click();
    await settle(page);
    const asked = new URLSearchParams(page.url().replace(/.*\?/, ''));
    const said = page.getByRole('status', { name: 'Memory at the moment' });
    assert.ok((await said.innerText()).startsWith(`${alive} alive at`), await said.innerText());
    await page.screenshot({ path: path.join(screenshots, `memory-timeline-${colorScheme}-${width}.png`) });
    // Where the curve draws the start of a step of it is where the lanes have that time, at any zoom.
    const places = () => page.evaluate((after) => {
      const svg = document.querySelector('.memory-strip svg');
      const canvas = document.querySelector('.timeline canvas').getBoundingClientRect();
      const view = new URLSearchParams(location.hash.replace(/.*\?/, ''));
      const [from, to] = [Number(view.get('from')), Number(view.get('to'))];
      const drawn = new DOMPoint(after, 0).matrixTransform(svg.getScreenCTM()).x;
      const lanes = canvas.left + 112 + ((Number(svg.dataset.from) + after - from) / (to - from)) * (canvas.width - 112);
      return { drawn, lanes };
    }, points[3].time_us);
    const same = async () => {
      const { drawn, lanes } = await places();
      assert.ok(Math.abs(drawn - lanes) < 1.5, `${drawn} ${lanes}`);
      return lanes;
    };
    const before = await same();
    const box = await page.locator('.memory-strip svg').boundingBox();
    await page.mouse.move(box.x + box.width / 2, box.y + 20);
    await page.mouse.wheel(0, -200);
    await page.waitForFunction((from) => Number(new URLSearchParams(location.hash.replace(/.*\?/, '')).get('from')) > from, Number(asked.get('from')));
    await settle(page);
    assert.notEqual(await same(), before, 'zoomed');
    // A click in the lanes chooses its moment, one in the curve too; who held it is a click away.
    const canvas = await page.locator('.timeline canvas').boundingBox();
    for (const [x, y] of [[canvas.x + canvas.width * 0.6, canvas.y + 30], [box.x + box.width * 0.3, box.y + 30]]) {
      const old = await said.innerText();
      await page.mouse.click(x, y);
      await page.waitForFunction((text) => document.querySelector('.moment-detail')?.innerText !== text, old);
      const mark = await page.locator('.moment').boundingBox();
      assert.ok(Math.abs(mark.x + mark.width / 2 - x) < 2.5, `${mark.x} ${x}`);
    }
    const told = /^(.+) alive/.exec(await said.innerText())[1];
    assert.deepEqual(await violationsOf(page), []);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth), false);
    await page.getByRole('link', { name: 'who holds it' }).click();
    await settle(page);
    assert.ok((await page.textContent('.memory h2')).includes(`: ${told} alive`));
    assert.deepEqual(problems, []);
    await context.close();
  }
});
