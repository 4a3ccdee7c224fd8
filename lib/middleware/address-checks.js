// Checks that a client's address is what it seems: said once each, since they concern the set-up of a server.
'use strict';

const { isIP } = require('node:net');

/**
 * A function (req, ip) for every request that is counted by its address. A proxy may be put in front at
 * any time, so headers are looked at until there was something to say; what cannot change is looked at once.
 */
function createAddressChecks(validate, notices) {
  const isOn = { ...validate };
  let isFirst = true;

  function warn(check, code, text) {
    isOn[check] = false;
    notices.warn(code, text);
  }

  function checkFirst(req, ip) {
    isFirst = false;
    if (isOn.ip && !isIP(ip)) {
      warn(
        'ip',
        'ROLLGATE_INVALID_IP',
        `the client's address ${JSON.stringify(String(ip).slice(0, 60))} is no IP address.`,
      );
    }
    if (isOn.trustProxy && trustProxy(req) === true) {
      warn(
        'trustProxy',
        'ROLLGATE_TRUST_PROXY',
        "Express's 'trust proxy' is true, so clients can choose the address they are counted by.",
      );
    }
  }

  return function check(req, ip) {
    if (!ip) {
      // A client that has gone already has no address either.
      if (isOn.ip && req.socket && !req.socket.destroyed) {
        warn(
          'ip',
          'ROLLGATE_NO_CLIENT_IP',
          'a request has no client address, so that all such requests share one limit.',
        );
      }
      return;
    }
    if (isFirst) checkFirst(req, ip);
    const { headers } = req;
    if (headers === undefined) return;
    if (isOn.xForwardedForHeader && headers['x-forwarded-for'] && trustProxy(req) === false) {
      warn(
        'xForwardedForHeader',
        'ROLLGATE_X_FORWARDED_FOR',
        "a request has the header X-Forwarded-For, but Express's 'trust proxy' is false: if that is a " +
          'proxy, all its clients share one limit.',
      );
    }
    if (isOn.forwardedHeader && headers.forwarded && ip === req.socket?.remoteAddress) {
      warn(
        'forwardedHeader',
        'ROLLGATE_FORWARDED',
        'a request has the header Forwarded, which Express does not read: if that is a proxy, all its ' +
          'clients share one limit.',
      );
    }
  };
}

/** undefined where there is no Express. */
function trustProxy(req) {
  return req.app?.settings?.['trust proxy'];
}

module.exports = { createAddressChecks };
