// One moment per window: when a bucket that leaks steadily will be empty.
//
// Source: the generic cell rate algorithm of the ATM Forum, virtual scheduling, as in redis-cell.
// The emission interval is interval / max. Each action moves the arrival time, at least now, on by
// one emission interval. Blocks if that would be more than max emission intervals ahead: a burst of
// max is allowed, then one action per emission interval. A refusal never counts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/bytes.h"
#include "core/decision.h"
#include "core/policy.h"
#include "core/snapshot.h"
#include "core/time.h"
#include "core/wide_multiply.h"

namespace rollgate {

/// A window of GCRA: its emission interval, and the units in which that is a whole number.
///
/// Times are in units of 1 us / `per_micro`: exact if max <= 1000, else rounded up to 1 ns.
class EmissionWindow {
 public:
  /// Longer times and intervals (142 years) are cut, so units never overflow.
  static constexpr Micros kLongestHere = Micros{1} << 52;

  explicit EmissionWindow(const Window& window)
      : per_micro_(window.max <= kFinest ? static_cast<std::int64_t>(window.max) : kFinest),
        emission_(Emission(window)) {
    assert(window.interval > 0 && window.max >= 1);
  }

  std::int64_t emission() const { return emission_; }
  /// Modulo 2^64: an overdraft may be longer than a time.
  std::int64_t Emissions(std::uint64_t n) const {
    return static_cast<std::int64_t>(n * static_cast<std::uint64_t>(emission_));
  }

  std::int64_t ToUnits(Micros moment) const {
    return std::clamp(moment, -kLongestHere, kLongestHere) * per_micro_;
  }

  /// No arrival time is later. Emissions are rounded up: a full bucket exceeds the interval by less
  /// than `max`.
  std::int64_t Latest(std::uint64_t max) const {
    return 2 * ToUnits(kLongest) + static_cast<std::int64_t>(max);
  }

  Micros ToMicros(std::int64_t units) const {  // rounds up
    const std::int64_t whole = units / per_micro_;
    return whole + (units % per_micro_ > 0 ? 1 : 0);
  }

 private:
  static constexpr std::int64_t kFinest = 1000;
  static_assert(kLongestHere <= std::numeric_limits<std::int64_t>::max() / (2 * kFinest),
                "an arrival time is at most an interval after a moment");

  static std::int64_t Emission(const Window& window) {
    const Micros interval = std::min(window.interval, kLongestHere);
    if (window.max <= kFinest) return interval;
    const auto max = static_cast<std::int64_t>(window.max);
    return (interval * kFinest + (max - 1)) / max;
  }

  std::int64_t per_micro_;
  std::int64_t emission_;
};

/// Under a single window, an id's moment is its arrival time; else the time from which the id
/// affects no decision.
///
/// A refund takes what has not leaked of an action yet. Its place in the bucket follows from how
/// many actions came later, so every action has a number.
template <class P>
class Gcra {
  static constexpr bool kIsSingle = std::is_same_v<P, SingleWindowPolicy>;
  static constexpr std::int64_t kNoArrival = std::numeric_limits<std::int64_t>::min();

 public:
  explicit Gcra(const Policy& policy)
      : policy_(policy), windows_(ForEachWindow<EmissionWindow>(policy_)) {
    std::uint64_t largest_max = 0;
    for (std::size_t i = 0; i < windows_.size(); ++i) {
      largest_max = std::max(largest_max, policy_.windows()[i].max);
      longest_ = std::max(longest_, windows_[i].ToMicros(FullBucket(i)));
    }
    if (largest_max > kMostOfShortNumbers) number_bits_ = 32;
    if (largest_max > kMostOfWords && !policy_.weighted()) number_bits_ = kTokenBits;
  }

  const P& policy() const { return policy_; }

  /// Never called: an arrival time under one max means nothing under another.
  static void SetMax(std::uint64_t, bool) { assert(false); }

