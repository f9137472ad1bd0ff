// `tlparse serve`: what it answers, and what it refuses.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { launch, openPage, reportOf, require, serve, source, tlparse } from './support.mjs';

let server;
before(async () => {
  server = await serve(path.join(reportOf('tlparse_meta'), 'trace.db'));
});
after(() => server.stop());

// fetch() forbids what has to be tested: foreign Host and Origin headers, and paths that are not normal.
function request(target, { method = 'GET', headers = {}, body } = {}) {
  const { hostname, port } = new URL(server.url);
  return new Promise((resolve, reject) => {
    const call = http.request({ hostname, port, path: target, method, headers }, (response) => {
      let text = '';
      response.on('data', (data) => (text += data));
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, text }));
    });
    call.on('error', reject);
    call.end(body);
  });
}

function query(sql, headers = {}) {
  return request('/api/sql', { method: 'POST', headers: { 'Content-Type': 'application/json', ...headers }, body: JSON.stringify({ sql }) });
}

test('it listens on loopback, and says where', () => {
  assert.match(server.url, /^http:\/\/127\.0\.0\.1:\d+\/$/);
});

test('the page carries a policy that lets nothing in from elsewhere', async () => {
  const { status, headers, text } = await request('/');
  assert.equal(status, 200);
  assert.match(headers['content-type'], /^text\/html/);
  assert.match(headers['content-security-policy'], /default-src 'none'/);
  assert.match(headers['content-security-policy'], /frame-ancestors 'none'/);
  assert.doesNotMatch(headers['content-security-policy'], /unsafe-(inline|eval)/);
  assert.equal(headers['x-content-type-options'], 'nosniff');
  assert.match(text, /data-source="api"/);
});

test('hosts and origins of others are refused', async () => {
  const { port } = new URL(server.url);
  for (const host of ['evil.example', `evil.example:${port}`, `localhost.evil.example:${port}`, `127.0.0.1:1`, `127.0.0.1.nip.io:${port}`]) {
    assert.equal((await request('/', { headers: { Host: host } })).status, 421, host);
    assert.equal((await request('/api/chunk/index', { headers: { Host: host } })).status, 421, host);
  }
  for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`]) {
    assert.equal((await request('/', { headers: { Host: host } })).status, 200, host);
  }
  for (const headers of [{ Origin: 'http://evil.example' }, { Origin: 'null' }, { 'Sec-Fetch-Site': 'cross-site' }]) {
    assert.equal((await request('/api/chunk/index', { headers })).status, 403, JSON.stringify(headers));
    assert.equal((await query('SELECT 1', headers)).status, 403, JSON.stringify(headers));
  }
});

test('beyond this machine the page wants its token, and the browser keeps it', async () => {
  const open = await serve(path.join(reportOf('tlparse_meta'), 'trace.db'), '--host', '0.0.0.0');
  const browser = await launch();
  try {
    const given = new URL(open.url);
    const base = `http://127.0.0.1:${given.port}`;
    assert.match(given.search, /^\?token=[0-9a-f]{32}$/);
    const sql = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ sql: 'SELECT 1' }) };
    const other = given.search.replace(/.$/, (digit) => (digit === '0' ? '1' : '0'));
    for (const target of ['/', '/api/chunk/index', '/api/search?text=add', '/?token=', `/${other}`, `/api/chunk/index${other}`])
      assert.equal((await fetch(base + target)).status, 403, target);
    assert.equal((await fetch(`${base}/api/sql`, sql)).status, 403);
    for (const cookie of [`tlparse_${given.port}=`, `tlparse_${given.port}=${other.slice(7)}`, `tlparse_1=${given.search.slice(7)}`])
      assert.equal((await fetch(`${base}/api/chunk/index`, { headers: { cookie } })).status, 403, cookie);
    const { page, problems } = await openPage(browser, base);
    await page.goto(`${base}/${given.search}#/sql`);
    await page.getByRole('textbox').first().waitFor();
    assert.equal(page.url(), `${base}/#/sql`);
    assert.deepEqual(problems, []);
  } finally {
    await browser.close();
    await open.stop();
  }
});

test('no path leads out of what is served', async () => {
  const paths = ['/../../etc/passwd', '/api/chunk/../../trace.db', '/api/chunk/text/../../../etc/passwd', '/trace.db', '/data/index.js', '/api/chunk/%2e%2e%2ftrace.db', '/api/chunk/compile/-1', '/api/chunk/compile/99999999999999999999', '/api/chunk/index/1', '/api/chunk/', `/api/chunk/${'a'.repeat(6000)}`, '/api/chunk/text/zz', '//etc/passwd', '/index.html/..'];
  for (const target of paths) {
    const { status, text } = await request(target);
    assert.ok(status === 404 || status === 400, `${target}: ${status}`);
    assert.doesNotMatch(text, /root:|SQLite format/);
  }
  const all = await request('/api/chunk/compile/123456');
  assert.equal(all.status, 200);
  assert.equal(JSON.parse(all.text).tables.record.rows, 0);
});

