// ipKeyGenerator: the subnets of IPv6, the IPv4 addresses inside it, and express-rate-limit as the oracle.
'use strict';

const { isIPv6 } = require('node:net');
const expressRateLimit = require('express-rate-limit');
const fc = require('fast-check');
const { ipKeyGenerator } = require('../..');

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['::FFFF:192.0.2.1', '192.0.2.1'],
  ['::ffff:c000:201', '192.0.2.1'],
  ['0:0:0:0:0:ffff:192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1%eth0', '192.0.2.1'],
  ['::192.0.2.1', '192.0.2.1'],
  ['::1', '::/56'],
  ['::', '::/56'],
  ['2001:db8:1:2ff:3:4:5:6', '2001:db8:1:200::/56'],
  ['2001:0DB8:0000:01ff::1', '2001:db8:0:100::/56'],
  ['fe80::1%eth0', 'fe80::/56'],
  ['64:ff9b::192.0.2.1', '64:ff9b::/56'],
  ['1:2:3:4:5:6:7::', '1:2:3::/56'],
  ['unknown', 'unknown'],
  ['192.0.2.1:8080', '192.0.2.1:8080'],
  ['', ''],
  [undefined, undefined],
])('%s is %s', (ip, key) => {
  expect(ipKeyGenerator(ip)).toBe(key);
});

test.each([
  [64, '2001:db8:1:2ff::/64'],
  [60, '2001:db8:1:2f0::/60'],
  [57, '2001:db8:1:280::/57'],
  [48, '2001:db8:1::/48'],
  [32, '2001:db8::/32'],
  [1, '::/1'],
  [128, '2001:db8:1:2ff:3:4:5:0/128'],
  [false, '2001:DB8:1:2FF:3:4:5:0'],
])('with a subnet of %s bits an address is %s', (ipv6Subnet, key) => {
  expect(ipKeyGenerator('2001:DB8:1:2FF:3:4:5:0', ipv6Subnet)).toBe(key);
});

test.each([0, 129, -1, 56.5, Number.NaN, '56', true, null])(
  'a subnet of %p is refused',
  (subnet) => {
    expect(() => ipKeyGenerator('2001:db8::1', subnet)).toThrow(
      expect.objectContaining({ code: 'ERR_ROLLGATE_OPTION' }),
    );
  },
);

test('addresses of one /56 share a key, addresses of two do not', () => {
  expect(ipKeyGenerator('2001:db8:0:1ff:ffff::')).toBe(ipKeyGenerator('2001:db8:0:100::1'));
  expect(ipKeyGenerator('2001:db8:0:200::')).not.toBe(ipKeyGenerator('2001:db8:0:1ff::'));
});

const group = fc.oneof(
  fc.constantFrom('0', '0000', 'ffff', 'FFFF'),
  fc.integer({ min: 0, max: 0xffff }).map((value) => value.toString(16)),
);
const lastGroups = fc.oneof(
  fc.tuple(group, group).map((pair) => pair.join(':')),
  fc.ipV4(),
);
const written = fc
  .tuple(fc.array(group, { maxLength: 6 }), fc.array(group, { maxLength: 6 }), lastGroups)
  .map(([head, tail, last]) => `${head.join(':')}::${[...tail, last].join(':')}`);
const full = fc
  .tuple(fc.array(group, { minLength: 6, maxLength: 6 }), lastGroups)
  .map(([head, last]) => [...head, last].join(':'));
const zone = fc.constantFrom('', '', '', '%eth0', '%1');
const address = fc.tuple(fc.oneof(written, full, fc.ipV6()), zone).map((parts) => parts.join(''));

test('any IPv6 address has the key that express-rate-limit gives it', () => {
  fc.assert(
    fc.property(address, fc.constantFrom(56, 64, 48, 32, 57, 1, 127, 128, false), (ip, subnet) => {
      fc.pre(isIPv6(ip));
      expect(ipKeyGenerator(ip, subnet)).toBe(expressRateLimit.ipKeyGenerator(ip, subnet));
    }),
    { numRuns: 2000 },
  );
});

test('any text that is no IPv6 address comes back as it is', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'0123456789abcdef:.%f/') }), (text) => {
      fc.pre(!isIPv6(text) && !text.startsWith('::ffff:'));
      expect(ipKeyGenerator(text)).toBe(text);
    }),
    { numRuns: 1000 },
  );
});
