// One moment per window: when a bucket that leaks steadily will be empty.
//
// Source: the generic cell rate algorithm of the ATM Forum, virtual scheduling, as redis-cell has
// it. The emission interval is interval / max; each action moves the theoretical arrival time (TAT)
// on by one, from now on where it has passed. Blocked when that would be further ahead than max
// emission intervals: a burst of max is allowed, and then one action in each emission interval. A
// refusal never counts.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/aligned_window.h"
#include "core/judgement.h"
#include "core/policy.h"
#include "core/time.h"

namespace rollgate {

/// A window as GCRA has it. Arrival times are counted in units of 1 us / `per_micro`, in which the
/// emission interval is a whole number: exactly where max <= 1000, else rounded up to nanoseconds.
class EmissionWindow {
 public:
  /// Times and intervals beyond this (142 years) are cut, so that units never overflow.
  static constexpr Micros kLongestHere = Micros{1} << 52;

  explicit EmissionWindow(const Window& window)
      : per_micro_(window.max <= kFinest ? static_cast<std::int64_t>(window.max) : kFinest),
        emission_(Emission(window)) {}

  std::int64_t emission() const { return emission_; }

  std::int64_t ToUnits(Micros moment) const {
    return std::clamp(moment, -kLongestHere, kLongestHere) * per_micro_;
  }

  /// Rounded up.
  Micros ToMicros(std::int64_t units) const {
    const std::int64_t whole = units / per_micro_;
    return whole + (units % per_micro_ > 0 ? 1 : 0);
  }

 private:
  static constexpr std::int64_t kFinest = 1000;

  static std::int64_t Emission(const Window& window) {
    const Micros interval = std::min(window.interval, kLongestHere);
    if (window.max <= kFinest) return interval;
    const auto max = static_cast<std::int64_t>(window.max);
    return (interval * kFinest + (max - 1)) / max;
  }

  std::int64_t per_micro_;
  std::int64_t emission_;
};

/// The algorithm under one policy; `P` is a Policy or a SingleWindowPolicy. Under the latter an id's
/// moment is its arrival time, and all that is kept of it.
template <class P>
class Gcra {
  static constexpr bool kIsSingle = std::is_same_v<P, SingleWindowPolicy>;
  static constexpr std::int64_t kNoArrival = std::numeric_limits<std::int64_t>::min();

 public:
  /// Whether an id that has nothing left to its account begins a new life with its next action. So
  /// a refund takes nothing from what came after.
  static constexpr bool kRestartsLife = kIsSingle;

  explicit Gcra(const Policy& policy)
      : policy_(policy), windows_(ForEachWindow<EmissionWindow>(policy_)) {}

  const P& policy() const { return policy_; }

  /// What an id takes besides its moment.
  std::size_t state_bytes() const {
    return kIsSingle ? 0 : sizeof(Micros) + windows_.size() * kArrivalBytes;
  }

  /// How long after its moment an id has expired; moments and time as the table counts them: a
  /// moment is when nothing that the id did matters any more.
  static Micros retention() { return 0; }
  Micros TableTime(Micros now) const {
    if constexpr (kIsSingle) return windows_[0].ToUnits(now);
    return now;
  }
  Micros FromTableTime(Micros moment) const {
    if constexpr (kIsSingle) return moment == kLongAgo ? kLongAgo : windows_[0].ToMicros(moment);
    return moment;
  }

  /// One id. With several windows, or minDifference or blocks, `state` is its newest action, and for
  /// each window the arrival time and how much was recorded since that was last set to now: so
  /// every window knows what a refund may give back.
  class Account {
   public:
    Account(const Gcra& rules, std::byte* state, Micros moment)
        : rules_(rules), state_(state), moment_(moment) {}

    /// An id that has done nothing; `state` is set.
    static Account Begin(const Gcra& rules, std::byte* state) {
      Account account(rules, state, kLongAgo);
      if constexpr (!kIsSingle) {
        account.StoreNewest(kLongAgo);
        for (std::size_t i = 0; i < rules.windows_.size(); ++i) account.Store(i, {kNoArrival, 0});
      }
      return account;
    }

    Micros moment() const { return moment_; }
    Micros Newest() const {
      if constexpr (kIsSingle) return kLongAgo;
      Micros newest;
      std::memcpy(&newest, state_, sizeof newest);
      return newest;
    }

    /// Time is not clamped: an earlier time is further from the arrival time, and so refused sooner.
    Micros At(Micros now) const { return now; }

