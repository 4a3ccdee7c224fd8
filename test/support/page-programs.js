// The programs in README and docs: their code, and ways to run it, in this process or in one of its own.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const RateLimiter = require('../..');
const { serve } = require('./run-program');

const ROOT = path.join(__dirname, '../..');
const LISTEN = /^(app|server)\.listen\(3000, '127\.0\.0\.1'\);$/m;

const readPage = (page) => fs.readFileSync(path.join(ROOT, page), 'utf8');

/** The blocks of Markdown in a language. */
function blocksIn(markdown, language = 'js') {
  const block = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms');
  return [...markdown.matchAll(block)].map(([, code]) => code);
}

const blocksOf = (page, language) => blocksIn(readPage(page), language);

/** The blocks of a page by the heading of their section. */
function blocksByHeading(page) {
  const sections = readPage(page).split(/^## /m).slice(1);
  return new Map(sections.map((section) => [section.split('\n', 1)[0], blocksIn(section)]));
}

const typeOf = (code) => (/^import /m.test(code) ? 'module' : 'commonjs');

/** Serves a program of a page on a free port, in a process of its own, until `stop`; `found` is its URL. */
function serveBlock(code) {
  expect(code).toMatch(LISTEN);
  const print = "console.log('http://127.0.0.1:' + s.address().port)";
  const listening = `const s = $1.listen(0, '127.0.0.1', () => ${print});`;
  const args = [`--input-type=${typeOf(code)}`, '--eval', code.replace(LISTEN, listening)];
  return serve(args, {}, /^http:.*$/m);
}

/** The package as a program gets it, but all limiters have this clock. */
const withClock = (clock) =>
  new Proxy(RateLimiter, {
    apply: (target, _self, [options]) => target({ clock, ...options }),
    get: (target, name) =>
      name === 'rateLimit'
        ? (options) => target.rateLimit({ clock, ...options })
        : Reflect.get(target, name),
  });

/**
 * Runs a program of a page in this process, without the line in which it listens or calls main(), and gives its
 * variables that `names` has. With `clock`, all of its limiters have that.
 */
function load(code, names, { clock, ...globals } = {}) {
  const rollgate = clock === undefined ? RateLimiter : withClock(clock);
  const requireThis = (name) => (name === 'rollgate' ? rollgate : require(name));
  const body = code.replace(LISTEN, '').replace(/^main\(\);$/m, '');
  const parameters = { require: requireThis, exports: {}, ...globals };
  const program = new Function(...Object.keys(parameters), `${body}\nreturn { ${names} };`);
  return program(...Object.values(parameters));
}

module.exports = { blocksByHeading, blocksOf, load, readPage, ROOT, serveBlock, typeOf };
