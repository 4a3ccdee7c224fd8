// Finds files of the project by folder and name.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../build.mjs';

/** Whether Jest or GoogleTest runs this file. */
export const isTest = (file) => /([.]test[.]js|_test[.]cc)$/.test(file);

/** The files below a folder whose names match, as paths from the project's root; not those of node_modules. */
export function filesBelow(folder, pattern) {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return entry.name === 'node_modules' ? [] : filesBelow(path, pattern);
    return entry.isFile() && pattern.test(entry.name) ? [path] : [];
  });
}
