// The bodies of portable states: how each algorithm reads and writes what it keeps of an id.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/algorithms.h"
#include "core/bytes.h"
#include "core/decision.h"
#include "core/policy.h"
#include "core/portable_limiter.h"
#include "core/portable_state.h"
#include "core/ring_log.h"
#include "core/time.h"
#include "core/weighted_log.h"

namespace rollgate {

/// Counts in aligned windows. Those of other limits count in the windows that there are now.
template <class Rules>
class CountBody {
 public:
  using Account = typename Rules::Account;
  static constexpr std::uint8_t kVersion = PortableState::kVersion;

  explicit CountBody(const Rules& rules) : rules_(rules), bytes_(rules.state_bytes()) {}

  std::size_t largest() const { return bytes_.size(); }

  bool Fits(const PortableState& state) const { return WidthOf(state) > 0; }

  std::optional<Account> Open(const PortableState& state, bool fits) {
    if (!fits) return Account::Begin(rules_, bytes_.data(), state.header.generation);
    const std::size_t width = WidthOf(state);
    for (std::size_t i = 0; i < Numbers(); ++i) {
      std::uint64_t count = 0;
      std::memcpy(&count, &state.body[i * width], width);
      rules_.counts().Store(bytes_.data(), i, rules_.counts().Add(0, count));
    }
    const Account account(rules_, bytes_.data(), state.header.moment, state.header.generation);
    return account.IsSound() ? std::optional(account) : std::nullopt;
  }

  void Reserve(Account&, Micros, const Costs&) const {}

  /// Counts that fit into fewer bytes are written so.
  void Close(const Account&, PortableState& state) {
    bool is_narrow = true;
    for (std::size_t i = 0; i < Numbers(); ++i) {
      is_narrow &= rules_.counts().Load(bytes_.data(), i) <= CountFormat::kMostNarrow;
    }
    const std::size_t width = is_narrow ? CountFormat::kNarrow : CountFormat::kWide;
    body_.resize(Numbers() * width);
    for (std::size_t i = 0; i < Numbers(); ++i) {
      const std::uint64_t count = rules_.counts().Load(bytes_.data(), i);
      std::memcpy(&body_[i * width], &count, width);
    }
    state.body = body_;
  }

 private:
  std::size_t Numbers() const { return bytes_.size() / rules_.counts().bytes(); }

  /// How many bytes each count of a state has; 0 if it has not as many counts.
  std::size_t WidthOf(const PortableState& state) const {
    if (state.header.version != kVersion) return 0;
    for (const std::size_t width : {CountFormat::kNarrow, CountFormat::kWide}) {
      if (state.body.size() == Numbers() * width) return width;
    }
    return 0;
  }

  const Rules& rules_;
  std::vector<std::byte> bytes_;
  std::vector<std::byte> body_;
};

/// States that have all their numbers in a form of their own: calendar windows, and GCRA.
template <class Rules>
class StateBody {
 public:
  using Account = typename Rules::Account;
  static constexpr std::uint8_t kVersion = PortableState::kStatesOfTheirOwn;

  explicit StateBody(const Rules& rules) : rules_(rules), bytes_(rules.state_bytes()) {}

  std::size_t largest() const { return bytes_.size(); }

  bool Fits(const PortableState& state) const {
    if (state.header.version == kVersion) return state.body.size() == bytes_.size();
    return ArrivalsWithoutNewest(state) || ArrivalsWithNewest(state);
  }

  std::optional<Account> Open(const PortableState& state, bool fits) {
    const PortableState::Header& header = state.header;
    if (!fits) return Account::Begin(rules_, bytes_.data(), header.generation);
    if (header.version != kVersion) return OpenOlder(state);
    std::ranges::copy(state.body, bytes_.begin());
    const Account account(rules_, bytes_.data(), header.moment, header.generation);
    return account.IsSound() ? std::optional(account) : std::nullopt;
  }

