// Simulates seeds and prints what was found, for longer runs than those of the tests:
//   node test/redis/simulator/explore.js slots|leases [FIRST [LAST [NAME]]]
// NAME is that of a broken variant, or 'variants' for all of them.
'use strict';

const { stopRedis } = require('../../support/redis-server');
const { LEASE_VARIANTS } = require('./lease-variants');
const { simulateLeases } = require('./leases');
const { findVariant, simulateAll } = require('./seeds');
const { SimulatedServer } = require('./server');
const { SLOT_VARIANTS } = require('./slot-variants');
const { simulateSlots } = require('./slots');

const [protocol, first = 1, last = 100, name] = process.argv.slice(2);
const simulate = protocol === 'slots' ? simulateSlots : simulateLeases;
const variants = protocol === 'slots' ? SLOT_VARIANTS : LEASE_VARIANTS;
const seeds = Array.from({ length: last - first + 1 }, (_, i) => Number(first) + i);

async function main() {
  const server = new SimulatedServer();
  await server.start();
  if (name === undefined) {
    const { violations, ...counts } = await simulateAll(simulate, server, seeds);
    console.log([...violations, JSON.stringify(counts)].join('\n\n'));
    console.log(`${violations.length} violations`);
  }
  for (const variant of variants.filter((each) => [each.name, 'variants'].includes(name))) {
    const found = await findVariant(simulate, server, seeds, variant);
    console.log(`${variant.name}: ${found === undefined ? 'not found' : `seed ${found.seed}`}`);
    if (name !== 'variants' && found !== undefined) console.log(found.violation);
  }
  server.stop();
  await stopRedis();
}

main();
