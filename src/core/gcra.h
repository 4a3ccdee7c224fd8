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
#include "core/inlining.h"
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
        emission_(Emission(window)),
        interval_(window.interval),
        max_(window.max) {
    assert(window.interval > 0 && window.max >= 1);
  }

  bool IsOf(const Window& window) const {
    return window.interval == interval_ && window.max == max_;
  }

  std::int64_t emission() const { return emission_; }
  /// Modulo 2^64: an overdraft may be longer than a time.
  std::int64_t Emissions(std::uint64_t n) const {
    return static_cast<std::int64_t>(n * static_cast<std::uint64_t>(emission_));
  }
  std::int64_t FullBucket() const { return Emissions(max_); }

  std::int64_t ToUnits(Micros moment) const {
    return std::clamp(moment, -kLongestHere, kLongestHere) * per_micro_;
  }

  /// No arrival time is later. Emissions are rounded up: a full bucket exceeds the interval by less
  /// than `max`.
  std::int64_t Latest() const { return 2 * ToUnits(kLongest) + static_cast<std::int64_t>(max_); }

  Micros ToMicros(std::int64_t units) const {  // rounds up
    const std::int64_t whole = units / per_micro_;
    return whole + (units % per_micro_ > 0 ? 1 : 0);
  }

  /// The arrival time after actions of this cost at `at`.
  std::int64_t Later(std::int64_t arrival, Micros at, std::uint64_t cost) const {
    const std::int64_t from = std::max(arrival, ToUnits(at));
    if (cost <= max_) [[likely]]
      return from + Emissions(cost);
    return Add(from, cost);
  }

  /// Saturates at the latest arrival time.
  std::int64_t Add(std::int64_t arrival, std::uint64_t actions) const {
    const auto from = static_cast<std::uint64_t>(arrival);  // unsigned: see Ahead in Gcra
    const std::uint64_t most = static_cast<std::uint64_t>(std::max(Latest(), arrival)) - from;
    const auto emission = static_cast<std::uint64_t>(emission_);
    const std::uint64_t added = actions <= most / emission ? actions * emission : most;
    return static_cast<std::int64_t>(from + added);
  }

  /// An arrival time of another window, which has as many actions ahead of `newest` here. Parts of
  /// units are rounded up.
  std::int64_t Convert(std::int64_t arrival, const EmissionWindow& other, Micros newest) const {
    const std::int64_t from = ToUnits(newest);
    const std::int64_t since = other.ToUnits(newest);
    if (arrival <= since) return from;
    const std::uint64_t ahead =
        static_cast<std::uint64_t>(arrival) - static_cast<std::uint64_t>(since);
    const WideProduct product = WideMultiply(ahead, static_cast<std::uint64_t>(emission_));
    const auto divisor = static_cast<std::uint64_t>(other.emission_);
    const std::uint64_t most =
        static_cast<std::uint64_t>(Latest()) - static_cast<std::uint64_t>(from);
    if (product.high >= divisor) return Latest();
    const std::uint64_t whole = WideDivide(product, divisor);
    const bool is_exact = WideMultiply(whole, divisor) == product;
    const std::uint64_t units = whole + (is_exact ? 0 : 1);
    return units >= most ? Latest()
                         : static_cast<std::int64_t>(static_cast<std::uint64_t>(from) + units);
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
  Micros interval_;
  std::uint64_t max_;
};

/// Under a single window, an id's moment is its arrival time; else the time from which the id
/// affects no decision.
///
/// A refund takes what has not leaked of an action yet. Its place in the bucket follows from how
/// many actions came later, so every action has a number.
///
/// Other limits change the rate, not the count: between two recorded actions, the bucket leaks at
/// the rate of the later one's limit. So states have the time of the newest action; under a policy
/// that varies, also the limit of each arrival time.
template <class P>
class Gcra {
  static constexpr bool kIsSingle = std::is_same_v<P, SingleWindowPolicy>;
  static constexpr std::int64_t kNoArrival = std::numeric_limits<std::int64_t>::min();
  /// The number of a single window's state is short: it must not repeat while a full bucket leaks.
  using Number = std::conditional_t<kIsSingle, std::uint32_t, std::uint64_t>;

