// The start page in a real browser: what its lanes show is what the algorithms decide, and its controls work.
'use strict';

const { limiterCode, slotsCode } = require('../../examples/start/page/code');
const { runLeases } = require('../../examples/start/page/leases');
const { ALGORITHMS, mostInAnyWindow, simulate } = require('../../examples/start/page/simulation');
const { mostAtOnce, runningAt, runSlots } = require('../../examples/start/page/slots');
const { serveExample, stop } = require('../support/run-program');
const { choose, readLanes, readSlots, usePage } = require('../support/start-page');
const { patient } = require('../support/tiers');

const BURST = { preset: 'burst', limit: 5, windowMs: 10_000, countBlocked: false };
const PRESETS = ['burst', 'steady', 'polite', 'attacker', 'shared', 'separate', 'leases'];
/** A preset may raise the limit. */
const limitOf = (preset) => (preset === 'leases' ? 20 : BURST.limit);

// A sanitized addon is too slow for a page that is watched, and its preloaded library breaks the browser.
const describeInBrowser = process.env.ROLLGATE_SANITIZED ? describe.skip : describe;

/** What lanes show at the end of a run, computed here by the addon. */
const lanesOf = (settings) =>
  simulate(settings).map((requests, i) => {
    const { count } = mostInAnyWindow(requests, settings.windowMs);
    const allowed = requests.filter(({ decision }) => decision.allowed).length;
    return {
      algorithm: ALGORITHMS[i].name,
      most: count,
      isOver: count > settings.limit,
      bracket: `${count} in ${settings.windowMs / 1000} s`,
      tally: `${allowed} allowed, ${requests.length - allowed} refused`,
      requests: requests.map(({ client, decision }) => ({
        client,
        isAllowed: decision.allowed,
        symbol: (decision.allowed ? ['#dot', '#diamond'] : ['#cross', '#plus'])[client],
        label: expect.stringContaining(`${decision.limits[0].used} used`),
      })),
    };
  });

