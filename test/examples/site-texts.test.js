// The texts of the site for language models: llms.txt and llms-full.txt have every page once, and links that resolve.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { askProgram } = require('../support/run-program');

const ROOT = path.join(__dirname, '../..');
const BASE = 'https://example.org/rollgate/';

const PROGRAM = `
  import { anchorOf, sitePages } from './scripts/lib/site-pages.mjs';
  import { siteTexts } from './scripts/lib/site-texts.mjs';
  const pages = sitePages('.');
  const anchors = ({ text }) => [...text.matchAll(/^#+ (.+)$/gm)].map(([, title]) => anchorOf(title));
  console.log(JSON.stringify({
    anchors: pages.map((page) => [page.path, anchors(page)]),
    texts: siteTexts('.', pages, '${BASE}').map(({ path, text }) => [path, text]),
  }));`;

let pages;
let anchors;
let texts;

beforeAll(async () => {
  const site = await askProgram(PROGRAM, { type: 'module' });
  anchors = new Map(site.anchors);
  texts = new Map(site.texts);
  pages = [...anchors.keys()].sort();
});

const linksOf = (text) =>
  [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link).filter((to) => to !== '...');

// Kills: a page that the README links twice is listed twice; one that it does not link is left out.
test('llms.txt has each page once, with a line that says what it is about', () => {
  const lines = texts.get('llms.txt').match(/^- .+$/gm);
  const entries = lines.map((line) => /^- \[.+?\]\((.+?)\): \S.*[^:,]$/.exec(line)?.[1]);
  expect(entries.sort()).toEqual(pages.map((page) => BASE + page));
});

// Kills: llms-full.txt has the contents of sections, but not those of pages outside of the sidebar.
test('llms-full.txt has each page once, and all of it', () => {
  const whole = texts.get('llms-full.txt');
  const named = [...whole.matchAll(/^Page: (\S+)$/gm)].map(([, page]) => page);
  expect(named.sort()).toEqual(pages.map((page) => BASE + page));
  const missing = pages.filter(
    (page) => whole.split(`Page: ${BASE}${page}\n\n${texts.get(page)}`).length !== 2,
  );
  expect(missing).toEqual([]);
});

// Kills: the lines for the site's own builder stay in the text of a page.
test('a page is its Markdown, from its title on', () => {
  const others = pages.filter((page) => !/^# \S/.test(texts.get(page)));
  expect(others).toEqual([]);
});

/** Whether the site has what a link of a page leads to. */
function resolves(page, link) {
  const { href, hash } = new URL(link, BASE + page);
  const to = href.replace(BASE, '').replace(/#.*/, '');
  if (pages.includes(to)) return hash === '' || anchors.get(to).includes(hash.slice(1));
  return ['', 'docs/'].some((folder) => fs.existsSync(path.join(ROOT, folder, to)));
}

// Kills: links that begin at the host's root, where the site need not be.
test('every link leads to a page and a section of the site, or to a file that it has', () => {
  const broken = [];
  let count = 0;
  for (const [page, text] of texts) {
    for (const link of linksOf(text)) {
      const isOutside = /^[a-z]+:/.test(link) && !link.startsWith(BASE);
      if (isOutside) continue;
      count += 1;
      if (link.startsWith('/') || !resolves(page, link)) broken.push(`${page}: ${link}`);
    }
  }
  expect(broken).toEqual([]);
  expect(count).toBeGreaterThan(1000);
});
