// From the state of one id to a decision and back, for every algorithm and store.
#pragma once

#include <cstdint>

#include "core/decision.h"
#include "core/judge.h"
#include "core/policy.h"
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
  /// Makes room for an attempt. Throws std::bad_alloc and changes nothing if it cannot.
  carrier.Reserve(account, at, Costs(1));
  carrier.Save(account, block);
};

/// As long as this lives, logs have the capacity for an action that is recorded whatever the limits
/// say, if it is needed.
template <class Rules>
class RoomToRecord {
 public:
  explicit RoomToRecord(Rules& rules) : rules_(rules) {
    if constexpr (kIsLog) rules_.KeepAtLeast(kKeptByRecords);
  }
  /// For an attempt that is settled at more than it reserved.
  RoomToRecord(Rules& rules, const Receipt& receipt, const Costs& actual) : rules_(rules) {
    if constexpr (kIsLog) {
      if (actual.uniform() > receipt.cost.uniform()) rules_.KeepAtLeast(kKeptByRecords);
    }
  }
  ~RoomToRecord() {
    if constexpr (kIsLog) rules_.UseLimits({});
  }
  RoomToRecord(const RoomToRecord&) = delete;
  RoomToRecord& operator=(const RoomToRecord&) = delete;

 private:
  static constexpr bool kIsLog = requires(Rules & rules) { rules.KeepAtLeast(1); };

  Rules& rules_;
};

/// The state of an id after an attempt is settled.
enum class Settled : std::uint8_t {
  kNothing,  ///< unchanged: nothing was left of the attempt
  kSome,     ///< changed
  kAll,      ///< empty: the caller must forget the id
};

/// `Rules` is an algorithm under one form of the policy (see algorithms.h). It has:
/// - policy() and UseLimits(), see Policy
/// - state_bytes(): size of an id's state without moment and generation (not in logs)
/// - retention(): how long after its moment an id expires
/// - lifetime(): how long after a write the state can affect decisions
/// - Cut(now): the reading, limited to what the algorithm can represent
/// - TableTime(now), FromTableTime(moment): to and from the unit of moments in tables
/// - FirstMoment(at, costs): the moment of an id after its first attempt
/// Rules::Account is the state of one id. It meets the concept of judge.h and has:
/// - Begin(rules, state, generation), which initialises `state` (not in logs); generation(),
///   Token()
/// - IsSound(): whether a state from elsewhere is valid (not in logs)
/// - moment(): kLongAgo without actions; IsEmpty(): whether no action is left
/// - Prepare(now), optional: lets the account follow what changes without actions; then state() is
///   what must be saved
/// - Record(verdict, costs): records a judged attempt, which costs something
/// - After(verdict, costs): what Record would leave; valid as long as this account
/// - Settle(receipt, actual, now): replaces the costs of an attempt; returns whether anything of it
///   was left
/// - RoomToSettle(receipt, actual), optional: costs to reserve room for; none if Settle would find
///   nothing, because what Reserve does must be saved
/// - AttemptOne(now, reserve), optional: judges and records an attempt of cost 1, returns the time
///   left; calls `reserve(at)` before it records an allowed action; only if CanAttemptOne()
template <class Rules>
class Decider {
  using Account = typename Rules::Account;

 public:
  explicit Decider(const Rules& rules) : rules_(rules) {}

  /// Attempts an action of cost 1. Returns whether the state has changed.
  template <Carrier C>
  bool Check(C& carrier, Micros now, Micros& time_left) const {
    Account account = carrier.Load();
    if constexpr (requires { account.AttemptOne(now, [](Micros) {}); }) {
      if (account.CanAttemptOne()) [[likely]] {
        time_left = account.AttemptOne(now, [&](Micros at) { carrier.Reserve(account, at, 1); });
        const bool changes = time_left == 0 || policy().count_blocked();
        if (changes) carrier.Save(account, Block());
        return changes;
      }
    }
    Prepare(account, now);
    Block block = carrier.LoadBlock();
    const auto [verdict, changes] = JudgeAndRecord(carrier, account, block, now, 1, true);
    time_left = verdict.allowed() ? 0 : WaitFor(account, policy(), block, now, 1);
    return changes;
  }

  /// Attempts an action, which costs something. Returns whether the state has changed.
  /// Precondition: RecordsActions(recording).
  template <Carrier C>
  bool Attempt(C& carrier, Micros now, const Costs& costs, Recording recording,
               Decision& decision) const {
    assert(RecordsActions(recording));
    Account account = carrier.Load();
    Prepare(account, now);
    Block block = carrier.LoadBlock();
    const auto [verdict, changes] =
        JudgeAndRecord(carrier, account, block, now, costs, LeavesTraces(recording));
    Describe(account, policy(), block, verdict, now, costs, decision);
    decision.token = account.Token();
    return changes;
  }

