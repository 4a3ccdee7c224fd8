// One run of one cell, in a process of its own: node run.js FOLDER CELL. Prints one line of JSON: the least ns of
// CPU per check, or why the package in this folder does not have the cell.
'use strict';

const { CELLS } = require('./cells');

async function main(folder, name) {
  const cell = CELLS.find((one) => one.name === name);
  let run;
  try {
    run = await cell.create(require(folder));
    await run(1);
  } catch (error) {
    return { absent: error.message.split('\n')[0] };
  }
  await run(cell.warmUp - 1);
  let least = Infinity;
  for (let i = 0; i < cell.slices; i++) {
    const before = process.cpuUsage();
    await run(cell.checks);
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, ((user + system) * 1000) / cell.checks);
  }
  return { times: { [name]: least } };
}

main(...process.argv.slice(2)).then((result) => {
  process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0));
});
