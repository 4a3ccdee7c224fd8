// The counts of a concurrency limiter in memory.
#include "memory/held_counts.h"

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "binding/addon.h"
#include "binding/functions.h"
#include "binding/id_reader.h"
#include "binding/values.h"

namespace rollgate::binding {
namespace {

using memory::Held;
using memory::HeldCounts;

/// The state of one limiter's functions. `counts` is empty after close().
struct LocalSlots {
  LocalSlots(const Napi::Object& callbacks, std::size_t max_keys, const Secret& random)
      : secret(random),
        refuse(Borrow(callbacks, "refuse")),
        exhausted(Borrow(callbacks, "exhausted")),
        released(ReadArray<double>(callbacks.Env(), callbacks.Get("released"))),
        numbers(ReadArray<double>(callbacks.Env(), callbacks.Get("numbers")).data()) {
    counts.emplace(max_keys, secret);
  }

  /// Gives back what JavaScript has noted in `released`: its count, then handles and costs.
  void Flush() {
    const auto end = static_cast<std::size_t>(released[0]);
    for (std::size_t i = 1; i < end + 1; i += 2) {
      counts->Release(HeldOf(released[i]), static_cast<std::uint32_t>(released[i + 1]));
    }
    released[0] = 0;
  }

  /// Addresses are exact in a double.
  static Held* HeldOf(double handle) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): JavaScript has no pointers
    return reinterpret_cast<Held*>(static_cast<std::uintptr_t>(handle));
  }
  static double HandleOf(const Held* held) {
    return static_cast<double>(reinterpret_cast<std::uintptr_t>(held));
  }

  Secret secret;
  Napi::FunctionReference refuse;
  Napi::FunctionReference exhausted;
  std::span<double> released;
  double* numbers;
  std::optional<HeldCounts> counts;
};

ROLLGATE_FLATTEN napi_value Acquire(napi_env env, napi_callback_info info) {
  const Call<LocalSlots, 3> call(env, info);
  LocalSlots& slots = *call.state;
  if (slots.released[0] != 0) slots.Flush();
  Identity identity;
  const napi_value id = call.arguments[0];
  if (!ReadIdentity(env, id, slots.secret, identity)) return Invoke(slots.refuse, {&id, 1});
  const auto max = static_cast<std::uint32_t>(ReadDouble(env, call.arguments[1]));
  const std::uint32_t cost =
      call.count == 2 ? 1 : static_cast<std::uint32_t>(ReadDouble(env, call.arguments[2]));
  const HeldCounts::Answer answer = slots.counts->Acquire(identity, cost, max);
  if (answer.held == nullptr) {
    slots.numbers[1] = answer.is_full ? 1 : 0;
    return ToJs(env, -1 - static_cast<Micros>(answer.used));
  }
  slots.numbers[0] = LocalSlots::HandleOf(answer.held);
  return ToJs(env, static_cast<Micros>(answer.used));
}

Napi::Value Flush(const Napi::CallbackInfo& info) {
  StateOf<LocalSlots>(info).Flush();
  return {};
}

Napi::Value Used(const Napi::CallbackInfo& info) {
  auto& slots = StateOf<LocalSlots>(info);
  slots.Flush();
  Identity identity;
  const napi_value id = info[0];
  if (!ReadIdentity(info.Env(), id, slots.secret, identity)) {
    return {info.Env(), Invoke(slots.refuse, {&id, 1})};
  }
  return {info.Env(), ToJs(info.Env(), slots.counts->UsedOf(identity))};
}

Napi::Value Counts(const Napi::CallbackInfo& info) {
  assert(StateOf<LocalSlots>(info).counts);
  const Held* const held = LocalSlots::HeldOf(ReadDouble(info.Env(), info[0]));
  return Napi::Boolean::New(info.Env(), !held->is_cleared);
}

Napi::Value Clear(const Napi::CallbackInfo& info) {
  auto& slots = StateOf<LocalSlots>(info);
  slots.Flush();
  if (info.Length() == 0) {
    slots.counts->ClearAll();
    return {};
  }
  Identity identity;
  const napi_value id = info[0];
  if (!ReadIdentity(info.Env(), id, slots.secret, identity)) {
    return {info.Env(), Invoke(slots.refuse, {&id, 1})};
  }
  slots.counts->Clear(identity);
  return {};
}

Napi::Value Stats(const Napi::CallbackInfo& info) {
  auto& slots = StateOf<LocalSlots>(info);
  slots.Flush();
  slots.numbers[0] = static_cast<double>(slots.counts->held_ids());
  slots.numbers[1] = static_cast<double>(slots.counts->held());
  slots.numbers[2] = static_cast<double>(slots.counts->bytes());
  return {};
}

Napi::Value Close(const Napi::CallbackInfo& info) {
  StateOf<LocalSlots>(info).counts.reset();
  return {};
}

}  // namespace

Napi::Value CreateHeldCounts(const Napi::CallbackInfo& info) {
  static constexpr auto kExhausted = AnswerExhausted<LocalSlots>;
  static constexpr std::array kFunctions{
      Function{"acquire", Guarded<Acquire, kExhausted>},
      Function{"flush", Guarded<Flush, kExhausted>},
      Function{"used", Guarded<Used, kExhausted>},
      Function{"counts", Guarded<Counts, kExhausted>},
      Function{"clear", Guarded<Clear, kExhausted>},
      Function{"stats", Guarded<Stats, kExhausted>},
      Function{"close", Guarded<Close, kExhausted>},
  };
  const auto max_keys = static_cast<std::size_t>(ReadDouble(info.Env(), info[0]));
  const auto callbacks = info[1].As<Napi::Object>();
  return MakeFunctions(
      info.Env(), std::make_shared<LocalSlots>(callbacks, max_keys, RandomSecret()), kFunctions);
}

}  // namespace rollgate::binding