  std::size_t state_bytes() const {
    return least_state_bytes() + (HasHighWord() ? kNumberWord : 0);
  }
  /// Without the high word of a number, which comes last.
  std::size_t least_state_bytes() const {
    return kIsSingle ? kNumberWord : kArrivals + windows_.size() * sizeof(std::int64_t);
  }
  static constexpr std::size_t kNumberWord = sizeof(std::uint32_t);

  static Micros retention() { return 0; }
  /// Until the fullest bucket is empty.
  Micros lifetime() const { return std::max(longest_, policy_.min_difference()); }
  /// Time stops where units would overflow.
  static Micros Cut(Micros now) {
    return std::clamp(now, -EmissionWindow::kLongestHere, EmissionWindow::kLongestHere);
  }
  Micros TableTime(Micros now) const {
    if constexpr (kIsSingle) return windows_[0].ToUnits(now);
    return now;
  }
  Micros FromTableTime(Micros moment) const {
    if constexpr (kIsSingle) return moment == kLongAgo ? kLongAgo : windows_[0].ToMicros(moment);
    return moment;
  }
  Micros FirstMoment(Micros at, const Costs& costs) const {
    if constexpr (kIsSingle) return ArrivalAfter(0, kNoArrival, at, costs[0]);
    Micros expiry = at + AfterNewest();
    for (std::size_t i = 0; i < windows_.size(); ++i) {
      expiry = std::max(expiry, windows_[i].ToMicros(ArrivalAfter(i, kNoArrival, at, costs[i])));
    }
    return expiry;
  }

  /// `state` is the number of the newest action. In the general form, that action's moment comes
  /// before it, and an arrival time for each window after it. Numbers beyond 32 bits have their
  /// high word at the end.
  class Account {
   public:
    Account(const Gcra& rules, std::byte* state, Micros moment, Generation generation)
        : rules_(rules), state_(state), moment_(moment), generation_(generation) {
      assert(state != nullptr);
    }

    static Account Begin(const Gcra& rules, std::byte* state, Generation generation) {
      Account account(rules, state, kLongAgo, generation);
      account.StoreNumber(rules.HasHighWord() ? generation * kFarApart : 0);
      if constexpr (!kIsSingle) {
        account.StoreNewest(kLongAgo);
        for (std::size_t i = 0; i < rules.windows_.size(); ++i) account.Store(i, kNoArrival);
      }
      return account;
    }

    bool IsSound() const {
      for (std::size_t i = 0; i < rules_.windows_.size(); ++i) {
        const std::int64_t arrival = Load(i);
        const EmissionWindow& window = rules_.windows_[i];
        const std::int64_t latest = window.Latest(rules_.policy_.windows()[i].max);
        if (arrival != kNoArrival && (arrival < window.ToUnits(-kLongest) || arrival > latest)) {
          return false;
        }
      }
      return kIsSingle || Newest() == kLongAgo || (Newest() >= -kLongest && Newest() <= kLongest);
    }

    Micros moment() const { return moment_; }
    static bool IsEmpty() { return false; }
    Generation generation() const { return generation_; }

    std::uint64_t Token() const {
      const int bits = rules_.number_bits_;
      return Low(Number(), bits) << (kTokenBits - bits) | Low(generation_, kTokenBits - bits);
    }

    Micros Newest() const {
      if constexpr (kIsSingle) return kLongAgo;
      return LoadAs<Micros>(state_);
    }

    /// Not clamped: an earlier time is further from the arrival time, so it is refused sooner.
    Micros At(Micros now) const { return now; }

    std::uint64_t Used(std::size_t i, Micros at) const {
      return CountAhead(i, rules_.windows_[i].ToUnits(at));
    }

    bool Reaches(std::size_t i, std::uint64_t n, Micros at) const {
      const EmissionWindow& window = rules_.windows_[i];
      return Load(i) > window.ToUnits(at) + window.Emissions(n - 1);
    }

    Micros BelowAt(std::size_t i, std::uint64_t n) const {
      const EmissionWindow& window = rules_.windows_[i];
      const std::int64_t arrival = Load(i);
      if (arrival == kNoArrival) return kLongAgo;
      return window.ToMicros(
          static_cast<std::int64_t>(static_cast<std::uint64_t>(arrival) -
                                    static_cast<std::uint64_t>(window.Emissions(n - 1))));
    }

