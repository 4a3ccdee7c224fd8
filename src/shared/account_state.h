// The few numbers that other algorithms keep of an id, in the words of a record.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "core/block.h"
#include "core/decision.h"
#include "core/judgement.h"
#include "core/time.h"
#include "shared/block_words.h"
#include "shared/shared_error.h"

namespace rollgate::shared {

/// `Rules` is an algorithm under a form of the policy: see core/fixed_window.h. A state is the
/// id's moment, its life, the account's own bytes, and the block.
template <class Rules>
class AccountState {
  using Account = typename Rules::Account;
  using P = std::decay_t<decltype(std::declval<Rules>().policy())>;

 public:
  static Micros Cut(Micros now) { return Rules::Cut(now); }

  explicit AccountState(const Policy& policy)
      : rules_(policy), blocks_(rules_.policy(), kBytes + (rules_.state_bytes() + 7) / 8) {}

  std::size_t words() const { return kBytes + (rules_.state_bytes() + 7) / 8 + blocks_.words(); }

  void SetMax(std::uint64_t max, bool) { rules_.SetMax(max); }

  bool Check(std::uint64_t* state, Micros now, Micros& time_left) const {
    time_left = 0;
    return Judge(state, now, 1,
                 [&](const Account& account, const Verdict& verdict, const Block& block) {
                   if (verdict.allowed()) return;
                   time_left = WaitFor(account, rules_.policy(), block, now, 1);
                 });
  }

  bool Attempt(std::uint64_t* state, Micros now, std::uint64_t cost, Decision& decision) const {
    return Judge(state, now, cost,
                 [&](const Account& account, const Verdict& verdict, const Block& block) {
                   Describe(account, rules_.policy(), block, verdict, now, cost, decision);
                   decision.token = account.Token();
                 });
  }

  void Peek(std::uint64_t* state, Micros now, std::uint64_t cost, Decision& decision) const {
    Account account = Load(state);
    Block block = blocks_.Load(state);
    const Verdict verdict = rollgate::Judge(account, rules_.policy(), block, now, cost);
    StartsBlock(verdict, rules_.policy(), block);
    if (cost > 0 && Records(verdict, rules_.policy())) account.Record(verdict.at, cost);
    Describe(account, rules_.policy(), block, verdict, now, cost, decision);
  }

  void Begin(std::uint64_t* state, std::uint32_t life, Micros at, std::uint64_t cost) const {
    std::fill_n(state, words(), 0);
    blocks_.Store(state, Block());
    Account account = Account::Begin(rules_, Bytes(state), life);
    if (cost > 0) account.Record(at, cost);
    Save(state, account);
  }

  void DescribeFirst(std::uint64_t* state, Micros now, Micros at, std::uint64_t cost,
                     Decision& decision) const {
    Verdict verdict;
    verdict.at = at;
    const Account account = Load(state);
    decision.token = account.Token();
    Describe(account, rules_.policy(), Block(), verdict, now, cost, decision);
  }

  bool Refund(std::uint64_t* state, const Receipt& receipt, Micros now, bool& is_empty) const {
    is_empty = false;
    Account account = Load(state);
    const bool found = account.Refund(receipt, now);
    Save(state, account);
    return found;
  }

  Micros Expires(const std::uint64_t* state) const {
    const auto moment = static_cast<Micros>(state[kMoment]);
    if (moment == kLongAgo) return kLongAgo;
    const Micros expires = Bounded(Bounded(rules_.FromTableTime(moment)) + rules_.retention());
    return blocks_.Expires(state, expires);
  }

 private:
  static constexpr std::size_t kMoment = 0;
  static constexpr std::size_t kLife = 1;
  static constexpr std::size_t kBytes = 2;

  static std::byte* Bytes(std::uint64_t* state) {
    return reinterpret_cast<std::byte*>(state + kBytes);
  }

  Account Load(std::uint64_t* state) const {
    Account account(rules_, Bytes(state), static_cast<Micros>(state[kMoment]),
                    static_cast<std::uint32_t>(state[kLife]));
    if (!account.IsSound()) ThrowCorrupt("a count");
    return account;
  }

  void Save(std::uint64_t* state, const Account& account) const {
    state[kMoment] = static_cast<std::uint64_t>(account.moment());
    state[kLife] = account.life();
  }

  /// Decides, records, and lets `tell(account, verdict, block)` look at what that has come to;
  /// tells whether it has changed the state.
  template <class Tell>
  bool Judge(std::uint64_t* state, Micros now, std::uint64_t cost, Tell tell) const {
    Account account = Load(state);
    Block block = blocks_.Load(state);
    const Verdict verdict = rollgate::Judge(account, rules_.policy(), block, now, cost);
    const bool starts_block = StartsBlock(verdict, rules_.policy(), block);
    const bool records = Records(verdict, rules_.policy());
    if (records) {
      account.Record(verdict.at, cost);
      Save(state, account);
    }
    if (starts_block) blocks_.Store(state, block);
    tell(static_cast<const Account&>(account), verdict, block);
    return records || starts_block;
  }

  Rules rules_;
  BlockWords<P> blocks_;
};

}  // namespace rollgate::shared
