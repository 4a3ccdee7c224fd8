// A Fastify reply as the middleware sees it: with the few members of a ServerResponse that it uses.
'use strict';

/** Headers go through the reply, so that Fastify's hooks see them; events are those of the response itself. */
class ReplyResponse {
  constructor(reply) {
    this.reply = reply;
  }

  get statusCode() {
    return this.reply.statusCode;
  }

  set statusCode(code) {
    this.reply.code(code);
  }

  get headersSent() {
    return this.reply.sent || this.reply.raw.headersSent;
  }

  get writableEnded() {
    return this.reply.raw.writableEnded;
  }

  get destroyed() {
    return this.reply.raw.destroyed;
  }

  getHeader(name) {
    return this.reply.getHeader(name);
  }

  setHeader(name, value) {
    this.reply.header(name, value);
  }

  once(event, listener) {
    this.reply.raw.once(event, listener);
  }

  send(body) {
    if (!this.reply.sent) this.reply.send(body);
  }

  end(body) {
    this.send(body);
  }
}

module.exports = { ReplyResponse };
