// Reads the tarball of an npm package: what is in it, and the name by which npm's provenance calls it.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';

const BLOCK = 512;
const REGULAR = new Set(['0', '\0']);

const textAt = (archive, start, length) =>
  archive.toString('utf8', start, start + length).replace(/\0.*$/s, '');

/** The files of a tar archive by their paths, without the folder `package` in which npm packs them. */
function filesIn(archive) {
  const files = new Map();
  for (let at = 0; archive[at] > 0; ) {
    const name = textAt(archive, at, 100);
    const prefix = textAt(archive, at + 345, 155);
    const size = Number.parseInt(textAt(archive, at + 124, 12), 8);
    const type = String.fromCharCode(archive[at + 156]);
    if (!REGULAR.has(type)) throw new Error(`${name}: an entry of type ${type}, not a file`);
    const path = (prefix ? `${prefix}/${name}` : name).replace(/^package\//, '');
    files.set(path, archive.subarray(at + BLOCK, at + BLOCK + size));
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
  }
  return files;
}

/** The file itself, or the only tarball of rollgate in a folder. */
export function tarballAt(path) {
  if (!statSync(path).isDirectory()) return path;
  const names = readdirSync(path).filter((name) => /^rollgate-.*\.tgz$/.test(name));
  if (names.length !== 1) throw new Error(`${path} has ${names.length} tarballs, not 1`);
  return join(path, names[0]);
}

/**
 * @returns {{ files: Map<string, Buffer>, manifest: object, size: number, subject: { name: string, sha512: string },
 *   integrity: string }}
 */
export function readTarball(file) {
  const bytes = readFileSync(file);
  const files = filesIn(gunzipSync(bytes));
  const manifest = JSON.parse(files.get('package.json'));
  const hash = createHash('sha512').update(bytes).digest();
  return {
    files,
    manifest,
    size: bytes.length,
    subject: { name: `pkg:npm/${manifest.name}@${manifest.version}`, sha512: hash.toString('hex') },
    integrity: `sha512-${hash.toString('base64')}`,
  };
}
