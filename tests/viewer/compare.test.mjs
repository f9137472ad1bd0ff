// The page that compares two ranks, launches or runs: it says what `tlparse diff` says.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { launch, openPage, outDirectory, pageUrl, reportOf, screenshots, serve, settle, source, tlparse, violationsOf, visit } from './support.mjs';

let browser;
before(async () => {
  mkdirSync(screenshots, { recursive: true });
  browser = await launch();
});
after(() => browser.close());

const diffOf = (report, ...options) => JSON.parse(execFileSync(tlparse, ['diff', path.join(report, 'trace.db'), ...options, '--json'], { encoding: 'utf8', maxBuffer: 64 << 20 }));
const seconds = (text) => {
  const units = { min: 60, s: 1, ms: 0.001, µs: 0.000001 };
  return [...text.matchAll(/([\d.]+) (min|s|ms|µs)/g)].reduce((total, [, value, unit]) => total + Number(value) * units[unit], 0);
};
const cellsOf = (page, row) => page.locator('.compare-phases tr', { hasText: row }).locator('td').allInnerTexts();

test('launches: the verdict, the time and the causes are those of tlparse diff', async () => {
  const report = reportOf('restart_manual_other_config');
  const { comparisons: [told] } = diffOf(report, '--launch', '1', '--launch', '2');
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(report), '#/compare');
  const total = told.phases.find((phase) => phase.phase === 'total');
  const sum = await cellsOf(page, 'all of it');
  assert.ok(Math.abs(seconds(sum[0]) - total.a_us / 1e6) < 0.01 * seconds(sum[0]), sum.join());
  assert.ok(Math.abs(seconds(sum[1]) - total.b_us / 1e6) < 0.01 * seconds(sum[1]), sum.join());
  const text = await page.locator('main').innerText();
  const causes = new Set(told.compiles.flatMap((compile) => compile.caches.flatMap((cache) => cache.causes.map((cause) => cause.text))));
  assert.ok(causes.size > 0);
  for (const cause of causes) assert.ok(text.includes(cause), cause);
  const differing = told.compiles.filter((compile) => !compile.is_equal).length;
  assert.match(text, new RegExp(`${differing} of ${told.compiles.length} compiles differ`));
  assert.equal(await page.getByLabel('Side a').inputValue(), 'l1');
  await page.screenshot({ path: path.join(screenshots, 'compare-launches.png') });
  assert.deepEqual(await violationsOf(page), []);
  assert.deepEqual(problems, []);
});

test('the parts add up, and are those that the overview and the table of compiles have', async () => {
  const { page } = await openPage(browser, 'file:');
  await visit(page, pageUrl(reportOf('cache_some_ranks')), '#/compare');
  const times = await page.locator('.compare-phases tbody tr:not(.sum)').evaluateAll((rows) => rows.map((row) => [...row.querySelectorAll('td')].slice(0, 2).map((cell) => cell.textContent)));
  const sum = await cellsOf(page, 'all of it');
  for (const side of [0, 1]) {
    const parts = times.reduce((total, row) => total + seconds(row[side]), 0);
    assert.ok(Math.abs(parts - seconds(sum[side])) < 0.01 * parts + 0.001, `${parts} ${sum[side]}`);
  }
  const b = Number((await page.getByLabel('Side b').inputValue()).slice(1));
  const backward = seconds((await cellsOf(page, 'Backward'))[1]);
  await visit(page, pageUrl(reportOf('cache_some_ranks')), `#/time?process=${b}`);
  const timed = seconds(await page.locator('.grid-row', { hasText: 'Backward' }).locator('[role=gridcell]').nth(1).innerText());
  assert.ok(Math.abs(timed - backward) < 0.01 * backward, `${timed} ${backward}`);
});

test('swapped, what was only in b is only in a', async () => {
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(reportOf('restart_elastic')), '#/compare');
  const before = await cellsOf(page, 'all of it');
  const headings = await page.locator('h2', { hasText: 'Only in' }).allInnerTexts();
  await page.getByRole('link', { name: 'Swap' }).click();
  await settle(page);
  await page.waitForFunction((old) => document.querySelector('select[aria-label="Side a"]').value === old, 'l3');
  const now = await cellsOf(page, 'all of it');
  assert.deepEqual([now[1], now[0]], before.slice(0, 2));
  assert.equal(now[2].replace(/[−+]/, ''), before[2].replace(/[−+]/, ''));
  assert.notEqual(now[2], before[2]);
  assert.deepEqual(await page.locator('h2', { hasText: 'Only in' }).allInnerTexts(), headings);
  assert.deepEqual(problems, []);
});

