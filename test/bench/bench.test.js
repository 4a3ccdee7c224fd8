// The benchmarks end within their budgets; their page and plots hold any figures, and say what failed or was lost.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { lossesMarkdown, summaryCells } = require('../../bench/js/comparisons');
const { statOf } = require('../../bench/js/figures');
const { TimeIsUp, runBenchmark } = require('../../bench/js/harness');
const { page } = require('../../bench/js/page');
const { barPlot } = require('../../bench/js/plot-bars');
const { linePlot } = require('../../bench/js/plot-lines');
const { linearScale, logScale } = require('../../bench/js/plot-scale');
const { emptyFolder, removeFolders } = require('../support/tarball');

const FOLDER = path.join(__dirname, '../../bench/js');
const stat = (figure, min = figure, max = figure) => ({ figure, min, max });

describe('a budget', () => {
  /** Runs jobs, 'key ms rounds, ...', or until the time runs out, by a clock moved by hand; what was run, or failed. */
  async function runBy(words, budgetMs) {
    let time = 0;
    const jobs = words.split(', ').map((job) => {
      const [key, ms, rounds] = job.split(' ');
      return { key, ms: Number(ms), rounds: Number(rounds) };
    });
    const results = await runBenchmark(
      'none',
      { budgetMs, jobs: () => jobs },
      {
        now: () => time,
        run: async (_file, { key, ms }, timeoutMs) => {
          time += Math.min(ms, timeoutMs);
          if (ms > timeoutMs) throw new TimeIsUp('no result in time');
          if (key === 'broken') throw new Error('it broke');
          return { ns: ms };
        },
      },
    );
    const found = Object.entries(results).map(
      ([key, { runs, error }]) => `${key} ${runs ?? error}`,
    );
    return `${found.join(', ')} in ${time}`;
  }

  test.each([
    ['all rounds are run when there is time for them', 'a 10 3, b 20 2', 'a 3, b 2 in 70'],
    ['a round that would not fit is left out for all', 'a 100 5, b 300 5', 'a 2, b 2 in 800'],
    [
      'the first round ends with the budget: what had no time has failed, and says so',
      'a 600 3, b 600 3, c 1 3',
      'a 1, b no result in time, c no time was left for it in 1000',
    ],
    ['what fails is not run again', 'broken 10 3, b 10 3', 'broken it broke, b 3 in 40'],
  ])('%s', async (_what, jobs, expected) => {
    expect(await runBy(jobs, 1000)).toBe(expected);
  });

  test('a job that is cut off by a timer that is a moment early keeps what it had, too', async () => {
    let time = 0;
    let calls = 0;
    const benchmark = { budgetMs: 100, jobs: () => [{ key: 'a', rounds: 3 }] };
    const results = await runBenchmark('none', benchmark, {
      now: () => time,
      run: async (_file, _job, timeoutMs) => {
        time += ++calls === 1 ? 40 : timeoutMs - 0.5;
        if (calls > 1) throw new TimeIsUp('no result in time');
        return { ns: 1 };
      },
    });
    expect(results.a).toMatchObject({ runs: 1 });
  });
});

describe('the figure of several runs', () => {
  test.each([
    ['is the least time, because noise only adds to it', 'cpu', [30, 10, 20, 90], 10],
    ['is the least time of a percentile, too', 'p50At1', [30, 10], 10],
    ['is the highest rate', 'perSecond64', [30, 10, 20], 30],
    ['is the median of what is neither, such as a size', 'bytesPerId', [90, 10, 20], 20],
    ['is the median of growth, too', 'growthKiB', [4, -100, 6, 1000], 5],
  ])('%s', (_what, name, values, figure) => {
    const [min, max] = [Math.min(...values), Math.max(...values)];
    expect(statOf(name, values)).toEqual({ figure, min, max });
  });
});

describe('a process', () => {
  afterAll(removeFolders);

  test.each([
    ['that ends without numbers has failed', '', 60_000, /JSON/],
    [
      'that does not answer is ended',
      'setInterval(() => {}, 1000);',
      300,
      /^no result within 1 s$/,
    ],
  ])('%s', async (_what, program, budgetMs, message) => {
    const file = path.join(emptyFolder(), 'benchmark.js');
    fs.writeFileSync(file, program);
    const { a } = await runBenchmark(file, { budgetMs, jobs: () => [{ key: 'a', rounds: 1 }] });
    expect(a.error).toMatch(message);
  });
});

