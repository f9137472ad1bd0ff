// A log whose names and texts try to be HTML, links and too long. Written as PyTorch writes records.
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export const script = '<script>window.hacked = true; alert(1)</script>';
export const image = '<img src="http://evil.example/x.png" onerror="window.hacked = true">';
export const link = 'javascript:window.hacked=true';
export const long = `long_${'x'.repeat(1 << 20)}`;
const spaced = '\u202egnirts\u202c \u0000\u0007\u2028end';

export function writeHostileLog(directory) {
  mkdirSync(directory, { recursive: true });
  let out = '';
  let at = 0;
  const record = (envelope, payload) => {
    const header = { ...envelope };
    if (payload !== undefined) header.has_payload = createHash('md5').update(payload).digest('hex');
    const ascii = JSON.stringify(header).replace(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
    out += `V1121 08:30:01.${String(++at).padStart(3, '0')}000 4242 torch/_dynamo/x.py:10] ${ascii}\n`;
    if (payload !== undefined) out += `${payload.split('\n').map((line) => `\t${line}`).join('\n')}\n`;
  };
  const event = (name, ph, ts, args = {}) => record({ chromium_event: {} }, JSON.stringify({ name, ts, args, ph, cat: 'dynamo_timed', tid: 0, pid: 0 }));
  const us = Date.UTC(2026, 10, 21, 8, 30, 1) * 1000;
  event(script, 'B', us);
  record({ str: [link, 0] });
  record({ str: [`/tmp/${script}.py`, 1] });
  [script, image, link, long, spaced].forEach((name, frame) => {
    const ids = { frame_id: frame, frame_compile_id: 0, attempt: 0 };
    record({ dynamo_start: { stack: [{ line: 1, name: image, filename: 0, loc: script }, { line: 2, name, filename: 1 }] }, ...ids });
    record({ artifact: { name: 'dynamo_graph_break_reason', encoding: 'string' }, ...ids }, `Graph break in user code at ${link}:3\nGraph Break Reason: ${image}\n\nUser code traceback:\n  File "${script}", line 3, in ${name.slice(0, 2000)}\n`);
    record({ dynamo_output_graph: { sizes: {} }, ...ids }, `class ${name.slice(0, 5000)}(torch.nn.Module):\n    def forward(self, x):\n        ${script}: "f32[4]" = x + 1\n        return (x,)\n`);
    record({ artifact: { name: `${image}${frame}`, encoding: 'string' }, ...ids }, `${script}\n${name}`);
    record({ artifact: { name: 'javascript:alert(1)', encoding: 'json' }, ...ids }, JSON.stringify({ [script]: image }));
    record({ artifact: { name: 'fx_graph_cache_miss', encoding: 'json' }, ...ids }, JSON.stringify({ key: script, components: [`[${'a'.repeat(51)}] ${image}: ${script}`], cache_event_time: us * 1000, cache_state: 'miss' }));
    record({ artifact: { name: 'recompile_reasons', encoding: 'json' }, ...ids }, JSON.stringify([`0/0: ${script}`]));
    record({ link: { name: 'cprofile', url: link }, ...ids });
    record({ compilation_metrics: { co_name: name, co_filename: link, co_firstlineno: 1, fail_type: frame === 0 ? script : null, fail_reason: frame === 0 ? image : null, start_time_us: us + frame * 1000, duration_us: 900, [image]: script }, ...ids });
  });
  event(script, 'E', us + 9000, { [script]: image });
  out += `${script} not a record\n`;
  writeFileSync(path.join(directory, 'dedicated_log_torch_trace_hostile1.log'), out);
  return directory;
}
