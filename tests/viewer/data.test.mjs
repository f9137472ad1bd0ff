// The data: every chunk of real traces follows its schema, static and served chunks are the same, nothing refers to what is not there.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import { chunkNames, chunksIn, reportOf, require, serve, source } from './support.mjs';

const Ajv = require('ajv').default;
const ajv = new Ajv({ strict: false });
const directory = path.join(source, 'schemas/json/viewer');
const validators = new Map(
  readdirSync(directory)
    .filter((name) => name.endsWith('.schema.json'))
    .map((name) => [name.replace('.schema.json', ''), ajv.compile(JSON.parse(readFileSync(path.join(directory, name), 'utf8')))]),
);

function checkShape(name, chunk) {
  const validate = validators.get(name.split('/')[0]);
  assert.ok(validate, `no schema for ${name}`);
  assert.ok(validate(chunk), `${name}: ${JSON.stringify(validate.errors)}`);
  for (const [tableName, table] of Object.entries(chunk.tables)) {
    for (const [column, cells] of [...Object.entries(table.numbers), ...Object.entries(table.texts)]) {
      assert.equal(cells.length, table.rows, `${name} ${tableName}.${column}`);
    }
    for (const cells of Object.values(table.texts)) {
      for (const cell of cells) assert.ok(cell === null || chunk.strings[cell] !== undefined, `${name} ${tableName}: no string ${cell}`);
    }
  }
}

const traces = ['tlparse_meta', 'diverge_order', 'cache_some_ranks', 'killed', 'dtrace', 'recompiles_2_6', 'simple_2_6', 'unicode'];
const runs = ['p_mlp_train', 'p_ddp', 'fr_late']; // with profiles or recorder dumps
for (const trace of [...traces, ...runs]) {
  test(`chunks of ${trace} follow their schemas, and what they refer to is there`, () => {
    const report = reportOf(trace, runs.includes(trace) ? path.join('fixtures/runs', trace) : undefined);
    const chunks = chunksIn(report);
    assert.deepEqual([...chunks.keys()].sort(), chunkNames(report).sort(), 'file names are chunk names');
    for (const [name, chunk] of chunks) checkShape(name, chunk);
    const setting = (name) => {
      const { numbers, texts } = chunks.get('index').tables.setting;
      return numbers.value[texts.name.findIndex((cell) => chunks.get('index').strings[cell] === name)];
    };
    const compiles = new Set(chunks.get('compiles').tables.compile.numbers.id);
    let texts = 0;
    for (const [name, chunk] of chunks) {
      const record = chunk.tables.record;
      if (!record) continue;
      for (const id of record.numbers.compile_id ?? []) assert.ok(compiles.has(id), `${name}: compile ${id}`);
      record.texts.payload_hash.forEach((cell, i) => {
        if (cell === null) return;
        const hash = chunk.strings[cell];
        const part = record.numbers.size_bytes[i] >= setting('text_alone_bytes') ? hash : hash.slice(0, setting('text_prefix_digits'));
        const text = chunks.get(`text/${part}`);
        assert.ok(text, `${name}: no chunk text/${part}`);
        assert.ok(text.tables.text.texts.hash.some((other) => text.strings[other] === hash), `${name}: no text ${hash}`);
        texts++;
      });
    }
    assert.ok(texts > 0, 'records have texts');
  });
}

test('a served chunk is the document of the static page', async () => {
  const report = reportOf('diverge_order');
  const chunks = chunksIn(report);
  const server = await serve(report);
  after(server.stop);
  let compared = 0;
  for (const [name, chunk] of chunks) {
    const stem = name.split('/')[0];
    // The index says how chunks are cut, which differs; compile, guards, provenance and text are cut one by one when served.
    if (['index', 'compile', 'guards', 'provenance', 'text', 'search'].includes(stem)) continue; // a server searches itself
    const response = await fetch(`${server.url}api/chunk/${name}`);
    assert.equal(response.status, 200, name);
    assert.deepEqual(await response.json(), chunk, name);
    compared++;
  }
  assert.ok(compared > 10);
  const hash = chunks.get('compile/1').strings[chunks.get('compile/1').tables.record.texts.payload_hash.find((cell) => cell !== null)];
  for (const [name, schema] of [['index', 'index'], ['compile/2', 'compile'], [`text/${hash}`, 'text']]) {
    const chunk = await (await fetch(`${server.url}api/chunk/${name}`)).json();
    assert.ok(validators.get(schema)(chunk), name);
    if (schema === 'compile') assert.deepEqual([...new Set(chunk.tables.record.numbers.compile_id)], [2]);
    if (schema === 'text') assert.equal(chunk.tables.text.rows, 1);
  }
});

test('the page lists ranks without a log, of as many as there should be', async () => {
  const missing = 'No log from ranks 4,5 (4 of 6 ranks have one)';
  const written = chunksIn(reportOf('cache_some_ranks', undefined, '--world-size', '6'));
  assert.ok(written.get('findings').strings.includes(missing));
  const report = reportOf('cache_some_ranks');
  assert.ok(!chunksIn(report).get('findings').strings.includes(missing));
  const server = await serve(report, '--world-size', '6');
  after(server.stop);
  const served = await (await fetch(`${server.url}api/chunk/findings`)).json();
  assert.ok(served.strings.includes(missing));
});

test('what is loaded before the first view is small', () => {
  const report = reportOf('tlparse_meta');
  const bytes = ['index.html', 'data/index.js', 'data/compiles.js', 'data/findings.js'].reduce((sum, file) => sum + statSync(path.join(report, file)).size, 0);
  assert.ok(bytes < 1_000_000, `${bytes} bytes`);
});