 public:
  static bool FitsSingle(const Policy& policy) {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 30;
    return SingleWindowPolicy::Fits(policy) && !policy.varies() && policy.largest_limit() <= kMost;
  }

  explicit Gcra(const Policy& policy)
      : policy_(policy),
        own_windows_(ForEachWindow<EmissionWindow>(policy_)),
        windows_(own_windows_),
        scratch_(policy.varies() ? state_bytes() : 0) {
    for (std::size_t i = 0; i < windows_.size(); ++i) {
      longest_ = std::max(longest_, windows_[i].ToMicros(FullBucket(i)));
    }
  }

  const P& policy() const { return policy_; }

  void UseLimits(std::span<const std::uint64_t> limits) {
    policy_.UseLimits(limits);
    for (std::size_t i = 0; i < windows_.size(); ++i) {
      const bool is_own = limits.empty() || limits[i] == 0;
      windows_[i] = is_own ? own_windows_[i] : EmissionWindow(policy_.windows()[i]);
    }
  }

  bool varies() const {
    if constexpr (kIsSingle)
      return false;
    else
      return policy_.varies();
  }

  std::size_t state_bytes() const { return kArrivals + windows_.size() * stride(); }

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
    if constexpr (kIsSingle) return windows_[0].Later(kNoArrival, at, costs[0]);
    Micros expiry = at + AfterNewest();
    for (std::size_t i = 0; i < windows_.size(); ++i) {
      const std::int64_t arrival = windows_[i].Later(kNoArrival, at, costs[i]);
      expiry = std::max(expiry, windows_[i].ToMicros(arrival));
    }
    return expiry;
  }

  /// `state` has the moment and the number of the newest action; in the general form also an
  /// arrival time for each window, if the policy varies with its limit: interval and max.
  class Account {
   public:
    Account(const Gcra& rules, std::byte* state, Micros moment, Generation generation)
        : rules_(rules), state_(state), moment_(moment), generation_(generation) {
      assert(state != nullptr);
    }

    static Account Begin(const Gcra& rules, std::byte* state, Generation generation) {
      Account account(rules, state, kLongAgo, generation);
      account.StoreNumber(0);
      account.StoreNewest(kLongAgo);
      if constexpr (!kIsSingle) {
        for (std::size_t i = 0; i < rules.windows_.size(); ++i) {
          account.Store(i, kNoArrival);
          account.StoreLimit(i);
        }
      }
      return account;
    }

    /// An account of a state that has neither its limits nor, perhaps, its newest action: as if it
    /// was written under these limits.
    static Account Restore(const Gcra& rules, std::byte* state, Generation generation,
                           const Snapshot& snapshot) {
      Account account = Begin(rules, state, generation);
      account.StoreNumber(snapshot.numbers[0]);
      account.StoreNewest(snapshot.newest);
      for (std::size_t i = 0; i < rules.windows_.size(); ++i) {
        const Micros arrival = snapshot.actions[i];
        if (arrival != kLongAgo) account.Store(i, rules.windows_[i].ToUnits(arrival));
      }
      account.moment_ = account.Expiry();
      return account;
    }

    bool IsSound() const {
      for (std::size_t i = 0; i < rules_.windows_.size(); ++i) {
        if (!HasSoundLimit(i)) return false;
        const std::int64_t arrival = Load(i);
        const EmissionWindow window = WindowAt(i);
        if (arrival != kNoArrival &&
            (arrival < window.ToUnits(-kLongest) || arrival > window.Latest())) {
          return false;
        }
      }
      return Newest() == kLongAgo || (Newest() >= -kLongest && Newest() <= kLongest);
    }

    /// Where its state is: in the rules after a Prepare that changed it.
    const std::byte* state() const { return state_; }

    Micros moment() const { return moment_; }
    static bool IsEmpty() { return false; }
    Generation generation() const { return generation_; }

    /// Numbers of 53 bits: generations begin far apart.
    std::uint64_t Token() const { return ShortToken(generation_ * kFarApart + LoadNumber()); }

    Micros Newest() const { return LoadAs<Micros>(state_); }

    /// Not clamped: an earlier time is further from the arrival time, so it is refused sooner.
    Micros At(Micros now) const { return now; }

    /// Lets the arrival times be those of the limits of this call. What has leaked since the newest
    /// action depends on them; fractions are rounded up. The state changes once it is saved.
    void Prepare(Micros) {
      if constexpr (!kIsSingle) {
        for (std::size_t i = 0; rules_.varies() && i < rules_.windows_.size(); ++i) {
          const bool is_open = rules_.policy_.windows()[i].max > 0;
          if (is_open && !rules_.windows_[i].IsOf(LimitAt(i))) AdoptLimit(i);
        }
      }
    }

    std::uint64_t Used(std::size_t i, Micros at) const {
      return CountAhead(i, WindowAt(i).ToUnits(at));
    }

    bool Reaches(std::size_t i, std::uint64_t n, Micros at) const {
      const EmissionWindow window = WindowAt(i);
      return Load(i) > window.ToUnits(at) + window.Emissions(n - 1);
    }

    Micros BelowAt(std::size_t i, std::uint64_t n) const {
      const EmissionWindow window = WindowAt(i);
      const std::int64_t arrival = Load(i);
      if (arrival == kNoArrival) return kLongAgo;
      return window.ToMicros(
          static_cast<std::int64_t>(static_cast<std::uint64_t>(arrival) -
                                    static_cast<std::uint64_t>(window.Emissions(n - 1))));
    }

    void Record(const Verdict& verdict, const Costs& costs) {
      assert(costs.IsAny());
      for (std::size_t i = 0; i < rules_.windows_.size(); ++i) {
        Store(i, WindowAt(i).Later(Load(i), verdict.at, costs[i]));
      }
      StoreNumber(LoadNumber() + (rules_.policy_.weighted() ? 1 : costs.uniform()));
      StoreNewest(std::max(verdict.at, Newest()));
      if constexpr (!kIsSingle) moment_ = Expiry();
    }

    Account& After(const Verdict& verdict, const Costs& costs) {
      if (costs.IsAny()) Record(verdict, costs);
      return *this;
    }

    /// The numbers: that of the newest action, then for each window arrival time, interval and max.
    void CopyTo(Snapshot& snapshot, Micros) const {
      snapshot.newest = Newest();
      snapshot.numbers.push_back(LoadNumber());
      for (std::size_t i = 0; i < rules_.windows_.size(); ++i) {
        const Window limit = LimitAt(i);
        snapshot.numbers.insert(snapshot.numbers.end(),
                                {static_cast<std::uint64_t>(Load(i)),
                                 static_cast<std::uint64_t>(limit.interval), limit.max});
      }
    }
    /// Precondition: the policy varies.
    template <class RecordOne>
    void TakeOver(const Snapshot& snapshot, Micros, RecordOne) {
      assert(rules_.varies());
      StoreNumber(snapshot.numbers[0]);
      StoreNewest(snapshot.newest);
      for (std::size_t i = 0; i < rules_.windows_.size(); ++i) {
        const std::uint64_t* const window = &snapshot.numbers[1 + 3 * i];
        Store(i, static_cast<std::int64_t>(window[0]));
        StoreLimit(i, {static_cast<Micros>(window[1]), window[2]});
      }
      if constexpr (!kIsSingle) moment_ = Expiry();
    }

    /// Takes back what has not leaked, so the bucket keeps what later attempts added. What an
    /// attempt cost in addition counts as later than all, so less of others may be taken back.
    ///
    /// With a cost for each window, attempts are numbered, not actions. Of an attempt that others
    /// followed, at least what cannot have leaked since it was made is left. What has leaked can be
    /// settled, too, while the window lasts: the id is known that long.
    ///
    /// Under the limits of the newest action, whatever those of the policy.
    bool Settle(const Receipt& receipt, const Costs& actual, Micros now) {
      const bool is_weighted = rules_.policy_.weighted();
      const std::uint64_t later = LaterThan(receipt);
      if (moment_ == kLongAgo || (is_weighted && later >= kMostLater)) return false;
      const Micros time = std::max(now, Newest());
      bool found = false;
      for (std::size_t i = 0; i < rules_.windows_.size(); ++i) {
        const EmissionWindow window = WindowAt(i);
        const std::int64_t then = window.ToUnits(time);
        // By then the action has leaked, and another may have its number.
        if (then - window.ToUnits(receipt.at) >= window.FullBucket()) continue;
        const std::uint64_t left =
            is_weighted ? LeftOfWeighted(i, receipt, then, later) : LeftBelow(i, then, later);
        if (left == 0 && !is_weighted) continue;
        found = true;
        if (actual[i] <= receipt.cost[i]) {
          const auto less =
              static_cast<std::uint64_t>(window.Emissions(receipt.cost[i] - actual[i]));
          const std::uint64_t given_back = std::min(left, less);
          Store(i, static_cast<std::int64_t>(static_cast<std::uint64_t>(Load(i)) - given_back));
        } else {
          Store(i, window.Add(Load(i), actual[i] - receipt.cost[i]));
        }
      }
      if (!found) return false;
      if constexpr (!kIsSingle) moment_ = std::max(moment_, Expiry());
      if (is_weighted) {
        // The level changed without new action numbers, so older receipts must not match exactly.
        StoreNumber(LoadNumber() + 1);
        return true;
      }
      const std::uint64_t cost = receipt.cost.uniform();
      if (actual.uniform() > cost) {
        // A larger step would repeat numbers.
        constexpr std::uint64_t kLargestStep = std::uint64_t{1} << (8 * sizeof(Number) - 2);
        StoreNumber(LoadNumber() + std::min(actual.uniform() - cost, kLargestStep));
      } else if (later == 0) {
        // The place of the newest action in the bucket is free again.
        StoreNumber(LoadNumber() - (cost - actual.uniform()));
      }
      return true;
    }

   private:
    /// What has not leaked of an attempt under `later` actions, and of all below it.
    std::uint64_t LeftBelow(std::size_t i, std::int64_t time, std::uint64_t later) const {
      if (later >= CountAhead(i, time)) return 0;
      return Ahead(i, time) - static_cast<std::uint64_t>(WindowAt(i).Emissions(later));
    }

    std::uint64_t LeftOfWeighted(std::size_t i, const Receipt& receipt, std::int64_t time,
                                 std::uint64_t later) const {
      const EmissionWindow window = WindowAt(i);
      const auto made = static_cast<std::uint64_t>(window.Emissions(receipt.cost[i]));
      const std::uint64_t ahead = Ahead(i, time);
      if (later == 0) return std::min(ahead, made);
      const auto since = static_cast<std::uint64_t>(time - window.ToUnits(receipt.at));
      return std::min(ahead, made - std::min(made, since));
    }

    /// From when on the id affects no decision. Calls with limits of their own may be followed by
    /// others with lower ones, under which more is left.
    Micros Expiry() const {
      Micros expiry = Newest() + rules_.AfterNewest();
      if constexpr (!kIsSingle) {
        if (rules_.policy_.has_limits_of_call()) {
          expiry = std::max(expiry, Newest() + rules_.policy_.longest_interval());
        }
      }
      for (std::size_t i = 0; i < rules_.windows_.size(); ++i) {
        expiry = std::max(expiry, WindowAt(i).ToMicros(Load(i)));
      }
      return expiry;
    }

    ROLLGATE_COLD void AdoptLimit(std::size_t i) {
      if (state_ != rules_.scratch_.data()) {
        std::copy_n(state_, rules_.state_bytes(), rules_.scratch_.data());
        state_ = rules_.scratch_.data();
      }
      const std::int64_t arrival = Load(i);
      if (arrival != kNoArrival) {
        Store(i, rules_.windows_[i].Convert(arrival, EmissionWindow(LimitAt(i)), Newest()));
      }
      StoreLimit(i);
    }

    /// The units of arrival time i.
    EmissionWindow WindowAt(std::size_t i) const {
      if (!rules_.varies()) return rules_.windows_[i];
      const Window limit = LimitAt(i);
      return rules_.windows_[i].IsOf(limit) ? rules_.windows_[i] : EmissionWindow(limit);
    }

    /// The limit that arrival time i is of.
    Window LimitAt(std::size_t i) const {
      if (!rules_.varies()) return rules_.policy_.windows()[i];
      const std::byte* const limit = state_ + rules_.ArrivalAt(i) + sizeof(std::int64_t);
      return {LoadAs<Micros>(limit), LoadAs<std::uint64_t>(limit + sizeof(Micros))};
    }
    bool HasSoundLimit(std::size_t i) const {
      const Window limit = LimitAt(i);
      return limit.interval >= 1 && limit.interval <= kLongest && limit.max >= 1 &&
             limit.max <= kMostMax;
    }
    void StoreLimit(std::size_t i, const Window& limit) {
      if (!rules_.varies()) return;
      std::byte* const to = state_ + rules_.ArrivalAt(i) + sizeof(std::int64_t);
      StoreAs(to, limit.interval);
      StoreAs(to + sizeof(Micros), limit.max);
    }
    void StoreLimit(std::size_t i) {
      const Window& window = rules_.policy_.windows()[i];
      StoreLimit(i, {window.interval, std::max<std::uint64_t>(window.max, 1)});
    }

    /// Unsigned: times on both sides of the origin can be more than 2^63 apart.
    std::uint64_t Ahead(std::size_t i, std::int64_t time) const {
      const std::int64_t arrival = Load(i);
      if (arrival <= time) return 0;
      return static_cast<std::uint64_t>(arrival) - static_cast<std::uint64_t>(time);
    }

    std::uint64_t CountAhead(std::size_t i, std::int64_t time) const {
      const auto emission = static_cast<std::uint64_t>(WindowAt(i).emission());
      const std::uint64_t ahead = Ahead(i, time);
      return ahead / emission + (ahead % emission > 0 ? 1 : 0);
    }

    static std::uint64_t ShortToken(std::uint64_t number) {
      return number & ((std::uint64_t{1} << kTokenBits) - 1);
    }

    /// The total cost recorded after an attempt, refunds included; very large for one of another
    /// generation.
    std::uint64_t LaterThan(const Receipt& receipt) const {
      const std::uint64_t first = ShortToken(receipt.token - generation_ * kFarApart);
      if constexpr (kIsSingle) {
        // The short number may have begun again.
        constexpr auto kNumbers = std::uint64_t{1} << (8 * sizeof(Number));
        return first < kNumbers ? static_cast<Number>(LoadNumber() - first) : kNever;
      }
      return ShortToken(LoadNumber() - first);
    }

    std::int64_t Load(std::size_t i) const {
      if constexpr (kIsSingle) return moment_ == kLongAgo ? kNoArrival : moment_;
      return LoadAs<std::int64_t>(state_ + rules_.ArrivalAt(i));
    }

    void Store(std::size_t i, std::int64_t arrival) {
      if constexpr (kIsSingle) {
        moment_ = arrival;
      } else {
        StoreAs(state_ + rules_.ArrivalAt(i), arrival);
      }
    }

    std::uint64_t LoadNumber() const { return LoadAs<Number>(state_ + sizeof(Micros)); }
    void StoreNumber(std::uint64_t number) {
      StoreAs(state_ + sizeof(Micros), static_cast<Number>(number));
    }
    void StoreNewest(Micros newest) { StoreAs(state_, newest); }

    const Gcra& rules_;
    std::byte* state_;
    Micros moment_;
    Generation generation_;
  };

 private:
  static constexpr std::size_t kArrivals = sizeof(Micros) + sizeof(Number);
  static constexpr std::uint64_t kMostMax = std::uint64_t{1} << kTokenBits;
  /// How far apart generations begin: 2^53 by the golden ratio, made odd. The numbers of any two
  /// are more than kMostLater apart at first.
  static constexpr std::uint64_t kFarApart = 5'566'755'282'872'655;
  static constexpr std::uint64_t kMostLater = std::uint64_t{1} << 19;

  std::size_t stride() const {
    if constexpr (kIsSingle) return 0;  // the arrival time is the moment
    return (varies() ? 3 : 1) * sizeof(std::int64_t);
  }
  std::size_t ArrivalAt(std::size_t i) const { return kArrivals + i * stride(); }

  /// How long an id matters after its newest action, even if its buckets are empty.
  Micros AfterNewest() const {
    return std::max(policy_.min_difference(), policy_.weighted() ? longest_ : 0);
  }

  std::int64_t FullBucket(std::size_t i) const { return windows_[i].FullBucket(); }

  P policy_;
  PerWindow<P, EmissionWindow> own_windows_;
  PerWindow<P, EmissionWindow> windows_;    // of the current call
  mutable std::vector<std::byte> scratch_;  // the state of the call, if Prepare changes it
  Micros longest_ = 0;                      // until the fullest bucket is empty
};

}  // namespace rollgate
