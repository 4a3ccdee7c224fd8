// The way from a call in JavaScript to a decision and back.
//
// Measured: a raw Node-API callback with its state in the data pointer costs half of a wrapped
// method, so all functions here are raw. What is called for each request is made anew for each kind
// of store, so that an attempt is compiled into it.
#pragma once

#include <node_api.h>

#include <array>
#include <cassert>
#include <cstdint>
#include <memory>
#include <utility>

#include "binding/borrowed.h"
#include "binding/decision_writer.h"
#include "binding/functions.h"
#include "binding/id_reader.h"
#include "binding/local_limiter.h"
#include "binding/values.h"
#include "core/decision.h"
#include "core/identity.h"
#include "core/inlining.h"
#include "core/time.h"
#include "shared/shared_error.h"

namespace rollgate::binding {

// What Attach, ReadTime and AfterAttempt seldom do.
ROLLGATE_COLD void AttachNow(napi_env env, LocalLimiter& limiter);
ROLLGATE_COLD bool AskClock(napi_env env, LocalLimiter& limiter, Micros& now);
ROLLGATE_COLD void TellOfEvictions(LocalLimiter& limiter);

/// Finds the store of a limiter that has none yet and is not closed. Before the first id is read,
/// as the store says what ids are reduced by.
inline void Attach(napi_env env, LocalLimiter& limiter) {
  if (!limiter.store) [[unlikely]] {
    AttachNow(env, limiter);
  }
}

/// What is due after a call that may have added ids.
inline void AfterAttempt(napi_env env, LocalLimiter& limiter) {
  if ((++limiter.calls & 0xfff) == 0) [[unlikely]] {
    TellMemory(env, limiter);
  }
  if (limiter.has_evicted) [[unlikely]] {
    TellOfEvictions(limiter);
  }
}

/// Reads the time and makes sure that the limiter is open; false with an exception pending
/// otherwise.
inline bool ReadTime(napi_env env, LocalLimiter& limiter, Micros& now) {
  if (!limiter.clock) [[likely]] {
    now = limiter.monotonic_clock.Now() + limiter.epoch_offset;
  } else if (!AskClock(env, limiter, now)) {
    return false;
  }
  // The user's clock may have closed the limiter: look at the store only now.
  if (limiter.store) [[likely]] {
    return true;
  }
  limiter.closed.Call();
  return false;
}

/// The store of a limiter, known to be an `S`.
template <class S>
S& StoreAs(LocalLimiter& limiter) {
  assert(dynamic_cast<S*>(limiter.store.get()) != nullptr);
  return static_cast<S&>(*limiter.store);
}

// Called for each request.

template <class S>
ROLLGATE_FLATTEN napi_value Check(napi_env env, napi_callback_info info) {
  Call<LocalLimiter, 2> call(env, info);
  LocalLimiter& limiter = *call.state;
  const napi_value id = call.arguments[0];
  if (call.count >= 2 && !IsType(env, call.arguments[1], napi_undefined)) {
    return limiter.call_back.Call(call.arguments);
  }
  Attach(env, limiter);
  Identity identity;
  if (!ReadIdentity(env, id, limiter.secret, identity)) [[unlikely]] {
    if (!IsType(env, id, napi_function)) return limiter.refuse.Call({&id, 1});
    napi_value undefined = nullptr;
    napi_get_undefined(env, &undefined);
    return limiter.call_back.Call(std::array{undefined, id});
  }
  Micros now;
  if (!ReadTime(env, limiter, now)) return nullptr;
  const Micros time_left = StoreAs<S>(limiter).Check(identity, now);
  AfterAttempt(env, limiter);
  const napi_value told = ToJs(env, CeilToMillis(time_left));
  if (*limiter.observes_decisions != 0) [[unlikely]] {
    limiter.decided.Call(std::array{id, told});
  }
  return told;
}

template <class S>
ROLLGATE_FLATTEN napi_value Decide(napi_env env, napi_callback_info info) {
  Call<LocalLimiter, 4> call(env, info);
  LocalLimiter& limiter = *call.state;
  Attach(env, limiter);
  const napi_value id = call.arguments[0];
  Identity identity;
  if (!ReadIdentity(env, id, limiter.secret, identity)) return limiter.refuse.Call({&id, 1});
  // The id alone asks for an attempt of cost 1.
  const bool is_common = call.count == 1;
  const auto cost = is_common ? 1 : static_cast<std::uint64_t>(ReadDouble(env, call.arguments[1]));
  const bool records = is_common || ReadBool(env, call.arguments[2]);
  Micros now;
  if (!ReadTime(env, limiter, now)) return nullptr;
  if (call.count == 4) {
    limiter.store->SetMax(static_cast<std::uint64_t>(ReadDouble(env, call.arguments[3])), records);
  }
  Decision decision;
  decision.windows = limiter.uses;
  if (records) {
    StoreAs<S>(limiter).Attempt(identity, now, cost, decision);
  } else {
    limiter.store->Peek(identity, now, cost, decision);
  }
  WriteDecision(decision, limiter.report);
  if (records) AfterAttempt(env, limiter);
  return nullptr;
}

// Called less often, by way of any store's interface.

napi_value DecideMany(napi_env env, napi_callback_info info);
napi_value Refund(napi_env env, napi_callback_info info);
napi_value Clear(napi_env env, napi_callback_info info);
napi_value Stats(napi_env env, napi_callback_info info);
napi_value Close(napi_env env, napi_callback_info info);

/// A callback that answers what the store throws with an exception in JavaScript.
template <napi_value (*kCallback)(napi_env, napi_callback_info)>
napi_value Answered(napi_env env, napi_callback_info info) {
  try {
    return kCallback(env, info);
  } catch (const SharedError& error) {
    return Fail(env, Call<LocalLimiter, 0>(env, info).state->failed, error);
  }
}

template <napi_value (*kCallback)(napi_env, napi_callback_info)>
constexpr napi_callback kGuarded = Guarded<LocalLimiter, Answered<kCallback>>;

/// The functions of a limiter -> { check, decide, decideMany, refund, clear, stats, close }
///
/// `keep`, which it has read, is an object that lib holds as long as any of the functions; the
/// native side only borrows what it finds there, so nothing is kept alive by a reference that the
/// garbage collector does not see:
///   report      Float64Array that decide and stats write to
///   refuse      (id) => throws: the value is no id
///   closed      () => throws: the limiter is closed
///   exhausted   () => throws: there is no memory left; nothing was recorded
///   failed      (kind, message) => throws: a SharedError of that kind; for shared ones only
///   callBack    (id, callback) => undefined: attempts, then calls back
///   evicted     () => undefined: an id was dropped for want of room; told once, and for each call
///               that does so while evictions are observed
///   decided     (id, timeLeft) => undefined: what check gives, told while decisions are observed
///   observesDecisions, observesEvictions  Uint8Array of one byte: not 0 while somebody does
///   clock       undefined, or () => us: throws when the user's clock fails
///
/// check(id?, callback?) -> time left in ms, 0 when allowed
/// decide(id, cost, records, max?) writes report[0..]: see WriteDecision. A cost of 0 records
///   nothing and tells what is used. A max is given where setsMax is true: that of the window from
///   now on
/// decideMany(ids, numbers) attempts them all at cost 1 and writes a decision for each into the
///   Float64Array, one behind the other; nothing happens if one id is wrong
/// refund(id, at, cost, token) -> boolean
/// clear(id) -> boolean; clear() forgets all ids
/// stats() writes report[0..4]: keys, allowed, blocked, evicted, bytes
/// close() lets go of the store; every call afterwards ends in closed()
///
/// Precondition: the limiter's store, or the one that its `attach` finds, is an `S`.
template <class S>
napi_value MakeLocalFunctions(napi_env env, std::unique_ptr<LocalLimiter> limiter) {
  static constexpr std::array kFunctions{
      Function{"check", kGuarded<Check<S>>, "limiter"},
      Function{"decide", kGuarded<Decide<S>>},
      Function{"decideMany", kGuarded<DecideMany>},
      Function{"refund", kGuarded<Refund>},
      Function{"clear", kGuarded<Clear>},
      Function{"stats", kGuarded<Stats>},
      Function{"close", kGuarded<Close>},
  };
  return MakeFunctions(env, std::move(limiter), kFunctions);
}

}  // namespace rollgate::binding
