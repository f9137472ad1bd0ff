// Large chunks of a page of files are packed: every browser unpacks them, and a search reads only those that may hold the text.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import zlib from 'node:zlib';
import { chunksIn, launch, openPage, outDirectory, pageUrl, reportOf, require, source, tlparse, visit } from './support.mjs';

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

test('what the page unpacks itself is what was packed: stored, of fixed and of own codes, short and long', async () => {
  const typescript = readFileSync(path.join(source, 'viewer/src/lib/inflate.ts'), 'utf8');
  const { code } = require('esbuild').transformSync(typescript, { loader: 'ts', format: 'esm' });
  const { inflate } = await import(`data:text/javascript,${encodeURIComponent(code)}`);
  const texts = ['', 'a', 'abc'.repeat(40_000), typescript.repeat(20), randomBytes(70_000), Buffer.concat([randomBytes(300), Buffer.alloc(100_000)])].map((text) => Buffer.from(text));
  for (const text of texts) {
    for (const options of [{ level: 0 }, { level: 1 }, { level: 9 }, { strategy: zlib.constants.Z_FIXED }, { strategy: zlib.constants.Z_HUFFMAN_ONLY }]) {
      const unpacked = inflate(zlib.deflateRawSync(text, options), text.length);
      assert.ok(text.equals(Buffer.from(unpacked)), `${text.length} bytes, ${JSON.stringify(options)}`);
    }
  }
});

// A log with more texts than one search reads: 45 texts of 200 kB, each with one word that no other has, and one text larger than a chunk.
function largeReport() {
  const directory = path.join(outDirectory, 'logs-of-packed');
  mkdirSync(directory, { recursive: true });
  const lines = [];
  for (let i = 0; i < 46; i++) {
    const time = `V1121 08:45:${String(i).padStart(2, '0')}.000000 7 bench.py:1]`;
    lines.push(`${time} {"artifact": {"name": "notes_${i}", "encoding": "string"}, "rank": ${i % 2}, "frame_id": ${i}, "frame_compile_id": 0, "attempt": 0}`);
    for (let line = 0; line < (i === 45 ? 9000 : 3700); line++) lines.push(`\tplain line ${line} of many words, the same in all texts`);
    lines.push(`\tWord${i}Of${'abcdefghij'[i % 10]} stands here alone`);
  }
  writeFileSync(path.join(directory, 'large.log'), lines.join('\n') + '\n');
  return reportOf('packed', directory);
}

async function hitsOf(page, base, query) {
  const read = [];
  const note = (request) => /text-[0-9a-f]+\.js$/.test(request.url()) && read.push(request.url());
  page.on('request', note);
  await page.goto(`${base}#/search?q=${encodeURIComponent(query)}`);
  // Not each frame: drawing takes the time that the search needs.
  const isDone = () => /each counted once|Nothing is called/.test(document.querySelector('main')?.textContent) && !document.querySelector('.loading');
  await page.waitForFunction(isDone, null, { polling: 300, timeout: 120_000 });
  page.off('request', note);
  return { read: new Set(read).size, titles: await page.locator('.text-hits li > div > a').allInnerTexts(), lines: await page.locator('.found-line').allInnerTexts() };
}

test('a search reads the chunks that may hold its text and no others; it finds what the command finds', async () => {
  const report = largeReport();
  const names = readdirSync(path.join(report, 'data'));
  assert.ok(names.filter((name) => name.startsWith('search-')).length > 1, 'more than one group');
  for (const name of names) assert.ok(statSync(path.join(report, 'data', name)).size < 1_000_000, name);
  const { page, problems } = await openPage(browser, 'file:');
  for (const [query, title] of [['word7ofh', 'notes_7'], ['Word45Of', 'notes_45'], ['23ofd stands', 'notes_23']]) {
    const found = await hitsOf(page, pageUrl(report), query);
    assert.deepEqual(found.titles, [title], query);
    assert.ok(found.read <= 2, `${query}: ${found.read} chunks`);
    const answer = JSON.parse(execFileSync(tlparse, ['search', report, query, '--json']));
    assert.deepEqual(answer.texts.map((text) => text.title), [title], query);
  }
  assert.deepEqual(await hitsOf(page, pageUrl(report), 'word7ofi'), { read: 0, titles: [], lines: [] });
  const common = await hitsOf(page, pageUrl(report), 'line 17 of');
  assert.deepEqual([common.titles.length, common.lines.length], [46, 46]);
  assert.deepEqual(problems, []);
});

test('a browser that cannot unpack by itself shows the same text', async () => {
  const report = largeReport();
  const records = chunksIn(report, 'search/0').get('search/0');
  const id = records.tables.text.numbers.record_id[0];
  const texts = [];
  for (const isOld of [false, true]) {
    const { page, problems } = await openPage(browser, 'file:');
    if (isOld) await page.addInitScript(() => delete window.DecompressionStream);
    await visit(page, pageUrl(report), `#/compile/${records.tables.text.numbers.compile_id[0]}?record=${id}`);
    texts.push((await page.locator('.artifact').innerText()).split('plain line 9 ')[0]); // how many rows are drawn depends on when
    assert.equal(await page.evaluate(() => 'DecompressionStream' in window), !isOld);
    assert.deepEqual(problems, []);
  }
  assert.match(texts[0], /plain line 3 of many words/);
  assert.equal(texts[1], texts[0]);
});
