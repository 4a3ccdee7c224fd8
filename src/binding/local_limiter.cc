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

LocalLimiter::LocalLimiter(const Napi::Object& callbacks, PolicyOptions options)
    : clock(Borrow(callbacks, "clock")),
      policy(std::move(options)),
      calendars(callbacks),
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
  limits_of_call = ReadArray<double>(env, callbacks.Get("limits")).data();
  assert(observes_decisions != nullptr && observes_evictions != nullptr && numbers != nullptr);
  policy.calendars = &calendars;
  uses.resize(policy.windows.size());
  limits.resize(uses.size());
  traits = TraitsOf(Policy(policy));
  Align(alignment);
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

void LocalLimiter::UseLimits(std::span<const std::uint64_t> limits, Micros now) {
  if (store->UseLimits(limits)) return;
  PolicyOptions wider = policy;
  wider.largest_limit = LargestLimitFor(limits);
  ReplaceStore(std::move(wider), now);
  store->UseLimits(limits);
}

void LocalLimiter::MakeRoomToRecord(Micros now) {
  if (grows_to_record == 0) return;
  UseLimits(std::vector<std::uint64_t>(uses.size(), grows_to_record), now);
  store->UseLimits({});
}

void LocalLimiter::ReplaceStore(PolicyOptions options, Micros now) {
  const StoreStats last = store->stats();
  set_limits(*this, options, now);
  policy = std::move(options);
  before.Add(last);
  ReportMemory();
}

namespace {

/// What a call brings of its own, as long as this lives.
class TermsOfCall {
 public:
  TermsOfCall(LocalLimiter& limiter, std::span<const std::uint64_t> limits, Micros now,
              bool has_calendars)
      : limiter_(limiter), has_limits_(!limits.empty()) {
    if (has_limits_) limiter.UseLimits(limits, now);
    limiter.calendars.are_of_call = has_calendars;
  }
  ~TermsOfCall() {
    limiter_.calendars.are_of_call = false;
    if (has_limits_) limiter_.store->UseLimits({});
  }
  TermsOfCall(const TermsOfCall&) = delete;
  TermsOfCall& operator=(const TermsOfCall&) = delete;

 private:
  LocalLimiter& limiter_;
  bool has_limits_;
};

}  // namespace

napi_value DecideWithin(napi_env env, napi_callback_info info) {
  constexpr std::uint32_t kLimits = 1;
  constexpr std::uint32_t kCalendars = 2;
  Call<LocalLimiter, 4> call(env, info);
  LocalLimiter& limiter = *call.state;
  limiter.Attach();
  const napi_value id = call.arguments[0];
  Identity identity;
  if (!ReadIdentity(env, id, limiter.secret, identity)) return Invoke(limiter.refuse, {&id, 1});
  std::uint32_t given = 0;
  napi_get_value_uint32(env, call.arguments[1], &given);
  const bool is_common = call.count == 2;
  const Recording recording =
      is_common ? Recording::kAttempt : ReadRecording(env, call.arguments[3]);
  const std::size_t count = (given & kLimits) != 0 ? limiter.limits.size() : 0;
  std::copy_n(limiter.limits_of_call, count, limiter.limits.begin());
  // The user's clock may call this function with others.
  std::vector<std::uint64_t> kept;
  if (!limiter.clock.IsEmpty()) kept = limiter.limits;
  Micros now;
  if (!limiter.ReadTime(now)) return nullptr;
  if (!limiter.clock.IsEmpty()) limiter.limits = std::move(kept);
  const Costs costs = is_common ? Costs(1) : ReadCosts(env, call.arguments[2], limiter.costs);
  Decision decision;
  decision.windows = limiter.uses;
  if (recording == Recording::kRecord) limiter.MakeRoomToRecord(now);
  {
    const std::span limits(limiter.limits.data(), count);
    const TermsOfCall terms(limiter, limits, now, (given & kCalendars) != 0);
    limiter.store->Decide(identity, now, costs, recording, decision);
  }
  WriteDecision(decision, limiter.numbers);
  if (RecordsActions(recording)) limiter.AfterAttempt();
  return nullptr;
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
  // Memory needs no time for this.
  if (is_id && settlement.IsOverdraft()) limiter.MakeRoomToRecord(now);
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
  policy.calendars = &limiter.calendars;
  if (limiter.attach) {
    limiter.policy = std::move(policy);
    return {};
  }
  Micros now;
  if (!limiter.ReadTime(now)) return {};
  limiter.ReplaceStore(std::move(policy), now);
  limiter.built_in_clock.SetPeriod(PeriodOf(limiter.policy.windows));
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
