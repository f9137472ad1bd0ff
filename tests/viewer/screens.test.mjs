// What is on the screen: nothing of a row lies over another, nothing is cut to uselessness, no tab is without data, and an input of
// one kind alone has a first screen.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { launch, openPage, outDirectory, pageUrl, reportOf, screenshots, settle, source, views, violationsOf, visit } from './support.mjs';

let browser;
before(async () => {
  mkdirSync(screenshots, { recursive: true });
  browser = await launch();
});
after(() => browser.close());

const tabsOf = (page) => page.locator('.top nav a').evaluateAll((links) => links.map((link) => link.firstChild.textContent));
const viewsOf = (page) => page.locator('nav.tabs a').evaluateAll((links) => links.map((link) => link.firstChild.textContent));

// A directory with one file.
function inputOf(name, file, text) {
  const directory = path.join(outDirectory, `input-${name}`);
  mkdirSync(directory, { recursive: true });
  writeFileSync(path.join(directory, file), text);
  return directory;
}

test('nothing of a row is drawn above or below it, at any width', async () => {
  for (const width of [1280, 760]) {
    const { page, problems } = await openPage(browser, 'file:', { viewport: { width, height: 800 } });
    for (const trace of ['diverge_order', 'failures'])
      for (const [name, hash] of views) {
        await visit(page, pageUrl(reportOf(trace)), hash);
        const outside = await page.locator('.grid-row').evaluateAll((rows) =>
          rows.flatMap((row) => {
            const own = row.getBoundingClientRect();
            const isOut = (box) => box.width > 0 && (box.top < own.top - 3 || box.bottom > own.bottom + 3);
            return [...row.querySelectorAll('*')].filter((one) => isOut(one.getBoundingClientRect())).map((one) => `${row.textContent.slice(0, 60)}: ${one.textContent.slice(0, 40)}`);
          }),
        );
        assert.deepEqual(outside, [], `${trace} ${name} at ${width} px`);
      }
    assert.deepEqual(problems, []);
  }
});

test('Python lines of a graph begin at one edge, and each names its line', async () => {
  const { page } = await openPage(browser, 'file:');
  await visit(page, pageUrl(reportOf('diverge_order')), '#/provenance');
  const links = await page.locator('.grid-row a[href*="provenance/"]').evaluateAll((all) => all.map((link) => link.getAttribute('href')));
  let cut = 0;
  for (const link of links.slice(0, 4)) {
    await visit(page, pageUrl(reportOf('diverge_order')), link);
    const rows = await page.locator('.named-lines .code-row').evaluateAll((all) =>
      all.map((row) => {
        const number = row.querySelector('.line-number');
        return { edge: row.querySelector('.code').getBoundingClientRect().left, name: number.dataset.number, whole: number.title, over: number.scrollWidth - number.clientWidth };
      }),
    );
    assert.ok(rows.length > 0, link);
    assert.equal(new Set(rows.map(({ edge }) => edge)).size, 1, JSON.stringify(rows));
    for (const { name, whole, over } of rows) {
      assert.ok(over <= 0 && name.endsWith(/:\d+$/.exec(whole)[0]), `${whole} is shown as ${name}, ${over} px over`);
      cut += Number(name !== whole);
    }
  }
  assert.ok(cut > 0, 'a long name is among them');
});

test('a search that finds texts alone says how many', async () => {
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(reportOf('diverge_order')), '#/search?q=graph%3Aall_gather_into');
  await page.locator('.found-line').first().waitFor();
  assert.match(await page.locator('main [role=status]').first().innerText(), /^\d+ lines? in \d+ texts?, each counted once/);
  assert.deepEqual(await violationsOf(page), []);
  assert.deepEqual(problems, []);
});

