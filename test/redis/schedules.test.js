// Slots and leases under random schedules of messages, clocks and deaths; simulator/simulation.js says how. A failure
// prints its seed.
'use strict';

const { all, patient } = require('../support/tiers');
const { simulateLeases } = require('./simulator/leases');
const { SimulatedServer } = require('./simulator/server');
const { simulateSlots } = require('./simulator/slots');

/** While one simulation waits for the server, the others go on. */
const AT_ONCE = 32;

/** Those in ROLLGATE_SEED, such as 7 or 1-1000. */
function seeds() {
  const { ROLLGATE_SCHEDULES = all ? 8 : 4 } = process.env;
  const { ROLLGATE_SEED = `1-${ROLLGATE_SCHEDULES}` } = process.env;
  const [first, last = first] = ROLLGATE_SEED.split('-').map(Number);
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}

// Kills what test/mutants/slots-and-leases.txt lists for this file: each breaks a promise under one of the schedules.
test.each([
  ['slots', simulateSlots],
  ['leases', simulateLeases],
])(
  '%s keep their promise under all schedules',
  async (_, simulate) => {
    const server = new SimulatedServer();
    await server.start();
    const left = seeds().values();
    let violation;
    let uses = 0;
    const isOver = () => violation !== undefined;
    const simulateLeft = async () => {
      for (const seed of left) {
        if (isOver()) return;
        const found = await server.forOne((ofOne) => simulate({ seed, server: ofOne, isOver }));
        violation ??= found.violation;
        uses += found.uses;
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, simulateLeft));
    server.stop();
    expect(violation ?? '').toBe('');
    expect(uses).toBeGreaterThan(0);
  },
  patient(300_000),
);