describeInBrowser('the start page', () => {
  jest.setTimeout(patient(60_000));
  let server;
  let page;
  const open = usePage(
    (opened) => {
      page = opened;
    },
    () => `${server.url}/`,
  );

  beforeEach(async () => {
    server = await serveExample('start/server.js', { INTERVAL_MS: '600000', MAX: '3' });
  });
  afterEach(() => stop(server));

  const text = (selector) => page.locator(selector).textContent();
  const lanes = () => readLanes(page);
  const focusFirst = (algorithm) => page.focus(`[data-algorithm="${algorithm}"] [tabindex="0"]`);
  const focusedLabel = () => page.evaluate(() => document.activeElement.ariaLabel);

  test.each(PRESETS)(
    'draws for %s what the algorithms decide, and never too many bars',
    async (preset) => {
      await open();
      await page.click(`#presets [value="${preset}"]`);
      expect(await page.getAttribute(`#presets [value="${preset}"]`, 'aria-pressed')).toBe('true');
      const countBlocked = await page.isChecked('#count-blocked');
      expect(countBlocked).toBe(preset === 'attacker');
      const settings = { ...BURST, preset, limit: limitOf(preset) };
      for (const counts of [countBlocked, !countBlocked]) {
        await page.setChecked('#count-blocked', counts);
        expect(await lanes()).toEqual(lanesOf({ ...settings, countBlocked: counts }));
      }
      const processes = ['shared', 'separate', 'leases'].includes(preset) ? 2 : 1;
      for (const max of [3, 1, 5]) {
        await choose(page, 'max', max);
        const expected = runSlots({ ...settings, max });
        const { requests, ...shown } = await readSlots(page);
        const allowed = expected.filter(({ decision }) => decision.allowed).length;
        expect(shown).toMatchObject({
          most: mostAtOnce(expected),
          running: runningAt(expected, 30_000),
          tally: `${allowed} allowed, ${expected.length - allowed} refused`,
          isOver: mostAtOnce(expected) > max,
          slots: processes * max,
        });
        expect(requests.map(({ isBar, isAllowed, client }) => [isBar, isAllowed, client])).toEqual(
          expected.map(({ decision, client }) => [decision.allowed, decision.allowed, client]),
        );
        expect(requests.filter(({ isAllowed, symbol }) => !isAllowed && symbol === null)).toEqual(
          [],
        );
        // Bars at one time are in rows of their own.
        const bars = requests.filter(({ isBar }) => isBar);
        const hasOther = ({ left, top }, i) =>
          bars.some(
            (bar, j) => j !== i && bar.top === top && bar.left <= left && bar.right > left + 0.1,
          );
        expect(bars.filter(hasOther)).toEqual([]);
      }
    },
  );

  test('draws the permits that are lent, up to now, apart from the requests', async () => {
    await open();
    expect(await page.isVisible('#lent')).toBe(false);
    await page.click('#presets [value="leases"]');
    expect(await page.isVisible('#lent')).toBe(true);
    const settings = { ...BURST, preset: 'leases', limit: 20 };
    const { lent, requests } = runLeases(settings);
    const local = requests.filter(({ isLocal }) => isLocal).length;
    const lane = '[data-algorithm="sliding-window-log"]';
    expect(await text(`${lane} .rule`)).toBe(
      `Lends permits: ${local} of ${requests.length} ask no Redis.`,
    );
    const widths = () =>
      page.$$eval('#lanes .lent', (all) => all.map((each) => Number(each.getAttribute('width'))));
    const perMs = (await page.$eval(`${lane} svg`, (svg) => svg.clientWidth - 16)) / 30_000;
    for (const time of [30_000, 8000]) {
      await choose(page, 'time', time);
      const shown = (await widths()).filter((_, i) => i % 2 === 0);
      lent.forEach(({ from, to }, i) => {
        expect(shown[i]).toBeCloseTo(Math.max(0, Math.min(to, time) - from) * perMs, 0);
      });
    }
    await page.focus(`${lane} [tabindex="0"]`);
    await page.keyboard.press('Home');
    expect(await text('#tip')).toMatch(/decidedon Redis/);
    await page.setChecked('#count-blocked', true);
    expect(await widths()).toEqual([]);
  });

  test('bars grow until their end, and the running ones are counted', async () => {
    await open();
    const run = runSlots({ ...BURST, max: 3 });
    for (const time of [9200, 10_500, 12_000, 14_000]) {
      await choose(page, 'time', time);
      const { requests, running, now } = await readSlots(page);
      const begun = run.filter(({ at }) => at <= time);
      expect(requests).toHaveLength(begun.length);
      expect(running).toBe(runningAt(run, time));
      const bars = requests.filter(({ isBar }) => isBar);
      expect(bars.filter(({ right }) => right > now + 2.5)).toEqual([]);
      expect(bars.filter(({ right }) => right > now - 0.5)).toHaveLength(running);
    }
  });

  test('the sliders change the limit and the window', async () => {
    await open();
    await choose(page, 'limit', 12);
    await choose(page, 'window', 4);
    expect(await lanes()).toEqual(lanesOf({ ...BURST, limit: 12, windowMs: 4000 }));
    expect(await text('header p')).toMatch(/to 12 in 4 s\.\s.*every 4 s\?/s);
    expect(
      await page.$$eval('#ticks span', (ticks) => ticks.map((tick) => tick.textContent)),
    ).toEqual([...['0 s', '4 s', '8 s', '12 s']]);
  });

  test('steps from request to request, and shows no later one', async () => {
    await open();
    const times = simulate(BURST)[0].map(({ at }) => at);
    await choose(page, 'time', 0);
    for (const count of [1, 2, 3]) {
      await page.click('#step');
      expect((await lanes()).map(({ requests }) => requests.length)).toEqual(Array(4).fill(count));
      expect(Number(await page.inputValue('#time'))).toBe(times[count - 1]);
    }
    expect(await text('#play')).toBe('Play');
  });

  test('plays a run to its end, pauses, and replays', async () => {
    await open({ reducedMotion: 'no-preference' });
    expect(await text('#play')).toBe('Pause');
    await page.click('#play');
    expect(await text('#play')).toBe('Play');
    await choose(page, 'speed', 16);
    await page.click('#play');
    await page.locator('#play[data-action="replay"]').waitFor();
    expect(await lanes()).toEqual(lanesOf(BURST));
    await page.click('#play');
    expect(await text('#play')).toBe('Pause');
    expect((await lanes())[0].requests.length).toBeLessThan(20);
  });

  test('a run pauses when the tab is hidden', async () => {
    await open({ reducedMotion: 'no-preference' });
    await page.evaluate(() => {
      Object.defineProperty(document, 'hidden', { value: true });
      document.dispatchEvent(new Event('visibilitychange'));
    });
    expect(await text('#play')).toBe('Play');
  });

  test('pointing at a request shows its decision', async () => {
    await open();
    for (const i of [0, 5]) {
      await page.locator('[data-algorithm="sliding-window-log"] .mark').nth(i).hover();
      const { allowed, timeLeft, actionsLeft, resetIn, blockedBy, limits } =
        simulate(BURST)[0][i].decision;
      const shown = await page.$$eval('#tip dt', (terms) =>
        Object.fromEntries(terms.map((term) => [term.textContent, term.nextSibling.textContent])),
      );
      expect(shown).toEqual({
        allowed: String(allowed),
        used: `${limits[0].used} of 5`,
        actionsLeft: String(actionsLeft),
        timeLeft: `${(timeLeft / 1000).toFixed(2)} s`,
        resetIn: `${(resetIn / 1000).toFixed(2)} s`,
        blockedBy: String(blockedBy),
      });
    }
    await page.mouse.move(5, 5);
    await page.locator('#tip').waitFor({ state: 'hidden' });
  });

  test('arrow keys reach each request of each lane', async () => {
    await open();
    await focusFirst('sliding-window-log');
    const labels = [await focusedLabel()];
    for (let i = 1; i < 20; i++) {
      await page.keyboard.press('ArrowRight');
      labels.push(await focusedLabel());
      expect(await page.isVisible('#tip')).toBe(true);
    }
    expect(labels).toEqual((await lanes())[0].requests.map(({ label }) => label));
    await page.keyboard.press('Home');
    await page.keyboard.press('ArrowRight');
    for (const algorithm of ['sliding-window-counter', 'fixed-window', 'gcra']) {
      await page.keyboard.press('ArrowDown');
      expect(await focusedLabel()).toMatch(/ at 8\.95 s/);
      const lane = await page.evaluate(() => document.activeElement.closest('.lane').dataset);
      expect(lane.algorithm).toBe(algorithm);
    }
    await page.keyboard.press('ArrowDown');
    expect(await focusedLabel()).toBe('allowed at 8.95 s until 10.26 s, 2 used');
    await page.keyboard.press('Escape');
    expect(await page.isVisible('#tip')).toBe(false);
  });

  test('copies the code for what is set', async () => {
    await open({ permissions: ['clipboard-read', 'clipboard-write'] });
    await choose(page, 'limit', 7);
    await choose(page, 'code-algorithm', 'gcra');
    await page.click('#copy');
    await page.locator('#copy', { hasText: 'Copied' }).waitFor();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    expect(copied).toBe(limiterCode({ ...BURST, limit: 7 }, ALGORITHMS[3]));
    await choose(page, 'code-kind', 'express');
    expect(await text('#code')).toContain("limit: 7,\n  algorithm: 'gcra',\n");
    expect(await text('#copy')).toBe('Copy');
    await choose(page, 'code-kind', 'limiter');
    await choose(page, 'code-algorithm', 'ConcurrencyLimiter');
    await choose(page, 'max', 4);
    expect(await text('#code')).toBe(slotsCode({ max: 4 }));
    await choose(page, 'code-kind', 'express');
    expect(await text('#code')).toContain('concurrencyLimit({ max: 4 })');
  });

  test('sends real requests to the server, and draws its answers', async () => {
    await open();
    for (const status of [200, 200, 200, 429, 429]) {
      const [response] = await Promise.all([
        page.waitForResponse(/\/api\/action$/),
        page.click('#send'),
      ]);
      expect(response.status()).toBe(status);
      await page.locator('#answer', { hasText: String(status) }).waitFor();
    }
    const drawn = await page.$$eval('#server-requests .mark:not(.later)', (marks) =>
      marks.map((mark) => mark.getAttribute('href')),
    );
    expect(drawn).toEqual(['#dot', '#dot', '#dot', '#cross', '#cross']);
    await page.focus('#server-requests [tabindex="0"]');
    await page.keyboard.press('End');
    await page.keyboard.press('ArrowLeft');
    expect(await text('#tip')).toMatch(/429.*RateLimit-Remaining0.*Retry-After\d+/s);
  });

  test('announces a result to screen readers', async () => {
    await open();
    const announced = page.locator('#announcement', { hasText: 'most requests in any 10 seconds' });
    await announced.waitFor();
    const words = /^Burst: .*fixed-window 10, gcra 6.*Most actions at once, with 3 slots: 3\./s;
    expect(await announced.textContent()).toMatch(words);
  });
});
