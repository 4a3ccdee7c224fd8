// The way from bytes in JavaScript to a decision and to other bytes.
#include "binding/portable_limiter.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "binding/borrowed.h"
#include "binding/decision_writer.h"
#include "binding/functions.h"
#include "binding/policy_reader.h"
#include "binding/values.h"
#include "core/portable_limiter.h"

namespace rollgate::binding {
namespace {

/// The state behind one limiter's functions; deleted with the last of them.
struct PortableFunctions {
  std::unique_ptr<PortableLimiter> limiter;
  std::vector<WindowUse> uses;  // what decisions are written through
  std::vector<std::byte> next;  // state
  Borrowed exhausted;
  double* report = nullptr;  // keep.report's own memory
  int functions = 0;         // that point here
};

void Dispose(napi_env, PortableFunctions&) {}

/// The bytes of a Uint8Array; none if the value is undefined.
std::span<const std::byte> ReadBytes(napi_env env, napi_value value) {
  napi_typedarray_type type;
  std::size_t length;
  void* bytes;
  const bool is_array =
      napi_get_typedarray_info(env, value, &type, &length, &bytes, nullptr, nullptr) == napi_ok &&
      type == napi_uint8_array;
  if (!is_array) return {};
  return {static_cast<const std::byte*>(bytes), length};
}

Micros ReadMoment(napi_env env, napi_value value) {
  constexpr auto kBound = static_cast<double>(kLongest);
  return static_cast<Micros>(std::clamp(ReadDouble(env, value), -kBound, kBound));
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
  Call<PortableFunctions, 6> call(env, info);
  PortableFunctions& self = *call.state;
  const std::span<const std::byte> state = ReadBytes(env, call.arguments[0]);
  const auto cost = static_cast<std::uint64_t>(ReadDouble(env, call.arguments[1]));
  const bool records = ReadBool(env, call.arguments[2]);
  if (!IsType(env, call.arguments[5], napi_undefined)) {
    self.limiter->SetMax(static_cast<std::uint64_t>(ReadDouble(env, call.arguments[5])), records);
  }
  const Micros now = ReadMoment(env, call.arguments[3]);
  const auto generation = static_cast<Generation>(ReadDouble(env, call.arguments[4]));
  Decision decision;
  decision.windows = self.uses;
  const PortableLimiter::Outcome outcome =
      records ? self.limiter->Attempt(state, now, cost, generation, decision, self.next)
              : self.limiter->Peek(state, now, cost, decision);
  if (outcome != PortableLimiter::Outcome::kForeign) WriteDecision(decision, self.report);
  return ToJs(env, outcome, self.next);
}

napi_value Refund(napi_env env, napi_callback_info info) {
  Call<PortableFunctions, 5> call(env, info);
  PortableFunctions& self = *call.state;
  Receipt receipt;
  receipt.at = ReadMoment(env, call.arguments[1]);
  receipt.cost = static_cast<std::uint64_t>(ReadDouble(env, call.arguments[2]));
  receipt.token = static_cast<std::uint64_t>(ReadDouble(env, call.arguments[3]));
  const Micros now = ReadMoment(env, call.arguments[4]);
  const PortableLimiter::Outcome outcome =
      self.limiter->Refund(ReadBytes(env, call.arguments[0]), receipt, now, self.next);
  return ToJs(env, outcome, self.next);
}

napi_value Lifetime(napi_env env, napi_callback_info info) {
  const Call<PortableFunctions, 2> call(env, info);
  const Micros now = ReadMoment(env, call.arguments[1]);
  const Micros lifetime = call.state->limiter->Lifetime(ReadBytes(env, call.arguments[0]), now);
  return binding::ToJs(env, lifetime);
}

napi_value LargestState(napi_env env, napi_callback_info info) {
  const Call<PortableFunctions, 0> call(env, info);
  return binding::ToJs(env, static_cast<Micros>(call.state->limiter->largest_state()));
}

template <napi_value (*kCallback)(napi_env, napi_callback_info)>
constexpr napi_callback kGuarded = Guarded<PortableFunctions, kCallback>;

constexpr std::array kFunctions{
    Function{"decide", kGuarded<Decide>},
    Function{"refund", kGuarded<Refund>},
    Function{"lifetime", kGuarded<Lifetime>},
    Function{"largestState", kGuarded<LargestState>},
};

napi_value Create(napi_env env, napi_callback_info info) {
  const Call<void, 2> call(env, info);
  const auto [options, keep] = call.arguments;
  const std::span<double> report = ReadDoubles(env, Get(env, keep, "report"));
  PolicyOptions policy = ReadPolicy(env, options);
  if (report.size() < DecisionLength(policy.windows.size()) || policy.windows.empty()) {
    return nullptr;
  }
  auto self = std::make_unique<PortableFunctions>();
  self->report = report.data();
  self->uses.resize(policy.windows.size());
  self->exhausted = Borrow(env, keep, "exhausted");
  self->limiter = PortableLimiter::Create(Policy(std::move(policy)));
  return MakeFunctions(env, std::move(self), kFunctions);
}

}  // namespace

napi_value CreatePortableLimiter(napi_env env, napi_callback_info info) {
  return Creating<Create>(env, info);
}

}  // namespace rollgate::binding