test('a rank with another source: guards, kernels and codes as tlparse diff lists them; the text of a code is a click away', async () => {
  const report = reportOf('autocast_one');
  const { page, problems } = await openPage(browser, 'file:');
  await visit(page, pageUrl(report), '#/compare');
  const [a, b] = await Promise.all(['Side a', 'Side b'].map((label) => page.getByLabel(label).locator('option:checked').innerText()));
  const { comparisons: [told] } = diffOf(report, '--rank', a.replace('rank ', ''), '--rank', b.replace('rank ', ''));
  const text = (await page.locator('main').innerText()).replace(/\s+/g, ' ');
  const lists = ['new_guards', 'vanished_guards', 'changed_guards', 'new_kernels', 'vanished_kernels'];
  const told_texts = told.compiles.flatMap((compile) => lists.flatMap((list) => compile[list].slice(0, 40)));
  assert.ok(told_texts.length > 0);
  for (const one of told_texts) assert.ok(text.includes(one.replace(/\s+/g, ' ').slice(0, 200)), one);
  const codes = told.compiles.flatMap((compile) => compile.codes);
  const links = page.getByRole('link', { name: /generated code/ });
  assert.ok(codes.length > 0);
  assert.equal(await links.count(), codes.length);
  await links.first().click();
  await settle(page);
  assert.match(page.url(), /#\/diff\?/);
  assert.ok((await page.locator('.diff-row .change, .diff-row.change').count()) > 0, 'the texts differ');
  assert.deepEqual(problems, []);
});

test('served, any two sides are compared; a side that is not there is said', async () => {
  const server = await serve(reportOf('restart_elastic'));
  after(server.stop);
  const { page, problems } = await openPage(browser, server.url);
  await visit(page, server.url, '#/compare?a=l1&b=l3');
  await page.locator('.verdict').first().waitFor();
  assert.equal(await page.getByLabel('Side b').inputValue(), 'l3');
  await visit(page, server.url, '#/compare?a=l2&b=l2');
  assert.deepEqual(problems.splice(0), []);
  for (const name of ['diff/l1-l99', 'diff/p1-p999', 'diff/x1-l1', 'diff/', 'diff/l1', 'diff/u1-u7', "diff/p1'-p2", 'diff/l1-l18446744073709551616']) {
    const answer = await fetch(`${server.url}api/chunk/${name}`);
    assert.equal(answer.status, 404, name);
  }
});

test('two runs of a database, served', async () => {
  const database = path.join(outDirectory, 'compare-two.db');
  rmSync(database, { force: true });
  for (const [trace, name] of [['cache_cold_2_6', 'cold'], ['cache_warm_2_6', 'warm']]) {
    execFileSync(tlparse, [path.join('fixtures/logs', trace), '--db', database, '--db-only', '--run', name], { cwd: source, stdio: ['ignore', 'ignore', 'pipe'] });
  }
  const told = JSON.parse(execFileSync(tlparse, ['diff', `${database}:cold`, `${database}:warm`, '--json'], { encoding: 'utf8' })).comparisons[0];
  const server = await serve(database);
  after(server.stop);
  const { page, problems } = await openPage(browser, server.url);
  await visit(page, server.url, '#/compare?kind=runs');
  assert.deepEqual(await Promise.all(['Side a', 'Side b'].map((label) => page.getByLabel(label).locator('option:checked').innerText())), ['run cold', 'run warm']);
  const text = await page.locator('main').innerText();
  assert.match(text, new RegExp(`${told.compiles.filter((compile) => !compile.is_equal).length} of ${told.compiles.length} compiles? differ`));
  assert.match(text, /miss → hit, the same key/);
  assert.deepEqual(problems, []);
});

test('two databases, served: the first screen of Compare is what differs between their runs, with links into both', async () => {
  const [cold, warm] = ['cold', 'warm'].map((name) => {
    const database = path.join(outDirectory, `compare-${name}.db`);
    rmSync(database, { force: true });
    execFileSync(tlparse, [path.join('fixtures/logs', `cache_${name}_2_6`), '--db', database, '--db-only', '--run', name], { cwd: source, stdio: ['ignore', 'ignore', 'pipe'] });
    return database;
  });
  const before = [cold, warm].map((database) => readFileSync(database));
  const told = JSON.parse(execFileSync(tlparse, ['diff', cold, warm, '--json'], { encoding: 'utf8' })).comparisons[0];
  const server = await serve(cold, warm);
  after(server.stop);
  const { page, problems } = await openPage(browser, server.url);
  await visit(page, server.url, '#/compare');
  const chosen = () => Promise.all(['Side a', 'Side b'].map((label) => page.getByLabel(label).locator('option:checked').innerText()));
  assert.deepEqual(await chosen(), ['run cold of compare-cold.db', 'run warm of compare-warm.db']);
  const text = await page.locator('main').innerText();
  assert.match(text, new RegExp(`${told.compiles.filter((compile) => !compile.is_equal).length} of ${told.compiles.length} compiles? differ`));
  assert.doesNotMatch(text, /compiled the same/); // one log a side: a name with a dash is no range of ranks
  assert.match(text, /Run warm of compare-warm\.db compiled for/);
  assert.match(text, /miss → hit, the same key/);
  assert.deepEqual(await violationsOf(page), []);
  await page.screenshot({ path: path.join(screenshots, 'compare-databases.png') });
  // Both databases have a compile 1: each link opens its own.
  const pair = page.locator('li', { hasText: /^ *open/ }).first().getByRole('link');
  assert.deepEqual(await pair.evaluateAll((links) => links.map((link) => link.getAttribute('href').replace(/\d+$/, 'N'))), ['#/compile/N', '/?db=2&run=1#/compile/N']);
  await pair.last().click();
  await settle(page);
  assert.equal(await page.getByLabel('Run', { exact: true }).locator('option:checked').innerText(), 'warm');
  assert.match(await page.locator('main').innerText(), /hit/);
  await visit(page, page.url().replace(/#.*/, ''), '#/sql');
  await page.getByLabel('SQL query').fill('SELECT max(name) AS name FROM run');
  await page.getByRole('button', { name: /^Run/ }).click();
  await page.locator('.grid-row', { hasText: 'warm' }).waitFor();
  // Of the other database's page the sides stand in the same order; swapped, they change places.
  await visit(page, page.url().replace(/#.*/, ''), '#/compare');
  assert.deepEqual(await chosen(), ['run cold of compare-cold.db', 'run warm of compare-warm.db']);
  await page.getByRole('link', { name: 'Swap' }).click();
  await page.waitForFunction(() => document.querySelector('select[aria-label="Side a"]')?.selectedOptions[0].text.includes('warm'));
  await settle(page);
  assert.deepEqual(await chosen(), ['run warm of compare-warm.db', 'run cold of compare-cold.db']);
  assert.match(await page.locator('main').innerText(), /hit → miss, the same key/);
  assert.deepEqual(problems, []);
  for (const asked of ['api/chunk/index?db=3', 'api/chunk/index?db=0', 'api/search?db=9&text=triton', 'api/timeline.json?db=3', 'api/chunk/diff/u1-3:u1', 'api/chunk/diff/u1-2:l1', 'api/chunk/diff/u1-2:u9', 'api/chunk/diff/2:-u1', 'api/chunk/diff/:u1-u1']) {
    assert.equal((await fetch(server.url + asked)).status, 404, asked);
  }
  assert.ok((await (await fetch(`${server.url}api/timeline.json?db=2`)).text()).startsWith('{'));
  [cold, warm].forEach((database, i) => assert.ok(before[i].equals(readFileSync(database)), 'a database that is served stays as it is'));
});

test('two databases, served: a function over the runs of both, each dot with its own time and its own page', async () => {
  const databases = ['cold', 'warm'].map((name) => {
    const database = path.join(outDirectory, `trend-${name}.db`);
    rmSync(database, { force: true });
    execFileSync(tlparse, [path.join('fixtures/logs', `cache_${name}_2_6`), '--db', database, '--db-only', '--run', name === 'cold' ? 'first' : 'second'], { cwd: source, stdio: ['ignore', 'ignore', 'pipe'] });
    return database;
  });
  execFileSync(tlparse, [path.join('fixtures/logs', 'recompiles_2_6'), '--db', databases[1], '--db-only', '--run', 'first'], { cwd: source, stdio: ['ignore', 'ignore', 'pipe'] });
  const told = databases.map((database) =>
    JSON.parse(execFileSync(tlparse, ['sql', database, "SELECT r.name, sum(h.total_us) AS us, count(*) AS compiles FROM compile_history h JOIN run r ON r.id = h.run_id WHERE h.function = 'f1' GROUP BY r.id ORDER BY r.id", '--json'], { encoding: 'utf8' })).rows,
  ).flat();
  assert.equal(told.length, 2); // the other run of the second database did not compile it
  const server = await serve(...databases);
  after(server.stop);
  const { page, problems } = await openPage(browser, server.url);
  await visit(page, server.url, '#/compare');
  await page.getByRole('link', { name: 'Functions over runs' }).click();
  await settle(page);
  await page.locator('.grid-row').getByText('f1', { exact: true }).click();
  await settle(page);
  const cells = () => page.locator('.grid-row').evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent)));
  const shown = await cells();
  assert.deepEqual(shown.map(([run]) => run), ['first of trend-cold.db', 'second'], 'two runs of one name have their database');
  shown.forEach(([, time, compiles], i) => {
    assert.ok(Math.abs(seconds(time) - Number(told[i].us ?? told[i][1]) / 1e6) < 0.01 * seconds(time), time);
    assert.equal(Number(compiles), Number(told[i].compiles ?? told[i][2]));
  });
  assert.match(await page.locator('main').innerText(), /1 run did not compile it/);
  assert.deepEqual(await violationsOf(page), []);
  await page.screenshot({ path: path.join(screenshots, 'compare-trend-databases.png') });
  await page.locator('.trend-dot').last().click();
  await settle(page);
  assert.equal(await page.getByLabel('Run', { exact: true }).locator('option:checked').innerText(), 'second');
  assert.match(page.url(), /[?]db=2&run=1#/);
  assert.deepEqual((await cells()).map((row) => row.slice(0, 4)), shown.map((row) => row.slice(0, 4)), 'the same function, seen from the other database');
  assert.deepEqual(problems, []);
  for (const asked of ['api/chunk/trend/3', 'api/chunk/trend/0', 'api/chunk/trend/x', 'api/chunk/trend/'])
    assert.equal((await fetch(server.url + asked)).status, 404, asked);
});

test('databases of one file name are told apart by their directories', async () => {
  const reports = ['cache_cold_2_6', 'cache_warm_2_6'].map((trace) => reportOf(trace));
  const server = await serve(...reports);
  after(server.stop);
  const { strings, tables } = await (await fetch(`${server.url}api/chunk/index`)).json();
  assert.deepEqual(tables.served_run.texts.database_name.map((at) => strings[at]), reports.map((report) => `${path.basename(report)}/trace.db`));
  assert.deepEqual(tables.served_run.numbers.is_current, [1, 0]);
});

test('a function over the runs of a database: a dot a run, its time and recompiles; a link from its row', async () => {
  const database = path.join(outDirectory, 'compare-trend.db');
  rmSync(database, { force: true });
  for (const [trace, name] of [['cache_cold_2_6', 'cold'], ['cache_warm_2_6', 'warm'], ['recompiles_2_6', 'other'], ['recompiles_2_6', 'again']])
    execFileSync(tlparse, [path.join('fixtures/logs', trace), '--db', database, '--db-only', '--run', name], { cwd: source, stdio: ['ignore', 'ignore', 'pipe'] });
  const rowsOf = (sql) => JSON.parse(execFileSync(tlparse, ['sql', database, sql, '--json'], { encoding: 'utf8' })).rows;
  const told = (name) => rowsOf(`SELECT run, sum(total_us) AS us, count(*) AS compiles FROM (SELECT r.name AS run, r.id, h.total_us FROM compile_history h JOIN run r ON r.id = h.run_id WHERE h.function = '${name}') GROUP BY id ORDER BY id`);
  const server = await serve(database);
  after(server.stop);
  const { page, problems } = await openPage(browser, server.url);
  await visit(page, `${server.url}?run=2`, '#/time?by=function');
  await page.locator('.grid-row', { hasText: 'f1' }).click();
  await settle(page);
  await page.getByRole('link', { name: 'over the runs' }).click();
  await settle(page);
  const times = told('f1');
  assert.equal(times.length, 2);
  assert.equal(await page.locator('.trend-dot').count(), 2);
  const cells = () => page.locator('.grid-row').evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent)));
  const shown = await cells();
  assert.deepEqual(shown.map(([run]) => run), ['cold', 'warm']);
  shown.forEach(([, time, compiles], i) => {
    assert.ok(Math.abs(seconds(time) - Number(times[i].us ?? times[i][1]) / 1e6) < 0.01 * seconds(time), time);
    assert.equal(Number(compiles), Number(times[i].compiles ?? times[i][2]));
  });
  assert.match(await page.locator('main').innerText(), /2 runs did not compile it/);
  assert.deepEqual(await violationsOf(page), []);
  await page.screenshot({ path: path.join(screenshots, 'compare-trend.png') });
  await page.locator('.trend-dot').first().click();
  await settle(page);
  assert.equal(await page.getByLabel('Run', { exact: true }).locator('option:checked').innerText(), 'cold');
  assert.equal(await page.locator('.trend-dot').count(), 2, 'the same function, seen from the other run');
  // Recompiles are those of the page, without what was refused at the limit; a name of several functions leads to a choice.
  await visit(page, `${server.url}?run=4`, '#/compare/trend?function=limit_fullgraph');
  assert.deepEqual((await cells()).map((row) => row[3]), ['3', '3']);
  await visit(page, `${server.url}?run=4`, '#/compare/trend?function=forward');
  assert.equal((await cells()).filter(([name]) => name === 'forward').length, 2);
  await visit(page, `${server.url}?run=4`, '#/compare/trend?function=nothing');
  await page.getByRole('link', { name: 'All functions' }).click();
  await settle(page);
  assert.ok((await cells()).length > 5);
  assert.deepEqual(problems, []);
});
