// The start page in a real browser: what it draws is what the server answered.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { launchBrowser } = require('../support/browser');
const { patient } = require('../support/tiers');
const { serveExample, stop } = require('../support/run-program');

const SCREENSHOTS = path.join(__dirname, '..', '..', 'build', 'screenshots');
const SHORT_INTERVAL_MS = patient(3000);

// A sanitized addon is too slow for the page's clocks, and its preloaded library breaks the browser.
const describeInBrowser = process.env.ROLLGATE_SANITIZED ? describe.skip : describe;

describeInBrowser('the start page', () => {
  jest.setTimeout(patient(60_000));
  let browser;
  let server;
  let page;
  let complaints;

  beforeAll(async () => {
    fs.mkdirSync(SCREENSHOTS, { recursive: true });
    browser = await launchBrowser();
  });
  afterAll(() => browser?.close());

  beforeEach(() => startServer());
  afterEach(async () => {
    await page?.close();
    await stop(server);
    expect(complaints).toEqual([]);
  });

  async function startServer(env) {
    server = await serveExample('start/server.js', env);
  }

  async function open(options) {
    page = await browser.newPage({ viewport: { width: 1280, height: 1000 }, ...options });
    complaints = [];
    page.on('pageerror', (error) => complaints.push(String(error)));
    page.on('console', (message) => {
      // The browser itself notes each refusal in its console: that one is no complaint.
      const isRefusal = /status of 429/.test(message.text());
      if (message.type() === 'error' && !isRefusal) complaints.push(message.text());
    });
    page.on('request', (request) => {
      if (!request.url().startsWith(`${server.url}/`) && !request.url().startsWith('data:')) {
        complaints.push(`asked elsewhere: ${request.url()}`);
      }
    });
    await page.goto(`${server.url}/`);
    await page.locator('#verdict[data-state="open"]').waitFor();
  }

  /** Clicks the one-shot button; what the server answered. */
  async function sendOne() {
    const [response] = await Promise.all([
      page.waitForResponse((candidate) => /\/api\/(action|lenient)$/.test(candidate.url())),
      page.click('#send-one'),
    ]);
    const decision = await response.json();
    await page.locator(`.mark[data-n="${decision.n}"]`).waitFor({ state: 'attached' });
    await page.locator(`#last-status[data-n="${decision.n}"]`).waitFor();
    return { status: response.status(), headers: response.headers(), decision };
  }

  async function sendTimes(times) {
    const answers = [];
    for (let i = 0; i < times; i++) answers.push(await sendOne());
    return answers;
  }

  const text = (selector) => page.locator(selector).textContent();

  /** The marks from the oldest to the newest, with the colours that are really on screen. */
  const marks = () =>
    page.$$eval('.mark', (elements) =>
      elements
        .map((element) => ({
          n: Number(element.dataset.n),
          outcome: element.dataset.outcome,
          state: element.dataset.state,
          colour: getComputedStyle(element.querySelector('line')).stroke,
          x: new DOMMatrix(getComputedStyle(element).transform).e,
        }))
        .sort((a, b) => a.n - b.n),
    );

  async function expectAsAnswered({ status, headers, decision }) {
    const [window] = decision.limits;
    expect(await text('#used')).toBe(String(window.used));
    expect(await text('#remaining')).toBe(String(window.remaining));
    expect(await text('#last-status')).toContain(String(status));
    const shown = await page.$$eval('#last-headers div', (rows) =>
      rows.map((row) => [...row.children].map((cell) => cell.textContent)),
    );
    for (const [name, value] of shown) expect(headers[name.toLowerCase()]).toBe(value);
    expect(shown.map(([name]) => name)).toContain('X-RateLimit-Remaining');
    expect(shown.some(([name]) => name === 'Retry-After')).toBe(status === 429);
  }

  test('draws each answer as a mark, and the counts and headers that came with it', async () => {
    await open();
    const answers = [];
    for (let i = 0; i < 6; i++) {
      answers.push(await sendOne());
      await expectAsAnswered(answers[i]);
    }
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 429]);

    const drawn = await marks();
    expect(drawn.map(({ n, outcome }) => [n, outcome])).toEqual(
      answers.map(({ decision }) => [decision.n, decision.allowed ? 'allowed' : 'refused']),
    );
    // The refusal counts, so that it has taken the place of the first action.
    expect(drawn.map(({ state }) => state)).toEqual(['uncounted', ...Array(5).fill('counted')]);
    const colours = new Set(drawn.map(({ outcome, colour }) => `${outcome} ${colour}`));
    expect(colours.size).toBe(2);
    expect(new Set(drawn.map(({ colour }) => colour)).size).toBe(2);

    expect(await text('#allowed-count')).toBe('5');
    expect(await text('#refused-count')).toBe('1');
    expect(await text('#announcement')).toMatch(/^(Allowed|Refused), /);
    await page.screenshot({ path: path.join(SCREENSHOTS, 'full.png') });
  });

  test('counts the time left down, and is open again exactly when the server is', async () => {
    await stop(server);
    await startServer({ INTERVAL_MS: String(SHORT_INTERVAL_MS) });
    await open();
    await page.check('input[value="lenient"]', { force: true });
    const answers = await sendTimes(6);
    const { timeLeft } = answers[5].decision;
    const answeredAt = performance.now();
    const shownMs = Number(await text('#time-left')) * 1000;
    const elapsed = performance.now() - answeredAt;
    expect(shownMs).toBeLessThanOrEqual(timeLeft + 100);
    expect(shownMs).toBeGreaterThan(timeLeft - elapsed - 1000);

    const [before] = (await marks()).slice(-1);
    await page.waitForTimeout(500);
    const [after] = (await marks()).slice(-1);
    expect(after.x).toBeLessThan(before.x);
    expect(Number(await text('#time-left')) * 1000).toBeLessThan(shownMs);

    await page
      .locator('#verdict[data-state="open"]')
      .waitFor({ timeout: SHORT_INTERVAL_MS + patient(10_000) });
    expect((await sendOne()).status).toBe(200);
    await page.locator('.mark[data-state="left"]').first().waitFor({ state: 'attached' });
    await page.screenshot({ path: path.join(SCREENSHOTS, 'rolled.png') });
  });

  test('the two routes are two windows: refusals count in one and leave no trace in the other', async () => {
    await open();
    const states = async () => (await marks()).map(({ outcome, state }) => `${outcome} ${state}`);
    await sendTimes(7);
    expect((await states()).slice(-2)).toEqual(['refused counted', 'refused counted']);
    await page.check('input[value="lenient"]', { force: true });
    await page.locator('#verdict[data-state="open"]').waitFor();
    expect(await text('#curl')).toBe(`curl -i ${server.url}/api/lenient`);
    const answers = await sendTimes(7);
    expect((await states()).slice(-2)).toEqual(['refused uncounted', 'refused uncounted']);
    await expectAsAnswered(answers[6]);
  });

  test('sends at the chosen pace until it is stopped', async () => {
    await open();
    await page.evaluate(() => {
      globalThis.sent = 0;
      const send = globalThis.fetch;
      globalThis.fetch = (...request) => {
        globalThis.sent++;
        return send(...request);
      };
    });
    await page.fill('#pace', '100');
    expect(await text('#pace-text')).toBe('10 per second');
    await page.click('#start-stop');
    expect(await text('#start-stop')).toBe('Stop');
    await page.locator('.mark').nth(9).waitFor({ state: 'attached' });
    await page.click('#start-stop');
    // Answers may still be on their way, so the requests are counted.
    const sent = await page.evaluate('sent');
    expect(sent).toBeGreaterThanOrEqual(10);
    await page.waitForTimeout(500);
    expect(await page.evaluate('sent')).toBe(sent);
  });

  test('shows requests from elsewhere, also those made before it was opened', async () => {
    await fetch(`${server.url}/api/action`);
    await open();
    await page.locator('.mark').first().waitFor({ state: 'attached' });
    await fetch(`${server.url}/api/action`);
    await page.locator('.mark').nth(1).waitFor({ state: 'attached' });
    await page.waitForFunction(() => document.querySelector('#used').textContent === '2');
    expect((await sendOne()).decision.limits[0].used).toBe(3);
    expect(await text('#used')).toBe('3');
  });

  test('says so when the server is gone', async () => {
    await open();
    await stop(server);
    await page.locator('#verdict[data-state="lost"]').waitFor();
    await page.click('#send-one');
    await page.locator('#last-status', { hasText: 'no answer' }).waitFor();
    complaints = []; // about the requests without an answer
  });

  test.each([
    ['desktop', 1280, 1000, 'light'],
    ['desktop', 1280, 1000, 'dark'],
    ['mobile', 360, 800, 'light'],
    ['mobile', 360, 800, 'dark'],
  ])('fits a %s screen of %i x %i in %s', async (name, width, height, colorScheme) => {
    await open({ viewport: { width, height }, colorScheme });
    await sendTimes(7);
    const { overflow, unlabelled } = await page.evaluate(() => ({
      overflow: document.documentElement.scrollWidth - window.innerWidth,
      unlabelled: [...document.querySelectorAll('button, input')].filter(
        (control) => control.textContent.trim() === '' && (control.labels?.length ?? 0) === 0,
      ).length,
    }));
    expect(overflow).toBeLessThanOrEqual(0);
    expect(unlabelled).toBe(0);
    await page.screenshot({
      path: path.join(SCREENSHOTS, `${name}-${colorScheme}.png`),
      fullPage: true,
    });
  });
});
