// Links of the documentation lead to files and sections that exist, and every page can be reached.
'use strict';

const fs = require('node:fs');
const path = require('node:path');

const root = path.join(__dirname, '../..');
const pages = [
  ...fs.readdirSync(root),
  ...fs.readdirSync(path.join(root, 'docs'), { recursive: true }).map((name) => `docs/${name}`),
  'examples/README.md',
].filter((name) => name.endsWith('.md'));

/** The text of a page without its code, in which brackets are not links. */
const proseOf = (page) =>
  fs
    .readFileSync(path.join(root, page), 'utf8')
    .replace(/^```.*?^```$/gms, '')
    .replace(/`[^`\n]*`/g, (code) => code.replace(/[[\]()]/g, ''));

/** The anchors that GitHub gives to the headings of a page. */
function anchorsOf(page) {
  const headings = [...proseOf(page).matchAll(/^#+ (.+)$/gm)].map(([, heading]) => heading);
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

const linksOf = (page) =>
  [...proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, to]) => to)
    .filter((to) => !/^[a-z]+:/.test(to))
    .map((to) => {
      const [file, anchor] = to.split('#');
      return { to, file: file ? path.join(path.dirname(page), file) : page, anchor };
    });

test.each(pages)('%s: every link leads to a file and a section', (page) => {
  const broken = linksOf(page).filter(
    ({ file, anchor }) =>
      !fs.existsSync(path.join(root, file)) || (anchor && !anchorsOf(file).includes(anchor)),
  );
  expect(broken.map(({ to }) => to)).toEqual([]);
});

const pagesForMaintainers = pages.filter((page) =>
  /^(ARCHITECTURE|CONTRIBUTING|docs.design.*)\.md$/.test(page),
);

test.each(pagesForMaintainers)('%s: every file that it names exists', (page) => {
  const paths = fs
    .readFileSync(path.join(root, page), 'utf8')
    .matchAll(/`((?:src|lib|test|scripts|bench|cmake|docs)\/[\w./-]+)`/g);
  const named = [...paths].map(([, file]) => file);
  expect(named.filter((file) => !fs.existsSync(path.join(root, file)))).toEqual([]);
});

test('every page of docs can be reached from the README', () => {
  const reached = new Set();
  const toVisit = ['README.md'];
  while (toVisit.length > 0) {
    const page = toVisit.pop();
    if (reached.has(page)) continue;
    reached.add(page);
    toVisit.push(
      ...linksOf(page)
        .map(({ file }) => file)
        .filter((file) => pages.includes(file)),
    );
  }
  expect(pages.filter((page) => page.startsWith('docs/') && !reached.has(page))).toEqual([]);
});
