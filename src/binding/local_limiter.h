// One limiter that answers at once: what its native functions share, its store above all, and the
// way from a call in JavaScript to a decision and back.
//
// The functions that are called for each request are raw, and compiled for each kind of store, so
// that an attempt becomes a part of them.
#pragma once

#include <napi.h>

#include <array>
#include <cassert>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "binding/functions.h"
#include "binding/id_reader.h"
#include "binding/monotonic_clock.h"
#include "binding/values.h"
#include "core/decision.h"
#include "core/identity.h"
#include "core/inlining.h"
#include "core/policy.h"
#include "core/store.h"
#include "core/time.h"

namespace rollgate::binding {

/// The state behind one limiter's functions; deleted with the last of them.
struct LocalLimiter {
  /// Reads what it borrows of `keep`, and what follows from the policy.
  LocalLimiter(const Napi::Object& keep, const Policy& policy);
  ~LocalLimiter();

  /// Lets go of the store, if there is one or was to be.
  void Close();

  /// Lets V8 know how much hangs on its small objects, so that it looks for dropped limiters in
  /// time.
  ROLLGATE_COLD void TellMemory();

  // What Attach, ReadTime and AfterAttempt seldom do.
  ROLLGATE_COLD void AttachNow();
  ROLLGATE_COLD bool AskClock(Micros& now);
  ROLLGATE_COLD void TellOfEvictions();

  /// Finds the store of a limiter that has none yet and is not closed. Before the first id is read,
  /// as the store says what ids are reduced by.
  void Attach() {
    if (!store) [[unlikely]] {
      AttachNow();
    }
  }

  /// Reads the time and makes sure that the limiter is open; false with an exception pending
  /// otherwise.
  bool ReadTime(Micros& now) {
    if (clock.IsEmpty()) [[likely]] {
      now = monotonic_clock.Now() + epoch_offset;
    } else if (!AskClock(now)) {
      return false;
    }
    // The user's clock may have closed the limiter: look at the store only now.
    if (store) [[likely]] {
      return true;
    }
    Invoke(closed);
    return false;
  }

  /// What is due after a call that may have added ids.
  void AfterAttempt() {
    if ((++calls & 0xfff) == 0) [[unlikely]] {
      TellMemory();
    }
    if (has_evicted) [[unlikely]] {
      TellOfEvictions();
    }
  }

  /// The store, known to be an `S`.
  template <class S>
  S& StoreAs() {
    assert(dynamic_cast<S*>(store.get()) != nullptr);
    return static_cast<S&>(*store);
  }

  std::unique_ptr<Store> store;  // null once closed, and until `attach` was called
  Secret secret;
  Micros epoch_offset = 0;  // from the built-in clock's readings to times of day, where they matter
  MonotonicClock monotonic_clock;
  Napi::FunctionReference clock;                     // the user's, if any
  const std::uint8_t* observes_decisions = nullptr;  // keep's own memory: not 0 while it does
  const std::uint8_t* observes_evictions = nullptr;
  double* report = nullptr;     // keep.report's own memory
  std::vector<WindowUse> uses;  // what decisions are written through
  std::uint32_t calls = 0;
  bool has_evicted = false;  // and JavaScript has not been told yet
  bool has_told_of_evictions = false;
  bool refunds_ask_time = false;
  int functions = 0;  // that point here

