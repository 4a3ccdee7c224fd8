// Words that several threads access, also of several processes, and the orders of these accesses.
#pragma once

#include <atomic>
#include <cstdint>

namespace rollgate {

using Word = std::atomic<std::uint64_t>;

/// Accesses to shared words. A Load, or a CompareExchange that finds the value, acquires what the
/// writer released with its Store or CompareExchange. Loads also keep the later accesses of their
/// thread after them, so a record read between two equal loads of a control word is whole.
/// docs/design/memory-orders.md says which access needs its order; the tests' model of ARMv8 needs
/// every store to be a release.
struct Hardware {
  static constexpr std::memory_order kLoad = std::memory_order_acquire;
  static constexpr std::memory_order kStore = std::memory_order_release;
  static constexpr std::memory_order kSwap = std::memory_order_acq_rel;
  static constexpr std::memory_order kFailedSwap = std::memory_order_acquire;

  static std::uint64_t Load(const Word& word) { return word.load(kLoad); }
  static void Store(Word& word, std::uint64_t value) { word.store(value, kStore); }
  static bool CompareExchange(Word& word, std::uint64_t expected, std::uint64_t desired) {
    return word.compare_exchange_strong(expected, desired, kSwap, kFailedSwap);
  }
};

}  // namespace rollgate
