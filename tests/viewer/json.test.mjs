// Members of JSON text as the page takes them out of envelopes: hostile, escaped, repeated, cut off.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { require, source } from './support.mjs';

const typescript = readFileSync(path.join(source, 'viewer/src/lib/json.ts'), 'utf8');
const { code } = require('esbuild').transformSync(typescript, { loader: 'ts', format: 'esm' });
const { members, memberText, textOf } = await import(`data:text/javascript,${encodeURIComponent(code)}`);

const textsOf = (json) => Object.fromEntries([...members(json)].map(([name, value]) => [name, textOf(value)]));

test('values are the text that stands there: digits, white space and order are kept', () => {
  const json = ' {"n": 12345678901234567890.100 ,\n"o" : { "b": 1, "a": [1, {"x": "}"}] } , "l":[ ], "t":true,"z":null, "f": NaN}';
  assert.deepEqual([...members(json)], [['n', '12345678901234567890.100'], ['o', '{ "b": 1, "a": [1, {"x": "}"}] }'], ['l', '[ ]'], ['t', 'true'], ['z', 'null'], ['f', 'NaN']]);
  assert.equal(memberText(json, 'o'), '{ "b": 1, "a": [1, {"x": "}"}] }');
  assert.equal(memberText(json, 'x'), null, 'what is nested is no member');
});

test('strings lose their quotes and escapes, null is null, "null" is a word', () => {
  assert.equal(textOf(undefined), null);
  assert.equal(textOf('null'), null);
  assert.equal(textOf('"null"'), 'null');
  assert.equal(textOf('"a\\"b\\\\ \\u00e9\\n\\ud83d\\ude00"'), 'a"b\\ é\n😀');
  assert.equal(textOf('"\\ud800"'), '\ud800', 'half a character is kept');
  assert.equal(textOf('"\\x"'), null, 'no JSON escape');
  assert.equal(textOf('"'), null);
  assert.equal(textOf('-1.50'), '-1.50');
});

test('quotes, brackets and commas inside of strings end nothing', () => {
  assert.deepEqual(textsOf('{"a":"},\\"b\\":{[","c":"\\\\","d,}\\"":["]","\\\\\\"]"],"e":1}'), { a: '},"b":{[', c: '\\', 'd,}"': '["]","\\\\\\"]"]', e: '1' });
});

test('of several members of one name the last counts, however the name is written', () => {
  assert.deepEqual(textsOf('{"a":1,"b":2,"\\u0061":"3"}'), { a: '3', b: '2' });
  assert.deepEqual([...members('{"a":1,"a":null}')], [['a', 'null']]);
});

test('names of the language are names like others', () => {
  const json = '{"__proto__":{"polluted":1},"constructor":2,"toString":"<script>alert(1)</script>","":4}';
  assert.deepEqual([...members(json).keys()], ['__proto__', 'constructor', 'toString', '']);
  assert.equal(memberText(json, '__proto__'), '{"polluted":1}');
  assert.equal({}.polluted, undefined);
  assert.equal(memberText('{}', 'toString'), null);
  assert.equal(memberText(json, 'hasOwnProperty'), null);
});

test('what is no object has no members', () => {
  for (const json of ['', ' ', 'null', '[{"a":1}]', '"{\\"a\\":1}"', '1', '}', '{', '{}', '{ }', '{]', '{a:1}', "{'a':1}", '{,"a":1}', 'x{"a":1}']) {
    assert.deepEqual([...members(json)], [], json);
  }
});

test('a text that is cut anywhere keeps the members before the cut', () => {
  const json = '{"one": "a\\\\\\"b", "two": {"x": [1, "]}", {"y": 2}]}, "thr\\u0065e": "\\u00e9", "four": -1.5e3, "five": [[], {}, ""]}';
  const whole = members(json);
  assert.deepEqual([...whole.keys()], ['one', 'two', 'three', 'four', 'five']);
  for (let end = 0; end <= json.length; end++) {
    const found = [...members(json.slice(0, end))];
    found.forEach(([name, value], i) => {
      assert.equal(name, [...whole.keys()][i], `cut at ${end}`);
      if (i < found.length - 1) assert.equal(value, whole.get(name), `${name}, cut at ${end}`);
      else assert.ok(value !== '' && whole.get(name).startsWith(value), `${name} = ${value}, cut at ${end}`);
    });
  }
  assert.equal(textOf(members('{"a":1,"b":"cut off').get('b')), null, 'half a string is no value');
  assert.equal(memberText('{"a":1,"b":"cut off\\', 'a'), '1');
});

test('what JSON.stringify writes is found again', () => {
  let state = 1;
  const random = (below) => ((state = (Math.imul(state, 1103515245) + 12345) >>> 0) >>> 8) % below;
  const letters = ['"', '\\', '{', '}', '[', ']', ',', ':', ' ', '\n', '\u0000', '\u2028', 'é', '😀', '</script>', 'a'];
  const text = () => Array.from({ length: random(8) }, () => letters[random(letters.length)]).join('');
  const value = (depth) => [() => text(), () => random(1e6) / 8, () => null, () => true, () => Array.from({ length: random(4) }, () => (depth > 3 ? 0 : value(depth + 1))), () => (depth > 3 ? {} : object(depth + 1))][random(6)]();
  const object = (depth) => Object.fromEntries(Array.from({ length: random(5) }, () => [text(), value(depth)]));
  let checked = 0;
  for (let i = 0; i < 2000; i++) {
    const wanted = object(0);
    for (const indent of [0, 2]) {
      const found = members(JSON.stringify(wanted, null, indent));
      assert.deepEqual([...found.keys()], Object.keys(wanted));
      for (const [name, json] of found) {
        assert.deepEqual(JSON.parse(json), wanted[name]);
        assert.equal(textOf(json), wanted[name] === null ? null : typeof wanted[name] === 'string' ? wanted[name] : json);
        checked++;
      }
    }
  }
  assert.ok(checked > 2000);
});

test('depth and length cost nothing but time in proportion', () => {
  const deep = `{"a":${'['.repeat(1e6)}`;
  assert.equal(memberText(deep, 'a').length, 1e6);
  const long = 'x'.repeat(1e6);
  assert.equal(textOf(memberText(`{"${long}":1,"b":"${long}"}`, 'b')), long);
});

test('a time that counts from another has one sign', async () => {
  const source_ = readFileSync(path.join(source, 'viewer/src/lib/format.ts'), 'utf8');
  const format = await import(`data:text/javascript,${encodeURIComponent(require('esbuild').transformSync(source_, { loader: 'ts', format: 'esm' }).code)}`);
  assert.deepEqual([-1890, 1890, 0].map((us) => format.duration(us, true)), ['−1.89 ms', '+1.89 ms', '0 s']);
  assert.deepEqual([-1890, 1890, null].map((us) => format.duration(us)), ['−1.89 ms', '1.89 ms', '']);
  const reason = 'Graph break in user code at a.py:3\nGraph Break Reason: Data-dependent jump\n  Explanation: …';
  assert.equal(format.causeOf(reason), 'Data-dependent jump');
  assert.equal(format.causeOf('Encountered graph break when attempting to trace CALL: a function call, e.g. f(x, y):\n\nFailed to trace builtin operator\n  Explanation'), 'Failed to trace builtin operator');
  assert.equal(format.causeOf('builtin: print'), 'builtin: print');
});