test('only reading methods are allowed', async () => {
  for (const method of ['PUT', 'DELETE', 'PATCH', 'POST']) assert.equal((await request('/', { method })).status, 405, method);
});

test('SQL: a query is answered as its schema says', async () => {
  // Before the first request: on a busy machine it takes longer than the server keeps a silent connection.
  const Ajv = require('ajv').default;
  const validate = new Ajv({ strict: false }).compile(JSON.parse(readFileSync(path.join(source, 'schemas/json/viewer/sql_answer.schema.json'), 'utf8')));
  const { status, text } = await query("SELECT 1 AS one, 'a' AS two, NULL AS three, 9007199254740993 AS large, 0.5 AS half");
  assert.equal(status, 200);
  const answer = JSON.parse(text);
  assert.deepEqual(answer.columns, ['one', 'two', 'three', 'large', 'half']);
  assert.deepEqual(answer.rows, [[1, 'a', null, '9007199254740993', 0.5]]);
  assert.ok(validate(answer), JSON.stringify(validate.errors));
  const compiles = JSON.parse((await query('SELECT count(*) FROM compile')).text);
  assert.ok(compiles.rows[0][0] > 0);
  assert.equal((await query('PRAGMA table_info(compile)')).status, 200);
});

test('search: the texts and lines are those that a query over all payloads finds', async () => {
  const Ajv = require('ajv').default;
  const validate = new Ajv({ strict: false }).compile(JSON.parse(readFileSync(path.join(source, 'schemas/json/viewer/search_answer.schema.json'), 'utf8')));
  for (const text of ['aten.mm', 'all_reduce', 'RELU', 'd_fcol.py:24', 'nothing of this']) {
    const answer = JSON.parse((await request(`/api/search?text=${encodeURIComponent(text)}`)).text);
    assert.ok(validate(answer), JSON.stringify(validate.errors));
    assert.ok(answer.is_complete);
    const content = answer.is_case_sensitive ? 'p.content' : 'lower(p.content)';
    const { rows } = JSON.parse((await query(`SELECT min(r.id), group_concat(DISTINCT r.rank), p.content FROM payload p JOIN record r ON r.payload_id = p.id WHERE instr(${content}, '${text}') > 0 AND r.kind <> 'chromium_event' GROUP BY p.id ORDER BY min(r.id)`)).text);
    assert.equal(answer.is_case_sensitive, text === 'RELU');
    assert.deepEqual(answer.texts.map((one) => one.record_id).sort((a, b) => a - b), rows.map(([id]) => id), text);
    for (const one of answer.texts) {
      const [, ranks, whole] = rows.find(([id]) => id === one.record_id);
      const lines = whole.split('\n').flatMap((line, i) => ((answer.is_case_sensitive ? line : line.toLowerCase()).includes(text) ? [i + 1] : []));
      assert.equal(one.line_count, lines.length, text);
      assert.deepEqual(one.lines.map(({ line }) => line), lines.slice(0, 5), text);
      assert.deepEqual(one.ranks, (ranks ?? '').split(',').filter(Boolean).map(Number).sort((a, b) => a - b), text);
    }
  }
  assert.ok(JSON.parse((await request('/api/search?text=mul&kind=guard')).text).texts.every(({ kind }) => kind === 'guard'));
  for (const bad of ['text=a', '', 'text=mul&kind=none']) assert.equal((await request(`/api/search?${bad}`)).status, 400, bad);
});

test('SQL: everything that is no query is refused, and says why', async () => {
  const refused = ['DELETE FROM compile', 'DROP TABLE run', 'INSERT INTO run VALUES (9, 1, 1, 1)', "ATTACH '/tmp/x.db' AS x", 'PRAGMA query_only = 0', 'PRAGMA writable_schema = 1', "SELECT load_extension('x')", 'VACUUM', "VACUUM INTO '/tmp/stolen.db'", 'CREATE TEMP TABLE t (a)', 'BEGIN', 'SELECT 1; SELECT 2', 'SELEC', '', ' ; ', 'SELECT * FROM nothing'];
  for (const sql of refused) {
    const { status, text } = await query(sql);
    assert.equal(status, 400, `${sql}: ${status} ${text}`);
    assert.ok(text.trim().length > 5, sql);
  }
  assert.equal((await query('SELECT count(*) FROM compile')).status, 200);
});

test('SQL: answers are bounded', async () => {
  const many = JSON.parse((await query('WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) SELECT i FROM n')).text);
  assert.equal(many.is_truncated, true);
  assert.equal(many.rows.length, 20000);
});

test('SQL: slow queries do not stop the page', async () => {
  const other = await serve(path.join(reportOf('tlparse_meta'), 'trace.db'));
  const sql = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n';
  const slow = Array.from({ length: 5 }, () => fetch(`${other.url}api/sql`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ sql }) }));
  // The one too many is refused at once; from then on the four others are under way.
  const refused = await Promise.race(slow);
  assert.equal(refused.status, 503);
  assert.match(await refused.text(), /busy with 4 queries/);
  let ended = 0;
  for (const query of slow) query.then(() => (ended += 1), () => (ended += 1));
  for (const target of ['', 'api/chunk/index', '', 'api/chunk/compiles']) assert.equal((await fetch(other.url + target)).status, 200, target);
  assert.equal(ended, 1, 'the page was served while the queries went on');
  // The end of the server ends them.
  assert.equal(await other.stop(), 0);
  await Promise.allSettled(slow);
});