  Napi::Env env;
  /// Where the first call finds the store: sets it, and what goes with it. Throws what that throws,
  /// and is called again then.
  std::function<void(LocalLimiter&)> attach;
  std::int64_t (*bytes_to_tell)(const Store&) = nullptr;  // what V8 is to know of
  std::int64_t bytes_told = 0;                            // how much V8 knows of
  Napi::FunctionReference refuse;
  Napi::FunctionReference closed;
  Napi::FunctionReference exhausted;
  Napi::FunctionReference failed;
  Napi::FunctionReference call_back;
  Napi::FunctionReference evicted;
  Napi::FunctionReference decided;
};

// Called for each request.

template <class S>
ROLLGATE_FLATTEN napi_value Check(napi_env env, napi_callback_info info) {
  Call<LocalLimiter, 2> call(env, info);
  LocalLimiter& limiter = *call.state;
  const napi_value id = call.arguments[0];
  if (call.count >= 2 && !IsType(env, call.arguments[1], napi_undefined)) {
    return Invoke(limiter.call_back, call.arguments);
  }
  limiter.Attach();
  Identity identity;
  if (!ReadIdentity(env, id, limiter.secret, identity)) [[unlikely]] {
    if (!IsType(env, id, napi_function)) return Invoke(limiter.refuse, {&id, 1});
    napi_value undefined = nullptr;
    napi_get_undefined(env, &undefined);
    return Invoke(limiter.call_back, std::array{undefined, id});
  }
  Micros now;
  if (!limiter.ReadTime(now)) return nullptr;
  const Micros time_left = limiter.StoreAs<S>().Check(identity, now);
  limiter.AfterAttempt();
  const napi_value told = ToJs(env, CeilToMillis(time_left));
  if (*limiter.observes_decisions != 0) [[unlikely]] {
    Invoke(limiter.decided, std::array{id, told});
  }
  return told;
}

template <class S>
ROLLGATE_FLATTEN napi_value Decide(napi_env env, napi_callback_info info) {
  Call<LocalLimiter, 4> call(env, info);
  LocalLimiter& limiter = *call.state;
  limiter.Attach();
  const napi_value id = call.arguments[0];
  Identity identity;
  if (!ReadIdentity(env, id, limiter.secret, identity)) return Invoke(limiter.refuse, {&id, 1});
  // The id alone asks for an attempt of cost 1.
  const bool is_common = call.count == 1;
  const auto cost = is_common ? 1 : static_cast<std::uint64_t>(ReadDouble(env, call.arguments[1]));
  const bool records = is_common || ReadBool(env, call.arguments[2]);
  Micros now;
  if (!limiter.ReadTime(now)) return nullptr;
  if (call.count == 4) {
    limiter.store->SetMax(static_cast<std::uint64_t>(ReadDouble(env, call.arguments[3])), records);
  }
  Decision decision;
  decision.windows = limiter.uses;
  if (records) {
    limiter.StoreAs<S>().Attempt(identity, now, cost, decision);
  } else {
    limiter.store->Peek(identity, now, cost, decision);
  }
  WriteDecision(decision, limiter.report);
  if (records) limiter.AfterAttempt();
  return nullptr;
}

// Called less often, by way of any store's interface.

Napi::Value DecideMany(const Napi::CallbackInfo& info);
Napi::Value Refund(const Napi::CallbackInfo& info);
Napi::Value Clear(const Napi::CallbackInfo& info);
Napi::Value Stats(const Napi::CallbackInfo& info);
Napi::Value Close(const Napi::CallbackInfo& info);

/// Answers what the store throws with one of lib's exceptions: see Guarded.
ROLLGATE_COLD napi_value AnswerFailure(napi_env env, napi_callback_info info);

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
Napi::Value MakeLocalFunctions(std::unique_ptr<LocalLimiter> limiter) {
  static constexpr std::array kFunctions{
      Function{"check", Guarded<Check<S>, AnswerFailure>, "limiter"},
      Function{"decide", Guarded<Decide<S>, AnswerFailure>},
      Function{"decideMany", Guarded<DecideMany, AnswerFailure>},
      Function{"refund", Guarded<Refund, AnswerFailure>},
      Function{"clear", Guarded<Clear, AnswerFailure>},
      Function{"stats", Guarded<Stats, AnswerFailure>},
      Function{"close", Guarded<Close, AnswerFailure>},
  };
  const Napi::Env env = limiter->env;
  return MakeFunctions(env, std::move(limiter), kFunctions);
}

}  // namespace rollgate::binding
