// How long people wait: first view and interactions, from the browser's own performance timeline. Prints; judges nothing.
//   node bench.mjs <report directory>…      (environment as in CMakeLists.txt; a job and a large log come from tests/tools)
import { readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { launch, openPage, pageUrl, serve, settle, visit } from './support.mjs';

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}

const ms = (value) => `${value.toFixed(0)} ms`;

async function firstView(browser, base) {
  const times = [];
  let bytes = 0;
  for (let i = 0; i < 5; i++) {
    const { page, context } = await openPage(browser, base);
    await page.goto(base);
    await page.waitForFunction(() => performance.getEntriesByName('first-view').length > 0, null, { timeout: 120_000 });
    times.push(await page.evaluate(() => performance.getEntriesByName('first-view')[0].startTime));
    bytes = await page.evaluate(() => performance.getEntriesByType('resource').filter((entry) => entry.startTime < performance.getEntriesByName('first-view')[0].startTime).reduce((sum, entry) => sum + (entry.decodedBodySize || 0), 0));
    await context.close();
  }
  return { time: median(times), bytes };
}

// The longest of the events that `act` causes: from the input to the next frame, in steps of 8 ms; below 16 ms the browser keeps none.
async function interaction(page, act) {
  await page.evaluate(() => {
    window.longest = 0;
    window.watcher?.disconnect();
    window.watcher = new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) window.longest = Math.max(window.longest, entry.duration);
    });
    window.watcher.observe({ type: 'event', durationThreshold: 16 });
  });
  await act();
  await page.waitForTimeout(400);
  const longest = await page.evaluate(() => window.longest);
  return longest === 0 ? '< 16 ms' : ms(longest);
}

// Frames that took longer than 50 ms while a list is scrolled from top to bottom.
async function scroll(page, selector) {
  return page.evaluate(
    (wanted) =>
      new Promise((resolve) => {
        const box = document.querySelector(wanted);
        if (!box || box.scrollHeight <= box.clientHeight) return resolve('nothing to scroll');
        const gaps = [];
        let last = performance.now();
        let steps = 0;
        const step = (now) => {
          gaps.push(now - last);
          last = now;
          box.scrollTop += Math.max(600, box.scrollHeight / 240);
          if (++steps < 240) requestAnimationFrame(step);
          else resolve(`${gaps.filter((gap) => gap > 50).length} of ${gaps.length} frames above 50 ms, longest ${Math.max(...gaps).toFixed(0)} ms`);
        };
        requestAnimationFrame(step);
      }),
    selector,
  );
}

async function measure(browser, name, base) {
  const first = await firstView(browser, base);
  console.log(`${name}: first view ${ms(first.time)}${first.bytes > 0 ? `, ${(first.bytes / 1e6).toFixed(2)} MB of data` : ''}`);
  const { page, context } = await openPage(browser, base);
  await visit(page, base, '#/');
  const report = async (what, act) => console.log(`${name}: ${what} ${await interaction(page, act)}`);
  await report('open the compiles', () => page.getByRole('link', { name: /^Compiles/ }).first().click());
  await settle(page);
  await report('sort by time', () => page.getByRole('button', { name: 'Time' }).click());
  await report('type a filter', () => page.getByLabel('Filter compiles').pressSequentially('forward'));
  await page.getByLabel('Filter compiles').fill('');
  console.log(`${name}: scroll the compiles: ${await scroll(page, '.grid')}`);
  await report('open a compile', () => page.locator('.grid-row').nth(3).click());
  await settle(page);
  await report('open a text', () => page.locator('.records:not(.views) a').nth(1).click());
  await visit(page, base, '#/ranks?tab=cache');
  console.log(`${name}: scroll the matrix: ${await scroll(page, '.matrix')}`);
  if ((await page.locator('a.cell').count()) > 0) await report('click a cell', () => page.locator('a.cell').nth(5).click());
  await visit(page, base, '#/timeline');
  await page.waitForFunction(() => !/loading \d/.test(document.querySelector('main').textContent), null, { timeout: 120_000 });
  const box = await page.locator('.timeline canvas').boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + 60);
  await report('zoom the timeline', () => page.mouse.wheel(0, -300));
  await report('search', () => page.getByRole('searchbox', { name: /Search compiles/ }).pressSequentially('fused'));
  await context.close();
}

const browser = await launch();
for (const directory of process.argv.slice(2)) {
  const name = path.basename(directory);
  const size = (file) => statSync(path.join(directory, file)).size;
  const before = size('index.html') + size('data/index.js') + size('data/compiles.js');
  const all = readdirSync(path.join(directory, 'data')).reduce((sum, file) => sum + size(`data/${file}`), 0);
  console.log(`${name}: page, index and compiles ${(before / 1e6).toFixed(2)} MB; all data ${(all / 1e6).toFixed(0)} MB`);
  await measure(browser, `${name} from file`, pageUrl(directory));
  const server = await serve(directory);
  await measure(browser, `${name} served`, server.url);
  await server.stop();
}
await browser.close();