  /// Records an action, whatever limits and blocks say, and decides as a Peek at cost 0 then does.
  template <Carrier C>
  void Record(C& carrier, Micros now, const Costs& costs, Decision& decision,
              Micros blocked_until = kLongAgo) const {
    Account account = carrier.Load();
    Prepare(account, now);
    Block block = carrier.LoadBlock();
    const Micros at = account.At(now);
    carrier.Reserve(account, at, costs);
    // Like a counted refusal, it may push out actions inside a window.
    account.Record({.blocked_by_count = true, .at = at}, costs);
    carrier.Save(account, block);
    if (at < blocked_until) block.until = std::max(block.until, blocked_until);
    const Verdict verdict = Judge(account, policy(), block, now, 0);
    decision.token = account.Token();
    Describe(account, policy(), block, verdict, now, 0, decision);
  }

  /// What an attempt would decide; changes nothing. Without a cost, what is used. The id is also
  /// blocked until `blocked_until`.
  template <Carrier C>
  void Peek(C& carrier, Micros now, const Costs& costs, Recording recording, Decision& decision,
            Micros blocked_until = kLongAgo) const {
    Account account = carrier.LoadCopy();
    Prepare(account, now);
    Block block = carrier.LoadBlock();
    // An ended one would keep the offences of the other.
    if (account.At(now) < blocked_until) block.until = std::max(block.until, blocked_until);
    const Verdict verdict = Judge(account, policy(), block, now, costs);
    if (LeavesTraces(recording)) StartsBlock(verdict, policy(), block);
    decision.token = account.Token();
    Describe(account.After(verdict, RecordedOf(costs, verdict, recording)), policy(), block,
             verdict, now, costs, decision);
  }

  /// Replaces what an allowed attempt cost by `actual`, which may be nothing.
  template <Carrier C>
  Settled Settle(C& carrier, const Receipt& receipt, const Costs& actual, Micros now) const {
    Account account = carrier.Load();
    if constexpr (requires { account.RoomToSettle(receipt, actual); }) {
      const Costs room = account.RoomToSettle(receipt, actual);
      if (room.IsAny()) carrier.Reserve(account, account.Newest(), room);
    }
    if (!account.Settle(receipt, actual, now)) return Settled::kNothing;
    const Block block = carrier.LoadBlock();
    if (account.IsEmpty() && block.until == kLongAgo) return Settled::kAll;
    carrier.Save(account, block);
    return Settled::kSome;
  }

  /// Ends a block of blockFor; its offences stay. Returns whether there was one.
  template <Carrier C>
  bool EndBlock(C& carrier, Micros now) const {
    Block block = carrier.LoadBlock();
    if (block.until <= now) return false;
    block.until = now;
    carrier.Save(carrier.Load(), block);
    return true;
  }

  /// Whether a first attempt of an id is allowed.
  bool AllowsFirst(const Costs& costs) const { return CanPass(policy(), costs); }

  /// The decision on the first attempt of an id, whose `account` is empty, at `at` >= `now`.
  void PeekFirst(Account& account, Micros now, Micros at, const Costs& costs, Recording recording,
                 Decision& decision, Micros blocked_until = kLongAgo) const {
    assert(at >= now && account.moment() == kLongAgo);
    const bool never_passes = !CanPass(policy(), costs);
    const bool is_blocked = at < blocked_until;
    const Block block = {.until = is_blocked ? blocked_until : kLongAgo};
    const Verdict verdict = {.blocked_by_count = never_passes,
                             .blocked_by_block = !never_passes && is_blocked,
                             .never_passes = never_passes,
                             .at = at};
    decision.token = account.Token();
    Describe(account.After(verdict, RecordedOf(costs, verdict, recording)), policy(), block,
             verdict, now, costs, decision);
  }

  /// The same, after `account` has recorded the attempt.
  void DescribeFirst(const Account& account, Micros now, Micros at, const Costs& costs,
                     Decision& decision) const {
    assert(at >= now && account.moment() != kLongAgo);
    decision.token = account.Token();
    Describe(account, policy(), Block(), Verdict{.at = at}, now, costs, decision);
  }

 private:
  struct Judged {
    Verdict verdict;
    bool changes;
  };

  /// `traces`: whether a refusal leaves any.
  template <Carrier C>
  Judged JudgeAndRecord(C& carrier, Account& account, Block& block, Micros now, const Costs& costs,
                        bool traces) const {
    assert(costs.IsAny());
    const Verdict verdict = Judge(account, policy(), block, now, costs);
    const bool starts_block = traces && StartsBlock(verdict, policy(), block);
    const bool records = traces ? Records(verdict, policy()) : verdict.allowed();
    if (records) {
      carrier.Reserve(account, verdict.at, costs);
      account.Record(verdict, costs);
      carrier.Save(account, block);
    } else if (starts_block) {
      carrier.Save(carrier.Load(), block);  // what Prepare changed counts with the next action
    }
    return {verdict, records || starts_block};
  }

  /// What an attempt records, or would record in place of a peek.
  Costs RecordedOf(const Costs& costs, const Verdict& verdict, Recording recording) const {
    const bool records = LeavesTraces(recording) ? Records(verdict, policy()) : verdict.allowed();
    return records ? costs : Costs(0);
  }

  static void Prepare(Account& account, Micros now) {
    if constexpr (requires { account.Prepare(now); }) account.Prepare(now);
  }

  const auto& policy() const { return rules_.policy(); }

  const Rules& rules_;
};

}  // namespace rollgate
