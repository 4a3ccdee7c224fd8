// The counts of a concurrency limiter, in the module's memory.
#include "memory/held_counts.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "wasm/exchange.h"

namespace rollgate::wasm {
namespace {

using memory::Held;
using memory::HeldCounts;

struct Slots {
  Secret secret;
  HeldCounts counts;
};

}  // namespace
}  // namespace rollgate::wasm

using namespace rollgate;
using namespace rollgate::wasm;

/// With the secret in Bytes; 0 if there is no memory.
ROLLGATE_EXPORT(held_new) Slots* HeldNew(double max_keys) {
  try {
    const Secret secret = ReadSecret();
    const auto keys = static_cast<std::size_t>(std::min(max_keys, double{1 << 30}));
    return new Slots{secret, HeldCounts(keys, secret)};
  } catch (...) {
    return nullptr;
  }
}

ROLLGATE_EXPORT(held_delete) void HeldDelete(Slots* slots) {
  delete slots;
}

/// What is used of the id then, and what to release in Numbers[0]. If it is refused, -1 - what is
/// used, and in Numbers[1] whether there is no room for another id; kNoMemory.
constexpr std::int32_t kNoMemory = -1 << 30;
ROLLGATE_EXPORT(held_acquire)
std::int32_t HeldAcquire(Slots* slots, std::int32_t length, std::uint32_t cost, std::uint32_t max) {
  try {
    const HeldCounts::Answer answer =
        slots->counts.Acquire(ReadIdentity(length, slots->secret), cost, max);
    const auto used = static_cast<std::int32_t>(answer.used);
    Numbers()[0] = static_cast<double>(reinterpret_cast<std::uintptr_t>(answer.held));
    Numbers()[1] = answer.is_full ? 1 : 0;
    return answer.held == nullptr ? -1 - used : used;
  } catch (...) {
    return kNoMemory;
  }
}

ROLLGATE_EXPORT(held_release) void HeldRelease(Slots* slots, Held* held, std::uint32_t cost) {
  slots->counts.Release(held, cost);
}

ROLLGATE_EXPORT(held_used) std::uint32_t HeldUsed(Slots* slots, std::int32_t length) {
  return slots->counts.UsedOf(ReadIdentity(length, slots->secret));
}

ROLLGATE_EXPORT(held_counts) bool HeldStillCounts(const Held* held) {
  return !held->is_cleared;
}

ROLLGATE_EXPORT(held_clear) void HeldClear(Slots* slots, std::int32_t length) {
  slots->counts.Clear(ReadIdentity(length, slots->secret));
}

ROLLGATE_EXPORT(held_clear_all) std::int32_t HeldClearAll(Slots* slots) {
  return Guarded([&]() -> std::int32_t {
    slots->counts.ClearAll();
    return kDone;
  });
}

/// Writes ids, slots and bytes to Numbers.
ROLLGATE_EXPORT(held_stats) void HeldStats(const Slots* slots) {
  double* const numbers = Numbers();
  numbers[0] = static_cast<double>(slots->counts.held_ids());
  numbers[1] = static_cast<double>(slots->counts.held());
  numbers[2] = static_cast<double>(slots->counts.bytes());
}
