// A limiter that answers synchronously: the state that its native functions share, and the
// functions themselves.
//
// The functions that run once per check are raw, and compiled for each kind of store, so that the
// attempt is inlined into them.
#pragma once

#include <napi.h>

#include <array>
#include <cassert>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "binding/functions.h"
#include "binding/host_calendars.h"
#include "binding/host_clocks.h"
#include "binding/id_reader.h"
#include "binding/store_failure.h"
#include "binding/values.h"
#include "core/algorithms.h"
#include "core/alignment.h"
#include "core/decision.h"
#include "core/identity.h"
#include "core/inlining.h"
#include "core/policy.h"
#include "core/store.h"
#include "core/time.h"

namespace rollgate::binding {

/// The state of one limiter's functions.
struct LocalLimiter {
  LocalLimiter(const Napi::Object& callbacks, PolicyOptions options);
  ~LocalLimiter();

  /// Lets aligned windows follow the wall clock. The words must live as long as the store.
  void Align(AlignmentWords& words) {
    if (traits.aligns_to_epoch) built_in_clock.Align(words, PeriodOf(policy.windows));
  }

  /// Sets the limits of a call; none sets the own ones again. May replace the store by one that has
  /// room for them.
  void UseLimits(std::span<const std::uint64_t> limits, Micros now);

  /// Must be called before an action is recorded whatever the limits say.
  ROLLGATE_COLD void MakeRoomToRecord(Micros now);

  /// Puts a store with other limits, which has taken over all ids, in place of the store.
  void ReplaceStore(PolicyOptions options, Micros now);

  /// Frees the store, or prevents that one is attached.
  void Close();

  /// Reports the size of the store to V8, so that it collects unused limiters in time.
  ROLLGATE_COLD void ReportMemory();

  // The rare parts of Attach, ReadTime and AfterAttempt.
  ROLLGATE_COLD void AttachNow();
  ROLLGATE_COLD bool AskClock(Micros& now);
  ROLLGATE_COLD void ReportEvictions();

  /// Attaches to the store, if that is not done and the limiter is open. Must be called before an
  /// id is read, because the store has the secret.
  void Attach() {
    if (!store) [[unlikely]] {
      AttachNow();
    }
  }

  /// Reads the time. Returns false, with an exception pending, if the clock throws or the limiter
  /// is closed.
  bool ReadTime(Micros& now) {
    if (clock.IsEmpty() && store) [[likely]] {
      now = built_in_clock.Now();
      return true;
    }
    return AskClock(now);
  }

  /// Must be called after a call that may have added ids.
  void AfterAttempt() {
    if ((++calls & 0xfff) == 0) [[unlikely]] {
      ReportMemory();
    }
    if (has_evicted) [[unlikely]] {
      ReportEvictions();
    }
  }

  /// Sets the store. If it is an `S`, calls are compiled for it.
  template <class S>
  void Use(std::unique_ptr<Store> made) {
    store = std::move(made);
    expected = dynamic_cast<S*>(store.get());
  }

  /// Calls `call` with the store, as an `S` if it is one.
  template <class S, class Call>
  auto With(Call call) {
    if (expected != nullptr) [[likely]] {
      return call(static_cast<S&>(*expected));
    }
    return call(*store);
  }

  std::unique_ptr<Store> store;  // null before `attach` and after Close
  Store* expected = nullptr;     // the same, if it is of the expected class
  StoreStats before = {};        // attempts and evictions under earlier limits
  Secret secret;
  BuiltInClock built_in_clock;    // may refer to the store, so it is not read without one
  AlignmentWords alignment = {};  // of windows in memory
  Napi::FunctionReference clock;  // the user's, if any
  const std::uint8_t* observes_decisions = nullptr;  // points into `callbacks`
  const std::uint8_t* observes_evictions = nullptr;
  double* numbers = nullptr;  // points into `callbacks`
  const double* limits_of_call = nullptr;
  std::vector<WindowUse> uses;  // for decisions
  std::vector<std::uint64_t> costs;
  std::vector<std::uint64_t> limits;  // of a call
  std::uint32_t calls = 0;
  std::uint64_t grows_to_record = 0;  // see LimitToRecordUnder; 0 where the store cannot grow
  bool has_evicted = false;           // not yet reported to JavaScript
  bool has_reported_evictions = false;
  AlgorithmTraits traits;
  PolicyOptions policy;  // the current one
  HostCalendars calendars;

