// The site as text, for language models: each page as Markdown, llms.txt (https://llmstxt.org) and llms-full.txt.
import { sidebar } from './site-pages.mjs';

const bodyOf = ({ text }) => text.replace(/^---\n.*?^---\n+/ms, '');
const titleOf = (page) => /^# (.+)$/m.exec(bodyOf(page))[1];
const withoutLinks = (text) => text.replace(/\[([^\]]*)\]\([^)\s]*\)/g, '$1');

/** What a page is about: its first two sentences, or else the first column of its first table. */
function summaryOf(page) {
  const parts = withoutLinks(bodyOf(page))
    .replace(/^```.*?^```$/gms, '')
    .split(/\n{2,}/)
    .map((part) => part.trim());
  const prose = parts.find((part) => /^[\p{L}`"'*]\S* .*[.!?:]$/su.test(part));
  if (prose !== undefined) {
    const sentences = prose
      .replaceAll('\n', ' ')
      .replace(/:$/, '.')
      .split(/(?<=[.!?]) /);
    return sentences.slice(0, 2).join(' ');
  }
  const table = parts.find((part) => part.startsWith('| ')) ?? '';
  const rows = table.split('\n').slice(2);
  return rows.map((row) => row.slice(2).split(' |')[0]).join(', ');
}

/** The pages by section: the overview, then as the sidebar has them, then those that nobody must read. */
function sectionsOf(root, pages) {
  const left = new Map(pages.map((page) => [`/${page.path}`, page]));
  const take = (link) => {
    const path = link.endsWith('/') ? `${link}index.md` : `${link}.md`;
    const page = left.get(path);
    left.delete(path);
    return page ? [page] : [];
  };
  const sections = [{ title: 'Overview', pages: take('/') }];
  for (const { text: title, items } of sidebar(root, pages)) {
    const links = items.flatMap((item) => [item, ...(item.items ?? [])]).map(({ link }) => link);
    sections.push({ title, pages: links.flatMap(take) });
  }
  return [...sections, { title: 'Optional', pages: [...left.values()] }];
}

/**
 * The texts of the site: { path, text }. A `base` of 'https://example.org/rollgate/' makes links that work elsewhere.
 */
export function siteTexts(root, pages, base) {
  const sections = sectionsOf(root, pages);
  const text = (page) => `${bodyOf(page).replaceAll('](/', `](${base}`).trim()}\n`;
  const lineOf = (page) => `- [${titleOf(page)}](${base}${page.path}): ${summaryOf(page)}\n`;
  const contents = sections.map(
    ({ title, pages: own }) => `\n## ${title}\n\n${own.map(lineOf).join('')}`,
  );
  const [{ pages: overview }] = sections;
  const head = `# ${titleOf(overview[0])}\n\n> ${summaryOf(overview[0])}\n`;
  const whole = sections
    .flatMap((section) => section.pages)
    .map((page) => `Page: ${base}${page.path}\n\n${text(page)}`);
  return [
    ...pages.map((page) => ({ path: page.path, text: text(page) })),
    { path: 'llms.txt', text: head + contents.join('') },
    { path: 'llms-full.txt', text: whole.join('\n---\n\n') },
  ];
}
