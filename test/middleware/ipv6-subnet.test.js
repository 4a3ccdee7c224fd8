// ipv6Subnet: how much of an IPv6 address tells clients apart, for all or for each request.
'use strict';

const { rateLimit } = require('../..');

/** The key a request was counted under, or the error that next() got. */
async function keyOf(options, req) {
  const res = { headersSent: true };
  const passed = jest.fn();
  await rateLimit({ validate: false, ...options })(req, res, passed);
  expect(passed).toHaveBeenCalledTimes(1);
  if (passed.mock.calls[0][0] !== undefined) throw passed.mock.calls[0][0];
  return req.rateLimit.key;
}

const ip = '2001:db8:1234:5678:9abc:def0:1234:5678';

test.each([
  [undefined, '2001:db8:1234:5600::/56'],
  [32, '2001:db8::/32'],
  [48, '2001:db8:1234::/48'],
  [64, '2001:db8:1234:5678::/64'],
  [false, ip],
])('%p, as a value and from functions', async (ipv6Subnet, key) => {
  expect(await keyOf({ ipv6Subnet }, { ip })).toBe(key);
  if (ipv6Subnet === undefined) return;
  expect(await keyOf({ ipv6Subnet: () => ipv6Subnet }, { ip })).toBe(key);
  expect(await keyOf({ ipv6Subnet: async () => ipv6Subnet }, { ip })).toBe(key);
});

test('a function is asked with request and response, for IPv6 only', async () => {
  const ipv6Subnet = jest.fn((req) => req.bits);
  expect(await keyOf({ ipv6Subnet }, { ip: '192.0.2.1' })).toBe('192.0.2.1');
  expect(await keyOf({ ipv6Subnet }, {})).toBeUndefined();
  expect(ipv6Subnet).not.toHaveBeenCalled();
  expect(await keyOf({ ipv6Subnet }, { ip, bits: 40 })).toBe('2001:db8:1200::/40');
  expect(ipv6Subnet).toHaveBeenCalledWith(expect.objectContaining({ bits: 40 }), {
    headersSent: true,
  });
});

test.each([31, 65, 56.5, Number.NaN, '56', undefined, null, true])(
  'a function that gives %p is an error of that request',
  async (bits) => {
    const refused = expect.objectContaining({ code: 'ERR_ROLLGATE_OPTION' });
    await expect(keyOf({ ipv6Subnet: () => bits }, { ip })).rejects.toEqual(refused);
    await expect(keyOf({ ipv6Subnet: async () => bits }, { ip })).rejects.toEqual(refused);
  },
);

test.each([
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['::ffff:c000:201', '192.0.2.1'],
  ['fe80::1%eth0', 'fe80::/56'],
  ['fe80::1%eth1', 'fe80::/56'],
  ['FE80::1%<script>', 'FE80::1%<script>'],
  ['2001:DB8:1234:5678::', '2001:db8:1234:5600::/56'],
  ['unknown', 'unknown'],
  ['192.0.2.1:8080', '192.0.2.1:8080'],
  ['__proto__', '__proto__'],
])('the address %s is counted as %s', async (address, key) => {
  expect(await keyOf({}, { ip: address })).toBe(key);
  expect(await keyOf({ ipv6Subnet: () => 56 }, { ip: address })).toBe(key);
});

test('where Express is missing the address is that of the socket', async () => {
  expect(await keyOf({}, { socket: { remoteAddress: ip } })).toBe('2001:db8:1234:5600::/56');
});
