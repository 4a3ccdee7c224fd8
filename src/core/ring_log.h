// A log of an id's newest actions: the newest in full, the older ones as a ring of short stamps.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>

#include "core/bytes.h"
#include "core/time.h"

namespace rollgate {

struct LogHead {
  Micros newest = 0;
  std::uint32_t size = 0;  ///< actions kept, including the newest
  std::uint32_t head = 0;  ///< position of the oldest stamp in the ring
  /// Whether refusals have pushed out actions inside a window, for refunds; only in a full log.
  bool displaced = false;
};
static_assert(std::is_trivially_copyable_v<LogHead>);

/// A view of one id's log in bytes of its owner, who stores head() after a change.
///
/// A `Stamp` keeps the low bits of a moment. The rest follows from the newest action, because Push
/// keeps no action that is older by more than a Stamp can represent. No retention is longer.
template <class Stamp>
class RingLog {
  static_assert(std::is_unsigned_v<Stamp>);

 public:
  using StampType = Stamp;

  static constexpr Micros kLongestRetention =
      std::numeric_limits<Stamp>::max() < static_cast<std::uint64_t>(kLongest)
          ? static_cast<Micros>(std::numeric_limits<Stamp>::max())
          : kLongest;

  /// `ring` has room for `ring_room` stamps, at any alignment. The log never holds more than
  /// `capacity` >= 1 actions, nor more than `ring_room + 1` until the owner gives it more room.
  RingLog(LogHead head, std::byte* ring, std::uint32_t ring_room, std::uint32_t capacity)
      : head_(head), ring_(ring), ring_room_(ring_room), capacity_(capacity) {
    assert(capacity >= 1 && head.size <= capacity && head.size <= std::uint64_t{ring_room} + 1);
    assert(head.head < ring_room || head.head == 0);
  }

  const LogHead& head() const { return head_; }
  std::uint32_t size() const { return head_.size; }
  std::uint32_t capacity() const { return capacity_; }
  bool displaced() const { return head_.displaced; }
  void set_displaced(bool displaced) { head_.displaced = displaced; }

  /// The n-th newest action, counted from 1. Precondition: 1 <= n <= size().
  Micros Nth(std::uint64_t n) const {
    assert(n >= 1 && n <= head_.size);
    if (n == 1) return head_.newest;
    const auto place = static_cast<std::uint32_t>(head_.size - n);
    return head_.newest - static_cast<Micros>(Age(Place(place)));
  }

  /// Precondition: size() >= 1.
  Micros Oldest() const {
    assert(head_.size >= 1);
    if (head_.size == 1) return head_.newest;
    return head_.newest - static_cast<Micros>(Age(head_.head));
  }

  bool IsFull() const { return head_.size == capacity_; }

  /// Whether the newest action needs all others: none has left by its time. What leaves later stays
  /// until then, in case that the newest is refunded and the clock steps back.
  bool NeedsAll(Micros retention) const {
    return head_.size == 0 || head_.newest - Oldest() < retention;
  }