test('a log of which no record tells a line, a lookup or an order has no view of these', async () => {
  const record = (rank, rest) => `V1121 08:45:41.014000 ${10 + rank} a.py:1] {${rest}, "rank": ${rank}, "frame_id": 0, "frame_compile_id": 0, "attempt": 0}\n`;
  const directory = inputOf('lineless', 'ranks.log', [0, 1].map((rank) => record(rank, '"dynamo_start": {"stack": []}')).join(''));
  const { page, problems } = await openPage(browser, 'file:');
  const report = pageUrl(reportOf('lineless', directory));
  await visit(page, report, '#/');
  const tabs = await tabsOf(page);
  for (const there of ['Overview', 'Compiles', 'Ranks']) assert.ok(tabs.includes(there), there);
  for (const absent of ['Source', 'Provenance', 'Time', 'Timeline', 'Export']) assert.ok(!tabs.includes(absent), absent);
  await visit(page, report, '#/ranks');
  assert.deepEqual(await viewsOf(page), ['Where ranks differ']);
  assert.deepEqual(await page.locator('.classes th a').allInnerTexts(), ['PyTorch version', 'Compiles: ids and functions', 'Outcome of each compile']);
  // Where there is one, it is shown.
  await visit(page, pageUrl(reportOf('train_order')), '#/ranks');
  assert.deepEqual(await viewsOf(page), ['Where ranks differ', 'Cache states', 'Collectives', 'Execution order']);
  assert.ok((await tabsOf(page)).includes('Source'));
  assert.deepEqual(problems, []);
});

test('collectives of a profile without numbers are counted, and no page of ranks is offered that cannot compare them', async () => {
  const comms = (id) => ({ ph: 'X', cat: 'cpu_op', name: 'record_param_comms', pid: 7, tid: 7, ts: 100 * id, dur: 50, args: { 'External id': id, 'Collective name': 'allreduce', 'In msg nelems': 4, 'Out msg nelems': 4, 'Group size': 2, dtype: 'Float', 'Process Group Name': '0' } });
  const profile = { schemaVersion: 1, distributedInfo: { backend: 'nccl', rank: 0, world_size: 2 }, traceEvents: [1, 2, 3].map(comms) };
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(reportOf('numberless', inputOf('numberless', 'rank0.pt.trace.json', JSON.stringify(profile)))), '#/');
  assert.match(await page.locator('main').innerText(), /3 collectives/);
  assert.ok(!(await tabsOf(page)).includes('Ranks'));
  await visit(page, pageUrl(reportOf('fr_late', path.join('fixtures/runs', 'fr_late'))), '#/');
  assert.ok((await tabsOf(page)).includes('Ranks'), 'dumps with numbers have it');
  assert.deepEqual(problems, []);
});

test('a snapshot of the allocator alone leads with its peak and what held it, and opens from its row', async () => {
  const file = path.join(outDirectory, 'alone.json');
  execFileSync('python3', [path.join(source, 'tests/tools/memory_snapshot.py'), file, '--format', 'json', '--events', '600', '--steps', '4']);
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(reportOf('alone', file)), '#/');
  const [, said] = /At the peak ([\d.]+ [kMG]?B) were alive/.exec(await page.locator('main').innerText());
  assert.ok((await page.locator('.holders li').count()) >= 3);
  await page.screenshot({ path: path.join(screenshots, 'memory-alone.png') });
  assert.deepEqual(await violationsOf(page), []);
  await page.locator('.grid-row a', { hasText: 'alone.json' }).click();
  await settle(page);
  assert.match(await page.locator('main').innerText(), new RegExp(`${said.replace('.', '\\.')} were alive at the peak`));
  assert.deepEqual(problems, []);
});

test('names of logs keep enough of their end to be told apart', async () => {
  const { page } = await openPage(browser, 'file:');
  await visit(page, pageUrl(reportOf('hang_in_compile')), '#/');
  const names = await page.locator('.grid-row .tail').evaluateAll((all) => all.map((one) => [one.textContent, one.clientWidth / one.scrollWidth]));
  assert.ok(names.length > 0);
  for (const [name, shown] of names) assert.ok(shown * name.length >= 20 || shown >= 1, `${name}: ${Math.round(shown * name.length)} letters`);
});

