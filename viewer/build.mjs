// Builds the page: one index.html with its script and style inside, and nothing that it would have to load.
//   node build.mjs [--out <directory>] [--schemas <directory>]     index.html and viewer_page.inc (the same bytes for C++)
//   node build.mjs --types [--schemas <directory>]                 generated/chunks.ts: types of the data, from its JSON Schemas
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));

function option(name, fallback) {
  const at = process.argv.indexOf(name);
  return at < 0 ? fallback : path.resolve(process.argv[at + 1]);
}
const schemas = option('--schemas', path.join(here, '../schemas/json/viewer'));
const out = option('--out', path.join(here, 'dist'));

async function writeTypes() {
  const { compile } = await import('json-schema-to-typescript');
  const parts = ['// Generated from schemas/json/viewer by build.mjs.\n'];
  for (const file of readdirSync(schemas)
    .filter((name) => name.endsWith('.schema.json'))
    .sort()) {
    const schema = JSON.parse(readFileSync(path.join(schemas, file), 'utf8'));
    delete schema.$defs?.numbers.description;
    // Named types of its own per file; one export per file is enough.
    const text = await compile(schema, schema.title, { bannerComment: '', declareExternallyReferenced: true });
    parts.push(text.replace(/^export type (Numbers|Texts)\b.*$/gm, '').replace(/^\/\*\*\n \* Indexes into strings\.\n \*\/\n/gm, ''));
  }
  parts.push('export type Numbers = (number | null)[];\nexport type Texts = (number | null)[];\n');
  mkdirSync(path.join(here, 'generated'), { recursive: true });
  writeFileSync(path.join(here, 'generated/chunks.ts'), parts.join('\n'));
}

async function bundle() {
  const esbuild = await import('esbuild');
  const result = await esbuild.build({
    absWorkingDir: here,
    entryPoints: ['src/main.tsx'],
    bundle: true,
    minify: true,
    charset: 'utf8',
    format: 'iife',
    target: ['chrome100', 'firefox100', 'safari15.4'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    preserveSymlinks: true,
    legalComments: 'none',
    write: false,
    outdir: 'dist',
    metafile: true,
  });
  const text = (suffix) => result.outputFiles.find((file) => file.path.endsWith(suffix)).text.trimEnd();
  const script = text('.js').replaceAll('</script', '<\\/script');
  const style = text('.css');
  const hash = (content) => `'sha256-${createHash('sha256').update(content).digest('base64')}'`;
  // The data scripts of a static page come from next to it: file: there, 'self' where the directory is put on a web server.
  const policy = [
    "default-src 'none'",
    `script-src ${hash(script)} 'self' file:`,
    `style-src ${hash(style)}`,
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
  const page = readFileSync(path.join(here, 'src/index.html'), 'utf8')
    .replace('{{policy}}', () => policy)
    .replace('{{style}}', () => style)
    .replace('{{script}}', () => script);
  mkdirSync(out, { recursive: true });
  writeFileSync(path.join(out, 'index.html'), page);
  const bytes = Buffer.from(page);
  const lines = [];
  for (let at = 0; at < bytes.length; at += 64) {
    lines.push(Array.from(bytes.subarray(at, at + 64), (byte) => (byte > 127 ? byte - 256 : byte)).join(',') + ',');
  }
  writeFileSync(path.join(out, 'viewer_page.inc'), lines.join('\n') + '\n');
  console.log(`viewer: ${path.join(out, 'index.html')}, ${Math.round(bytes.length / 1024)} KiB`);
}

await (process.argv.includes('--types') ? writeTypes() : bundle());
