// One run of one cell, in a process of its own: node run.js FOLDER CELL. Prints one line of JSON: the least ns of
// CPU per check, or why the package in this folder does not have the cell.
'use strict';

const { CELLS } = require('./cells');

async function main(folder, name) {
  const { environment, create, warmUp, checks, slices } = CELLS.find((cell) => cell.name === name);
  Object.assign(process.env, environment);
  let parts;
  try {
    parts = await create(require(folder));
    await slice(parts, 1);
  } catch (error) {
    return { absent: error.message.slice(0, 80).split('\n')[0] };
  }
  await slice(parts, warmUp - 1);
  const least = {};
  for (let i = 0; i < slices; i++) {
    const { own, ...others } = await slice(parts, checks);
    const times = { [name]: own };
    for (const [part, ns] of Object.entries(others)) times[`${name}-${part}`] = ns;
    for (const [key, ns] of Object.entries(times)) {
      least[key] = Math.min(least[key] ?? Infinity, ns / checks);
    }
  }
  return { times: least };
}

/** The CPU time of this process and of others that the cell measures, in ns. */
async function slice({ prepare, run }, checks) {
  await prepare?.(checks);
  const before = process.cpuUsage();
  const others = await run(checks);
  const { user, system } = process.cpuUsage(before);
  return { own: (user + system) * 1000, ...others };
}

main(...process.argv.slice(2)).then((result) => {
  process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0));
});