  Napi::Env env;
  /// Sets the store and the members that depend on it; called again after an exception.
  std::function<void(LocalLimiter&)> attach;
  std::function<void(LocalLimiter&, const PolicyOptions&, Micros)> set_limits;
  std::int64_t (*bytes_to_tell)(const Store&) = nullptr;  // for V8
  std::int64_t bytes_reported = 0;
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
  const Micros time_left = limiter.With<S>([&](auto& store) { return store.Check(identity, now); });
  limiter.AfterAttempt();
  const napi_value result = ToJs(env, CeilToMillis(time_left));
  if (*limiter.observes_decisions != 0) [[unlikely]] {
    Invoke(limiter.decided, std::array{id, result});
  }
  return result;
}

template <class S>
ROLLGATE_FLATTEN napi_value Decide(napi_env env, napi_callback_info info) {
  Call<LocalLimiter, 3> call(env, info);
  LocalLimiter& limiter = *call.state;
  limiter.Attach();
  const napi_value id = call.arguments[0];
  Identity identity;
  if (!ReadIdentity(env, id, limiter.secret, identity)) return Invoke(limiter.refuse, {&id, 1});
  // The id alone asks for an attempt of cost 1.
  const bool is_common = call.count == 1;
  const Recording recording =
      is_common ? Recording::kAttempt : ReadRecording(env, call.arguments[2]);
  const bool records = RecordsActions(recording);
  Micros now;
  if (!limiter.ReadTime(now)) return nullptr;
  // After the user's clock, which may call this function.
  const Costs costs = is_common ? Costs(1) : ReadCosts(env, call.arguments[1], limiter.costs);
  if (recording == Recording::kRecord) [[unlikely]] {
    limiter.MakeRoomToRecord(now);
  }
  Decision decision;
  decision.windows = limiter.uses;
  limiter.With<S>([&](auto& store) { store.Decide(identity, now, costs, recording, decision); });
  WriteDecision(decision, limiter.numbers);
  if (records) limiter.AfterAttempt();
  return nullptr;
}

// Called less often, through the interface Store.

napi_value DecideWithin(napi_env env, napi_callback_info info);
Napi::Value DecideMany(const Napi::CallbackInfo& info);
Napi::Value Settle(const Napi::CallbackInfo& info);
Napi::Value BlockId(const Napi::CallbackInfo& info);
Napi::Value SetLimits(const Napi::CallbackInfo& info);
Napi::Value Clear(const Napi::CallbackInfo& info);
Napi::Value Stats(const Napi::CallbackInfo& info);
Napi::Value Close(const Napi::CallbackInfo& info);

/// The functions of a limiter -> { check, decide, decideWithin, decideMany, settle, block,
/// setLimits, clear, stats, close }
///
/// callbacks:
///   numbers      Float64Array that decide and stats write to
///   refuse      (id) => throws: the value is not an id
///   closed      () => throws: the limiter is closed
///   exhausted   () => throws: there is no memory left; nothing was recorded
///   failed      (kind, message) => throws: a SharedError of that kind; for shared memory
///   callBack    (id, callback) => undefined: attempts, then calls back
///   evicted     () => undefined: an id was evicted. Called for the first one, and for each
///               while evictions are observed
///   decided     (id, timeLeft) => undefined: the result of check, while decisions are observed
///   observesDecisions, observesEvictions  Uint8Array of one byte, not 0 while somebody subscribes
///   clock       undefined, or () => us: throws if the user's clock fails
///   findWindow, span  see HostCalendars
///   limits      Float64Array of the limits of the current call, one for each window
///
/// check(id?, callback?) -> time left in ms, 0 if allowed
/// decide(id, cost, records) writes numbers[0..]: see WriteDecision. For costs, see ReadCosts.
///   At cost 0, nothing is recorded, and the numbers show the current usage
/// decideWithin(id, terms, cost?, records?) decides under terms of the call. Bits: 1 under
/// `limits`,
///   2 with calendars of its own, for which findWindow answers
/// decideMany(ids, numbers) attempts each id at cost 1, and writes the decisions one after another
///   to the Float64Array; nothing happens if one id is invalid
/// settle(id, at, token, cost, actual) -> boolean
/// block(id, duration) refuses the id for so long in us; 0 ends the block
/// setLimits(policy) of the same shape: as many windows, the same algorithm
/// clear(id) -> boolean; clear() forgets all ids
/// stats() writes numbers[0..4]: keys, allowed, blocked, evicted, bytes
/// close() frees the store; every later call throws by closed()
///
/// The limiter's store, now or after `attach`, is usually an `S`.
template <class S>
Napi::Value MakeLocalFunctions(std::unique_ptr<LocalLimiter> limiter) {
  static constexpr std::array kFunctions{
      Function{"check", Guarded<Check<S>, AnswerStoreFailure<LocalLimiter>>, "limiter"},
      Function{"decide", Guarded<Decide<S>, AnswerStoreFailure<LocalLimiter>>},
      Function{"decideWithin", Guarded<DecideWithin, AnswerStoreFailure<LocalLimiter>>},
      Function{"decideMany", Guarded<DecideMany, AnswerStoreFailure<LocalLimiter>>},
      Function{"settle", Guarded<Settle, AnswerStoreFailure<LocalLimiter>>},
      Function{"block", Guarded<BlockId, AnswerStoreFailure<LocalLimiter>>},
      Function{"setLimits", Guarded<SetLimits, AnswerStoreFailure<LocalLimiter>>},
      Function{"clear", Guarded<Clear, AnswerStoreFailure<LocalLimiter>>},
      Function{"stats", Guarded<Stats, AnswerStoreFailure<LocalLimiter>>},
      Function{"close", Guarded<Close, AnswerStoreFailure<LocalLimiter>>},
  };
  const Napi::Env env = limiter->env;
  return MakeFunctions(env, std::move(limiter), kFunctions);
}

}  // namespace rollgate::binding
