// Draws the pictures of docs/algorithms.md from real runs: node scripts/draw-algorithms.mjs [folder].
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './build.mjs';
import { picture } from './lib/algorithm-picture.mjs';
import { ALGORITHMS, hasEdges, run } from './lib/algorithm-runs.mjs';

const folder = process.argv[2] ?? join(root, 'docs/images');

for (const algorithm of ALGORITHMS) {
  const svg = picture(algorithm, run(algorithm), { hasEdges: hasEdges(algorithm) });
  writeFileSync(join(folder, `${algorithm}.svg`), svg);
}
