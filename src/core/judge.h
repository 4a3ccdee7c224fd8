// Judges an attempt and describes the result, for every algorithm.
#pragma once

#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "core/decision.h"
#include "core/policy.h"
#include "core/time.h"

namespace rollgate {

/// How far an id uses each window (numbered as in the policy) if nothing more is recorded.
template <class A>
concept Account = requires(const A& account, std::size_t window, std::uint64_t n, Micros t) {
  /// The newest recorded action; kLongAgo if there is none, or no minDifference needs it.
  { account.Newest() } -> std::convertible_to<Micros>;
  /// The time of an attempt: at least the newest action, if the algorithm clamps time.
  { account.At(t) } -> std::convertible_to<Micros>;
  /// The use of a window at a moment. Above its max only after an overdraft or counted refusals,
  /// under a lowered max, or with GCRA where the clock steps back.
  { account.Used(window, t) } -> std::convertible_to<std::uint64_t>;
  /// Whether the use of a window at a moment is at least n >= 1.
  { account.Reaches(window, n, t) } -> std::convertible_to<bool>;
  /// The earliest moment at which the use of a window is below n >= 1; kLongAgo if it always is.
  { account.BelowAt(window, n) } -> std::convertible_to<Micros>;
};

/// Whether no window's max is below the cost.
template <class P>
bool CanPass(const P& policy, const Costs& costs) {
  std::size_t i = 0;
  for (const Window& window : policy.windows()) {
    if (costs[i++] > window.max) return false;
  }
  return true;
}

/// Judges an attempt. One that costs nothing is refused only by a block.
template <Account A, class P>
Verdict Judge(const A& account, const P& policy, const Block& block, Micros now,
              const Costs& costs) {
  Verdict verdict;
  verdict.at = account.At(now);
  if (verdict.at < block.until) {
    verdict.never_passes = verdict.blocked_by_count = !CanPass(policy, costs);
    verdict.blocked_by_block = !verdict.never_passes;
    return verdict;
  }
  const Micros gap = policy.min_difference();
  verdict.blocked_by_min_difference =
      costs.IsAny() && gap > 0 && verdict.at - account.Newest() < gap;
  std::size_t i = 0;
  for (const Window& window : policy.windows()) {
    const std::uint64_t cost = costs[i];
    if (cost > window.max) [[unlikely]] {
      verdict.never_passes = verdict.blocked_by_count = true;
      verdict.blocked_by_min_difference = false;
      return verdict;
    }
    if (cost > 0 && account.Reaches(i, window.max - cost + 1, verdict.at)) {
      verdict.blocked_by_count = true;
    }
    ++i;
  }
  return verdict;
}

/// Whether the attempt is recorded, as an action or as a counted refusal.
template <class P>
bool Records(const Verdict& verdict, const P& policy) {
  const bool counts = policy.count_blocked() && !verdict.blocked_by_block && !verdict.never_passes;
  return verdict.allowed() || counts;
}

/// Starts the block that a refusal causes, if any. Returns whether it did.
template <class P>
bool StartsBlock(const Verdict& verdict, const P& policy, Block& block) {
  if (policy.blocks().empty() || verdict.allowed() || verdict.blocked_by_block) return false;
  if (verdict.never_passes) return false;
  block.Start(policy.blocks(), policy.longest_interval(), verdict.at);
  return true;
}

/// How long from `now` until an attempt of these costs would be allowed, if nothing else is
/// recorded. Leaves out the windows that it can never pass.
template <Account A, class P>
Micros WaitFor(const A& account, const P& policy, const Block& block, Micros now,
               const Costs& costs) {
  Micros allowed_at = block.until;
  if (costs.IsAny() && policy.min_difference() > 0) {
    allowed_at = std::max(allowed_at, account.Newest() + policy.min_difference());
  }
  std::size_t i = 0;
  for (const Window& window : policy.windows()) {
    const std::uint64_t cost = costs[i];
    if (cost > 0 && cost <= window.max) {
      allowed_at = std::max(allowed_at, account.BelowAt(i, window.max - cost + 1));
    }
    ++i;
  }
  // If time is clamped, nothing before account.At(now) is waited for.
  return allowed_at <= account.At(now) ? 0 : allowed_at - now;
}

/// Fills `decision`; its `windows` are the caller's. `account` and `block` are as the attempt left.
template <Account A, class P>
void Describe(const A& account, const P& policy, const Block& block, const Verdict& verdict,
              Micros now, const Costs& costs, Decision& decision) {
  assert(decision.windows.size() >= policy.windows().size());
  decision.verdict = verdict;
  decision.time_left = verdict.never_passes ? kNever : 0;
  if (!verdict.allowed() && !verdict.never_passes) {
    decision.time_left = WaitFor(account, policy, block, now, costs);
  }
  decision.wait = WaitFor(account, policy, block, now, 1);
  std::size_t i = 0;
  WindowUse* use = decision.windows.data();
  for (const Window& window : policy.windows()) {
    use->used = account.Used(i, verdict.at);
    const std::uint64_t taken = std::min(use->used, window.max);
    use->remaining = window.max - taken;
    use->reset_in = taken == 0 ? 0 : account.BelowAt(i, taken) - now;
    if (i == 0 || use->remaining < decision.actions_left) {
      decision.actions_left = use->remaining;
      decision.reset_in = use->reset_in;
    } else if (use->remaining == decision.actions_left) {
      decision.reset_in = std::max(decision.reset_in, use->reset_in);
    }
    ++i;
    ++use;
  }
  if (!verdict.allowed() && !verdict.never_passes) decision.reset_in = decision.time_left;
}

}  // namespace rollgate