  void Reserve(Account&, Micros, const Costs&) const {}

  void Close(const Account& account, PortableState& state) {
    if (account.state() != bytes_.data()) {
      std::copy_n(account.state(), bytes_.size(), bytes_.begin());
    }
    state.body = bytes_;
  }

 private:
  static constexpr bool kIsGcra = requires(const Rules& rules) { rules.varies(); };

  // The forms of earlier releases for GCRA: the moment of the newest action unless there is nothing
  // but one window, a number, the arrival times, the high word of a large number, and interval and
  // max of each window. Without that moment, the arrival time is in place of the id's.
  static constexpr std::size_t kNumber = sizeof(std::uint32_t);
  static constexpr std::size_t kWindow = sizeof(Micros) + sizeof(std::uint64_t);

  std::size_t windows() const { return rules_.policy().windows().size(); }

  bool IsOlder(const PortableState& state, std::size_t least) const {
    const bool has_size = state.body.size() == least || state.body.size() == least + kNumber;
    return kIsGcra && state.header.version == PortableState::kVersion && has_size;
  }
  bool ArrivalsWithoutNewest(const PortableState& state) const {
    return windows() == 1 && IsOlder(state, kNumber + kWindow);
  }
  bool ArrivalsWithNewest(const PortableState& state) const {
    return IsOlder(state, sizeof(Micros) + kNumber + windows() * (sizeof(std::int64_t) + kWindow));
  }

  std::optional<Account> OpenOlder(const PortableState& state) {
    if constexpr (kIsGcra) {
      const bool has_newest = ArrivalsWithNewest(state);
      const std::byte* next = state.body.data();
      Snapshot snapshot;
      if (has_newest) snapshot.newest = LoadAs<Micros>(std::exchange(next, next + sizeof(Micros)));
      if (snapshot.newest != kLongAgo) snapshot.newest = Bounded(snapshot.newest);
      snapshot.numbers.push_back(LoadAs<std::uint32_t>(next));
      next += kNumber;
      const std::byte* window = state.body.data() + state.body.size() - windows() * kWindow;
      for (std::size_t i = 0; i < windows(); ++i, window += kWindow) {
        const Window limit{LoadAs<Micros>(window), LoadAs<std::uint64_t>(window + sizeof(Micros))};
        if (limit.interval < 1 || limit.interval > kLongest || limit.max < 1 ||
            limit.max > std::uint64_t{1} << kTokenBits) {
          return std::nullopt;
        }
        const std::int64_t arrival = has_newest
                                         ? LoadAs<std::int64_t>(next + i * sizeof(std::int64_t))
                                         : state.header.moment;
        const bool has_arrival = arrival != std::numeric_limits<std::int64_t>::min();
        snapshot.actions.push_back(has_arrival ? Bounded(EmissionWindow(limit).ToMicros(arrival))
                                               : kLongAgo);
      }
      return Account::Restore(rules_, bytes_.data(), state.header.generation, snapshot);
    }
    return std::nullopt;
  }

  const Rules& rules_;
  std::vector<std::byte> bytes_;
};

/// The body of a log. One of other limits is used as far as it goes.
template <class Rules>
class LogBody {
  using Log = typename Rules::Log;
  using Stamp = typename Log::StampType;

 public:
  using Account = typename Rules::Account;
  static constexpr std::uint8_t kVersion = PortableState::kVersion;

  explicit LogBody(const Rules& rules) : rules_(rules) {}

  std::size_t largest() const { return std::size_t{CapacityFor(0) - 1} * Width(); }

  static bool Fits(const PortableState& state) { return !state.weighted(); }

