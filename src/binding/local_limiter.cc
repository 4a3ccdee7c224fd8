// Creates and closes limiters, and has the functions that run seldom.
#include "binding/local_limiter.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <new>
#include <span>

namespace rollgate::binding {
namespace {

std::atomic<std::int64_t> live_limiters{0};

}  // namespace

LocalLimiter::LocalLimiter(const Napi::Object& callbacks, const Policy& policy)
    : clock(Borrow(callbacks, "clock")),
      env(callbacks.Env()),
      refuse(Borrow(callbacks, "refuse")),
      closed(Borrow(callbacks, "closed")),
      exhausted(Borrow(callbacks, "exhausted")),
      failed(Borrow(callbacks, "failed")),
      call_back(Borrow(callbacks, "callBack")),
      evicted(Borrow(callbacks, "evicted")),
      decided(Borrow(callbacks, "decided")) {
  const auto flag = [&](const char* name) {
    return ReadArray<const std::uint8_t>(env, callbacks.Get(name)).data();
  };
  observes_decisions = flag("observesDecisions");
  observes_evictions = flag("observesEvictions");
  numbers = ReadArray<double>(env, callbacks.Get("numbers")).data();
  assert(observes_decisions != nullptr && observes_evictions != nullptr && numbers != nullptr);
  uses.resize(policy.windows().size());
  traits = TraitsOf(policy);
  Align(alignment, policy.longest_interval());
  ++live_limiters;
}

LocalLimiter::~LocalLimiter() {
  Close();
  --live_limiters;
}

void LocalLimiter::Close() {
  attach = nullptr;
  expected = nullptr;
  store.reset();
  ReportMemory();
}

void LocalLimiter::ReportMemory() {
  const std::int64_t bytes = store ? bytes_to_tell(*store) : 0;
  if (bytes == bytes_reported) return;
  Napi::MemoryManagement::AdjustExternalMemory(env, bytes - bytes_reported);
  bytes_reported = bytes;
}

void LocalLimiter::AttachNow() {
  if (!attach) return;
  attach(*this);
  attach = nullptr;
  ReportMemory();
}

bool LocalLimiter::AskClock(Micros& now) {
  if (!clock.IsEmpty()) {
    const napi_value result = Invoke(clock);
    double micros;
    if (result == nullptr || napi_get_value_double(env, result, &micros) != napi_ok) return false;
    now = TimeFromJs(micros);
    if (store) return true;  // the clock may have closed the limiter
  }
  Invoke(closed);
  return false;
}

void LocalLimiter::ReportEvictions() {
  has_evicted = false;
  if (!has_reported_evictions || *observes_evictions != 0) Invoke(evicted);
  has_reported_evictions = true;
}

Napi::Value DecideMany(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  auto& limiter = StateOf<LocalLimiter>(info);
  limiter.Attach();
  const auto ids = info[0].As<Napi::Array>();
  const std::uint32_t count = ids.Length();
  std::vector<Identity> identities(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const Napi::HandleScope scope(env);
    const napi_value id = ids.Get(i);
    if (!ReadIdentity(env, id, limiter.secret, identities[i])) {
      Invoke(limiter.refuse, {&id, 1});
      return {};
    }
  }
  Micros now;
  if (!limiter.ReadTime(now)) return {};
  const std::size_t length = DecisionLength(limiter.uses.size());
  const std::span<double> out = ReadArray<double>(env, info[1]);
  if (out.size() < count * length) return {};
  Decision decision;
  decision.windows = limiter.uses;
  for (std::uint32_t i = 0; i < count; ++i) {
    limiter.store->Decide(identities[i], now, 1, Recording::kAttempt, decision);
    WriteDecision(decision, &out[i * length]);
  }
  limiter.AfterAttempt();
  return {};
}

Napi::Value Settle(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  auto& limiter = StateOf<LocalLimiter>(info);
  limiter.Attach();
  if (!limiter.store) return {env, Invoke(limiter.closed)};
  Identity identity;
  const bool is_id = ReadIdentity(env, info[0], limiter.secret, identity);
  const Settlement settlement(info);
  Micros now = 0;
  if (limiter.traits.settles_ask_time && !limiter.ReadTime(now)) return {};
  return Napi::Boolean::New(
      env, is_id && limiter.store->Settle(identity, settlement.receipt, settlement.actual, now));
}

Napi::Value BlockId(const Napi::CallbackInfo& info) {
  auto& limiter = StateOf<LocalLimiter>(info);
  limiter.Attach();
  const napi_value id = info[0];
  Identity identity;
  if (!ReadIdentity(info.Env(), id, limiter.secret, identity)) {
    return {info.Env(), Invoke(limiter.refuse, {&id, 1})};
  }
  Micros now;
  if (!limiter.ReadTime(now)) return {};
  limiter.store->BlockFor(identity, now, TimeFromJs(ReadDouble(info.Env(), info[1])));
  limiter.AfterAttempt();
  return {};
}

Napi::Value SetLimits(const Napi::CallbackInfo& info) {
  auto& limiter = StateOf<LocalLimiter>(info);
  PolicyOptions policy = ReadPolicy(info.Env(), info[0]);
  if (limiter.attach) {
    limiter.policy_to_attach.emplace(std::move(policy));
    return {};
  }
  const Micros longest = std::ranges::max(policy.windows, {}, &Window::interval).interval;
  Micros now;
  if (!limiter.ReadTime(now)) return {};
  const StoreStats last = limiter.store->stats();
  limiter.set_limits(limiter, std::move(policy), now);
  limiter.built_in_clock.SetPeriod(longest);
  limiter.before.Add(last);
  limiter.ReportMemory();
  return {};
}

Napi::Value Clear(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  auto& limiter = StateOf<LocalLimiter>(info);
  limiter.Attach();
  if (!limiter.store) return {env, Invoke(limiter.closed)};
  if (info.Length() == 0) {
    limiter.store->ClearAll();
    limiter.ReportMemory();
    return {};
  }
  const napi_value id = info[0];
  Identity identity;
  if (!ReadIdentity(env, id, limiter.secret, identity)) {
    return {env, Invoke(limiter.refuse, {&id, 1})};
  }
  return Napi::Boolean::New(env, limiter.store->Clear(identity));
}

Napi::Value Stats(const Napi::CallbackInfo& info) {
  auto& limiter = StateOf<LocalLimiter>(info);
  limiter.Attach();
  if (!limiter.store) return {info.Env(), Invoke(limiter.closed)};
  StoreStats stats = limiter.store->stats();
  stats.Add(limiter.before);
  WriteStats(stats, limiter.numbers);
  return {};
}

Napi::Value Close(const Napi::CallbackInfo& info) {
  StateOf<LocalLimiter>(info).Close();
  return {};
}

Napi::Value LiveLimiters(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), static_cast<double>(live_limiters));
}

}  // namespace rollgate::binding