describe('losses', () => {
  const lines = (comparisons) => lossesMarkdown(comparisons).join('\n');
  const slower = { what: 'time', to: 'a peer', ours: stat(20), theirs: stat(10) };

  test('have their ratio, also where more is better, and are marked where the rounds overlap', () => {
    expect(lines([slower])).toContain('- time: a peer 0.50 x');
    const fewer = { ...slower, what: 'checks/s', isMoreBetter: true };
    expect(lines([{ ...fewer, ours: stat(5) }])).toContain('- checks/s: a peer 0.50 x');
    expect(lines([fewer])).toContain('behind in 0 of 1 comparisons');
    const close = { ...slower, ours: stat(20, 9, 30), theirs: stat(15, 10, 25) };
    expect(lines([close])).toContain('a peer 0.75 x *');
    const ahead = { ...close, ours: close.theirs, theirs: close.ours };
    expect(lines([ahead])).toContain('ahead in 1 (1 of these by less than the spread)');
  });

  test('name what has no ratio though the peer has a figure', () => {
    const failed = { ...slower, ours: undefined };
    const zero = { ...slower, to: 'another', ours: stat(0) };
    const missing =
      '**Could not be compared**, because rollgate failed or a figure is 0: time: a peer, another.';
    expect(lines([failed, zero])).toBe(`${missing}\n`);
    expect(lines([slower, failed, zero])).toContain(missing);
    expect(summaryCells([slower, failed])[0]).toBe('1, and 1 that could not be');
  });

  test('leave out what was not measured', () => {
    expect(lines([{ ...slower, theirs: undefined }])).toBe('');
    expect(lines([slower, { ...slower, theirs: undefined }])).toContain('behind in 1 of 1');
  });
});

test('the page sums up first, and a section begins with its plot and its losses', () => {
  const benchmark = {
    name: 'some',
    title: 'Some (C++) title',
    bias: ['A bias.'],
    tables: () => [{ title: 'A table', columns: ['', 'ns'], rows: [['rollgate', '1']] }],
    plots: () => [{ name: 'a-plot', alt: 'What [it] shows', svg: '<svg/>' }],
    comparisons: () => [slower],
  };
  const slower = { what: 'time', to: 'a peer', ours: stat(2), theirs: stat(1) };
  const environment = { versions: { rollgate: '1.0.0' } };
  const { markdown, plots } = page({ environment, benchmarks: { some: {} } }, [benchmark], {});
  const summary = '| [Some (C++) title](#some-c-title) | 1 | 0 | 0 | 1 | time:';
  const plot = '![What \\[it\\] shows](images/a-plot.svg)';
  const places = [summary, '## Some (C++) title', plot, '- time: a peer 0.50 x', '### A table'];
  const found = places.map((words) => markdown.indexOf(words));
  expect(Math.min(...found)).toBeGreaterThan(0);
  expect(found).toEqual([...found].sort((a, b) => a - b));
  expect(plots).toEqual(benchmark.plots());
});