  std::optional<Account> Open(const PortableState& state, bool fits) {
    const bool is_empty = state.header.moment == kLongAgo || !fits;
    const std::size_t width = state.header.width;
    const bool is_sound = Bounded(state.header.moment) == state.header.moment &&
                          (width == 4 || width == 8) && state.body.size() % width == 0 &&
                          state.body.size() / width < kLongestLog;
    if (!is_empty && !is_sound) return std::nullopt;
    const auto room = static_cast<std::uint32_t>(is_empty ? 0 : state.body.size() / width);
    ring_.resize(room * sizeof(Stamp));
    LogHead head;
    head.displaced = !is_empty && state.displaced();
    head.newest = is_empty ? 0 : state.header.moment;
    head.size = is_empty ? 0 : 1;
    std::uint64_t last_age = std::uint64_t{kLongest} * 2;
    for (std::size_t i = 0; i < room; ++i) {
      const std::uint64_t age = AgeOf(&state.body[i * width], width, head.newest);
      if (age > last_age) return std::nullopt;
      last_age = age;
      // Older than a Stamp can represent is outside of all windows.
      if (age > LongestAge()) continue;
      const auto stamp = static_cast<Stamp>(static_cast<std::uint64_t>(head.newest) - age);
      StoreAs(&ring_[(head.size - 1) * sizeof(Stamp)], stamp);
      ++head.size;
    }
    assert(head.size <= room + 1);
    if (head.size > rules_.policy().log_capacity()) {
      head = WithoutUnneeded<Stamp>(head, ring_.data(), room, rules_.retention());
    }
    return Account(rules_, state.header.generation, head, ring_.data(), room,
                   CapacityFor(head.size));
  }

  /// Makes room for an attempt at `at`, up to the log's capacity.
  void Reserve(Account& account, Micros at, const Costs& costs) {
    const std::uint64_t more = costs.uniform();
    Log& log = account.log();
    if (!log.NeedsAll(rules_.retention())) log.DropUntil(log.Nth(1) - rules_.retention());
    const auto longest = static_cast<Micros>(LongestAge());
    if (log.size() > 0 && at - log.Oldest() > longest) log.DropUntil(at - longest - 1);
    if (rules_.policy().exceeds_log() && log.size() + more > log.capacity()) {
      log.DropUntil(at - rules_.retention());
      // A full log would drop actions that count.
      if (log.size() + more > log.capacity()) throw std::bad_alloc();
    }
    const std::uint64_t needed = std::min<std::uint64_t>(log.size() + more, log.capacity()) - 1;
    assert(more >= 1 && needed + 1 >= log.size());
    next_ring_.resize(needed * sizeof(Stamp));
    log.MoveTo(next_ring_.data(), static_cast<std::uint32_t>(needed));
  }

  void Close(const Account& account, PortableState& state) {
    const Log& log = account.log();
    const std::size_t width = Width();
    body_.resize(log.size() == 0 ? 0 : (log.size() - 1) * width);
    for (std::uint32_t n = log.size(); n > 1; --n) {
      std::byte* const stamp = &body_[(log.size() - n) * width];
      if (width == sizeof(Stamp)) {
        StoreAs(stamp, static_cast<Stamp>(log.Nth(n)));
      } else {
        StoreAs(stamp, static_cast<std::uint32_t>(log.Nth(n)));
      }
    }
    state.header.width = static_cast<std::uint8_t>(width);
    if (log.displaced()) state.header.flags = PortableState::kDisplaced;
    state.body = body_;
  }

 private:
  static constexpr std::uint64_t kLongestShortAge = std::numeric_limits<std::uint32_t>::max();

  /// Short stamps are written short even where the module keeps long ones: see kIsCompact.
  bool IsShort() const {
    return sizeof(Stamp) == 4 || static_cast<std::uint64_t>(rules_.retention()) <= kLongestShortAge;
  }
  std::size_t Width() const { return IsShort() ? 4 : sizeof(Stamp); }
  std::uint64_t LongestAge() const {
    return IsShort() ? kLongestShortAge : std::uint64_t{Log::kLongestRetention};
  }

