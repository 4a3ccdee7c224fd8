// What places share that run applications with the packed package.
import assert from 'node:assert/strict';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { must } from '../lib/commands.mjs';

/** Unpacks the tarball where npm would install it in a folder; returns that place. */
export function unpackPackage(tarball, folder) {
  const installed = join(folder, 'node_modules/rollgate');
  rmSync(installed, { recursive: true, force: true });
  mkdirSync(installed, { recursive: true });
  must('tar', ['-xzf', tarball, '-C', installed, '--strip-components=1']);
  return installed;
}

/** Fails unless a client's requests pass up to the limit, one more is refused, and one of another client passes. */
export async function assertLimitsRequests(url, limit, addressHeader) {
  const answers = [];
  for (const client of [...Array(limit + 1).fill('192.0.2.1'), '192.0.2.2']) {
    const headers = { [addressHeader]: client };
    const response = await fetch(url, { headers, signal: AbortSignal.timeout(60_000) });
    await response.text();
    answers.push(response);
  }
  const statuses = answers.map(({ status }) => status);
  assert.deepEqual(statuses, [...Array(limit).fill(200), 429, 200], url);
  assert.match(answers[0].headers.get('ratelimit'), new RegExp(`; r=${limit - 1};`), url);
  assert.match(answers[limit].headers.get('retry-after'), /^\d+$/, url);
}