test('SQL: bodies that are not ours are refused', async () => {
  assert.equal((await request('/api/sql', { method: 'POST', headers: { 'Content-Type': 'text/plain' }, body: '{"sql":"SELECT 1"}' })).status, 415);
  for (const body of ['', '{}', '[]', '{"sql": 1}', 'x'.repeat(1000)]) {
    assert.equal((await request('/api/sql', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body })).status, 400, body.slice(0, 20));
  }
  const large = await request('/api/sql', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ sql: `SELECT '${'x'.repeat(400_000)}'` }) }).catch(() => ({ status: 413 }));
  assert.equal(large.status, 413);
});

test('events for Perfetto are one JSON document', async () => {
  const { status, headers, text } = await request('/api/timeline.json');
  assert.equal(status, 200);
  assert.match(headers['content-disposition'], /attachment/);
  const events = JSON.parse(text).traceEvents;
  assert.ok(events.length > 100);
  assert.ok(events.every((event) => typeof event.name === 'string' && (event.ph === 'M' || (typeof event.ts === 'number' && 'XiCsf'.includes(event.ph)))));
});

test('nothing is compressed: that takes longer than it saves on one machine', async () => {
  for (const target of ['/', '/api/chunk/index', '/api/chunk/compiles', '/api/timeline.json']) {
    const plain = await request(target);
    const offered = await request(target, { headers: { 'Accept-Encoding': 'gzip, deflate, br, zstd' } });
    assert.equal(offered.headers['content-encoding'], undefined, target);
    assert.equal(offered.text, plain.text, target);
    if (!target.includes('timeline')) assert.equal(Number(offered.headers['content-length']), Buffer.byteLength(plain.text), target);
  }
  const head = await request('/', { method: 'HEAD' });
  assert.equal(head.status, 200);
  assert.equal(head.text, '');
  const part = await request('/', { headers: { Range: 'bytes=0-14' } });
  assert.equal(part.text, '<!DOCTYPE html>');
});

// While another program holds its lock, nothing can be read of the database.
async function withLock(database, action) {
  const program = 'import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); c.execute("BEGIN EXCLUSIVE"); print("locked", flush=True); sys.stdin.read()';
  const holder = spawn('python3', ['-c', program, database], { stdio: ['pipe', 'pipe', 'inherit'] });
  await new Promise((resolve, reject) => holder.stdout.once('data', resolve).once('end', reject));
  try {
    return await action();
  } finally {
    holder.stdin.end();
    await new Promise((resolve) => holder.on('exit', resolve));
  }
}

test('a chunk is made once, until the database changes', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'tlparse-known-'));
  const database = path.join(folder, 'job.db');
  copyFileSync(path.join(reportOf('tlparse_meta'), 'trace.db'), database);
  await new Promise((resolve) => setTimeout(resolve, 200)); // what was written just now may be written again unseen
  const other = await serve(database);
  try {
    const get = (name) => fetch(`${other.url}api/chunk/${name}`, { signal: AbortSignal.timeout(60000) }).then((response) => response.text());
    const names = ['index', 'findings', 'time', 'diff/ranks'];
    const first = await Promise.all(names.map(get));
    await withLock(database, async () => {
      assert.deepEqual(await Promise.all(names.map(get)), first);
      // It holds: what was not asked for before cannot be made.
      await assert.rejects(fetch(`${other.url}api/chunk/compiles`, { signal: AbortSignal.timeout(1000) }), { name: 'TimeoutError' });
    });
    const log = path.join(source, 'fixtures/logs/simple');
    const added = spawnSync(tlparse, [log, '--run', 'another', '--db', database, '--db-only'], { encoding: 'utf8' });
    assert.equal(added.status, 0, added.stderr);
    assert.notEqual(await get('index'), first[0]);
    assert.match(await get('index'), /another/);
  } finally {
    await other.stop();
    rmSync(folder, { recursive: true });
  }
});

test('what cannot be served is said in one line', () => {
  for (const [target, pattern] of [['/nonexistent', /there is no such file|no such/], [path.join(source, 'README.md'), /database/], [path.join(source, 'schemas'), /trace\.db/]]) {
    const { status, stderr } = spawnSync(tlparse, ['serve', target], { encoding: 'utf8', timeout: 20000 });
    assert.equal(status, 2, stderr);
    assert.match(stderr, pattern);
    assert.equal(stderr.trim().split('\n').length, 1, stderr);
  }
});

test('it ends cleanly when asked to', async () => {
  const other = await serve(reportOf('tlparse_meta'));
  assert.equal((await fetch(other.url)).status, 200);
  assert.equal(await other.stop(), 0);
});
