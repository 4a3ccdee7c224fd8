// The site of `npm run docs`: every page, links that lead somewhere, and a search that finds.
'use strict';

const { execFile } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { promisify } = require('node:util');
const express = require('express');
const { listen } = require('../middleware/apps');
const { launchBrowser } = require('../support/browser');
const { patient } = require('../support/tiers');

const ROOT = path.join(__dirname, '../..');
const SITE = path.join(ROOT, 'build/site');
const BUILD_MS = patient(300_000);

const read = (page) => fs.readFileSync(path.join(SITE, page), 'utf8');

let pages;

beforeAll(async () => {
  const program = path.join(ROOT, 'scripts/docs.mjs');
  await promisify(execFile)(process.execPath, [program], { timeout: BUILD_MS });
  const files = fs.readdirSync(SITE, { recursive: true });
  pages = files.filter((name) => name.endsWith('.html') && name !== 'playground.html');
}, BUILD_MS);

/** The file of the site that a link of a page leads to, and the anchor. */
function targetOf(page, link) {
  const [to, anchor] = link.split('#');
  if (to === '') return { file: page, anchor };
  const file = to.startsWith('/') ? to.slice(1) : path.join(path.dirname(page), to);
  const isFolder = file === '' || file.endsWith('/');
  return { file: isFolder ? `${file}index.html` : file, anchor };
}

test('has a page for each page of docs, and one for each group of options', () => {
  const ofDocs = fs.readdirSync(path.join(ROOT, 'docs')).filter((name) => name.endsWith('.md'));
  const whole = ofDocs.filter((name) => !['api.md', 'middleware.md'].includes(name));
  const expected = whole.map((name) => name.replace(/md$/, 'html'));
  const headings = (file) =>
    fs.readFileSync(path.join(ROOT, file), 'utf8').match(/^## Option.*$/gm);
  const groups = headings('docs/api.md').map((heading) => heading.slice(3).toLowerCase());
  expect(groups).toContain('options of redis');
  const ofGroups = groups.map((name) => `api/${name.replace(/,/g, '').replaceAll(' ', '-')}.html`);
  expect(pages).toEqual(expect.arrayContaining([...expected, ...ofGroups, 'index.html']));
});

test('every link leads to a page and a section', () => {
  const idsOf = new Map();
  const hasId = (file, id) => {
    if (!idsOf.has(file)) {
      idsOf.set(
        file,
        new Set([...read(file).matchAll(/ id="([^"]+)"/g)].map(([, found]) => found)),
      );
    }
    return idsOf.get(file).has(decodeURIComponent(id));
  };
  const broken = [];
  let count = 0;
  for (const page of pages) {
    for (const [, link] of read(page).matchAll(/<a [^>]*href="([^"]+)"/g)) {
      if (/^[a-z]+:/.test(link)) continue;
      count += 1;
      const { file, anchor } = targetOf(page, link);
      const isThere = fs.existsSync(path.join(SITE, file));
      if (!isThere || (anchor && !hasId(file, anchor))) broken.push(`${page}: ${link}`);
    }
  }
  expect(broken).toEqual([]);
  expect(count).toBeGreaterThan(1000);
});

test('every page is in the sidebar, but for those that the README does not link', () => {
  const linked = [...read('index.html').matchAll(/href="\/([^"#]+)["#]/g)].map(([, to]) => to);
  const missing = pages.filter((page) => {
    const isInside = linked.some((to) => to.endsWith('/') && page.startsWith(to));
    return !isInside && !linked.includes(page) && !page.startsWith('design/');
  });
  expect(missing.sort()).toEqual(['404.html', 'index.html']);
});

test('the search finds an option, in a browser without errors', async () => {
  const port = await listen(express().use(express.static(SITE)));
  const browser = await launchBrowser();
  try {
    const page = await browser.newPage();
    const errors = [];
    page.on('pageerror', (error) => errors.push(error.message));
    page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
    await page.goto(`http://127.0.0.1:${port}/api/options-of-redis.html`);
    await page.click('.DocSearch-Button');
    await page.fill('.VPLocalSearchBox input', 'sentinelUsername');
    await page.click('.VPLocalSearchBox .results a >> text=/Options of redis/');
    await page.waitForSelector('h1:has-text("Options of redis")');
    expect(errors).toEqual([]);
  } finally {
    await browser.close();
  }
});