    std::uint64_t Used(std::size_t i, Micros at) const {
      const EmissionWindow& window = rules_.windows_[i];
      const std::int64_t arrival = Load(i).time;
      const std::int64_t time = window.ToUnits(at);
      if (arrival <= time) return 0;
      // As unsigned words, for the difference of times on both sides of the origin may not fit.
      const std::uint64_t ahead = static_cast<std::uint64_t>(arrival) - static_cast<std::uint64_t>(time);
      const auto emission = static_cast<std::uint64_t>(window.emission());
      const std::uint64_t used = ahead / emission + (ahead % emission > 0 ? 1 : 0);
      return std::min(used, rules_.policy_.windows()[i].max);
    }

    bool Reaches(std::size_t i, std::uint64_t n, Micros at) const {
      const EmissionWindow& window = rules_.windows_[i];
      return Load(i).time > window.ToUnits(at) + Emissions(window, n - 1);
    }

    Micros BelowAt(std::size_t i, std::uint64_t n) const {
      const EmissionWindow& window = rules_.windows_[i];
      const std::int64_t arrival = Load(i).time;
      if (arrival == kNoArrival) return kLongAgo;
      return window.ToMicros(arrival - Emissions(window, n - 1));
    }

    void Record(Micros at, std::uint64_t cost) {
      Micros expiry = kLongAgo;
      for (std::size_t i = 0; i < rules_.windows_.size(); ++i) {
        const EmissionWindow& window = rules_.windows_[i];
        Arrival arrival = Load(i);
        if (const std::int64_t time = window.ToUnits(at); arrival.time <= time) {
          arrival = {time, 0};
        }
        arrival.time += Emissions(window, cost);
        arrival.recorded = Add(arrival.recorded, cost);
        Store(i, arrival);
        expiry = std::max(expiry, window.ToMicros(arrival.time));
      }
      if constexpr (!kIsSingle) {
        StoreNewest(at);
        moment_ = std::max(expiry, at + rules_.policy_.min_difference());
      }
    }

    /// Gives back what an attempt recorded at `at` in this life; tells whether that still mattered
    /// anywhere.
    bool Refund(Micros at, std::uint64_t cost) {
      bool found = false;
      for (std::size_t i = 0; i < rules_.windows_.size(); ++i) {
        const EmissionWindow& window = rules_.windows_[i];
        Arrival arrival = Load(i);
        const std::int64_t given_back = Emissions(window, cost);
        if (arrival.time == kNoArrival) continue;
        if constexpr (!kIsSingle) {
          if (arrival.recorded < cost || arrival.recorded == kMostRecorded) continue;
          const std::int64_t restarted = arrival.time - Emissions(window, arrival.recorded);
          if (window.ToUnits(at) < restarted) continue;
          arrival.recorded -= static_cast<std::uint32_t>(cost);
        }
        arrival.time -= given_back;
        Store(i, arrival);
        found = true;
      }
      return found;
    }

   private:
    /// A theoretical arrival time in its window's units.
    struct Arrival {
      std::int64_t time;
      std::uint32_t recorded;
    };

    static std::int64_t Emissions(const EmissionWindow& window, std::uint64_t n) {
      return static_cast<std::int64_t>(n) * window.emission();
    }

    /// So much is not told apart any more, and not given back.
    static constexpr std::uint32_t kMostRecorded = std::numeric_limits<std::uint32_t>::max();
    static std::uint32_t Add(std::uint32_t recorded, std::uint64_t cost) {
      return static_cast<std::uint32_t>(std::min<std::uint64_t>(recorded + cost, kMostRecorded));
    }

    std::byte* Place(std::size_t i) const { return state_ + sizeof(Micros) + i * kArrivalBytes; }

    Arrival Load(std::size_t i) const {
      if constexpr (kIsSingle) return {moment_ == kLongAgo ? kNoArrival : moment_, 0};
      Arrival arrival;
      std::memcpy(&arrival.time, Place(i), sizeof arrival.time);
      std::memcpy(&arrival.recorded, Place(i) + sizeof arrival.time, sizeof arrival.recorded);
      return arrival;
    }

    void Store(std::size_t i, const Arrival& arrival) {
      if constexpr (kIsSingle) {
        moment_ = arrival.time;
      } else {
        std::memcpy(Place(i), &arrival.time, sizeof arrival.time);
        std::memcpy(Place(i) + sizeof arrival.time, &arrival.recorded, sizeof arrival.recorded);
      }
    }

    void StoreNewest(Micros newest) { std::memcpy(state_, &newest, sizeof newest); }

    const Gcra& rules_;
    std::byte* state_;
    Micros moment_;
  };

 private:
  static constexpr std::size_t kArrivalBytes = sizeof(std::int64_t) + sizeof(std::uint32_t);

  P policy_;
  PerWindow<P, EmissionWindow> windows_;
};

}  // namespace rollgate
