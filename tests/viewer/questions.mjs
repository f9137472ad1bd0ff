// The questions of the page's readers, each answered with clicks on the page of a recorded job: prints what it took. Not a test of ctest: run it by hand
// with the environment of tests/viewer/CMakeLists.txt and a directory with the recordings (shared/), which are too large for fixtures.
import assert from 'node:assert/strict';
import path from 'node:path';
import { launch, openPage, pageUrl, reportOf, settle } from './support.mjs';

const shared = process.argv[2];
assert.ok(shared, 'questions.mjs SHARED [question]');
const trace = (name) => path.join(shared, 'traces/2.14.1', name);
const fixture = (name) => path.join('fixtures', name);

// Each: the question, the input, how to find the answer, and what the answer is.
const questions = [
  ['why was it recompiled, on which line, which code', trace('recompiles'), async () => {}, /by_const|n == \d|\(n: [\s\S]*s_recompiles\.py:\d+\s+return/],
  ['why does the graph break, show the code', trace('graph_breaks'), async () => {}, /graph_breaks\.py:\d+[\s\S]*print|item/],
  ['what took the compile time: which step', trace('gpt_train'), async () => {}, /Where 35\.4 s[\s\S]*code generation 17\.1 s/],
  ['… of it, the wait for the C++ compiler', trace('gpt_train'), async ({ click, page }) => click(page.locator('.went-parts a', { hasText: 'code generation' })), /CppCodeCache|compile_file|code_gen|async_compile/],
  ['a kernel by name: its Python lines, fused ops and code', trace('provenance_2'), async ({ click, type, page }) => {
    await type('cpp_fused_gelu');
    await click(page.locator('main a[href*="sel=kernel"]').first());
  }, /Python source[\s\S]*s_provenance\.py:\d+[\s\S]*gelu[\s\S]*Generated code/],
  ['a line: what came of it, kernels too', trace('provenance_2'), async ({ click, type, page }) => {
    await type('common.py:48');
    await click(page.locator('main a[href*="source/"]').first());
  }, /Line 48[\s\S]*Kernels \d+/],
  ['what did a pass change', trace('gpt_train'), async ({ click, page }) => {
    await click(page.getByRole('link', { name: /^Compiles/ }).first());
    await click(page.locator('.grid-row a').first());
    await click(page.getByRole('link', { name: 'what post-grad passes changed' }).first());
  }, /inductor_post_grad_graph[\s\S]*\d+ lines? (removed|added|changed)|[−-]\d+ \+\d+|differ/],
  ['one rank has another configuration', fixture('logs/diverge_config_2_6'), async () => {}, /[Rr]ank \d[\s\S]*→/],
  ['ranks 2,3 miss where 0,1 hit', fixture('logs/cache_some_ranks'), async () => {}, /Ranks 2,3 missed \d+ cache entries[\s\S]*Try/],
  ['one rank hangs in a compile', fixture('logs/hang_in_compile'), async () => {}, /Rank \d+[^\n]*(log|compile)[\s\S]*\.py:\d+/],
  ['one rank crashed', fixture('logs/crash_segv_in_inductor'), async () => {}, /Rank 0's log ends first/],
  ['one rank breaks the graph', fixture('runs/break_on_one'), async () => {}, /Rank 1 breaks the graph of 0\/0 forward at fit\.py:16/],
  ['collectives that do not match: both lines, both ranks', path.join(shared, 'runs/fr_wrong_op'), async () => {}, /Rank 2 issued all_gather where ranks 0,1,3 issued all_reduce[\s\S]*fr_job\.py:44/],
  ['paste it in a chat', fixture('runs/break_on_one'), async ({ click, page }) => {
    await click(page.getByRole('button', { name: 'Copy as Markdown' }).first());
  }, /Copied/],
  ['profiles alone: what did the device do, which kernel costs most', path.join(shared, 'runs/gpu/torch_compile_triton_trace.json.gz'), async () => {}, /Device 2 was busy 95\.6 %[\s\S]*3\.75 ms/],
  ['a slow kernel of a profile: its Python line', path.join(shared, 'runs/p_mlp_train'), async ({ click, page }) => {
    await click(page.getByRole('link', { name: 'by kernel, line, graph, op' }));
    await click(page.locator('.grid-row a.place').first());
  }, /Line 22[\s\S]*Kernels \d+/],
  ['own: where does “relu” occur', trace('recompiles'), async ({ type }) => type('relu'), /0\/0[\s\S]*relu/],
  ['own: what is different in launch 2 against launch 1', fixture('logs/restart_manual_other_config'), async ({ click, page }) => click(page.getByRole('link', { name: /^Compare/ })), /max_fusion_size/],
  ['own: which nodes did Inductor not fuse, and why', fixture('runs/p_torch_logs'), async ({ type }) => type('cannot fuse'), /cannot fuse op\d+ with/],
  ['own: who held the memory at the peak', path.join(shared, 'runs/memory/snapshot_a.pickle'), async () => {}, /At the peak 2\.3 GB were alive[\s\S]*foo\.py:1483/],
  ['own: who was ended by whom', fixture('runs/restores_wrong'), async ({ click, page }) => click(page.getByRole('link', { name: 'Ranks', exact: true })), /killed, ended with rank 0/],
];

const browser = await launch();
console.log('| question | clicks | typed | s |\n|---|---|---|---|');
let failed = 0;
for (const [i, [question, input, find, answer]] of questions.entries()) {
  if (process.argv[3] && !question.includes(process.argv[3])) continue;
  const { page, context } = await openPage(browser, 'file:');
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const taken = { clicks: 0, typed: '' };
  const began = performance.now();
  const has = () => page.waitForFunction(([source, flags]) => new RegExp(source, flags).test(document.querySelector('main').innerText), [answer.source, answer.flags], { timeout: 60000 });
  try {
    await page.goto(pageUrl(reportOf(`q${i}`, input)));
    const opened = performance.now();
    await settle(page);
    const click = async (target) => {
      taken.clicks++;
      await target.click();
      await settle(page);
    };
    const type = async (text) => {
      taken.typed = text;
      await page.keyboard.press('/');
      await page.keyboard.type(text);
      await page.keyboard.press('Enter');
      await page.waitForFunction(() => !/Searching/.test(document.querySelector('main').textContent));
    };
    await find({ page, click, type });
    await has();
    console.log(`| ${question} | ${taken.clicks} | ${taken.typed} | ${((performance.now() - opened) / 1000).toFixed(1)} |`);
  } catch (error) {
    failed++;
    console.log(`| ${question} | not answered | ${taken.typed} | ${((performance.now() - began) / 1000).toFixed(1)} | ${String(error).slice(0, 120).replace(/\s+/g, ' ')}`);
  }
  await context.close();
}
await browser.close();
process.exitCode = failed > 0 ? 1 : 0;
