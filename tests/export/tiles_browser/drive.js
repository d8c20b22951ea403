// Serves a folder, opens tilesets of it in headless Chromium, and prints what the page says: JSON.
// node drive.js CHROMIUM FOLDER BUNDLE REQUESTS
import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { join, normalize } from 'node:path';
import { chromium } from 'playwright-core';

const [, , executablePath, folder, bundle, requests] = process.argv;
const page = '<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><body><script type="module" src="/app.js"></script>';
const server = createServer(async (request, response) => {
  const path = normalize(decodeURIComponent(new URL(request.url, 'http://x').pathname));
  try {
    const body = path === '/' ? page : await readFile(path === '/app.js' ? bundle : join(folder, path));
    const type = path === '/' ? 'text/html' : path === '/app.js' ? 'text/javascript' : 'application/octet-stream';
    response.writeHead(200, { 'content-type': type }).end(body);
  } catch {
    response.writeHead(404).end();
  }
});
await new Promise((done) => server.listen(0, '127.0.0.1', done));
const args = ['--no-sandbox', '--use-angle=swiftshader', '--enable-unsafe-swiftshader', '--ignore-gpu-blocklist'];
const browser = await chromium.launch({ executablePath, args });
const answers = [];
try {
  for (const [url, errorTarget] of JSON.parse(requests)) {
    const tab = await browser.newPage();
    const said = [];
    tab.on('console', (message) => message.type() === 'error' && said.push(message.text()));
    tab.on('pageerror', (error) => said.push(String(error)));
    await tab.goto(`http://127.0.0.1:${server.address().port}/`);
    await tab.evaluate(async () => { while (!window.show) await new Promise((done) => setTimeout(done, 20)); });
    const answer = await tab.evaluate(([u, e]) => window.show(u, e), [url, errorTarget]);
    answers.push({ ...answer, errors: [...answer.errors, ...said] });
    await tab.close();
  }
} finally {
  await browser.close();
  server.close();
}
console.log(JSON.stringify(answers));
