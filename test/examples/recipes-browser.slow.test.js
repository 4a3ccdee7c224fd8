// The recipe for pages of another origin, in a real browser.
'use strict';

const { launchBrowser } = require('../support/browser');
const { load } = require('../support/page-programs');
const { codeOf, listen } = require('./recipes');

const describeInBrowser = process.env.ROLLGATE_SANITIZED ? describe.skip : describe;

/** Orders by the page's fetch: what it may read of each answer, or the name of the error. Runs in the page. */
async function order([url, times]) {
  const answers = [];
  for (let i = 0; i < times; i++) {
    const headers = { 'Content-Type': 'application/json' };
    try {
      const response = await fetch(url, { method: 'POST', headers, body: '{}' });
      const shown = ['Retry-After', 'RateLimit'].map((name) => response.headers.get(name));
      answers.push([response.status, ...shown]);
    } catch (error) {
      answers.push(error.name);
    }
  }
  return answers;
}

describeInBrowser('pages of another origin', () => {
  let browser;
  let origin;
  beforeAll(async () => {
    const page = (_req, res) => res.setHeader('Content-Type', 'text/html').end('<!doctype html>');
    origin = await listen(page);
    browser = await launchBrowser();
  });
  afterAll(() => browser?.close());

  /** What a page sees of orders under a limit of 2; the origin of the page is one of ORIGINS unless it `isForeign`. */
  async function orders(times, { exchanges = [], isForeign = false } = {}) {
    const code = codeOf('Pages of another origin', ['limit: 100', 'limit: 2'], ...exchanges);
    const { app, ORIGINS } = load(code, 'app, ORIGINS', { clock: () => 0 });
    if (!isForeign) ORIGINS.push(origin);
    const url = await listen(app);
    const page = await browser.newPage();
    try {
      await page.goto(origin);
      return await page.evaluate(order, [`${url}/orders`, times]);
    } finally {
      await page.close();
    }
  }

  test('a page reads refusals and their headers, and preflights do not count', async () => {
    expect(await orders(3)).toEqual([
      [200, null, '"2-in-1min"; r=1; t=60'],
      [200, null, '"2-in-1min"; r=0; t=60'],
      [429, '60', '"2-in-1min"; r=0; t=60'],
    ]);
  });

  test('a page of an origin that is not listed reads nothing', async () => {
    expect(await orders(1, { isForeign: true })).toEqual(['TypeError']);
  });

  test('each mistake has the effect that the recipe names', async () => {
    const late = [
      ['app.use(cors); // before the limiter\n', ''],
      ['\napp.post', '\napp.use(cors);\napp.post'],
    ];
    // The preflight counts; then the order does; then both are refused, without a header of CORS.
    expect(await orders(2, { exchanges: late })).toEqual([
      expect.arrayContaining([200]),
      'TypeError',
    ]);
    const silent = ["'RateLimit, RateLimit-Policy, Retry-After'", "''"];
    expect(await orders(3, { exchanges: [silent] })).toEqual([
      [200, null, null],
      [200, null, null],
      [429, null, null],
    ]);
  });
});
