// The pages of the site of `npm run docs`: the Markdown files of the project, with links that fit, and its sidebar.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, extname, join, normalize } from 'node:path';

/** Pages of the project that the site has besides docs/: the file, and its place in the site. */
const OUTSIDE_OF_DOCS = {
  'README.md': 'index.md',
  'examples/README.md': 'examples/index.md',
  'ARCHITECTURE.md': 'architecture.md',
  'CONTRIBUTING.md': 'contributing.md',
  'CHANGELOG.md': 'changelog.md',
  'SECURITY.md': 'security-policy.md',
};

/** Long references, of which each section is a page. */
const BY_SECTION = ['docs/api.md', 'docs/middleware.md'];

/** The anchor that a heading gets on GitHub. */
export const anchorOf = (heading) =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');

/** Replaces what is no code by `replace(text)`: neither a block nor a part of a line between backquotes. */
function outsideOfCode(markdown, replace) {
  const parts = markdown.split(/(^```.*?^```$|`[^`\n]+`)/gms);
  return parts.map((part, i) => (i % 2 === 0 ? replace(part) : part)).join('');
}

/** Links of Markdown; their text may have brackets in code. */
const LINK = /\]\(([^)\s]+)\)/g;

/** A file of the project as a list of pages of the site: { path, text, title }. */
function pagesOf(file, text) {
  if (!BY_SECTION.includes(file)) return [{ path: placeOf(file), text }];
  const folder = basename(file, '.md');
  const [first, ...sections] = outsideOfCode(text, (part) => part.replace(/^## /gm, '\0## ')).split(
    '\0',
  );
  const pages = sections.map((section) => {
    const [, heading] = /^## (.+)$/m.exec(section);
    const page = outsideOfCode(section, (part) => part.replace(/^#(#+ )/gm, '$1'));
    const text = `---\naside: false\n---\n\n${page}`;
    return { path: `${folder}/${anchorOf(heading)}.md`, title: heading, text };
  });
  const contents = pages.map(({ path, title }) => `- [${title}](/${path})`).join('\n');
  return [{ path: `${folder}/index.md`, text: `${first}\n${contents}\n` }, ...pages];
}

function placeOf(file) {
  return OUTSIDE_OF_DOCS[file] ?? file.replace(/^docs\//, '');
}

/** Where a link of a file leads in the site; undefined if the site does not have it. */
function targetOf(root, file, link) {
  const [to, anchor] = link.split('#');
  const path = to === '' ? file : normalize(join(dirname(file), to)).replace(/\/$/, '');
  const readme = `${path}/README.md`;
  if (readme in OUTSIDE_OF_DOCS) return `/${placeOf(readme)}`;
  const hash = anchor === undefined ? '' : `#${anchor}`;
  if (!existsSync(join(root, path))) throw new Error(`${file} links to ${link}, which is missing`);
  if (extname(path) !== '.md')
    return isPublished(path) ? `/${path.replace(/^docs\//, '')}` : undefined;
  if (!BY_SECTION.includes(path)) return `/${placeOf(path)}${hash}`;
  const folder = basename(path, '.md');
  if (anchor === undefined) return `/${folder}/index.md`;
  const text = readFileSync(join(root, path), 'utf8');
  const section = pagesOf(path, text).find(
    ({ path: page, text: own }) => page.endsWith(`/${anchor}.md`) || hasHeading(own, anchor),
  );
  return section.path.endsWith(`/${anchor}.md`) ? `/${section.path}` : `/${section.path}${hash}`;
}

const hasHeading = (text, anchor) =>
  [...text.matchAll(/^#+ (.+)$/gm)].some(([, heading]) => anchorOf(heading) === anchor);

/** Files that pages link to or show, besides pages. */
export const isPublished = (path) =>
  /^docs\/.+\.(svg|png|html)$/.test(path) || /^examples\/.+\.(m?js|ts|json)$/.test(path);

/** A link that leads nowhere in the site becomes its text. */
function withLinksOfSite(root, file, text) {
  const lost = /(?<!!)\[([^\]]*)\]\(\0\)/g;
  const linked = outsideOfCode(text, (part) =>
    part.replace(LINK, (whole, link) => {
      if (/^([a-z]+:|\/)/.test(link)) return whole;
      return `](${targetOf(root, file, link) ?? '\0'})`;
    }),
  );
  return linked.replace(lost, '$1');
}

/** The pages of the site: { path, text }. */
export function sitePages(root) {
  const docs = readdirSync(join(root, 'docs'), { recursive: true })
    .map((name) => `docs/${name}`)
    .filter((name) => name.endsWith('.md'));
  return [...Object.keys(OUTSIDE_OF_DOCS), ...docs].flatMap((file) => {
    const text = readFileSync(join(root, file), 'utf8');
    return pagesOf(file, text).map((page) => {
      return { ...page, text: withLinksOfSite(root, file, page.text) };
    });
  });
}

/** The sidebar: the table of the README's section Documentation, with the sections of references. */
export function sidebar(root, pages) {
  const readme = readFileSync(join(root, 'README.md'), 'utf8');
  const table = readme.split(/^## /m).find((section) => section.startsWith('Documentation\n'));
  return [...table.matchAll(/^\| ([^|]+) \| (.+) \|$/gm)].map(([, group, links]) => {
    const items = [...links.matchAll(/\[([^\]]+)\]\(([^)\s]+)\)/g)].map(([, title, link]) =>
      entryOf(root, pages, capitalised(title), link),
    );
    return { text: capitalised(group), items: items.filter(({ link }) => link !== undefined) };
  });
}

function entryOf(root, pages, text, to) {
  const link = targetOf(root, 'README.md', to)?.replace(/(index)?\.md/, '');
  const inside = pages.filter(({ path, title }) => title && `/${path}`.startsWith(link));
  if (!link?.endsWith('/') || inside.length === 0) return { text, link };
  const items = inside.map(({ path, title }) => {
    return { text: title, link: `/${path.replace(/\.md$/, '')}` };
  });
  return { text, link, collapsed: true, items };
}

const capitalised = (text) => text[0].toUpperCase() + text.slice(1);
