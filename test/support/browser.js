// A headless Chromium for tests: CHROME_PATH, or the first on PATH.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { chromium } = require('playwright-core');

const FLAGS = [
  ...['--headless', '--no-sandbox', '--no-first-run', '--disable-gpu', '--disable-quic'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
];

function findBrowser() {
  if (process.env.CHROME_PATH) return process.env.CHROME_PATH;
  const folders = (process.env.PATH ?? '').split(path.delimiter);
  return ['chromium', 'chromium-browser', 'google-chrome']
    .flatMap((name) => folders.map((folder) => path.join(folder, name)))
    .find((file) => fs.existsSync(file));
}

function launchBrowser() {
  const executablePath = findBrowser();
  if (executablePath === undefined) {
    throw new Error('no Chromium found: install it, or name it in CHROME_PATH');
  }
  return chromium.launch({ executablePath, args: FLAGS });
}

module.exports = { launchBrowser };
