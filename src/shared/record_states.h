// The state of an id in the words of a record.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/decision.h"
#include "core/policy.h"
#include "core/ring_log.h"
#include "core/time.h"
#include "core/weighted_log.h"
#include "shared/configuration.h"
#include "shared/shared_error.h"
#include "shared/shared_store.h"

namespace rollgate::shared {

/// The first words of every state; then the block, if any, and from `at` on the algorithm's.
enum StateWord : std::size_t { kMoment, kGeneration, kBlock };

/// Where an id's block (blockFor) is in the words of its state, if the policy has blocks.
template <class P>
class BlockWords {
 public:
  BlockWords(const P& policy, std::size_t at)
      : at_(at),
        longest_interval_(policy.longest_interval()),
        most_offences_(policy.blocks().size()) {}

  std::size_t words() const { return HasBlocks() ? 2 : 0; }

  Block Load(const std::uint64_t* state) const {
    Block block;
    if (HasBlocks()) {
      // Clamped, because another process may have written anything.
      block.until = std::clamp(static_cast<Micros>(state[at_]), kLongAgo, kLongest);
      block.offences = static_cast<std::uint8_t>(std::min(state[at_ + 1], most_offences_));
    }
    return block;
  }

  void Store(std::uint64_t* state, const Block& block) const {
    if (!HasBlocks()) return;
    assert(block.offences <= most_offences_ && block.until <= kLongest);
    state[at_] = static_cast<std::uint64_t>(block.until);
    state[at_ + 1] = block.offences;
  }

  /// When an id expires that would expire at `expires` without its block.
  Micros Expires(const Block& block, Micros expires) const {
    if (!HasBlocks()) return expires;
    assert(block.until >= kLongAgo && block.until <= kLongest);
    return std::max(expires, block.until + longest_interval_);
  }

 private:
  bool HasBlocks() const { return !std::is_same_v<P, SingleWindowPolicy> && most_offences_ > 0; }

  std::size_t at_;
  Micros longest_interval_;
  std::uint64_t most_offences_;
};

/// The states of algorithms that keep a few numbers.
template <class Rules>
class StateWords {
 public:
  using Account = typename Rules::Account;

  StateWords(const Rules& rules, const LogForm&, std::size_t at)
      : at_(at), words_(at + (rules.state_bytes() + 7) / 8) {
    assert(at >= kBlock && words_ > at);
  }

  std::size_t words() const { return words_; }
  std::size_t UsedWords(const Account&) const { return words_; }

  Account Begin(const Rules& rules, std::uint64_t* state, std::uint64_t,
                Generation generation) const {
    return Account::Begin(rules, Bytes(state), generation);
  }

  Account Load(const Rules& rules, std::uint64_t* state, std::uint64_t, Micros) const {
    Account account(rules, Bytes(state), static_cast<Micros>(state[kMoment]),
                    static_cast<Generation>(state[kGeneration]));
    if (!account.IsSound()) ThrowCorrupt("invalid count");
    return account;
  }

  void Reserve(const Rules&, Account&, Micros, Micros, const Costs&) const {}

  void Save(const Rules& rules, std::uint64_t* state, const Account& account) const {
    state[kMoment] = static_cast<std::uint64_t>(account.moment());
    state[kGeneration] = account.generation();
    if constexpr (requires { account.state(); }) {
      if (account.state() != Bytes(state)) {
        std::copy_n(account.state(), rules.state_bytes(), Bytes(state));
      }
    }
  }

 private:
  std::byte* Bytes(std::uint64_t* state) const { return reinterpret_cast<std::byte*>(state + at_); }

  std::size_t at_;
  std::size_t words_;
};

/// The states of logs: a word of numbers, which short logs keep with the generation, and the ring,
/// as large as the id's actions need. The record has room for the largest log.
template <KeepsLog Rules>
class StateWords<Rules> {
  using Log = typename Rules::Log;
  using Stamp = typename Log::StampType;

 public:
  using Account = typename Rules::Account;

  StateWords(const Rules&, const LogForm& form, std::size_t at)
      : room_(form.room),
        is_short_(room_ < (1u << kShortBits)),
        numbers_at_(at),
        ring_at_(is_short_ ? at : at + 1) {
    assert(room_ >= 1 && std::uint64_t{room_} >> Bits() == 0 && at >= kBlock);
  }

  std::size_t words() const { return ring_at_ + WordsFor(room_ - 1); }
  std::size_t UsedWords(const Account& account) const {
    return ring_at_ + WordsFor(account.log().ring_room());
  }

  /// `capacity`: see Header::log_capacity; may be anything.
  Account Begin(const Rules& rules, std::uint64_t* state, std::uint64_t capacity,
                Generation generation) const {
    return Account(rules, generation, LogHead{}, Ring(state), 0, Capacity(capacity, 1));
  }

