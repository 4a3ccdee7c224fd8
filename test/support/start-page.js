// The start page in a browser, and what its tests read from it.
'use strict';

const path = require('node:path');
const { pathToFileURL } = require('node:url');
const { launchBrowser } = require('./browser');

const FILE = pathToFileURL(path.join(__dirname, '../../docs/playground.html')).href;

/**
 * Opens the page with motion reduced, so that a run is at its end at once. `complaints` has what the console reports,
 * and each request to anything but the page's own server.
 */
async function openPage(browser, url = FILE, options = {}) {
  const viewport = { width: 1280, height: 800 };
  const page = await browser.newPage({ viewport, reducedMotion: 'reduce', ...options });
  const complaints = [];
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => {
    // The browser itself reports each refusal.
    if (message.type() === 'error' && !/status of 429/.test(message.text())) {
      complaints.push(message.text());
    }
  });
  page.on('request', (request) => {
    const isOwn = request.url().startsWith(url) || request.url().startsWith('data:');
    if (!isOwn) complaints.push(`asked elsewhere: ${request.url()}`);
  });
  await page.goto(url);
  await page.locator('#lanes .lane').nth(3).waitFor();
  return { page, complaints };
}

/**
 * For the tests of a describe: `open(options)` opens the page, at `urlOf()`, and gives it to `use`. It is closed after
 * the test, which fails if there were complaints.
 */
function usePage(use, urlOf = () => FILE) {
  let browser;
  let opened;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser?.close());
  afterEach(async () => {
    await opened?.page.close();
    expect(opened?.complaints).toEqual([]);
  });
  return async (options) => {
    await opened?.page.close();
    opened = await openPage(browser, urlOf(), options);
    use(opened.page);
  };
}

/** Sets a slider or a selection as a user does. */
const choose = (page, id, value) =>
  page.$eval(
    `#${id}`,
    (element, chosen) => {
      element.value = chosen;
      element.dispatchEvent(new Event('input', { bubbles: true }));
    },
    String(value),
  );

/** What each lane shows: its numbers, and its requests from the oldest to the newest. */
const readLanes = (page) =>
  page.$$eval('#lanes .lane', (lanes) =>
    lanes.map((lane) => {
      const text = (name) => lane.querySelector(name).textContent;
      const marks = [...lane.querySelectorAll('.mark:not(.later)')];
      return {
        algorithm: lane.dataset.algorithm,
        most: Number(text('.count')),
        tally: text('.tally'),
        bracket: text('.bracket text'),
        isOver: lane.classList.contains('over'),
        requests: marks.map((mark) => ({
          isAllowed: mark.classList.contains('allowed'),
          client: mark.classList.contains('client-1') ? 1 : 0,
          symbol: mark.getAttribute('href'),
          label: mark.getAttribute('aria-label'),
        })),
      };
    }),
  );

/** What the lane of what runs at once shows. Edges are in pixels. */
const readSlots = (page) =>
  page.$eval('#slots-lane', (lane) => {
    const text = (name) => lane.querySelector(name).textContent;
    const marks = [...lane.querySelectorAll('.mark:not(.later)')];
    return {
      most: Number(text('.count')),
      running: Number(text('.running')),
      tally: text('.tally'),
      rule: text('.rule'),
      isOver: lane.classList.contains('over'),
      slots: lane.querySelectorAll('.slot').length,
      now: lane.querySelector('.now').getBoundingClientRect().left,
      requests: marks.map((mark) => {
        const { left, right, top, bottom } = mark.getBoundingClientRect();
        return {
          isBar: mark.tagName === 'rect',
          isAllowed: mark.classList.contains('allowed'),
          client: mark.classList.contains('client-1') ? 1 : 0,
          symbol: mark.getAttribute('href'),
          label: mark.getAttribute('aria-label'),
          ...{ left, right, top, bottom },
        };
      }),
    };
  });

module.exports = { choose, readLanes, readSlots, usePage };
