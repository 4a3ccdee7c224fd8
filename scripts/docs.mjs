// Builds the site of the documentation in build/site: npm run docs [-- --base=/rollgate/]
// A base that is a URL makes the links of llms.txt complete: --base=https://example.org/rollgate/
import { cpSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { root } from './build.mjs';
import { npmFolder } from './caches.mjs';
import { main } from './lib/commands.mjs';
import { isPublished, sidebar, sitePages } from './lib/site-pages.mjs';
import { siteTexts } from './lib/site-texts.mjs';

const VITEPRESS = '1.6.4';

/** Tables of options are wide. */
const STYLE = `
.VPDoc .content-container { max-width: none !important; }
.VPDoc:not(.has-aside) .content { max-width: 1100px !important; }
.vp-doc table { font-size: 14px; }
.vp-doc th, .vp-doc td { padding: 6px 10px; }`;

const source = join(root, 'build/site-source');
const site = join(root, 'build/site');

function write(folder, path, text) {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

/** Images go to the pages that show them, examples are files that the browser shows. */
function copyFiles() {
  for (const folder of ['docs', 'examples']) {
    for (const name of readdirSync(join(root, folder), { recursive: true })) {
      const path = `${folder}/${name}`;
      if (path.includes('node_modules') || !isPublished(path)) continue;
      const target = join(source, 'public', path.replace(/^docs\//, ''));
      if (statSync(join(root, path)).isFile()) cpSync(join(root, path), target);
    }
  }
}

function configuration(base, pages) {
  return {
    base,
    title: 'rollgate',
    description: 'Exact rolling-window rate limiting for Node.js',
    head: [
      ['link', { rel: 'icon', href: 'data:,' }],
      ['style', {}, STYLE],
    ],
    themeConfig: {
      search: { provider: 'local' },
      sidebar: sidebar(root, pages),
      outline: [2, 3],
    },
  };
}

await main('docs', async () => {
  const { values } = parseArgs({ options: { base: { type: 'string', default: '/' } } });
  for (const folder of [source, site]) rmSync(folder, { recursive: true, force: true });
  const pages = sitePages(root);
  for (const { path, text } of pages) write(source, path, text);
  copyFiles();
  const base = values.base.replace(/\/?$/, '/');
  const { pathname } = new URL(base, 'http://localhost');
  const config = JSON.stringify(configuration(pathname, pages), null, 2);
  const anchors = pathToFileURL(join(root, 'scripts/lib/site-pages.mjs'));
  write(
    source,
    '.vitepress/config.mjs',
    `import { anchorOf } from '${anchors}';
export default { ...${config}, markdown: { anchor: { slugify: anchorOf } } };\n`,
  );
  const modules = join(npmFolder('docs', { vitepress: VITEPRESS }), 'node_modules');
  const { build } = await import(pathToFileURL(join(modules, 'vitepress/dist/node/index.js')));
  await build(source, { outDir: site });
  for (const { path, text } of siteTexts(root, pages, base)) write(site, path, text);
  console.log(`docs: the site is in ${site}`);
});
