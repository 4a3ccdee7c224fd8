// Makes docs/benchmarks.md and its plots of the results that were kept, the same each time for the same results.
'use strict';

const { HOW_TO_READ, lossesMarkdown, summaryCells } = require('./comparisons');
const { tableMarkdown } = require('./report');

/** { markdown, plots: [{ name, svg }] } of a report, in the order of `benchmarks`, which all are modules. */
function page({ environment, benchmarks: runs }, benchmarks, { limitMinutes }) {
  const sections = benchmarks
    .filter(({ name }) => runs[name])
    .map((benchmark) => ({
      ...benchmark,
      run: runs[benchmark.name],
      compared: benchmark.comparisons?.(runs[benchmark.name].results) ?? [],
      plots: benchmark.plots?.(runs[benchmark.name].results) ?? [],
    }));
  const lines = [...head(environment, limitMinutes), ...summary(sections)];
  return {
    markdown: `${[...lines, ...sections.flatMap(section)].join('\n')}\n`,
    plots: sections.flatMap(({ plots }) => plots),
  };
}

function head(environment, limitMinutes) {
  return [
    '# Benchmarks',
    '',
    'Written by `npm run bench` from its own results; do not edit. Run it on your machine: absolute figures belong to the machine, the ratios hold better.',
    '',
    '| | |',
    '|---|---|',
    `| Processor | ${environment.processor}, ${environment.cores} cores |`,
    `| Memory | ${environment.memoryGiB} GiB |`,
    `| System | ${environment.system} |`,
    `| Node.js | ${environment.node} |`,
    `| Versions | ${versionsText(environment.versions)} |`,
    '',
    'How it is measured: every subject runs in a process of its own, one of each per round and every round beginning with another, so that a slow moment of the machine meets all. A figure is the median over the rounds, "min – max" its spread, and a ratio that of two medians, above 1 where rollgate needs less. "CPU" is the time of all threads of the process, garbage collection included. The plain JS limiters are in `bench/js/plain-js.js`, written for this comparison and checked against an oracle before each run.',
    '',
    `All of it ends within ${limitMinutes} minutes: each benchmark has a share of them, starts no round that would not fit into what is left of it, and ends what runs when it is over. "Rounds" says how many runs a figure is the median of. Plots and words are drawn from the same results as the tables, which \`npm run bench -- --draw\` does again without measuring.`,
    '',
  ];
}

function versionsText(versions) {
  return Object.entries(versions)
    .map(([name, version]) => `${name} ${version}`)
    .join(', ');
}

const anchor = (title) =>
  `#${title
    .toLowerCase()
    .replace(/[^\w\s-]/g, '')
    .replaceAll(' ', '-')}`;

function summary(sections) {
  const table = {
    title: 'Wins and losses',
    columns: ['', 'compared', 'ahead', 'by less than the spread', 'behind', 'furthest behind'],
    rows: sections.map(({ title, compared }) => [
      `[${title}](${anchor(title)})`,
      ...(compared.length > 0
        ? summaryCells(compared)
        : ['–', '–', '–', '–', 'nothing to compare with']),
    ]),
    notes: [
      `${HOW_TO_READ} Each section begins with all of its losses; the greatest of each is here.`,
    ],
  };
  return [tableMarkdown(table).replace(/^#/, '')];
}

function section({ name, title, question, bias, tables, run, plots, compared }) {
  const { date, load, command, versions, results } = run;
  return [
    `## ${title}`,
    '',
    `${question} (\`bench/js/${name}.js\`, \`${command}\`, ${date} UTC, load average before it ${load}.)`,
    '',
    ...(versions ? [`With ${versionsText(versions)}.`, ''] : []),
    ...plots.flatMap((plot) => [`![${altText(plot.alt)}](images/${plot.name}.svg)`, '']),
    ...lossesMarkdown(compared),
    ...tables(results).map(tableMarkdown),
    'To be read with it:',
    '',
    ...bias.map((note) => `- ${note}`),
    '',
  ];
}

const altText = (words) => words.replace(/[[\]\\]/g, '\\$&');

module.exports = { page };
