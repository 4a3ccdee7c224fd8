// The tests of schedules, small and large.
'use strict';

const { LEASE_VARIANTS } = require('./lease-variants');
const { simulateLeases } = require('./leases');
const { findVariant, seedsOf, simulateAll } = require('./seeds');
const { SimulatedServer } = require('./server');
const { SLOT_VARIANTS } = require('./slot-variants');
const { simulateSlots } = require('./slots');

const PROTOCOLS = [
  ['slots', simulateSlots, SLOT_VARIANTS],
  ['leases', simulateLeases, LEASE_VARIANTS],
];

/**
 * @param {number} options.seeds for the program as it is
 * @param {number} options.most seeds for a broken variant
 * @param {(name: string) => boolean} [options.isMeant] which variants
 */
function describeSchedules({ seeds, most, isMeant = () => true }) {
  describe.each(PROTOCOLS)('%s', (_, simulate, variants) => {
    const server = new SimulatedServer();
    beforeAll(() => server.start());
    afterAll(() => server.stop());

    test('keep their promise under all schedules', async () => {
      const { violations, uses } = await simulateAll(simulate, server, seedsOf(seeds));
      expect(violations.join('\n\n')).toBe('');
      expect(uses).toBeGreaterThan(0);
    });

    const meant = variants.filter(({ name }) => isMeant(name));
    const each = meant.map((variant) => [variant.name, variant]);
    test.each(each)('a broken variant is found: %s', async (_name, variant) => {
      const found = await findVariant(simulate, server, seedsOf(most), variant);
      expect(found).toMatchObject({ seed: expect.any(Number) });
    });
  });
}

module.exports = { describeSchedules };