describe('the benchmarks', () => {
  const named = fs
    .readdirSync(FOLDER)
    .map((file) => ({ file, ...require(path.join(FOLDER, file)) }))
    .filter(({ budgetMs }) => budgetMs !== undefined);
  // The jobs of core are those of an executable that need not be built.
  const known = named.filter(({ file }) => file !== 'core.js').map((each) => [each.file, each]);

  test('are bounded by 52 minutes together', () => {
    expect(named.length).toBeGreaterThanOrEqual(10);
    const sum = named.reduce((all, { budgetMs }) => all + budgetMs, 0);
    expect(sum).toBeLessThanOrEqual(52 * 60_000);
  });

  test.each(known)(
    '%s draws, and names each failure, when all of it has failed',
    (_, benchmark) => {
      const jobs = benchmark.jobs({ quick: true });
      const failed = jobs.map((job) => [job.key, { job, error: 'it <broke>' }]);
      const results = Object.fromEntries(failed);
      const notes = benchmark.tables(results).flatMap((table) => table.notes ?? []);
      expect(notes.join()).toContain('failed: it <broke>');
      expect(lossesMarkdown(benchmark.comparisons(results))).toEqual([]);
      for (const { svg } of benchmark.plots?.(results) ?? []) {
        expect(svg).toMatch(/failed/);
        expect(svg).not.toMatch(/NaN|undefined/);
      }
    },
  );

  test.each(known)('%s runs at least three rounds of everything', (_, benchmark) => {
    // How much a key takes on the server is the same in every round.
    const full = benchmark.jobs({ quick: false }).filter(({ key }) => !key.startsWith('bytes/'));
    expect(full.filter(({ rounds }) => rounds < 3)).toEqual([]);
  });
});

/** None of it can be in a picture as it is. */
const words = { title: 'A <b> title', subtitle: 'A & line', description: 'What <i> is seen' };
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

test('scales are linear from zero, or logarithmic by powers of ten, and hold what has no place', () => {
  const { pixel, ticks } = linearScale([30, 100, 70], [10, 210]);
  expect([-5, 0, 50, 100].map(pixel)).toEqual([10, 10, 110, 210]);
  expect(ticks).toEqual([0, 25, 50, 75, 100]);
  const powers = logScale([20, 3000], [0, 300]);
  expect(powers.ticks).toEqual([10, 100, 1000, 10_000]);
  expect(powers.ticks.map(powers.pixel)).toEqual([0, 100, 200, 300]);
  expect(logScale([1, 100], [200, 0]).pixel(10)).toBe(100);
  for (const values of [[], [0], [100], [Number.NaN, undefined, Infinity], [-5]]) {
    for (const scale of [linearScale(values, [10, 210]), logScale(values, [10, 210])]) {
      expect(scale.ticks.length).toBeGreaterThan(1);
      expect(Number.isFinite(scale.pixel(0))).toBe(true);
    }
  }
});

const points = [
  { x: 1, ...stat(50, 45, 300) },
  { x: 1000, ...stat(200_000) },
];

describe('bars', () => {
  test('have the figure in digits, a whisker where there is a spread, and name what failed', () => {
    const svg = bars([stat(50, 40, 90), stat(120), { error: 'it broke' }, undefined]);
    expectWellFormed(svg);
    const words = ['50.0', '120', 'A panel', 'ns', 'failed', 'not measured'];
    expect(textsOf(svg)).toEqual(expect.arrayContaining(words));
    expect(svg.match(/<path class="whisker"/g)).toHaveLength(1);
  });

  test.each([
    ['nothing but failures', [{ error: 'it broke' }, { error: 'so did this' }]],
    ['zeros', [stat(0), stat(0)]],
    ['negative figures', [stat(-3, -9, 4), stat(1)]],
    ['what is no number', [stat(Number.NaN), stat(5)]],
    ['nothing', []],
  ])('hold %s', (_, values) => expectWellFormed(bars(values)));
});

test('lines are named at their ends, rollgate on top, and leave out points that have no place', () => {
  const svg = lines([
    { label: 'rollgate', isOurs: true, points: [{ x: 0, ...stat(5) }, ...points] },
    { label: 'a peer', points },
    { label: 'another', error: 'it broke', points: [] },
    { label: 'a third', points: [{ x: 10, ...stat(Number.NaN, 0, 0) }] },
  ]);
  expectWellFormed(svg);
  const words = ['rollgate', 'a peer', 'another: failed', 'a third: no figure', 'ids', 'ns'];
  expect(textsOf(svg)).toEqual(expect.arrayContaining(words));
  expect(svg.lastIndexOf('stroke-width="2.5"')).toBeGreaterThan(svg.indexOf('peer0 line'));
  expect(svg.match(/<path class="whisker"/g)).toHaveLength(2);
  expectWellFormed(lines([]));
  expectWellFormed(lines([{ label: 'a peer', points: [{ x: 1, ...stat(5, 0, 9) }] }]));
});
