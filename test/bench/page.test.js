// The page of the benchmarks: drawn from results alone, losses and failures said, every picture there.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { lossesMarkdown, summaryCells } = require('../../bench/js/comparisons');
const { page } = require('../../bench/js/page');

const root = path.join(__dirname, '../..');
const NAMES = [
  'attack',
  'core',
  'floods',
  'memory',
  'middleware',
  'redis',
  'redis-algorithms',
  'shared',
  'stall',
  'throughput',
];
const moduleOf = (name) => require(`../../bench/js/${name}`);
const stat = (median, min = median, max = median) => ({ median, min, max });

describe('losses', () => {
  const lines = (comparisons) => lossesMarkdown(comparisons).join('\n');
  const slower = { what: 'time', to: 'a peer', ours: stat(20), theirs: stat(10) };

  test('are told with their ratio, also where more is better', () => {
    expect(lines([slower])).toContain('- time: a peer 0.50 x');
    const fewer = { ...slower, what: 'checks/s', isMoreBetter: true };
    expect(lines([{ ...fewer, ours: stat(5) }])).toContain('- checks/s: a peer 0.50 x');
    expect(lines([fewer])).toContain('behind in 0 of 1 comparisons');
  });

  test('are marked where the rounds overlap, and so are wins', () => {
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

describe('a page', () => {
  const benchmark = {
    name: 'some',
    title: 'Some (C++) title',
    question: 'What?',
    bias: ['A bias.'],
    tables: () => [{ title: 'A table', columns: ['', 'ns'], rows: [['rollgate', '1']] }],
    plots: () => [{ name: 'a-plot', alt: 'What [it] shows', svg: '<svg/>' }],
    comparisons: () => [{ what: 'time', to: 'a peer', ours: stat(2), theirs: stat(1) }],
  };
  const report = {
    environment: { versions: { rollgate: '1.0.0' } },
    benchmarks: { some: { date: 'today', load: '0.1', command: 'npm run bench', results: {} } },
  };
  const { markdown, plots } = page(report, [benchmark], { limitMinutes: 7 });

  test('has plot and losses at the head of their section', () => {
    const places = [
      '## Some',
      '![What \\[it\\] shows](images/a-plot.svg)',
      '0.50 x',
      '### A table',
    ];
    const [, section] = markdown.split(/^(?=## Some)/m);
    const found = places.map((words) => section.indexOf(words));
    expect(found.every((place) => place >= 0)).toBe(true);
    expect(found).toEqual([...found].sort((a, b) => a - b));
    expect(plots).toEqual([{ name: 'a-plot', alt: 'What [it] shows', svg: '<svg/>' }]);
  });

  test('sums up first, and says how long it takes', () => {
    expect(markdown).toContain('| [Some (C++) title](#some-c-title) | 1 | 0 | 0 | 1 | time:');
    expect(markdown).toContain('within 7 minutes');
  });

  test('leaves out what has not been run', () => {
    const other = { ...benchmark, name: 'other', title: 'Not run' };
    expect(page(report, [benchmark, other], { limitMinutes: 7 }).markdown).toBe(markdown);
  });
});

// The cases of core are those of an executable that need not be built.
const known = NAMES.filter((name) => name !== 'core');

describe.each(known)('%s', (name) => {
  const benchmark = moduleOf(name);
  const jobs = benchmark.jobs({ quick: true });
  const drawnFrom = (results) => ({
    tables: benchmark.tables(results),
    comparisons: benchmark.comparisons(results),
    plots: benchmark.plots?.(results) ?? [],
  });

  test('draws, and names each failure, when all of it has failed', () => {
    const failed = jobs.map((job) => [job.key, { job, error: 'it <broke>' }]);
    const { tables, comparisons, plots } = drawnFrom(Object.fromEntries(failed));
    expect(tables.flatMap(({ notes = [] }) => notes).join()).toContain('failed: it <broke>');
    expect(lossesMarkdown(comparisons)).toEqual([]);
    for (const { svg } of plots) {
      expect(svg).toMatch(/failed/);
      expect(svg).not.toMatch(/NaN|undefined/);
    }
  });

  test('runs at least three rounds of everything', () => {
    // How much a key takes on the server is the same in every round.
    const full = benchmark.jobs({ quick: false }).filter(({ key }) => !key.startsWith('bytes/'));
    expect(full.filter(({ rounds }) => rounds < 3)).toEqual([]);
  });
});

test('all benchmarks together are bounded by 40 minutes', () => {
  const files = fs.readdirSync(path.join(root, 'bench/js')).map((file) => path.parse(file).name);
  expect(files).toEqual(expect.arrayContaining(NAMES));
  const budgets = NAMES.map((name) => moduleOf(name).budgetMs);
  expect(budgets.reduce((sum, ms) => sum + ms, 0)).toBeLessThanOrEqual(40 * 60_000);
});

describe('the documentation', () => {
  const pages = ['README.md', ...fs.readdirSync(path.join(root, 'docs')).map((f) => `docs/${f}`)];
  const images = pages
    .filter((file) => file.endsWith('.md'))
    .flatMap((file) => {
      const text = fs.readFileSync(path.join(root, file), 'utf8');
      const links = [...text.matchAll(/!\[([^\n]*?)\]\(([^)\s]+)\)/g)];
      return links.map(([, alt, to]) => ({ file, alt, to, at: path.join(path.dirname(file), to) }));
    });

  test('shows no image that is not there, and none without words for it', () => {
    expect(images.filter(({ at }) => !fs.existsSync(path.join(root, at)))).toEqual([]);
    expect(images.filter(({ alt }) => alt.length < 20)).toEqual([]);
  });

  test('has no image that no page shows', () => {
    const files = fs.readdirSync(path.join(root, 'docs/images')).map((f) => `docs/images/${f}`);
    const shown = images.map(({ at }) => at);
    expect(files.filter((file) => !shown.includes(file))).toEqual([]);
  });

  test('links from the summary of the benchmarks to their sections', () => {
    const text = fs.readFileSync(path.join(root, 'docs/benchmarks.md'), 'utf8');
    const titles = [...text.matchAll(/^## (.+)$/gm)].map(([, title]) => title);
    const linked = [...text.matchAll(/^\| \[(.+?)\]\(#/gm)].map(([, title]) => title);
    expect(titles).toEqual(expect.arrayContaining(linked));
    expect(linked.length).toBeGreaterThan(0);
  });
});
