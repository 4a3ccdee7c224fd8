// Reads the tarball of the package.
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import os from 'node:os';
import { join, relative } from 'node:path';
import { must } from './commands.mjs';

/** The file itself, or the only tarball of rollgate in a folder. */
export function tarballAt(path) {
  if (!statSync(path).isDirectory()) return path;
  const names = readdirSync(path).filter((name) => /^rollgate-.*\.tgz$/.test(name));
  if (names.length !== 1) throw new Error(`${path} has ${names.length} tarballs, not 1`);
  return join(path, names[0]);
}

/** Calls `use` with an empty folder, which goes then. */
export function inTemporaryFolder(use) {
  const folder = mkdtempSync(join(os.tmpdir(), 'rollgate-release-'));
  try {
    return use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** @returns {{ files: Map<string, Buffer>, manifest: object, size: number, sha512: Buffer }} */
export function readTarball(file) {
  const files = inTemporaryFolder((folder) => {
    must('tar', ['-xzf', file, '-C', folder, '--strip-components=1']);
    const paths = readdirSync(folder, { recursive: true }).map((name) => join(folder, name));
    const inside = paths.filter((path) => statSync(path).isFile());
    return new Map(inside.map((path) => [relative(folder, path), readFileSync(path)]));
  });
  const bytes = readFileSync(file);
  const sha512 = createHash('sha512').update(bytes).digest();
  return { files, manifest: JSON.parse(files.get('package.json')), size: bytes.length, sha512 };
}
