// From the state of one id to a decision and back, for every algorithm and store.
#pragma once

#include <cstdint>

#include "core/block.h"
#include "core/decision.h"
#include "core/judgement.h"
#include "core/time.h"

namespace rollgate {

/// Loads and saves the state of one id during one call. `Account` is that of the store's Rules.
template <class C>
concept Carrier = requires(C& carrier, typename C::Account& account, const Block& block,
                           Micros at) {
  /// The account; changes to it count once it is saved.
  { carrier.Load() } -> std::same_as<typename C::Account>;
  { carrier.LoadBlock() } -> std::same_as<Block>;
  /// An account to peek with: changes to it never reach the state.
  { carrier.LoadCopy() } -> std::same_as<typename C::Account>;
  /// Makes room for so many actions. Throws std::bad_alloc and changes nothing if it cannot.
  carrier.Reserve(account, at, std::uint64_t{});
  carrier.Save(account, block);
};

/// The state of an id after a refund.
enum class Refunded : std::uint8_t {
  kNothing,  ///< unchanged: nothing was left of the attempt
  kSome,     ///< changed
  kAll,      ///< empty: the caller must forget the id
};

/// What a refused attempt changes.
enum class Refusals : std::uint8_t {
  kLeaveTraces,  ///< it may count, and start a block, as the policy says
  kLeaveNone,
};

/// `Rules` is an algorithm under one form of the policy (see algorithms.h). It has:
/// - kAlignsToEpoch and kRefundsAskTime, see AlgorithmTraits; policy() and SetMax(), see Policy
/// - state_bytes(): size of an id's state without moment and generation (not in logs)
/// - retention(): how long after its moment an id expires
/// - lifetime(): how long after a write the state can affect decisions
/// - Cut(now): the reading, limited to what the algorithm can represent
/// - TableTime(now), FromTableTime(moment): to and from the unit of moments in tables
/// - FirstMoment(at, cost): the moment of an id after its first attempt
/// Rules::Account is the state of one id. It meets the concept of judgement.h and has:
/// - Begin(rules, state, generation), which initialises `state` (not in logs); generation(),
///   Token()
/// - IsSound(): whether a state from elsewhere is valid (not in logs)
/// - moment(): kLongAgo without actions; IsEmpty(): whether no action is left
/// - Record(verdict, cost): records a judged attempt of cost >= 1
/// - After(verdict, cost): what Record would leave; valid as long as this account
/// - Refund(receipt, now): takes an attempt back; returns whether anything of it was left
/// - AttemptOne(now, reserve), optional: judges and records an attempt of cost 1, returns the time
///   left; calls `reserve(at)` before it records an allowed action
template <class Rules>
class Judging {
  using Account = typename Rules::Account;

 public:
  explicit Judging(const Rules& rules) : rules_(rules) {}

  /// Attempts an action of cost 1. Returns whether the state has changed.
  template <Carrier C>
  bool Check(C& carrier, Micros now, Micros& time_left) const {
    Account account = carrier.Load();
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

  /// Attempts an action of `cost` >= 1. Returns whether the state has changed.
  template <Refusals kRefusals = Refusals::kLeaveTraces, Carrier C>
  bool Attempt(C& carrier, Micros now, std::uint64_t cost, Decision& decision) const {
    Account account = carrier.Load();
    Block block = carrier.LoadBlock();
    const auto [verdict, changes] = JudgeAndRecord<kRefusals>(carrier, account, block, now, cost);
    Describe(account, policy(), block, verdict, now, cost, decision);
    decision.token = account.Token();
    return changes;
  }

  /// What Attempt would decide. A cost of 0 asks what is used.
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

  template <Carrier C>
  Refunded Refund(C& carrier, const Receipt& receipt, Micros now) const {
    Account account = carrier.Load();
    if (!account.Refund(receipt, now)) return Refunded::kNothing;
    const Block block = carrier.LoadBlock();
    if (account.IsEmpty() && block.offences == 0) return Refunded::kAll;
    carrier.Save(account, block);
    return Refunded::kSome;
  }

  /// The decision on the first attempt of an id, whose `account` is empty, at `at` >= `now`.
  void PeekFirst(Account& account, Micros now, Micros at, std::uint64_t cost,
                 Decision& decision) const {
    assert(at >= now && account.moment() == kLongAgo);
    const Verdict verdict = {.at = at};
    decision.token = account.Token();
    Describe(account.After(verdict, cost), policy(), Block(), verdict, now, cost, decision);
  }

  /// The same, after `account` has recorded the attempt.
  void DescribeFirst(const Account& account, Micros now, Micros at, std::uint64_t cost,
                     Decision& decision) const {
    assert(at >= now && account.moment() != kLongAgo);
    decision.token = account.Token();
    Describe(account, policy(), Block(), Verdict{.at = at}, now, cost, decision);
  }

 private:
  struct Judged {
    Verdict verdict;
    bool changes;
  };

  template <Refusals kRefusals = Refusals::kLeaveTraces, Carrier C>
  Judged JudgeAndRecord(C& carrier, Account& account, Block& block, Micros now,
                        std::uint64_t cost) const {
    assert(cost >= 1);
    const Verdict verdict = Judge(account, policy(), block, now, cost);
    constexpr bool kTraces = kRefusals == Refusals::kLeaveTraces;
    const bool starts_block = kTraces && StartsBlock(verdict, policy(), block);
    const bool records = kTraces ? Records(verdict, policy()) : verdict.allowed();
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
