// Decides on states that are bytes in JavaScript.
#include "core/portable_limiter.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "binding/addon.h"
#include "binding/functions.h"
#include "binding/host_calendars.h"
#include "binding/values.h"

namespace rollgate::binding {
namespace {

/// The state of one limiter's functions.
struct PortableFunctions {
  PortableFunctions(PolicyOptions options, const Napi::Object& callbacks)
      : calendars(callbacks), uses(options.windows.size()) {
    options.calendars = &calendars;
    limiter = PortableLimiter::Create(Policy(std::move(options)));
  }

  HostCalendars calendars;
  std::unique_ptr<PortableLimiter> limiter;
  std::vector<WindowUse> uses;  // for decisions
  std::vector<std::uint64_t> costs;
  std::vector<std::uint64_t> limits;  // of a call
  std::vector<std::byte> next;        // state
  Napi::FunctionReference exhausted;
  double* numbers = nullptr;  // points into `callbacks`
};

/// The bytes of a state; none if the value is undefined.
std::span<const std::byte> ReadState(napi_env env, napi_value value) {
  return ReadArray<const std::byte>(env, value);
}

napi_value ToJs(napi_env env, PortableLimiter::Outcome outcome, std::span<const std::byte> next) {
  napi_value value = nullptr;
  switch (outcome) {
    case PortableLimiter::Outcome::kUnchanged:
      napi_get_undefined(env, &value);
      break;
    case PortableLimiter::Outcome::kForeign:
      napi_get_null(env, &value);
      break;
    case PortableLimiter::Outcome::kChanged: {
      void* bytes = nullptr;
      if (napi_create_arraybuffer(env, next.size(), &bytes, &value) != napi_ok) return nullptr;
      std::copy(next.begin(), next.end(), static_cast<std::byte*>(bytes));
      break;
    }
  }
  return value;
}

napi_value Decide(napi_env env, napi_callback_info info) {
  Call<PortableFunctions, 7> call(env, info);
  PortableFunctions& self = *call.state;
  const std::span<const std::byte> state = ReadState(env, call.arguments[0]);
  const Costs costs = ReadCosts(env, call.arguments[1], self.costs);
  const Recording recording = ReadRecording(env, call.arguments[2]);
  const std::span<double> limits = ReadArray<double>(env, call.arguments[5]);
  self.limits.assign(limits.begin(), limits.end());
  self.limiter->UseLimits(self.limits);
  self.calendars.are_of_call = ReadBool(env, call.arguments[6]);
  const Micros now = TimeFromJs(ReadDouble(env, call.arguments[3]));
  const auto generation = static_cast<Generation>(ReadDouble(env, call.arguments[4]));
  Decision decision;
  decision.windows = self.uses;
  const PortableLimiter::Outcome outcome =
      self.limiter->Decide(state, now, costs, recording, generation, decision, self.next);
  if (!self.limits.empty()) self.limiter->UseLimits({});
  if (outcome != PortableLimiter::Outcome::kForeign) WriteDecision(decision, self.numbers);
  return ToJs(env, outcome, self.next);
}

/// Raw, because it is called for each state that is written.
napi_value Lifetime(napi_env env, napi_callback_info info) {
  const Call<PortableFunctions, 2> call(env, info);
  const Micros now = TimeFromJs(ReadDouble(env, call.arguments[1]));
  const Micros lifetime = call.state->limiter->Lifetime(ReadState(env, call.arguments[0]), now);
  return binding::ToJs(env, lifetime);
}

Napi::Value Settle(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  auto& self = StateOf<PortableFunctions>(info);
  const Micros now = TimeFromJs(ReadDouble(env, info[5]));
  const Settlement settlement(info);
  const PortableLimiter::Outcome outcome = self.limiter->Settle(
      ReadState(env, info[0]), settlement.receipt, settlement.actual, now, self.next);
  return {env, ToJs(env, outcome, self.next)};
}

Napi::Value BlockId(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  auto& self = StateOf<PortableFunctions>(info);
  const Micros now = TimeFromJs(ReadDouble(env, info[2]));
  const auto generation = static_cast<Generation>(ReadDouble(env, info[3]));
  const PortableLimiter::Outcome outcome = self.limiter->BlockFor(
      ReadState(env, info[0]), now, TimeFromJs(ReadDouble(env, info[1])), generation, self.next);
  return {env, ToJs(env, outcome, self.next)};
}

Napi::Value LargestState(const Napi::CallbackInfo& info) {
  const std::size_t bytes = StateOf<PortableFunctions>(info).limiter->largest_state();
  return Napi::Number::New(info.Env(), static_cast<double>(bytes));
}

constexpr std::array kFunctions{
    Function{"decide", Guarded<Decide, AnswerExhausted<PortableFunctions>>},
    Function{"settle", Guarded<Settle, AnswerExhausted<PortableFunctions>>},
    Function{"block", Guarded<BlockId, AnswerExhausted<PortableFunctions>>},
    Function{"lifetime", Guarded<Lifetime, AnswerExhausted<PortableFunctions>>},
    Function{"largestState", Guarded<LargestState, AnswerExhausted<PortableFunctions>>},
};

}  // namespace

Napi::Value CreatePortableLimiter(const Napi::CallbackInfo& info) {
  const auto callbacks = info[1].As<Napi::Object>();
  auto self = std::make_unique<PortableFunctions>(ReadPolicy(info.Env(), info[0]), callbacks);
  self->numbers = ReadArray<double>(info.Env(), callbacks.Get("numbers")).data();
  self->exhausted = Borrow(callbacks, "exhausted");
  return MakeFunctions(info.Env(), std::move(self), kFunctions);
}

}  // namespace rollgate::binding
