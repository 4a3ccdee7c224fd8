// How the start page looks in a real browser: complete on the first screen, legible, calm, and the same from a file.
'use strict';

const fs = require('node:fs');
const { fileURLToPath } = require('node:url');
const { launchBrowser } = require('../support/browser');
const { choose, FILE, openPage, readLanes } = require('../support/start-page');
const { patient } = require('../support/tiers');

const DESKTOP = { width: 1280, height: 800 };
const PHONE = { width: 390, height: 844 };
const PRESETS = ['burst', 'steady', 'polite', 'attacker', 'shared', 'separate', 'leases'];
const LEAST_CONTRAST = 4.5;

/** The page's script, and what lets the browser paint before it runs. */
const SCRIPT = '<script type="module">\n';
const PAINT_FIRST =
  'await new Promise((painted) => requestAnimationFrame(() => setTimeout(painted)));\n';

const describeInBrowser = process.env.ROLLGATE_SANITIZED ? describe.skip : describe;

/** The contrast of each visible text with what is behind it (WCAG 2.2, relative luminance). Runs in the page. */
function contrasts() {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  /** The colour on top of another one, as red, green and blue. */
  const mixed = (colour, below) => {
    canvas.fillStyle = `rgb(${below})`;
    canvas.fillRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const background = (element) =>
    element === null
      ? [255, 255, 255]
      : mixed(getComputedStyle(element).backgroundColor, background(element.parentElement));
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const hasText = (element) =>
    [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== '');
  return [...document.body.querySelectorAll('*')]
    .filter((element) => hasText(element) && element.checkVisibility({ visibilityProperty: true }))
    .filter((element) => !element.closest('script, style, .unseen, option'))
    .map((element) => {
      const { color, fill } = getComputedStyle(element);
      const behind = background(element);
      const colour = element.ownerSVGElement ? fill : color;
      const [light, dark] = [mixed(colour, behind), behind].map(luminance).sort((a, b) => b - a);
      return { text: element.textContent.trim(), contrast: (light + 0.05) / (dark + 0.05) };
    });
}

/** How many pairs of shown symbols and bars of a lane overlap, by lane. Runs in the page. */
function overlaps() {
  const hasOverlap = (a, b) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 0.01 &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 0.01;
  return [...document.querySelectorAll('.lane')].map((lane) => {
    const svg = lane.querySelector('svg').getBoundingClientRect();
    const marks = [...lane.querySelectorAll('.mark')].map((mark) => mark.getBoundingClientRect());
    const pairs = marks.flatMap((a, i) => marks.slice(i + 1).filter((b) => hasOverlap(a, b)));
    const outside = marks.filter((mark) => mark.top < svg.top || mark.bottom > svg.bottom);
    return { count: marks.length, overlapping: pairs.length, outside: outside.length };
  });
}

describeInBrowser('the start page', () => {
  jest.setTimeout(patient(60_000));
  let browser;
  let page;
  let complaints;

  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser?.close());
  afterEach(async () => {
    await page?.close();
    expect(complaints).toEqual([]);
  });

  async function open(options) {
    ({ page, complaints } = await openPage(browser, FILE, options));
  }

  describe.each([
    ['a desktop', DESKTOP],
    ['a phone', PHONE],
  ])('on %s', (_, viewport) => {
    test.each(PRESETS)('is complete on the first screen with %s', async (preset) => {
      await open({ viewport });
      await page.click(`#presets [value="${preset}"]`);
      const { bottoms, width } = await page.evaluate(() => ({
        bottoms: ['header', '.controls', '#lanes', '.timing', '#legend'].map(
          (part) => document.querySelector(part).getBoundingClientRect().bottom,
        ),
        width: document.documentElement.scrollWidth,
      }));
      expect(Math.max(...bottoms)).toBeLessThanOrEqual(viewport.height);
      expect(width).toBe(viewport.width);
    });

    test('cuts off no words', async () => {
      await open({ viewport });
      for (const preset of PRESETS) {
        await page.click(`#presets [value="${preset}"]`);
        await choose(page, 'limit', 20);
        await choose(page, 'window', 20);
        await choose(page, 'max', 5);
        const cut = await page.$$eval('header *, .controls *, .about, .about *, .legend *', (all) =>
          all
            .filter(({ scrollWidth, clientWidth, scrollHeight, clientHeight, tagName }) => {
              if (clientWidth === 0 || tagName === 'INPUT') return false;
              return scrollWidth > clientWidth || scrollHeight > clientHeight + 2;
            })
            .map((element) => element.outerHTML),
        );
        expect(cut).toEqual([]);
      }
    });

    test.each([
      [5, 10],
      [1, 2],
      [20, 20],
    ])('nothing overlaps at 10 requests a second, with %i in %i s', async (limit, window) => {
      await open({ viewport });
      await page.click('#presets [value="attacker"]');
      await choose(page, 'limit', limit);
      await choose(page, 'window', window);
      const lanes = await page.evaluate(overlaps);
      expect(lanes).toEqual(Array(5).fill({ count: 30 * window, overlapping: 0, outside: 0 }));
    });
  });

  test.each(['light', 'dark'])('has text with enough contrast in %s', async (colorScheme) => {
    const read = [];
    await open({ colorScheme });
    for (const preset of PRESETS) {
      await page.click(`#presets [value="${preset}"]`);
      await page.focus('[data-algorithm="gcra"] [tabindex="0"]');
      read.push(...(await page.evaluate(contrasts)));
      await page.focus('#slots-lane [tabindex="0"]');
      read.push(...(await page.evaluate(contrasts)));
    }
    expect(read.length).toBeGreaterThan(PRESETS.length * 40);
    expect(read.filter(({ contrast }) => contrast < LEAST_CONTRAST)).toEqual([]);
  });

  test('light and dark are two looks', async () => {
    const colours = [];
    for (const colorScheme of ['light', 'dark']) {
      await open({ colorScheme });
      const style = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      colours.push(style);
    }
    expect(colours[0]).not.toBe(colours[1]);
  });

  test('the legend has exactly the symbols that the lanes have', async () => {
    await open();
    for (const preset of ['attacker', 'shared', 'leases']) {
      await page.click(`#presets [value="${preset}"]`);
      const { inLegend, inLanes } = await page.evaluate(() => {
        const uses = (part) =>
          [...document.querySelectorAll(`${part} use`)]
            .filter((use) => use.checkVisibility())
            .map((use) => `${use.getAttribute('href')} ${getComputedStyle(use).color}`);
        return {
          inLegend: [...new Set(uses('#legend'))].sort(),
          inLanes: [...new Set(uses('#lanes'))].sort(),
        };
      });
      expect(inLegend).toEqual(inLanes);
    }
    const parts = await page.evaluate(() =>
      ['.band', '.boundary', '.now', '.bracket path', '.slot', 'rect.allowed', '.lent'].map(
        (part) =>
          ['#legend', '.run'].map((where) => {
            const { fill, stroke, strokeDasharray } = getComputedStyle(
              document.querySelector(`${where} ${part}`),
            );
            return [fill, stroke, strokeDasharray];
          }),
      ),
    );
    for (const [inLegend, inLanes] of parts) expect(inLegend).toEqual(inLanes);
  });

  test('nothing moves by itself if motion is to be reduced', async () => {
    await open();
    expect(await page.textContent('#play')).toBe('Replay');
    await page.evaluate(() => {
      globalThis.frames = 0;
      const request = globalThis.requestAnimationFrame;
      globalThis.requestAnimationFrame = (callback) => {
        globalThis.frames += 1;
        return request(callback);
      };
    });
    await page.click('#presets [value="steady"]');
    expect(await page.textContent('#play')).toBe('Replay');
    expect((await readLanes(page))[0].requests).toHaveLength(30);
    expect(await page.evaluate('frames')).toBe(0);
  });

  test('with reduced motion, a replay goes on in steps', async () => {
    await open();
    await choose(page, 'speed', 16);
    await page.evaluate(() => {
      globalThis.times = new Set();
      const band = document.querySelector('.lane .now');
      new MutationObserver(() => globalThis.times.add(band.getAttribute('x1'))).observe(band, {
        attributes: true,
      });
    });
    await page.click('#play');
    await page.locator('#play[data-action="pause"]').waitFor();
    await page.locator('#play[data-action="replay"]').waitFor();
    // 30 s at 16 times the speed are four steps of 0.6 s, from the beginning.
    expect(await page.evaluate('times.size')).toBe(1 + 4);
  });

  test.each([DESKTOP, PHONE])('nothing shifts on loading and playing in %o', async (viewport) => {
    page = await browser.newPage({ viewport });
    complaints = [];
    await page.addInitScript(() => {
      globalThis.shifts = [];
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) globalThis.shifts.push(entry.value);
      }).observe({ type: 'layout-shift', buffered: true });
    });
    await page.route('http://page.test/', (route) => {
      const body = fs.readFileSync(fileURLToPath(FILE), 'utf8');
      expect(body).toContain(SCRIPT);
      route.fulfill({ contentType: 'text/html', body: body.replace(SCRIPT, SCRIPT + PAINT_FIRST) });
    });
    await page.goto('http://page.test/');
    await choose(page, 'speed', 16);
    await page.locator('#play[data-action="replay"]').waitFor();
    expect(await page.evaluate('shifts')).toEqual([]);
  });

  test('a change of preset or limit moves nothing', async () => {
    for (const viewport of [DESKTOP, PHONE]) {
      await open({ viewport });
      const tops = new Set();
      for (const preset of PRESETS) {
        for (const most of [1, 20]) {
          await page.click(`#presets [value="${preset}"]`);
          await choose(page, 'limit', most);
          await choose(page, 'window', most);
          await page.setChecked('#count-blocked', most === 20);
          const top = await page.$eval('#lanes', (lanes) => lanes.getBoundingClientRect().top);
          tops.add(Math.round(top));
        }
      }
      expect(tops.size).toBe(1);
    }
  });

  test('a tap shows the decision on a request, until the next tap elsewhere', async () => {
    await open({ viewport: PHONE, hasTouch: true });
    await page.locator('[data-algorithm="fixed-window"] .mark').nth(9).tap();
    expect(await page.textContent('#tip p')).toBe('Request at 11.30 s: allowed');
    expect(await page.isVisible('#tip')).toBe(true);
    await page.locator('h1').tap();
    expect(await page.isVisible('#tip')).toBe(false);
  });

  test('as a file, it says what real requests need', async () => {
    await open();
    expect(await page.isVisible('#send')).toBe(false);
    expect(await page.textContent('#server-missing')).toContain('npm start');
    expect(await page.isVisible('#server-missing')).toBe(true);
    expect((await readLanes(page)).map(({ most }) => most)).toEqual([5, 6, 10, 6]);
  });
});