  /// `retention`: see Header.
  Account Load(const Rules& rules, std::uint64_t* state, std::uint64_t capacity,
               Micros retention) const {
    const int bits = Bits();
    std::uint64_t numbers = is_short_ ? state[kGeneration] >> kGenerationBits : state[numbers_at_];
    const auto next = [&] {
      const std::uint64_t number = numbers & ((std::uint64_t{1} << bits) - 1);
      numbers >>= bits;
      return static_cast<std::uint32_t>(number);
    };
    LogHead head;
    head.newest = static_cast<Micros>(state[kMoment]);
    head.size = next();
    head.head = next();
    const std::uint32_t room = next();
    head.displaced = (numbers & 1) != 0;
    const bool is_sound =
        head.size == 0 ? head.newest == kLongAgo : Bounded(head.newest) == head.newest;
    if (!is_sound || head.size > room + 1 || room >= room_ || head.head > room ||
        (head.head == room && room > 0)) {
      ThrowCorrupt("invalid log");
    }
    if (head.size > capacity) [[unlikely]] {
      head = WithoutUnneeded<Stamp>(head, Ring(state), room, retention);
    }
    return Account(rules, static_cast<Generation>(state[kGeneration]), head, Ring(state), room,
                   Capacity(capacity, head.size));
  }

  /// `retention`: see Header.
  void Reserve(const Rules&, Account& account, Micros, Micros retention, const Costs& costs) const {
    const std::uint64_t more = costs.uniform();
    Log& log = account.log();
    if (log.HasFree(more)) return;
    if (log.IsFull() && log.NeedsAll(retention)) return;
    const std::uint32_t room = log.DropAndPlanRoom(retention, more);
    if (room != log.ring_room()) log.ResizeInPlace(room);
  }

  void Save(const Rules&, std::uint64_t* state, const Account& account) const {
    const LogHead& head = account.log().head();
    assert(head.size <= room_ && account.log().ring_room() < room_);
    assert(UsedWords(account) <= words());
    const int bits = Bits();
    const std::uint64_t numbers =
        ((std::uint64_t{head.displaced} << bits | account.log().ring_room()) << bits | head.head)
            << bits |
        head.size;
    state[kMoment] = static_cast<std::uint64_t>(account.moment());
    state[kGeneration] = account.generation();
    if (is_short_) {
      state[kGeneration] |= numbers << kGenerationBits;
    } else {
      state[numbers_at_] = numbers;
    }
  }

 private:
  static constexpr int kShortBits = 10;
  static constexpr int kLongBits = 20;
  static_assert(kGenerationBits + 3 * kShortBits + 1 <= 64 && 3 * kLongBits + 1 <= 64);
  static_assert(kLongestSharedLog >> kLongBits == 0);

  std::uint32_t Capacity(std::uint64_t wanted, std::uint32_t size) const {
    const std::uint64_t least = std::max<std::uint32_t>(size, 1);
    return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(wanted, least, room_));
  }

  int Bits() const { return is_short_ ? kShortBits : kLongBits; }

  static std::size_t WordsFor(std::size_t stamps) { return (stamps * sizeof(Stamp) + 7) / 8; }

  std::byte* Ring(std::uint64_t* state) const {
    return reinterpret_cast<std::byte*>(state + ring_at_);
  }

  std::uint32_t room_;  // for actions
  bool is_short_;
  std::size_t numbers_at_;
  std::size_t ring_at_;
};

/// Entries with a cost for each window: a word of numbers, then the entries' words.
template <>
class StateWords<WeightedLog> {
 public:
  using Account = WeightedLog::Account;

  StateWords(const WeightedLog& rules, const LogForm&, std::size_t at)
      : windows_(rules.windows()), at_(at) {}

  std::size_t words() const { return EntriesAt(WeightedEntries::kMost); }
  std::size_t UsedWords(const Account& account) const {
    return EntriesAt(account.entries().room());
  }

  Account Begin(const WeightedLog& rules, std::uint64_t* state, std::uint64_t,
                Generation generation) const {
    return Account(rules, generation, state + at_ + 1, 0, {});
  }

  Account Load(const WeightedLog& rules, std::uint64_t* state, std::uint64_t, Micros) const {
    const auto number = [&](int i) {
      return static_cast<std::uint32_t>(state[at_] >> (i * kBits) & ((1u << kBits) - 1));
    };
    const WeightedHead head{number(0), number(1)};
    const std::uint32_t room = number(2);
    if (room > WeightedEntries::kMost || head.size > room ||
        (head.head >= room && head.head != 0)) {
      ThrowCorrupt("invalid entries");
    }
    return Account(rules, static_cast<Generation>(state[kGeneration]), state + at_ + 1, room, head);
  }

  void Reserve(const WeightedLog& rules, Account& account, Micros at, Micros retention,
               const Costs&) const {
    WeightedEntries& entries = account.entries();
    if (entries.HasRoomAt(at)) return;
    const std::uint32_t room = entries.DropAndPlanRoom(at, retention, rules.zones());
    if (room != entries.room()) entries.ResizeInPlace(room);
  }

  void Save(const WeightedLog&, std::uint64_t* state, const Account& account) const {
    const WeightedEntries& entries = account.entries();
    state[kMoment] = static_cast<std::uint64_t>(account.moment());
    state[kGeneration] = account.generation();
    state[at_] = entries.head().size | std::uint64_t{entries.head().head} << kBits |
                 std::uint64_t{entries.room()} << (2 * kBits);
  }

 private:
  static constexpr int kBits = 16;
  static_assert(WeightedEntries::kMost >> kBits == 0);

  std::size_t EntriesAt(std::size_t room) const {
    return at_ + 1 + WeightedEntries::WordsFor(windows_, room);
  }

  std::uint32_t windows_;
  std::size_t at_;
};

}  // namespace rollgate::shared
