// The text of a gzip stream, without a Blob, which the browser's other process would have to register.
// Browsers before Chrome 80, Firefox 113 and Safari 16.4 have no DecompressionStream.
import { inflate } from './inflate';

const headBytes = 10; // as tlparse writes it: no name, no comment
const footBytes = 8; // checksum and size

export function gunzip(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  if (typeof DecompressionStream === 'function') return new Response(new Response(bytes).body!.pipeThrough(new DecompressionStream('gzip'))).text();
  const size = new DataView(bytes.buffer).getUint32(bytes.length - 4, true);
  return Promise.resolve(new TextDecoder().decode(inflate(bytes.subarray(headBytes, bytes.length - footBytes), size)));
}