  /// Prepares a log without room for `more` actions: drops those that the newest does not need, and
  /// returns how many stamps its ring should hold. As rings double and shrink, this takes constant
  /// amortised time per Push.
  std::uint32_t DropAndPlanRoom(Micros retention, std::uint64_t more) {
    const bool drops = !NeedsAll(retention);
    if (drops) DropUntil(head_.newest - retention);
    assert(more >= 1);
    constexpr std::uint64_t kLeast = 5;
    const std::uint64_t needed = std::min<std::uint64_t>(head_.size + more, capacity_) - 1;
    const bool is_too_large = drops && ring_room_ > kLeast && needed < ring_room_ / 4;
    if (needed <= ring_room_ && !is_too_large) return ring_room_;
    const std::uint64_t wanted = std::max({needed, std::uint64_t{head_.size} * 2, kLeast});
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted, capacity_ - 1));
  }

  bool HasFree(std::uint64_t more) const {
    return head_.size + more <= std::uint64_t{ring_room_} + 1;
  }

  /// Moves the stamps, oldest first, to another ring that is large enough for them.
  void MoveTo(std::byte* ring, std::uint32_t ring_room) {
    for (std::uint32_t i = 0; i + 1 < head_.size; ++i) {
      StoreAs(ring + std::size_t{i} * sizeof(Stamp), LoadAs<Stamp>(At(Place(i))));
    }
    Relaid(ring, ring_room);
  }

  /// Gives the ring another size, large enough for its stamps, at the same address.
  void ResizeInPlace(std::uint32_t ring_room) {
    constexpr std::size_t kWidth = sizeof(Stamp);
    std::rotate(ring_, ring_ + head_.head * kWidth, ring_ + ring_room_ * kWidth);
    Relaid(ring_, ring_room);
  }

  std::uint32_t ring_room() const { return ring_room_; }

  /// Records an action at `at` >= the newest. A full log drops its oldest; any other has room.
  void Push(Micros at) {
    assert(head_.size == 0 || at >= head_.newest);
    if (head_.size > 0 && at - Oldest() > kLongestRetention) [[unlikely]] {
      DropUntil(at - kLongestRetention - 1);
    }
    if (head_.size == 0) {
      head_.size = 1;
    } else if (head_.size < capacity_) {
      assert(head_.size <= ring_room_);
      Store(Place(head_.size - 1), head_.newest);
      ++head_.size;
    } else if (ring_room_ + 1 == capacity_) {
      ReplaceOldest(at);
    } else if (capacity_ > 1) {
      // The capacity was lowered: the ring is not full.
      head_.head = Next(head_.head);
      Store(Place(head_.size - 2), head_.newest);
    }
    head_.newest = at;
  }

  /// Push for a log and ring that are full. Precondition: `at` - Oldest() <= kLongestRetention.
  void ReplaceOldest(Micros at) {
    assert(IsFull() && at - Oldest() <= kLongestRetention);
    if (capacity_ > 1) [[likely]] {
      Store(head_.head, head_.newest);
      head_.head = Next(head_.head);
    }
    head_.newest = at;
  }

  /// Records an action older than all others. Precondition: the log has room and is not empty.
  void PushOldest(Micros at) {
    assert(head_.size >= 1 && head_.size < capacity_ && head_.size <= ring_room_);
    head_.head = head_.head == 0 ? ring_room_ - 1 : head_.head - 1;
    Store(head_.head, at);
    ++head_.size;
  }

  /// Removes the n-th newest action, counted from 1.
  void Remove(std::uint32_t n) {
    assert(n >= 1 && n <= head_.size);
    if (n == 1) {
      if (head_.size > 1) head_.newest = Nth(2);
    } else {
      for (std::uint32_t i = head_.size - n; i + 2 < head_.size; ++i) {
        StoreAs(At(Place(i)), LoadAs<Stamp>(At(Place(i + 1))));
      }
    }
    --head_.size;
  }

  /// Drops the actions at `moment` or earlier.
  void DropUntil(Micros moment) {
    head_.displaced = false;
    if (head_.size > 0 && head_.newest <= moment) head_.size = 0;
    while (head_.size > 1 && Oldest() <= moment) {
      head_.head = Next(head_.head);
      --head_.size;
    }
  }

 private:
  void Relaid(std::byte* ring, std::uint32_t ring_room) {
    assert(head_.size <= std::uint64_t{ring_room} + 1);
    ring_ = ring;
    ring_room_ = ring_room;
    head_.head = 0;
  }

  std::byte* At(std::uint32_t place) const { return ring_ + std::size_t{place} * sizeof(Stamp); }

  /// The position of the i-th oldest stamp, counted from 0.
  std::uint32_t Place(std::uint32_t i) const {
    const std::uint64_t place = std::uint64_t{head_.head} + i;
    return static_cast<std::uint32_t>(place < ring_room_ ? place : place - ring_room_);
  }

  std::uint32_t Next(std::uint32_t place) const {
    // No branch: it would be mispredicted where a ring wraps.
    const std::uint32_t next = place + 1;
    return next & (0u - static_cast<std::uint32_t>(next != ring_room_));
  }

  void Store(std::uint32_t place, Micros at) {
    assert(place < ring_room_);
    StoreAs(At(place), static_cast<Stamp>(at));
  }

  /// How much older than the newest action the stamp at `place` is.
  Stamp Age(std::uint32_t place) const {
    assert(place < ring_room_);
    const auto age =
        static_cast<Stamp>(static_cast<Stamp>(head_.newest) - LoadAs<Stamp>(At(place)));
    // Push keeps no older ones. This also bounds bytes that another process wrote.
    return std::min(age, static_cast<Stamp>(kLongestRetention));
  }

  LogHead head_;
  std::byte* ring_;
  std::uint32_t ring_room_;
  std::uint32_t capacity_;
};

/// The head of a log without the actions that its newest one does not need: see NeedsAll.
template <class Stamp>
LogHead WithoutUnneeded(const LogHead& head, std::byte* ring, std::uint32_t ring_room,
                        Micros retention) {
  RingLog<Stamp> log(head, ring, ring_room, std::max(head.size, 1u));
  if (!log.NeedsAll(retention)) log.DropUntil(head.newest - retention);
  return log.head();
}

/// An algorithm whose states are logs.
template <class Rules>
concept KeepsLog = requires {
  typename Rules::Log;
};

}  // namespace rollgate