    void Record(const Verdict& verdict, const Costs& costs) {
      assert(costs.IsAny());
      for (std::size_t i = 0; i < rules_.windows_.size(); ++i) {
        Store(i, rules_.ArrivalAfter(i, Load(i), verdict.at, costs[i]));
      }
      const std::uint64_t number = rules_.policy_.weighted() ? 1 : costs.uniform();
      StoreNumber(Number() + number);
      if constexpr (!kIsSingle) {
        StoreNewest(std::max(verdict.at, Newest()));
        moment_ = Expiry();
      }
    }

    Account& After(const Verdict& verdict, const Costs& costs) {
      if (costs.IsAny()) Record(verdict, costs);
      return *this;
    }

    /// The numbers: that of the newest action, then for each window how many actions are in the
    /// bucket at `now`, and the part of a further one as numerator and denominator.
    void CopyTo(Snapshot& snapshot, Micros now) const {
      snapshot.newest = Newest();
      snapshot.numbers.push_back(Number());
      for (std::size_t i = 0; i < rules_.windows_.size(); ++i) {
        const EmissionWindow& window = rules_.windows_[i];
        const std::uint64_t ahead = Ahead(i, window.ToUnits(now));
        const auto emission = static_cast<std::uint64_t>(window.emission());
        snapshot.numbers.insert(snapshot.numbers.end(),
                                {ahead / emission, ahead % emission, emission});
      }
    }
    template <class RecordOne>
    void TakeOver(const Snapshot& snapshot, Micros now, RecordOne) {
      StoreNumber(snapshot.numbers[0]);
      if constexpr (!kIsSingle) StoreNewest(snapshot.newest);
      for (std::size_t i = 0; i < rules_.windows_.size(); ++i) {
        const EmissionWindow& window = rules_.windows_[i];
        const std::uint64_t* const bucket = &snapshot.numbers[1 + 3 * i];
        const auto emission = static_cast<std::uint64_t>(window.emission());
        // Rounded up, so that no more is admitted.
        const WideProduct part = WideMultiply(emission, bucket[1]);
        const std::uint64_t rest = WideDivide(part, bucket[2]);
        const bool is_whole = bucket[1] == 0;
        Store(i, window.ToUnits(now));
        Add(i, bucket[0], rest + (is_whole ? 0 : 1));
      }
      if constexpr (!kIsSingle) moment_ = Expiry();
    }

    /// Takes over the arrival times of an account of other limits: not how many actions are in the
    /// buckets, but how long these leak.
    void TakeOverTimes(const Account& other) {
      StoreNumber(other.Number());
      if constexpr (!kIsSingle) StoreNewest(other.Newest());
      for (std::size_t i = 0; i < rules_.windows_.size(); ++i) {
        const std::int64_t arrival = other.Load(i);
        if (arrival == kNoArrival) continue;
        Store(i, rules_.windows_[i].ToUnits(other.rules_.windows_[i].ToMicros(arrival)));
      }
      if constexpr (!kIsSingle) moment_ = Expiry();
    }