  /// For a log of so many actions. A long one keeps its length: a larger max may need it, of other
  /// processes or later.
  std::uint32_t CapacityFor(std::uint64_t actions) const {
    const std::uint64_t least = rules_.policy().log_capacity();
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(std::max(actions, least), kLongestLog));
  }

  static std::uint64_t AgeOf(const std::byte* stamp, std::size_t width, Micros newest) {
    assert(width == 4 || width == 8);
    if (width == 8) return static_cast<std::uint64_t>(newest) - LoadAs<std::uint64_t>(stamp);
    return static_cast<std::uint32_t>(newest) - LoadAs<std::uint32_t>(stamp);
  }

  const Rules& rules_;
  std::vector<std::byte> ring_;
  std::vector<std::byte> next_ring_;
  std::vector<std::byte> body_;
};

/// The body of entries with a cost for each window: their words, oldest first. A log is taken over.
class WeightedBody {
 public:
  using Account = WeightedLog::Account;
  static constexpr std::uint8_t kVersion = PortableState::kVersion;

  explicit WeightedBody(const WeightedLog& rules)
      : rules_(rules), log_rules_(rules.policy()), logs_(log_rules_) {}

  std::size_t largest() const { return BytesFor(WeightedEntries::kMost); }

  bool Fits(const PortableState& state) const {
    return !state.weighted() || state.header.width == rules_.windows();
  }

  std::optional<Account> Open(const PortableState& state, bool fits) {
    if (fits && !state.weighted()) return OpenLog(state);
    const std::size_t bytes = fits ? state.body.size() : 0;
    const std::size_t stride = BytesFor(1) - BytesFor(0);
    std::uint32_t size = 0;
    if (bytes > 0) {
      if (bytes < BytesFor(0) || (bytes - BytesFor(0)) % stride != 0 || bytes > largest()) {
        return std::nullopt;
      }
      size = static_cast<std::uint32_t>((bytes - BytesFor(0)) / stride);
    }
    words_.resize(bytes / sizeof(std::uint64_t));
    std::copy_n(state.body.begin(), bytes, std::as_writable_bytes(std::span(words_)).begin());
    const WeightedEntries entries(words_.data(), rules_.windows(), size, {size, 0});
    if (!entries.IsSound()) return std::nullopt;
    return Account(rules_, state.header.generation, words_.data(), size, {size, 0});
  }

  void Reserve(Account& account, Micros at, const Costs&) {
    WeightedEntries& entries = account.entries();
    if (entries.HasRoomAt(at)) return;
    const std::uint32_t room = entries.DropAndPlanRoom(at, rules_.retention(), rules_.zones());
    next_words_.resize(WeightedEntries::WordsFor(rules_.windows(), room));
    entries.MoveTo(next_words_.data(), room);
    words_.swap(next_words_);
  }

  void Close(const Account& account, PortableState& state) {
    WeightedEntries entries = account.entries();
    body_.resize(WeightedEntries::WordsFor(rules_.windows(), entries.size()));
    entries.MoveTo(body_.data(), entries.size());
    state.header.width = static_cast<std::uint8_t>(rules_.windows());
    state.header.flags = PortableState::kWeighted;
    state.body = std::as_bytes(std::span(body_));
  }

 private:
  std::size_t BytesFor(std::size_t entries) const {
    return WeightedEntries::WordsFor(rules_.windows(), entries) * sizeof(std::uint64_t);
  }

  std::optional<Account> OpenLog(const PortableState& state) {
    const auto opened = logs_.Open(state, true);
    if (!opened) return std::nullopt;
    Account account(rules_, state.header.generation, nullptr, 0, {});
    account.RecordLog(opened->log(), [&](Micros at) { Reserve(account, at, 1); });
    return account;
  }

  const WeightedLog& rules_;
  LongLog<Policy> log_rules_;
  LogBody<LongLog<Policy>> logs_;
  std::vector<std::uint64_t> words_;
  std::vector<std::uint64_t> next_words_;
  std::vector<std::uint64_t> body_;
};

}  // namespace rollgate
