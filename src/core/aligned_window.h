// Windows that begin at multiples of the interval since the clock's origin, and their counts.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>

#include "core/bytes.h"
#include "core/policy.h"
#include "core/time.h"

namespace rollgate {

/// One T for each window of a policy `P`.
template <class P, class T>
using PerWindow =
    std::conditional_t<std::is_same_v<P, SingleWindowPolicy>, std::array<T, 1>, std::vector<T>>;

template <class T, class P>
PerWindow<P, T> ForEachWindow(const P& policy) {
  if constexpr (std::is_same_v<P, SingleWindowPolicy>) {
    return {T(policy.windows()[0])};
  } else {
    return PerWindow<P, T>(policy.windows().begin(), policy.windows().end());
  }
}

/// Finds windows. Remembers the last one: a division costs more than the rest of a check.
class AlignedWindow {
 public:
  explicit AlignedWindow(const Window& window) : interval_(window.interval) {
    assert(interval_ > 0);
  }

  Micros interval() const { return interval_; }

  /// The beginning of the window of `moment`, which is in [kLongAgo, kLongest].
  Micros StartOf(Micros moment) const {
    assert(moment >= kLongAgo && moment <= kLongest);
    if (moment < start_ || moment - start_ >= interval_) [[unlikely]] {
      const Micros into = moment % interval_;
      start_ = moment - (into < 0 ? into + interval_ : into);
    }
    assert(start_ <= moment && moment - start_ < interval_);
    return start_;
  }

 private:
  Micros interval_;
  mutable Micros start_ = 0;
};

/// Counts as bytes: three per count if that is enough for each window's max, else seven. A count
/// saturates at most(), which only refusals and overdrafts can reach.
class CountFormat {
 public:
  template <class P>
  explicit CountFormat(const P& policy) {
    if constexpr (std::is_same_v<P, Policy>) is_wide_ = policy.sets_max() || policy.weighted();
    for (const Window& window : policy.windows()) is_wide_ |= window.max >= kMostNarrow;
  }

  bool is_wide() const { return is_wide_; }
  static constexpr std::size_t kNarrow = 3;
  static constexpr std::size_t kWide = 7;
  std::size_t bytes() const { return is_wide_ ? kWide : kNarrow; }
  std::uint64_t most() const { return is_wide_ ? kMostWide : kMostNarrow; }

  std::uint64_t Load(const std::byte* counts, std::size_t place) const {
    const std::byte* const from = counts + place * bytes();
    if (!is_wide_) [[likely]] {
      return Get<std::uint16_t>(from) | Get<std::uint8_t>(from + 2) << 16;
    }
    return Get<std::uint32_t>(from) | Get<std::uint16_t>(from + 4) << 32 |
           Get<std::uint8_t>(from + 6) << 48;
  }

  void Store(std::byte* counts, std::size_t place, std::uint64_t count) const {
    assert(count >> (8 * bytes()) == 0);
    std::byte* const to = counts + place * bytes();
    if (!is_wide_) [[likely]] {
      Put<std::uint16_t>(to, count);
      Put<std::uint8_t>(to + 2, count >> 16);
    } else {
      Put<std::uint32_t>(to, count);
      Put<std::uint16_t>(to + 4, count >> 32);
      Put<std::uint8_t>(to + 6, count >> 48);
    }
  }

  std::uint64_t Add(std::uint64_t count, std::uint64_t cost) const {
    return std::min(count + cost, most());
  }

 private:
  static constexpr std::uint64_t kMostNarrow = (std::uint64_t{1} << 24) - 1;
  static constexpr std::uint64_t kMostWide = (std::uint64_t{1} << 53) - 1;

  // Part by part: loading a word from three copied bytes would stall on store forwarding.
  template <class T>
  static std::uint64_t Get(const std::byte* from) {
    return LoadAs<T>(from);
  }
  template <class T>
  static void Put(std::byte* to, std::uint64_t bits) {
    StoreAs(to, static_cast<T>(bits));
  }

  bool is_wide_ = false;
};

}  // namespace rollgate