    /// Takes back what has not leaked, so the bucket keeps what later attempts added. What an
    /// attempt cost in addition counts as later than all, so less of others may be taken back.
    ///
    /// With a cost for each window, attempts are numbered, not actions. Of an attempt that others
    /// followed, at least what cannot have leaked since it was made is left. What has leaked can be
    /// settled, too, while the window lasts: the id is known that long.
    bool Settle(const Receipt& receipt, const Costs& actual, Micros now) {
      if (moment_ == kLongAgo || !IsOfThisGeneration(receipt)) return false;
      const bool is_weighted = rules_.policy_.weighted();
      const std::uint64_t later = LaterThan(receipt);
      bool found = false;
      for (std::size_t i = 0; i < rules_.windows_.size(); ++i) {
        const EmissionWindow& window = rules_.windows_[i];
        const std::int64_t time = window.ToUnits(std::max(now, Newest()));
        // By then the action has leaked, and another may have its number.
        if (time - window.ToUnits(receipt.at) >= rules_.FullBucket(i)) continue;
        const std::uint64_t left =
            is_weighted ? LeftOfWeighted(i, receipt, time, later) : LeftBelow(i, time, later);
        if (left == 0 && !is_weighted) continue;
        found = true;
        if (actual[i] <= receipt.cost[i]) {
          const auto less =
              static_cast<std::uint64_t>(window.Emissions(receipt.cost[i] - actual[i]));
          const std::uint64_t given_back = std::min(left, less);
          Store(i, static_cast<std::int64_t>(static_cast<std::uint64_t>(Load(i)) - given_back));
        } else {
          Add(i, actual[i] - receipt.cost[i], 0);
        }
      }
      if (!found) return false;
      if constexpr (!kIsSingle) moment_ = std::max(moment_, Expiry());
      if (is_weighted) {
        // The level changed without new action numbers, so older receipts must not match exactly.
        StoreNumber(Number() + 1);
        return true;
      }
      const std::uint64_t cost = receipt.cost.uniform();
      if (actual.uniform() > cost) {
        // A larger step would repeat numbers.
        const std::uint64_t step = std::uint64_t{1} << (rules_.number_bits_ - 2);
        StoreNumber(Number() + std::min(actual.uniform() - cost, step));
      } else if (later == 0) {
        // The place of the newest action in the bucket is free again.
        StoreNumber(Number() - (cost - actual.uniform()));
      }
      return true;
    }

   private:
    /// What has not leaked of an attempt under `later` actions, and of all below it.
    std::uint64_t LeftBelow(std::size_t i, std::int64_t time, std::uint64_t later) const {
      if (later >= CountAhead(i, time)) return 0;
      return Ahead(i, time) - static_cast<std::uint64_t>(rules_.windows_[i].Emissions(later));
    }

    std::uint64_t LeftOfWeighted(std::size_t i, const Receipt& receipt, std::int64_t time,
                                 std::uint64_t later) const {
      const EmissionWindow& window = rules_.windows_[i];
      const auto made = static_cast<std::uint64_t>(window.Emissions(receipt.cost[i]));
      const std::uint64_t ahead = Ahead(i, time);
      if (later == 0) return std::min(ahead, made);
      const auto since = static_cast<std::uint64_t>(time - window.ToUnits(receipt.at));
      return std::min(ahead, made - std::min(made, since));
    }

    /// From when on the id affects no decision.
    Micros Expiry() const {
      Micros expiry = Newest() + rules_.AfterNewest();
      for (std::size_t i = 0; i < rules_.windows_.size(); ++i) {
        expiry = std::max(expiry, rules_.windows_[i].ToMicros(Load(i)));
      }
      return expiry;
    }

    /// Advances an arrival time; saturates at the largest representable one.
    void Add(std::size_t i, std::uint64_t actions, std::uint64_t units) {
      const EmissionWindow& window = rules_.windows_[i];
      const auto emission = static_cast<std::uint64_t>(window.emission());
      const std::int64_t latest = window.Latest(rules_.policy_.windows()[i].max);
      const auto arrival = static_cast<std::uint64_t>(Load(i));  // unsigned, as in Ahead
      const std::uint64_t most = static_cast<std::uint64_t>(std::max(latest, Load(i))) - arrival;
      const bool fits = actions <= most / emission && units <= most - actions * emission;
      Store(i, static_cast<std::int64_t>(arrival + (fits ? actions * emission + units : most)));
    }

    /// Unsigned: times on both sides of the origin can be more than 2^63 apart.
    std::uint64_t Ahead(std::size_t i, std::int64_t time) const {
      const std::int64_t arrival = Load(i);
      if (arrival <= time) return 0;
      return static_cast<std::uint64_t>(arrival) - static_cast<std::uint64_t>(time);
    }

    static std::uint64_t RoundUp(std::uint64_t ahead, std::uint64_t emission) {
      return ahead / emission + (ahead % emission > 0 ? 1 : 0);
    }

