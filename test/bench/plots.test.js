// The plots of the benchmarks: scales that hold any figures, text that cannot break the picture, failures that are named.
'use strict';

const { barPlot } = require('../../bench/js/plot-bars');
const { linePlot } = require('../../bench/js/plot-lines');
const { linearScale, logScale } = require('../../bench/js/plot-scale');

const words = { title: 'A title', subtitle: 'A line below it', description: 'What is seen' };
const stat = (median, min = median, max = median) => ({ median, min, max });

const bars = (values, more = {}) =>
  barPlot({
    ...words,
    rows: values.map((_, i) => ({ label: `row ${i}`, kind: i === 0 ? 'ours' : 'peer' })),
    bands: [[{ title: 'A panel', unit: 'ns', values }]],
    ...more,
  });

const lines = (series) => linePlot({ ...words, xTitle: 'ids', yTitle: 'ns', series });

const textsOf = (svg) => [...svg.matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map(([, text]) => text);

/** Throws unless tags are closed in the order in which they were opened, and no figure is NaN. */
function expectWellFormed(svg) {
  const open = [];
  for (const [, isEnd, name, isWhole] of svg.matchAll(/<(\/?)([a-z]+)(?:"[^"]*"|[^>"])*?(\/?)>/g)) {
    if (isEnd) expect(open.pop()).toBe(name);
    else if (!isWhole) open.push(name);
  }
  expect(open).toEqual([]);
  expect(svg.replace(/<[^>]*>/g, '')).not.toMatch(/&(?!amp;|lt;|gt;|quot;|#39;)/);
  expect(svg).not.toMatch(/NaN|Infinity|undefined|null/);
}

describe('a linear scale', () => {
  test('goes from zero to the largest value', () => {
    const { pixel, ticks } = linearScale([30, 100, 70], [10, 210]);
    expect([0, 50, 100].map(pixel)).toEqual([10, 110, 210]);
    expect(ticks).toEqual([0, 25, 50, 75, 100]);
  });

  test.each([
    ['no value', []],
    ['zero alone', [0]],
    ['what is no number', [Number.NaN, undefined, Number.POSITIVE_INFINITY]],
    ['a negative value', [-5]],
  ])('holds %s', (_, values) => {
    const { pixel, ticks } = linearScale(values, [10, 210]);
    expect(ticks.length).toBeGreaterThan(1);
    expect(pixel(0)).toBe(10);
    expect(pixel(-5)).toBe(10);
  });
});

describe('a logarithmic scale', () => {
  test('goes by whole powers of ten around the values', () => {
    const { pixel, ticks } = logScale([20, 3000], [0, 300]);
    expect(ticks).toEqual([10, 100, 1000, 10_000]);
    expect(ticks.map(pixel)).toEqual([0, 100, 200, 300]);
  });

  test('goes downwards where the picture does', () => {
    expect(logScale([1, 100], [200, 0]).pixel(10)).toBe(100);
  });

  test.each([
    ['no value', []],
    ['one value', [7]],
    ['one power of ten', [100]],
    ['zero, a negative value and what is no number', [0, -1, Number.NaN]],
  ])('holds %s', (_, values) => {
    const { pixel, ticks } = logScale(values, [0, 300]);
    expect(ticks.length).toBeGreaterThan(1);
    expect(ticks.every((value) => value > 0)).toBe(true);
    for (const value of [...values, 0]) expect(Number.isFinite(pixel(value))).toBe(true);
  });
});

const hostile = `<script>"a" & 'b'</script>`;
const escaped = '&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39;&lt;/script&gt;';

describe('bars', () => {
  test('have the median in figures and a whisker where there is a spread', () => {
    const svg = bars([stat(50, 40, 90), stat(120)]);
    expectWellFormed(svg);
    expect(textsOf(svg)).toEqual(expect.arrayContaining(['50.0', '120', 'A panel', 'ns']));
    expect(svg.match(/<path class="whisker"/g)).toHaveLength(1);
  });

  test('name what failed and what was not measured, and draw the others', () => {
    const svg = bars([stat(50), { error: 'it broke' }, undefined]);
    expectWellFormed(svg);
    expect(textsOf(svg)).toEqual(expect.arrayContaining(['50.0', 'failed', 'not measured']));
  });

  test.each([
    ['nothing but failures', [{ error: 'it broke' }, { error: 'so did this' }]],
    ['zeros', [stat(0), stat(0)]],
    ['negative figures', [stat(-3, -9, 4), stat(1)]],
    ['what is no number', [stat(Number.NaN), stat(5)]],
    ['nothing', []],
  ])('hold %s', (_, values) => expectWellFormed(bars(values)));

  test('share a scale between panels where they are told to', () => {
    const panel = (value) => ({ title: 'A panel', unit: 'ns', values: [stat(value)] });
    const widths = (isOneScale) => {
      const svg = bars([stat(1)], { bands: [[panel(10), panel(100)]], isOneScale });
      return [...svg.matchAll(/class="ours"[^>]* width="([\d.]+)"/g)].map(([, width]) => +width);
    };
    const [small, large] = widths(true);
    expect(large / small).toBeCloseTo(10, 1);
    const [one, other] = widths(false);
    expect(one).toBe(other);
  });

  test('escape every text', () => {
    const svg = barPlot({
      title: hostile,
      subtitle: hostile,
      description: hostile,
      rows: [{ label: hostile, kind: 'peer' }],
      bands: [[{ title: hostile, unit: hostile, values: [stat(1)] }]],
    });
    expectWellFormed(svg);
    expect(svg).not.toContain('<script>');
    expect(svg.split(escaped)).toHaveLength(8); // the title stands twice
  });
});

describe('lines', () => {
  const points = [
    { x: 1, ...stat(50, 45, 300) },
    { x: 1000, ...stat(200_000) },
  ];

  test('are named at their ends, rollgate last and on top', () => {
    const svg = lines([
      { label: 'rollgate', isOurs: true, points },
      { label: 'a peer', points },
    ]);
    expectWellFormed(svg);
    expect(textsOf(svg)).toEqual(expect.arrayContaining(['rollgate', 'a peer', 'ids', 'ns']));
    expect(svg.lastIndexOf('stroke-width="2.5"')).toBeGreaterThan(svg.indexOf('peer0 line'));
    expect(svg.match(/<path class="whisker"/g)).toHaveLength(2);
  });

  test('have names that do not run into one another', () => {
    const many = Array.from({ length: 7 }, (_, i) => ({ label: `peer ${i}`, points }));
    const downs = [...lines(many).matchAll(/y="([\d.]+)" class="word">peer/g)].map(([, y]) => +y);
    expect(downs).toHaveLength(7);
    downs.sort((a, b) => a - b);
    for (let i = 1; i < downs.length; i++) expect(downs[i] - downs[i - 1]).toBeGreaterThan(14);
  });

  test('name what failed, and leave out points that have no place', () => {
    const svg = lines([
      { label: 'rollgate', isOurs: true, points: [{ x: 0, ...stat(5) }, ...points] },
      { label: 'a peer', error: 'it broke', points: [] },
      { label: 'another', points: [{ x: 10, ...stat(Number.NaN, 0, 0) }] },
    ]);
    expectWellFormed(svg);
    expect(textsOf(svg)).toEqual(expect.arrayContaining(['a peer: failed', 'another: no figure']));
  });

  test('hold a figure that was zero in one of the rounds', () => {
    expectWellFormed(lines([{ label: 'a peer', points: [{ x: 1, ...stat(5, 0, 9) }] }]));
  });

  test('hold nothing at all', () => expectWellFormed(lines([])));

  test('escape every text', () => {
    const svg = linePlot({
      title: hostile,
      subtitle: hostile,
      description: hostile,
      xTitle: hostile,
      yTitle: hostile,
      series: [
        { label: hostile, points },
        { label: hostile, error: hostile, points: [] },
      ],
    });
    expectWellFormed(svg);
    expect(svg).not.toContain('<script>');
  });
});

test('the same figures make the same picture', () => {
  const values = [stat(50, 40, 90), stat(1 / 3, 0.1, 2 / 3)];
  expect(bars(values)).toBe(bars(values));
  const series = [{ label: 'a peer', points: [{ x: 3, ...stat(1 / 3) }] }];
  expect(lines(series)).toBe(lines(series));
});
