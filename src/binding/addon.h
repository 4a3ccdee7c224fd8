// What the addon exports to lib, which has checked all options.
//
// `callbacks` is an object of functions and buffers. The native side references it weakly; lib
// keeps it alive as long as any function that was created with it.
#pragma once

#include <napi.h>

namespace rollgate::binding {

/// createMemoryLimiter(options, callbacks) -> the functions of MakeLocalFunctions, for a store in
/// memory.
///
/// options: policy (see PolicyFromJs) and maxKeys.
Napi::Value CreateMemoryLimiter(const Napi::CallbackInfo& info);

/// createSharedLimiter(options, callbacks) -> the functions of MakeLocalFunctions, for a store in
/// shared memory. The first call of any function but close() attaches to the region; after a
/// failure, the next call tries again.
///
/// options: policy (see PolicyFromJs), name, directory, maxKeys and room.
Napi::Value CreateSharedLimiter(const Napi::CallbackInfo& info);

/// unlinkShared(directory, name, failed) -> whether there was such a region; `failed` is as in
/// MakeLocalFunctions
Napi::Value UnlinkShared(const Napi::CallbackInfo& info);

/// liveLimiters() -> how many native limiters this process has, for tests
Napi::Value LiveLimiters(const Napi::CallbackInfo& info);

/// bootMs() -> ms of a clock that goes on while the host sleeps, if there is one

/// createPortableLimiter(policy, callbacks) -> { decide, settle, block, lifetime, largestState }:
/// decisions on states that JavaScript stores as bytes
///
/// callbacks:
///   numbers      Float64Array that decide writes to
///   exhausted   () => throws: there is no memory left
///   findWindow, span  see HostCalendars
///
/// A state is a Uint8Array, or undefined for an id without actions. The next state is an
/// ArrayBuffer, undefined if nothing changes, or null if the bytes are not a state.
///
/// decide(state, cost, records, now, generation, limits, hasCalendars) -> next state; writes
///   numbers[0..]: see WriteDecision. `now` in us. `generation`, a random integer below 2^32, is
///   used if a generation of the id begins. At cost 0, nothing is recorded, and the numbers show
///   the current usage. The last two as of decideWithin in local_limiter.h
/// settle(state, at, token, cost, actual, now) -> next state
/// block(state, duration, now, generation) -> next state; a duration of 0 ends the block
/// lifetime(state, now) -> us: how long a state that is written now can affect decisions
/// largestState() -> bytes of the largest possible state
Napi::Value CreatePortableLimiter(const Napi::CallbackInfo& info);

/// createHeldCounts(maxKeys, callbacks) -> { acquire, flush, used, counts, clear, stats, close }:
/// how much of each id is held in this process
///
/// callbacks:
///   released    Float64Array of notes: how many numbers follow, then a handle and a cost for each
///               release. Every function but counts and close takes them first
///   numbers     Float64Array that acquire and stats write to
///   refuse      (id) => throws: the value is not an id
///   exhausted   () => throws: there is no memory left; nothing was acquired
///
/// acquire(id, max, cost?) -> what is used of the id then; numbers[0] is the handle of what was
///   acquired, which must be released once. If it is refused, -1 - what is used; numbers[1] is 1
///   where that is for want of room for another id
/// flush() only takes the notes; used(id) -> what is used; counts(handle) -> whether its id was not
///   cleared since
/// clear(id), clear() forget what is held. It must still be released
/// stats() writes numbers[0..2]: ids, what is held, bytes
/// close() frees everything; no other function must be called after it
Napi::Value CreateHeldCounts(const Napi::CallbackInfo& info);

/// createSharedSlots(options, callbacks) -> { acquire, release, counts, used, clear, stats, now,
/// close }: how much of each id is held by those who share a region. The first call of any function
/// but now and close attaches to it; after a failure, the next call tries again
///
/// options: name, directory, maxKeys, max, room (these three may be 0: see HeldRegionOptions),
/// maxAge in us, 0 if there is none, and hasClock: whether there is a user's clock
/// callbacks: numbers, refuse and exhausted as of createHeldCounts, `failed` as in
/// MakeLocalFunctions
///
/// acquire(id) reads numbers[0..2]: the max, the cost, and the user's clock in us, NaN if there is
///   none. Writes numbers[0]: what is used of the id then, or if it is refused -1 - what is used;
///   and numbers[1]: the handle of what was acquired, which release makes free for another one, or
///   if it is refused, whether that is for want of room
/// release() and counts() read a handle from numbers[0], and write whether it counted until now,
///   or counts
/// used(id) -> what is used; reads the user's clock from numbers[0]
/// clear(id), clear()
/// stats() writes numbers[0..2]: ids that have a place, what is held here, bytes
/// now() -> us, of the host's clock
/// close() frees what is held and leaves the region; no other function must be called after it
Napi::Value CreateSharedSlots(const Napi::CallbackInfo& info);

/// createRedisClient(options, callbacks) -> the functions below: the client of one connection, or
/// of a cluster. It has no sockets, no timer and no event loop: lib has them
///
/// options: { server, connectTimeout, commandTimeout, maxQueue, retryMin, retryMax, hasTls }.
/// `server` names the only server in messages; '' is a cluster
///
/// callbacks: functions that the client calls, only within a function that returns when onTime is
/// due. A node has one socket at a time, and numbers them.
///   find(node, attempt, name)      connect must follow, with this node and attempt
///   findMap()                      setMap must follow
///   open(node, socket, index)      connect a socket to the address of the node's route at `index`
///   output                         Uint8Array for write
///   write(node, count) -> whether the socket takes more; if not, onWritable must follow. Sends so
///                                  many bytes of output
///   close(node)
///   forget(node)                   it will not be used any more
///   turn()                         onTurn must follow in the next turn of the event loop
///   numbers                        Float64Array for settle and fail
///   settle(count)                  reads records: the number of a call, how many integers follow,
///                                  and the script's integers. onMore must follow once the callers
///                                  had a chance to call again
///   fail(kind, message, count)     reads the numbers of `count` calls. A `notFound` failure has
///                                  the number of the node as its message: see connect and setMap
///   reply(call, value)             for commands
///   changed(isUp)                  a connection was made or lost; in a cluster the first or last
///
/// createLimiter(keyPrefix, keySuffix, source, sha1) -> { ask }, with the source of the script and
///   its SHA-1
/// ask(id, head, length, isApart, isChange, amounts) -> the number of the call, or -1 if too many
///   are pending. The id is a well-formed string; `head`, a Uint8Array, and the next three are of a
///   question (questions.js); `amounts` is a Float64Array, or a number that is an amount if it is
///   above 1
/// command(words, node, key) -> the same, for a command to `node`, or to the owner of `key` if
///   `node` is ''
///   After a call, onTurn must follow before the turn of the event loop ends, or onMore sooner
/// onTurn(), onMore(), onTime(), onAccepted(node, socket), onConnected(node, socket),
///   onBytes(node, socket, buffer, count), onEnd(node, socket, error), onWritable(node, socket),
///   connect, setMap and close return when onTime must be called, in ms as now() tells, or
///   Infinity. With TLS, onAccepted comes before onConnected
/// connect(node, attempt, route?) route: { addresses: [], greeting: [[]], wantsMaster }; without
///   one, there is none
/// setMap(ranges?) ranges: [first slot, last slot, 'host:port' of the node]; none: no node gave one
/// nodes() -> { owners, connected }, names; nodeOf(key) -> the number of a node, or 0 if it is not
///   known; roomAt(node) -> how many more calls to it may be pending
/// stats() -> { isUp, pending, connections }; close() fails pending calls
Napi::Value CreateRedisClient(const Napi::CallbackInfo& info);

}  // namespace rollgate::binding
