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

  void Close(const Account&, PortableState& state) const { state.body = bytes_; }

 private:
  std::size_t Numbers() const { return bytes_.size() / rules_.counts().bytes(); }

  /// How many bytes each count of a state has; 0 if it has not as many counts.
  std::size_t WidthOf(const PortableState& state) const {
    for (const std::size_t width : {CountFormat::kNarrow, CountFormat::kWide}) {
      if (state.body.size() == Numbers() * width) return width;
    }
    return 0;
  }

  const Rules& rules_;
  std::vector<std::byte> bytes_;
};

/// Arrival times, and the windows that they are of: those of other limits are converted.
template <class Rules>
class ArrivalBody {
 public:
  using Account = typename Rules::Account;

  explicit ArrivalBody(const Rules& rules)
      : rules_(rules), bytes_(rules.state_bytes()), body_(bytes_.size() + WindowBytes()) {
    std::size_t at = bytes_.size();
    for (const Window& window : rules.policy().windows()) {
      StoreAs(&body_[at], window.interval);
      StoreAs(&body_[at + 8], window.max);
      at += kWindow;
    }
  }

  std::size_t largest() const { return body_.size(); }

  /// A number may have its high word or not, whatever the windows: earlier releases wrote none.
  bool Fits(const PortableState& state) const {
    const std::size_t least = rules_.least_state_bytes() + WindowBytes();
    return state.body.size() == least || state.body.size() == least + Rules::kNumberWord;
  }

  std::optional<Account> Open(const PortableState& state, bool fits) {
    if (!fits) return Account::Begin(rules_, bytes_.data(), state.header.generation);
    const auto windows = state.body.last(WindowBytes());
    const auto kept = state.body.first(state.body.size() - windows.size());
    if (!std::ranges::equal(windows, std::span(body_).subspan(bytes_.size()))) {
      return Convert(state, kept, windows);
    }
    CopyTo(bytes_, kept);
    const Account account(rules_, bytes_.data(), state.header.moment, state.header.generation);
    return account.IsSound() ? std::optional(account) : std::nullopt;
  }

  void Reserve(Account&, Micros, const Costs&) const {}

  void Close(const Account&, PortableState& state) {
    std::copy(bytes_.begin(), bytes_.end(), body_.begin());
    state.body = body_;
  }

 private:
  static constexpr std::size_t kWindow = sizeof(Window);
  static_assert(sizeof(Window) == 16);

  std::size_t WindowBytes() const { return rules_.policy().windows().size() * kWindow; }

  /// What is missing is 0.
  static void CopyTo(std::vector<std::byte>& bytes, PortableLimiter::Bytes kept) {
    std::fill(bytes.begin(), bytes.end(), std::byte{0});
    std::copy_n(kept.begin(), std::min(kept.size(), bytes.size()), bytes.begin());
  }

  std::optional<Account> Convert(const PortableState& state, PortableLimiter::Bytes kept,
                                 PortableLimiter::Bytes windows) {
    PolicyOptions options{
        .windows = {},
        .min_difference = rules_.policy().min_difference(),
        .count_blocked = false,
        .algorithm = Algorithm::kGcra,
        .blocks = {rules_.policy().blocks().begin(), rules_.policy().blocks().end()},
        .weighted = rules_.policy().weighted()};
    for (std::size_t at = 0; at < windows.size(); at += kWindow) {
      const Window window{LoadAs<Micros>(&windows[at]), LoadAs<std::uint64_t>(&windows[at + 8])};
      if (window.interval < 1 || window.interval > kLongest || window.max < 1 ||
          window.max > std::uint64_t{1} << 53) {
        return std::nullopt;
      }
      options.windows.push_back(window);
    }
    const Policy policy(std::move(options));
    constexpr bool kIsSingle = std::is_same_v<PolicyOf<Rules>, SingleWindowPolicy>;
    if (kIsSingle != SingleWindowPolicy::Fits(policy)) return std::nullopt;
    const Rules before(policy);
    std::vector<std::byte> bytes(before.state_bytes());
    CopyTo(bytes, kept);
    const Account old(before, bytes.data(), state.header.moment, state.header.generation);
    if (!old.IsSound()) return std::nullopt;
    Account account = Account::Begin(rules_, bytes_.data(), state.header.generation);
    account.TakeOverTimes(old);
    return account;
  }

  const Rules& rules_;
  std::vector<std::byte> bytes_;
  std::vector<std::byte> body_;
};

/// The body of a log. One of other limits is used as far as it goes.
template <class Rules>
class LogBody {
  using Log = typename Rules::Log;
  using Stamp = typename Log::StampType;

 public:
  using Account = typename Rules::Account;

  explicit LogBody(const Rules& rules) : rules_(rules) {}

  std::size_t largest() const { return std::size_t{CapacityFor(0) - 1} * Width(); }

  static bool Fits(const PortableState& state) { return !state.weighted(); }

  std::optional<Account> Open(const PortableState& state, bool fits) {
    const bool is_empty = state.header.moment == kLongAgo || !fits;
    const std::size_t width = state.header.width;
    const bool is_sound = Bounded(state.header.moment) == state.header.moment &&
                          (width == 4 || width == 8) && state.body.size() % width == 0;
    if (!is_empty && !is_sound) return std::nullopt;
    const std::size_t older = is_empty ? 0 : state.body.size() / width;
    const std::uint32_t capacity = CapacityFor(older + 1);
    // Only of the longest logs.
    const std::size_t cut = older - std::min<std::size_t>(older, capacity - 1);
    const auto room = static_cast<std::uint32_t>(older - cut);
    ring_.resize(room * sizeof(Stamp));
    LogHead head;
    head.displaced = !is_empty && (state.displaced() || cut > 0);
    head.newest = is_empty ? 0 : state.header.moment;
    head.size = is_empty ? 0 : 1;
    std::uint64_t last_age = std::uint64_t{kLongest} * 2;
    for (std::size_t i = cut; i < older; ++i) {
      const std::uint64_t age = AgeOf(&state.body[i * width], width, head.newest);
      if (age > last_age) return std::nullopt;
      last_age = age;
      // Older than a Stamp can represent is outside of all windows.
      if (age > LongestAge()) continue;
      const auto stamp = static_cast<Stamp>(static_cast<std::uint64_t>(head.newest) - age);
      StoreAs(&ring_[(head.size - 1) * sizeof(Stamp)], stamp);
      ++head.size;
    }
    assert(head.size <= room + 1 && head.size <= capacity);
    return Account(rules_, state.header.generation, head, ring_.data(), room, capacity);
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
    const auto& policy = rules_.policy();
    std::uint64_t least = policy.log_capacity();
    if constexpr (requires { policy.least_capacity(); }) {
      if (policy.sets_max()) least = policy.least_capacity();
    }
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