    std::uint64_t CountAhead(std::size_t i, std::int64_t time) const {
      return RoundUp(Ahead(i, time), static_cast<std::uint64_t>(rules_.windows_[i].emission()));
    }

    static std::uint64_t Low(std::uint64_t number, int bits) {
      return number & ((std::uint64_t{1} << bits) - 1);
    }

    bool IsOfThisGeneration(const Receipt& receipt) const {
      const int bits = kTokenBits - rules_.number_bits_;
      return Low(receipt.token, bits) == Low(generation_, bits);
    }

    /// The total cost recorded after an attempt, refunds included.
    std::uint64_t LaterThan(const Receipt& receipt) const {
      const int bits = rules_.number_bits_;
      return Low(Number() - (receipt.token >> (kTokenBits - bits)), bits);
    }

    std::int64_t Load(std::size_t i) const {
      if constexpr (kIsSingle) return moment_ == kLongAgo ? kNoArrival : moment_;
      return LoadAs<std::int64_t>(state_ + kArrivals + i * sizeof(std::int64_t));
    }

    void Store(std::size_t i, std::int64_t arrival) {
      if constexpr (kIsSingle) {
        moment_ = arrival;
      } else {
        StoreAs(state_ + kArrivals + i * sizeof arrival, arrival);
      }
    }

    std::uint64_t Number() const {
      const std::uint64_t low = LoadAs<std::uint32_t>(state_ + kNumber);
      if (!rules_.HasHighWord()) [[likely]]
        return low;
      return low | std::uint64_t{LoadAs<std::uint32_t>(state_ + rules_.least_state_bytes())} << 32;
    }
    void StoreNumber(std::uint64_t number) {
      StoreAs(state_ + kNumber, static_cast<std::uint32_t>(number));
      if (!rules_.HasHighWord()) [[likely]]
        return;
      StoreAs(state_ + rules_.least_state_bytes(), static_cast<std::uint32_t>(number >> 32));
    }
    void StoreNewest(Micros newest) { StoreAs(state_, newest); }

    const Gcra& rules_;
    std::byte* state_;
    Micros moment_;
    Generation generation_;
  };

 private:
  static constexpr std::size_t kNumber = kIsSingle ? 0 : sizeof(Micros);
  static constexpr std::size_t kArrivals = sizeof(Micros) + kNumberWord;
  /// The bits of an action's number in a token; those of the generation fill the rest. A settle
  /// compares the actions since its own, at most twice the max while a full bucket leaks.
  static constexpr int kShortNumberBits = kTokenBits - kGenerationBits;
  static constexpr std::uint64_t kMostOfShortNumbers = std::uint64_t{1} << (kShortNumberBits - 2);
  /// With a larger max, numbers of 32 bits would repeat within one bucket. A token is then a number
  /// of all its bits, and generations begin far apart: 2^53 by the golden ratio, made odd.
  static constexpr std::uint64_t kMostOfWords = std::uint64_t{1} << 30;
  static constexpr std::uint64_t kFarApart = 5'566'755'282'872'655;

  bool HasHighWord() const { return number_bits_ > 32; }

  /// How long an id matters after its newest action, even if its buckets are empty.
  Micros AfterNewest() const {
    return std::max(policy_.min_difference(), policy_.weighted() ? longest_ : 0);
  }

  std::int64_t ArrivalAfter(std::size_t i, std::int64_t arrival, Micros at,
                            std::uint64_t cost) const {
    assert(cost <= policy_.windows()[i].max);
    return std::max(arrival, windows_[i].ToUnits(at)) + windows_[i].Emissions(cost);
  }

  std::int64_t FullBucket(std::size_t i) const {
    return windows_[i].Emissions(policy_.windows()[i].max);
  }

  P policy_;
  PerWindow<P, EmissionWindow> windows_;
  Micros longest_ = 0;  // until the fullest bucket is empty
  int number_bits_ = kShortNumberBits;
};

}  // namespace rollgate
