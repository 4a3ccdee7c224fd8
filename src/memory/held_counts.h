// How much of each id is held at once: what a limit of concurrency counts.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/bytes.h"
#include "core/identity.h"
#include "core/inlining.h"
#include "memory/table.h"

namespace rollgate::memory {

/// What is held of one id, shared by its holders. It lives until the last of them lets go.
struct Held {
  Identity id;
  std::uint32_t used = 0;  ///< the sum of their costs
  std::uint32_t holders = 0;
  bool is_cleared = false;  ///< it does not count any more
  std::uint8_t idle_place = kNotIdle;
  Held* next = nullptr;  ///< of those that were cleared
  Held* previous = nullptr;

  static constexpr std::uint8_t kNotIdle = 0xff;
};

/// An id is in the table while somebody holds it, and the last few ones a little longer: an id that
/// is held again and again would be inserted each time. Owned by one thread.
class HeldCounts {
 public:
  /// At most `max_keys` ids, >= 1, are held.
  HeldCounts(std::size_t max_keys, const Secret& secret)
      : max_keys_(std::max<std::size_t>(max_keys, 1)),
        table_({.payload_bytes = sizeof(Held*),
                // Those that nobody holds leave first, so that this bound is never reached.
                .max_keys = max_keys_ + kMostIdle + 1,
                .retention = 0,
                .forgets_expired = false,
                .secret = secret}) {}
  HeldCounts(const HeldCounts&) = delete;
  HeldCounts& operator=(const HeldCounts&) = delete;
  ~HeldCounts();

  struct Answer {
    Held* held;          ///< for Release; null if it is refused
    std::uint32_t used;  ///< of the id, with this cost if it was granted
    bool is_full;        ///< refused because as many other ids are held as may be
  };

  /// Grants `cost` of the id, if at most `max` of it is held then. Throws std::bad_alloc, and
  /// nothing is held.
  ROLLGATE_FLATTEN Answer Acquire(const Identity& id, std::uint32_t cost, std::uint32_t max) {
    const Place place = table_.Find(id);
    Held* held = place ? HeldAt(place) : nullptr;
    const std::uint32_t used = held == nullptr ? 0 : held->used;
    if (std::uint64_t{used} + cost > max) return {nullptr, used, false};
    if (held == nullptr || held->holders == 0) {
      if (held_ids_ >= max_keys_) [[unlikely]]
        return {nullptr, used, true};
      if (held == nullptr) [[unlikely]]
        held = Begin(id);
      ++held_ids_;
    }
    held->used += cost;
    ++held->holders;
    held_ += cost;
    return {held, held->used, false};
  }

  /// Gives back what Acquire granted, once.
  void Release(Held* held, std::uint32_t cost) {
    assert(held->used >= cost && held->holders > 0);
    held->used -= cost;
    --held->holders;
    if (held->is_cleared) [[unlikely]] {
      if (held->holders == 0) ForgetCleared(held);
      return;
    }
    held_ -= cost;
    if (held->holders == 0) Rest(held);
  }

  std::uint32_t UsedOf(const Identity& id) {
    const Place place = table_.Find(id);
    return place ? HeldAt(place)->used : 0;
  }

  /// What is held of the id does not count any more. Its holders must still release it.
  void Clear(const Identity& id);
  void ClearAll();

  std::size_t held_ids() const { return held_ids_; }
  std::uint64_t held() const { return held_; }
  std::size_t bytes() const { return table_.bytes() + table_.live() * sizeof(Held); }

 private:
  static constexpr std::size_t kMostIdle = 32;

  static Held* HeldAt(const Place& place) { return LoadAs<Held*>(place.slot->payload()); }

  ROLLGATE_NOINLINE Held* Begin(const Identity& id);
  /// Nobody holds it now.
  void Rest(Held* held);
  void MakeIdle(Held* held);
  /// Takes an id that nobody holds from the table.
  ROLLGATE_NOINLINE void Forget(Held* held);
  void Shrink();
  /// Its id is not in the table any more.
  void SetCleared(Held* held);
  void ForgetCleared(Held* held);

  std::size_t max_keys_;
  Table table_;
  std::array<Held*, kMostIdle> idle_ =
      {};  // ids that nobody held at some time since they came here
  std::size_t next_idle_ = 0;
  std::unique_ptr<Held> spare_;  // for the next id
  Held* cleared_ = nullptr;      // the first of those that somebody has still to release
  std::size_t held_ids_ = 0;
  std::uint64_t held_ = 0;
  std::uint32_t forgotten_ = 0;
};

}  // namespace rollgate::memory