test('what a compile says of breaks and failures is open to everyone', async () => {
  for (const trace of ['graph_breaks_2_6', 'failures']) {
    const { page, problems } = await openPage(browser, 'file:');
    await visit(page, pageUrl(reportOf(trace)), `#/compiles?tab=${trace === 'failures' ? 'failures' : 'breaks'}`);
    const links = await page.locator('.grid-row a[href*="/compile/"]').evaluateAll((all) => all.map((link) => link.getAttribute('href').replace(/\?.*/, '')));
    let places = 0;
    for (const link of [...new Set(links)].slice(0, 5)) {
      await visit(page, pageUrl(reportOf(trace)), link);
      assert.deepEqual(await violationsOf(page), [], link);
      places += await page.locator('details a.place').count();
    }
    assert.ok(places > 0, `${trace}: a line that leads to its source`);
    assert.deepEqual(problems, []);
  }
});

test('recordings with long names do not widen a narrow page', async () => {
  const directory = path.join(outDirectory, 'input-long-names');
  mkdirSync(directory, { recursive: true });
  for (const n of [1, 2]) {
    const file = path.join(directory, `snapshot_of_a_training_job_with_a_very_long_name_that_tells_all_of_its_options_${n}.json`);
    execFileSync('python3', [path.join(source, 'tests/tools/memory_snapshot.py'), file, '--format', 'json', '--events', '300', '--steps', '2']);
  }
  const { page } = await openPage(browser, 'file:', { viewport: { width: 500, height: 800 } });
  await visit(page, pageUrl(reportOf('long-names', directory)), '#/memory');
  await page.getByRole('combobox', { name: 'Recording' }).waitFor();
  assert.equal(await page.evaluate(() => Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth)), 0);
});

test('the list of files and the head of a file count the same lines', async () => {
  const { page } = await openPage(browser, 'file:');
  for (const trace of ['diverge_order', 'mlp_train']) {
    await visit(page, pageUrl(reportOf(trace)), '#/source');
    const listed = await page.locator('.side a[aria-current=page] > .quiet').innerText();
    const said = await page.locator('.source-text').first().innerText();
    assert.equal(said, listed.replace(' line', ' known line'), trace);
  }
});

test('views that hold nothing are not offered, and links lead to no empty screen', async () => {
  const { page, problems } = await openPage(browser, 'file:');
  const report = pageUrl(reportOf('hang_in_compile'));
  await visit(page, report, '#/compiles');
  assert.deepEqual(await viewsOf(page), ['Table', 'Stacks']);
  // An address of one that is absent is answered.
  await visit(page, report, '#/compiles?tab=breaks');
  await page.getByText('No graph breaks').waitFor();
  await visit(page, report, '#/ranks');
  for (const link of await page.locator('main a[href^="#/"]').evaluateAll((all) => [...new Set(all.map((one) => one.getAttribute('href')))])) {
    await visit(page, report, link);
    assert.deepEqual(await page.locator('main .empty').allInnerTexts(), [], link);
  }
  await visit(page, pageUrl(reportOf('recompiles_2_6')), '#/compiles');
  assert.ok((await viewsOf(page)).includes('Recompiles'));
  assert.deepEqual(problems, []);
});

test('names of groups set no rank apart, and a rank without collectives is not among all', async () => {
  const { page } = await openPage(browser, 'file:');
  const wrong = pageUrl(reportOf('fr_wrong_op', path.join('fixtures/runs', 'fr_wrong_op')));
  await visit(page, wrong, '#/ranks');
  const groups = async (area) => page.locator('.classes tr', { hasText: area }).locator('.tag').allInnerTexts();
  // As the groups of identical ranks above it: groups of a mesh have other names on each rank, rank 2 another collective.
  assert.match(await page.locator('.rank-classes').innerText(), /0,1,3\s+3 ranks/);
  assert.deepEqual(await groups('Collectives'), ['ranks 0,1,3', 'rank 2']);
  await visit(page, wrong, '#/ranks?tab=collectives');
  assert.match(await page.locator('main').innerText(), /first difference at 4, 1 position differs/);
  await visit(page, pageUrl(reportOf('hang_in_compile')), '#/ranks?tab=collectives');
  assert.match(await page.locator('main').innerText(), /Ranks 0,1,3 have the same collective\. Of rank 2 the log holds none\./);
});
