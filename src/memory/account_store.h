// The store of the algorithms that keep a few numbers of each id.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/judgement.h"
#include "memory/memory_store.h"
#include "memory/table_store.h"

namespace rollgate::memory {

/// `Rules` is an algorithm under a form of the policy: see core/fixed_window.h.
template <class Rules>
class AccountStore final : public TableStore<AccountStore<Rules>> {
  using Account = typename Rules::Account;
  using Places = BlockPlaces<std::decay_t<decltype(std::declval<Rules>().policy())>>;
  using Base = TableStore<AccountStore>;
  using Base::Count;
  using Base::table;

 public:
  AccountStore(const Policy& policy, const MemoryStoreOptions& options)
      : AccountStore(Rules(policy), options) {}

  void SetMax(std::uint64_t max, bool) override { rules_.SetMax(max); }

  ROLLGATE_FLATTEN Micros Check(const Identity& id, Micros reading) override {
    const Micros now = Rules::Cut(reading);
    Base::TendNowAndThen(rules_.TableTime(now));
    const Place place = table().Find(id);
    if (!place) [[unlikely]] {
      JudgeUnknown(id, now, 1, [](const Account&, const Verdict&, const Block&) {});
      return 0;
    }
    // In the fewest steps, where the algorithm has that for this form of the policy.
    if constexpr (requires(Account account) { account.AttemptOne(now); }) {
      Account account = AccountOf(place);
      const Micros time_left = account.AttemptOne(now);
      Count(time_left == 0);
      blocks_.Save(table(), place, account.moment(), Block());
      return time_left;
    } else {
      Micros time_left = 0;
      JudgeKnown(place, now, 1,
                 [&](const Account& account, const Verdict& verdict, const Block& block) {
                   if (verdict.allowed()) return;
                   time_left = WaitFor(account, rules_.policy(), block, now, 1);
                 });
      return time_left;
    }
  }

  ROLLGATE_FLATTEN void Attempt(const Identity& id, Micros reading, std::uint64_t cost,
                                Decision& decision) override {
    const Micros now = Rules::Cut(reading);
    Base::TendNowAndThen(rules_.TableTime(now));
    const auto describe = [&](const Account& account, const Verdict& verdict, const Block& block) {
      Describe(account, rules_.policy(), block, verdict, now, cost, decision);
    };
    const Place place = table().Find(id);
    decision.token =
        place ? JudgeKnown(place, now, cost, describe) : JudgeUnknown(id, now, cost, describe);
  }

  void Peek(const Identity& id, Micros reading, std::uint64_t cost, Decision& decision) override {
    const Micros now = Rules::Cut(reading);
    if (const Place place = table().Find(id)) {
      std::copy_n(place.slot->payload(), scratch_.size(), scratch_.data());
      Account account(rules_, scratch_.data(), blocks_.Moment(place), place.slot->incarnation());
      Block block = blocks_.Load(place);
      const Verdict verdict = Judge(account, rules_.policy(), block, now, cost);
      StartsBlock(verdict, rules_.policy(), block);
      if (cost > 0 && Records(verdict, rules_.policy())) account.Record(verdict.at, cost);
      Describe(account, rules_.policy(), block, verdict, now, cost, decision);
    } else {
      Account account = Account::Begin(rules_, scratch_.data(), 0);
      const Verdict verdict = VerdictOnUnknown(now);
      if (cost > 0) account.Record(verdict.at, cost);
      Describe(account, rules_.policy(), Block(), verdict, now, cost, decision);
    }
  }

  bool Refund(const Identity& id, const Receipt& receipt, Micros now) override {
    const Place place = table().Find(id);
    if (!place) return false;
    Account account = AccountOf(place);
    const bool found = account.Refund(receipt, Rules::Cut(now));
    Save(place, account, blocks_.Load(place));
    return found;
  }

  void Release(Slot&) {}
  std::size_t extra_bytes() const { return 0; }

 private:
  Account AccountOf(const Place& place) const {
    return Account(rules_, place.slot->payload(), blocks_.Moment(place), place.slot->incarnation());
  }

  /// Decides, records, and lets `tell(account, verdict, block)` look at what that has come to.
  /// Returns the token.
  template <class Tell>
  std::uint64_t JudgeKnown(const Place& place, Micros now, std::uint64_t cost, Tell tell) {
    Account account = AccountOf(place);
    Block block = blocks_.Load(place);
    const Verdict verdict = Judge(account, rules_.policy(), block, now, cost);
    const bool starts_block = StartsBlock(verdict, rules_.policy(), block);
    const bool records = Records(verdict, rules_.policy());
    Count(verdict.allowed());
    if (records) account.Record(verdict.at, cost);
    if (records || starts_block) Save(place, account, block);
    tell(account, verdict, block);
    return account.Token();
  }

  template <class Tell>
  ROLLGATE_NOINLINE std::uint64_t JudgeUnknown(const Identity& id, Micros now, std::uint64_t cost,
                                               Tell tell) {
    // Its moment, which only the account can tell, decides where it goes in the table.
    const Verdict verdict = VerdictOnUnknown(now);
    Account first = Account::Begin(rules_, scratch_.data(), 0);
    first.Record(verdict.at, cost);
    const Place place = Base::Insert(id, blocks_.TableMoment(first.moment(), Block()),
                                     rules_.TableTime(verdict.at));
    blocks_.Create(place, first.moment());
    Account account = Account::Begin(rules_, place.slot->payload(), place.slot->incarnation());
    account.Record(verdict.at, cost);
    Save(place, account, Block());
    Count(true);
    tell(account, verdict, Block());
    return account.Token();
  }

  void Save(const Place& place, const Account& account, const Block& block) {
    const auto life = static_cast<std::uint16_t>(account.life());
    if (place.slot->incarnation() != life) place.slot->set_incarnation(life);
    blocks_.Save(table(), place, account.moment(), block);
  }

  Verdict VerdictOnUnknown(Micros now) const {
    Verdict verdict;
    verdict.at = std::max(now, rules_.FromTableTime(table().forgotten_until()));
    return verdict;
  }

  AccountStore(const Rules& rules, const MemoryStoreOptions& options)
      : AccountStore(rules, Places(rules.policy(), rules.state_bytes(), rules.retention()),
                     options) {}
  AccountStore(const Rules& rules, const Places& blocks, const MemoryStoreOptions& options)
      : Base(options, rules.state_bytes() + blocks.bytes(), blocks.retention()),
        rules_(rules),
        blocks_(blocks),
        scratch_(rules.state_bytes()) {}

  Rules rules_;
  Places blocks_;
  std::vector<std::byte> scratch_;
};

}  // namespace rollgate::memory
