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
  const lines = [...firstScreen(environment, sections, limitMinutes), ...method(environment)];
  return {
    markdown: `${[...lines, ...sections.flatMap(section)].join('\n')}\n`,
    plots: sections.flatMap(({ plots }) => plots),
  };
}

/** One screen: what was measured, the outcome, how to run it. Everything else follows it. */
function firstScreen({ versions, processor, cores, node }, sections, limitMinutes) {
  const peers = versionsText(
    Object.fromEntries(Object.entries(versions).filter(([name]) => name !== 'rollgate')),
  );
  return [
    '# Benchmarks',
    '',
    `This page compares rollgate ${versions.rollgate} with ${peers}, and with two limiters in plain JavaScript. It measures time, CPU and memory on ${processor}, ${cores} cores, Node.js ${node}.`,
    '',
    summary(sections),
    '```sh',
    `npm run bench                        # everything, within ${limitMinutes} minutes`,
    'npm run bench -- throughput memory   # some benchmarks',
    '```',
    '',
    'Run it on your machine: absolute figures depend on the machine, ratios much less. The command writes this page from its results, so do not edit it.',
    '',
  ];
}

function method(environment) {
  return [
    '## How it is measured',
    '',
    '| | |',
    '|---|---|',
    `| Processor | ${environment.processor}, ${environment.cores} cores |`,
    `| Memory | ${environment.memoryGiB} GiB |`,
    `| System | ${environment.system} |`,
    `| Node.js | ${environment.node} |`,
    `| Versions | ${versionsText(environment.versions)} |`,
    '',
    '- Each subject runs in its own process, once per round. Each round starts with another subject, so that a slow moment of the machine affects all of them.',
    '- A figure is the least time or the highest rate of all rounds, because noise only adds to a time. A size is the median. "min – max" is the spread of the rounds. A ratio compares two figures. "Rounds" is the number of runs.',
    '- "CPU" is the time of all threads of the process, including garbage collection.',
    '- The plain JS limiters are in `bench/js/plain-js.js`. They were written for this comparison and are checked against an oracle before each run.',
    '- Each benchmark has a share of the total time. It starts no round that does not fit into the rest of it, and stops what still runs when it is over.',
    '- Plots and text come from the same results as the tables. `npm run bench -- --draw` writes them again without measuring.',
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
    columns: [
      '',
      'compared',
      'ahead',
      'by less than the spread',
      'behind',
      'furthest behind',
      'median ratio',
    ],
    rows: sections.map(({ title, compared }) => [
      `[${title}](${anchor(title)})`,
      ...(compared.length > 0
        ? summaryCells(compared)
        : ['–', '–', '–', '–', 'nothing to compare with', '–']),
    ]),
    notes: [`${HOW_TO_READ} Each section begins with all of its losses.`],
  };
  return tableMarkdown(table).replace(/^#/, '');
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
    'Notes:',
    '',
    ...bias.map((note) => `- ${note}`),
    '',
  ];
}

const altText = (words) => words.replace(/[[\]\\]/g, '\\$&');

module.exports = { page };
