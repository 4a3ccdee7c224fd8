// Writes the page of `npm start` as one file, docs/playground.html: npm run page. It contains the package as browsers
// get it, with the WebAssembly module, so it works from any folder or static host.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, posix, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from './build.mjs';

const folder = 'examples/start/page';
const entry = `${folder}/app.js`;
const embedded = 'lib/native/wasm/embedded.js';
const result = join(root, 'docs/playground.html');

const read = (file) => readFileSync(join(root, file), 'utf8');

const { exports: entries, imports } = JSON.parse(read('package.json'));

/** The file of what package.json maps for browsers. */
const forBrowsers = ({ browser, default: others }) =>
  posix.normalize(browser?.default ?? browser ?? others);

/** The file that a `require` of another file means, from the root. */
function resolved(name, from) {
  if (name.startsWith('#')) return forBrowsers(imports[name]);
  const path = relative(root, resolve(root, dirname(from), name)).replaceAll('\\', '/') || '.';
  const candidates = [
    entries[path] && forBrowsers(entries[path]),
    path,
    `${path}.js`,
    `${path}/index.js`,
  ];
  const found = candidates.find((file) => file?.endsWith('.js') && isFile(file));
  if (found === undefined)
    throw new Error(`${from} requires ${name}, which is no file of the page`);
  return found;
}

/** The module is built, so its file may be missing. */
const isFile = (file) => file === embedded || existsSync(join(root, file));

/** All files that this one requires, itself included, with requires that name files from the root. */
function collect(file, module, modules = new Map()) {
  if (modules.has(file)) return modules;
  const names = [];
  const source = file === embedded ? module : read(file);
  const text = source.replace(/\brequire\('([.#][^']*)'\)/g, (_, name) => {
    names.push(resolved(name, file));
    return `require('${names.at(-1)}')`;
  });
  modules.set(file, text);
  for (const name of names) collect(name, module, modules);
  return modules;
}

function script(module) {
  const files = [...collect(entry, module)].map(
    ([file, text]) => `'${file}'(module, exports, require) {\n${text}},\n`,
  );
  return `const files = {
${files.join('')}};
const loaded = {};
function require(file) {
  if (!Object.hasOwn(loaded, file)) {
    loaded[file] = { exports: {} };
    files[file](loaded[file], loaded[file].exports, require);
  }
  return loaded[file].exports;
}
require('${entry}');
`;
}

const dataUrl = (svg) => `data:image/svg+xml;base64,${Buffer.from(svg).toString('base64')}`;

/**
 * The page as one file.
 *
 * @param {string} module the text of lib/native/wasm/embedded.js
 */
export function page(module) {
  const code = script(module);
  if (/<\/script|<!--/i.test(code)) throw new Error('a script would end early');
  const icon = dataUrl(read(`${folder}/icon.svg`));
  const parts = {
    '<link rel="stylesheet" href="style.css">': `<style>\n${read(`${folder}/style.css`)}</style>`,
    '<script type="module" src="app.js"></script>': `<script type="module">\n${code}</script>`,
    'href="icon.svg"': `href="${icon}"`,
    'src="icon.svg"': `src="${icon}"`,
  };
  let html = read(`${folder}/page.html`);
  for (const [placeholder, part] of Object.entries(parts)) {
    if (!html.includes(placeholder)) throw new Error(`page.html has no ${placeholder}`);
    html = html.replace(placeholder, () => part);
  }
  return html;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (!existsSync(join(root, embedded))) {
    console.error(`page: there is no ${embedded}; npm run build:wasm makes it`);
    process.exit(1);
  }
  writeFileSync(result, page(read(embedded)));
}
