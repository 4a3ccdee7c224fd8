// Slots on Redis, held by processes that are killed and stopped, over connections that break, on a server that is killed
// and stopped.
'use strict';

const { holdWithFaults } = require('../support/slot-faults');
const { patient } = require('../support/tiers');

// Kills: belief that lasts longer than the record, or counts from the answer; a release by count.
test.each([1, 2])(
  'never more than max are held, and nothing is after the processes have died: seed %d',
  async (seed) => {
    const max = 5;
    const found = await holdWithFaults({ seed, seconds: 30, max });
    expect(found.uses).toBeGreaterThan(100);
    expect(found).toMatchObject({ inconsistent: 0, usedAfter: 0 });
    expect([found.mostUsed, found.mostOnServer]).toEqual([max, max]);
  },
  patient(120_000),
);
