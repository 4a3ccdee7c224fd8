// From the state of one id to a decision and back, for every algorithm and every store.
#pragma once

#include <concepts>
#include <cstdint>

#include "core/block.h"
#include "core/decision.h"
#include "core/judgement.h"
#include "core/time.h"

namespace rollgate {

/// Where a store keeps the state of one id, for the time of one call: it loads and saves, and knows
/// nothing of the algorithm. `Account` is the one of the algorithm's Rules.
template <class C>
concept Carrier = requires(C& carrier, typename C::Account& account, const Block& block,
                           Micros at) {
  /// The account; changes to it count once it is saved.
  { carrier.Load() } -> std::same_as<typename C::Account>;
  { carrier.LoadBlock() } -> std::same_as<Block>;
  /// An account to ask only: whatever happens to it, the state stays as it is.
  { carrier.LoadCopy() } -> std::same_as<typename C::Account>;
  /// Makes room for so many actions that are recorded at `at`; throws std::bad_alloc and
  /// changes nothing where there is none.
  carrier.Reserve(account, at, std::uint64_t{});
  carrier.Save(account, block);
};

/// What is left of an id after a refund.
enum class Refunded : std::uint8_t {
  kNothing,  ///< there was nothing to give back; nothing has changed
  kSome,     ///< the state has changed
  kAll,      ///< nothing is left of the id: it is to be forgotten
};

/// `Rules` is an algorithm under a form of the policy: see algorithms.h. Its Account meets the
/// concept of judgement.h, and has Record, Refund, After and Token.
template <class Rules>
class Judging {
  using Account = typename Rules::Account;

 public:
  explicit Judging(const Rules& rules) : rules_(rules) {}

  /// An attempt of cost 1. Returns whether it has changed the state.
  template <Carrier C>
  bool Check(C& carrier, Micros now, Micros& time_left) const {
    Account account = carrier.Load();
    // In the fewest steps, where the algorithm has that for this form of the policy.
    if constexpr (requires { account.AttemptOne(now, [](Micros) {}); }) {
      time_left = account.AttemptOne(now, [&](Micros at) { carrier.Reserve(account, at, 1); });
      const bool changes = time_left == 0 || policy().count_blocked();
      if (changes) carrier.Save(account, Block());
      return changes;
    } else {
      Block block = carrier.LoadBlock();
      const auto [verdict, changes] = JudgeAndRecord(carrier, account, block, now, 1);
      time_left = verdict.allowed() ? 0 : WaitFor(account, policy(), block, now, 1);
      return changes;
    }
  }

  /// An attempt of `cost`. Returns whether it has changed the state.
  template <Carrier C>
  bool Attempt(C& carrier, Micros now, std::uint64_t cost, Decision& decision) const {
    Account account = carrier.Load();
    Block block = carrier.LoadBlock();
    const auto [verdict, changes] = JudgeAndRecord(carrier, account, block, now, cost);
    Describe(account, policy(), block, verdict, now, cost, decision);
    decision.token = account.Token();
    return changes;
  }

  /// What Attempt would say. A cost of 0 asks what is used.
  template <Carrier C>
  void Peek(C& carrier, Micros now, std::uint64_t cost, Decision& decision) const {
    Account account = carrier.LoadCopy();
    Block block = carrier.LoadBlock();
    const Verdict verdict = Judge(account, policy(), block, now, cost);
    StartsBlock(verdict, policy(), block);
    const std::uint64_t recorded = Records(verdict, policy()) ? cost : 0;
    decision.token = account.Token();
    Describe(account.After(verdict, recorded), policy(), block, verdict, now, cost, decision);
  }

  /// Takes back what an allowed attempt recorded.
  template <Carrier C>
  Refunded Refund(C& carrier, const Receipt& receipt, Micros now) const {
    Account account = carrier.Load();
    if (!account.Refund(receipt, now)) return Refunded::kNothing;
    const Block block = carrier.LoadBlock();
    if (account.IsEmpty() && block.offences == 0) return Refunded::kAll;
    carrier.Save(account, block);
    return Refunded::kSome;
  }

  /// What the first attempt of an id comes to, which is always allowed. `account` has done nothing.
  void PeekFirst(Account& account, Micros now, Micros at, std::uint64_t cost,
                 Decision& decision) const {
    const Verdict verdict = AllowedAt(at);
    decision.token = account.Token();
    Describe(account.After(verdict, cost), policy(), Block(), verdict, now, cost, decision);
  }

  /// The same, of an account that has recorded it.
  void DescribeFirst(const Account& account, Micros now, Micros at, std::uint64_t cost,
                     Decision& decision) const {
    decision.token = account.Token();
    Describe(account, policy(), Block(), AllowedAt(at), now, cost, decision);
  }

  static Verdict AllowedAt(Micros at) {
    Verdict verdict;
    verdict.at = at;
    return verdict;
  }

 private:
  struct Judged {
    Verdict verdict;
    bool changes;
  };

  template <Carrier C>
  Judged JudgeAndRecord(C& carrier, Account& account, Block& block, Micros now,
                        std::uint64_t cost) const {
    const Verdict verdict = Judge(account, policy(), block, now, cost);
    const bool starts_block = StartsBlock(verdict, policy(), block);
    const bool records = Records(verdict, policy());
    if (records) {
      carrier.Reserve(account, verdict.at, cost);
      account.Record(verdict, cost);
    }
    if (records || starts_block) carrier.Save(account, block);
    return {verdict, records || starts_block};
  }

  const auto& policy() const { return rules_.policy(); }

  const Rules& rules_;
};

}  // namespace rollgate
