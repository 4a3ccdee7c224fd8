// How the start page looks in a real browser: complete on the first screen, legible, calm, and the same from a file.
'use strict';

const { choose, readLanes, usePage } = require('../support/start-page');
const { patient } = require('../support/tiers');

const DESKTOP = { width: 1280, height: 800 };
const PHONE = { width: 390, height: 844 };
const PRESETS = ['burst', 'steady', 'polite', 'attacker', 'shared', 'separate', 'leases'];
const LEAST_CONTRAST = 4.5;

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

describeInBrowser('the start page', () => {
  jest.setTimeout(patient(60_000));
  let page;
  const open = usePage((opened) => {
    page = opened;
  });

  /** The words of the page that are cut off. Runs in the page. */
  const cutWords = () =>
    [...document.querySelectorAll('header *, .controls *, .about, .about *, .legend *')]
      .filter((each) => each.clientWidth > 0 && each.tagName !== 'INPUT')
      .filter(
        (each) => each.scrollWidth > each.clientWidth || each.scrollHeight > each.clientHeight + 2,
      )
      .map((each) => each.outerHTML);

  /** The lowest edge of what the first screen must have, and the first edge of the lanes. Runs in the page. */
  const measure = () => {
    const edgesOf = (part) => document.querySelector(part).getBoundingClientRect();
    const parts = ['header', '.controls', '#lanes', '.timing', '#legend'];
    return {
      bottom: Math.max(...parts.map((part) => edgesOf(part).bottom)),
      top: Math.round(edgesOf('#lanes').top),
      width: document.documentElement.scrollWidth,
    };
  };

  describe.each([
    ['a desktop', DESKTOP],
    ['a phone', PHONE],
  ])('on %s', (_, viewport) => {
    test('is complete on the first screen, cuts off no words, and no change of preset or limit moves anything', async () => {
      await open({ viewport });
      const tops = new Set();
      for (const preset of PRESETS) {
        await page.click(`#presets [value="${preset}"]`);
        const { bottom, top, width } = await page.evaluate(measure);
        expect(bottom).toBeLessThanOrEqual(viewport.height);
        expect(width).toBe(viewport.width);
        tops.add(top);
        for (const most of [1, 20]) {
          for (const id of ['limit', 'window']) await choose(page, id, most);
          await choose(page, 'max', Math.min(most, 5));
          await page.setChecked('#count-blocked', most === 20);
          expect(await page.evaluate(cutWords)).toEqual([]);
          tops.add((await page.evaluate(measure)).top);
        }
      }
      expect(tops.size).toBe(1);
    });
  });

  test('has text with enough contrast, in light and in dark', async () => {
    const looks = new Set();
    for (const colorScheme of ['light', 'dark']) {
      const read = [];
      await open({ colorScheme });
      for (const preset of PRESETS) {
        await page.click(`#presets [value="${preset}"]`);
        for (const lane of ['[data-algorithm="gcra"]', '#slots-lane']) {
          await page.focus(`${lane} [tabindex="0"]`);
          read.push(...(await page.evaluate(contrasts)));
        }
      }
      expect(read.length).toBeGreaterThan(PRESETS.length * 40);
      expect(read.filter(({ contrast }) => contrast < LEAST_CONTRAST)).toEqual([]);
      looks.add(await page.evaluate(() => getComputedStyle(document.body).backgroundColor));
    }
    expect(looks.size).toBe(2);
  });

  test('the legend has exactly the symbols that the lanes have', async () => {
    const symbolsIn = (part) =>
      page.$$eval(`${part} use`, (all) => {
        const shown = all.filter((use) => use.checkVisibility());
        const looks = shown.map((use) => use.getAttribute('href') + getComputedStyle(use).color);
        return [...new Set(looks)].sort();
      });
    await open();
    for (const preset of ['attacker', 'shared', 'leases']) {
      await page.click(`#presets [value="${preset}"]`);
      expect(await symbolsIn('#legend')).toEqual(await symbolsIn('#lanes'));
    }
  });

  test('with reduced motion, a run is at its end at once, and a replay goes on in steps', async () => {
    await open();
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
    await choose(page, 'speed', 16);
    await page.evaluate(() => {
      globalThis.times = new Set();
      const band = document.querySelector('.lane .now');
      const note = () => globalThis.times.add(band.getAttribute('x1'));
      new MutationObserver(note).observe(band, { attributes: true });
    });
    await page.click('#play');
    await page.locator('#play[data-action="pause"]').waitFor();
    await page.locator('#play[data-action="replay"]').waitFor();
    // 30 s at 16 times the speed are four steps of 0.6 s, from the beginning.
    expect(await page.evaluate('times.size')).toBe(1 + 4);
  });

  test('as a file, it says what real requests need', async () => {
    await open();
    expect(await page.isVisible('#send')).toBe(false);
    expect(await page.textContent('#server-missing')).toContain('npm start');
    expect(await page.isVisible('#server-missing')).toBe(true);
    expect((await readLanes(page)).map(({ most }) => most)).toEqual([5, 6, 10, 6]);
  });
});
