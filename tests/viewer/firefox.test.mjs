// The page in Firefox, driven by WebDriver BiDi: it draws its first screens and says nothing on the console. Skipped where there is no Firefox.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync, mkdirSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { pageUrl, reportOf, require, screenshots, serve } from './support.mjs';

const executable = process.env.FIREFOX;
const skip = executable ? false : 'no Firefox is installed (Debian: firefox-esr)';
let firefox;

class Firefox {
  static async start() {
    const own = new Firefox();
    own.profile = mkdtempSync(path.join(os.tmpdir(), 'tlparse-firefox-'));
    own.child = spawn(executable, ['--headless', '--no-remote', '--profile', own.profile, '--remote-debugging-port', '0', 'about:blank'], { env: { ...process.env, HOME: own.profile }, stdio: ['ignore', 'ignore', 'pipe'] });
    const url = await new Promise((resolve, reject) => {
      let text = '';
      own.child.stderr.on('data', (data) => {
        text += data;
        const found = /WebDriver BiDi listening on (ws:\S+)/.exec(text);
        if (found) resolve(found[1]);
      });
      own.child.on('exit', (code) => reject(new Error(`Firefox ended with ${code}: ${text}`)));
    });
    own.socket = new (require('playwright-core/lib/utilsBundle').ws)(`${url}/session`);
    own.answers = new Map();
    own.problems = [];
    own.socket.on('message', (data) => own.receive(JSON.parse(data)));
    await new Promise((resolve, reject) => own.socket.on('open', resolve).on('error', reject));
    await own.send('session.new', { capabilities: {} });
    await own.send('session.subscribe', { events: ['log.entryAdded', 'network.beforeRequestSent'] });
    own.context = (await own.send('browsingContext.getTree', {})).contexts[0].context;
    return own;
  }

  receive({ id, type, method, params, result, message }) {
    if (method === 'log.entryAdded' && ['error', 'warn'].includes(params.level)) this.problems.push(params.text);
    if (method === 'network.beforeRequestSent' && !this.isOwn(params.request.url)) this.problems.push(`request: ${params.request.url}`);
    const answer = this.answers.get(id);
    if (type === 'error') answer?.reject(new Error(message));
    else answer?.resolve(result);
    this.answers.delete(id);
  }

  isOwn(url) {
    return /^(data|blob|about|chrome|resource):/.test(url) || url.startsWith(this.origin ?? 'file:');
  }

  send(method, params) {
    const id = (this.last = (this.last ?? 0) + 1);
    return new Promise((resolve, reject) => {
      this.answers.set(id, { resolve, reject });
      this.socket.send(JSON.stringify({ id, method, params }));
    });
  }

  async ask(expression) {
    const { type, result, exceptionDetails } = await this.send('script.evaluate', { expression, target: { context: this.context }, awaitPromise: true });
    if (type === 'exception') throw new Error(exceptionDetails.text);
    return result.value;
  }

  async visit(base, hash) {
    this.origin = base.startsWith('file:') ? 'file:' : base;
    await this.send('browsingContext.navigate', { context: this.context, url: base + hash, wait: 'complete' });
    return this.ask(`new Promise((resolve, reject) => {
      const ends = Date.now() + 60000;
      const look = () => {
        const main = document.querySelector('main:not([aria-busy])');
        if (main && main.innerText.trim() && !document.querySelector('.loading') && !/loading…|loading \\d/.test(main.textContent)) requestAnimationFrame(() => resolve(main.innerText));
        else if (Date.now() > ends) reject(new Error('still loading: ' + document.body.innerText.slice(0, 300)));
        else setTimeout(look, 50);
      };
      look();
    })`);
  }

  async picture(name) {
    const { data } = await this.send('browsingContext.captureScreenshot', { context: this.context });
    mkdirSync(screenshots, { recursive: true });
    writeFileSync(path.join(screenshots, `${name}.png`), Buffer.from(data, 'base64'));
  }

  async stop() {
    await Promise.race([this.send('browser.close', {}).catch(() => {}), new Promise((resolve) => setTimeout(resolve, 5000))]);
    this.socket.close();
    this.child.kill();
    rmSync(this.profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

before(async () => {
  if (!executable) return;
  firefox = await Firefox.start();
  await firefox.ask("console.error('seen')");
  for (let i = 0; i < 100 && firefox.problems.length === 0; i++) await new Promise((resolve) => setTimeout(resolve, 50));
  assert.deepEqual(firefox.problems.splice(0), ['seen'], 'the console is read');
});
after(() => firefox?.stop());

const screens = [
  ['overview', '#/', /Where|went|No findings|compile/],
  ['source', '#/source', /\d+ known lines/],
  ['search', '#/search?q=addmm', /addmm/],
  ['memory', '#/memory', /At the peak, after event/],
  ['timeline', '#/timeline', /slices/],
  ['provenance', '#/provenance/1', /Post-grad graph/],
];

test('file://: the first screen, Source, Search, Memory, Timeline and Provenance, and nothing on the console', { skip }, async () => {
  const base = pageUrl(reportOf('memory', 'fixtures/memory'));
  for (const [name, hash, says] of screens) {
    assert.match(await firefox.visit(base, hash), says, name);
    await firefox.picture(`firefox-${name}`);
    assert.deepEqual(firefox.problems.splice(0), [], name);
  }
});

test('the curve of memory and the timeline have one axis; a click chooses a moment', { skip }, async () => {
  const base = pageUrl(reportOf('memory', 'fixtures/memory'));
  await firefox.visit(base, '#/timeline');
  const x = await firefox.ask(`(() => { const box = document.querySelector('.memory-strip svg').getBoundingClientRect(); return Math.round(box.left + box.width * 0.4); })()`);
  const y = await firefox.ask(`Math.round(document.querySelector('.memory-strip svg').getBoundingClientRect().top + 20)`);
  const actions = [{ type: 'pointer', id: 'mouse', parameters: { pointerType: 'mouse' }, actions: [{ type: 'pointerMove', x, y }, { type: 'pointerDown', button: 0 }, { type: 'pointerUp', button: 0 }] }];
  await firefox.send('input.performActions', { context: firefox.context, actions });
  const at = await firefox.ask(`new Promise((resolve) => { const look = () => { const mark = document.querySelector('.moment'); mark ? requestAnimationFrame(() => resolve(mark.getBoundingClientRect().left)) : setTimeout(look, 30); }; look(); })`);
  assert.ok(Math.abs(at - x) < 3, `${at} ${x}`);
  assert.deepEqual(firefox.problems.splice(0), []);
});

test('served: the same screens', { skip }, async () => {
  const server = await serve(reportOf('memory', 'fixtures/memory'));
  after(server.stop);
  for (const [name, hash, says] of screens) {
    assert.match(await firefox.visit(server.url, hash), says, name);
    assert.deepEqual(firefox.problems.splice(0), [], name);
  }
});
