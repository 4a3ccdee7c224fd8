// The exact algorithm: every window is judged by the log of the id's newest actions.
//
// Source: rolling-rate-limiter. Blocked by a window when its max-th newest recorded action lies in
// (now - interval, now]. An attempt of cost c asks for c free places, so it looks at the
// (max - c + 1)-th newest. minDifference is the window (minDifference, 1), except that an attempt
// is one moment in time whatever it costs.
#pragma once

#include <algorithm>
#include <cassert>
#include <concepts>
#include <cstdint>

#include "core/decision.h"
#include "core/policy.h"
#include "core/time.h"

namespace rollgate::sliding_window_log {

/// An id's newest actions, newest first, times never ascending.
template <class L>
concept ActionLog = requires(const L& log, std::uint32_t n) {
  { log.size() } -> std::convertible_to<std::uint64_t>;
  { log.Nth(n) } -> std::convertible_to<Micros>;
};

/// The log of an id that has done nothing.
struct EmptyLog {
  std::uint32_t size() const { return 0; }
  Micros Nth(std::uint32_t) const { return 0; }
};

/// A log as it is once `times` more actions are recorded at `at`; changes nothing.
template <ActionLog Log>
class LogWith {
 public:
  LogWith(const Log& log, Micros at, std::uint64_t times) : log_(log), at_(at), times_(times) {}

  std::uint64_t size() const { return log_.size() + times_; }
  Micros Nth(std::uint64_t n) const {
    return n <= times_ ? at_ : log_.Nth(static_cast<std::uint32_t>(n - times_));
  }

 private:
  const Log& log_;
  Micros at_;
  std::uint64_t times_;
};

// A policy `P` is a Policy or anything with its accessors.

/// Judges an attempt of `cost` at `now`. Precondition: cost <= policy.smallest_max(). A cost of 0
/// only asks what is used.
template <ActionLog Log, class P>
Verdict Decide(const Log& log, const P& policy, Micros now, std::uint64_t cost) {
  assert(cost <= policy.smallest_max());
  Verdict verdict;
  verdict.at = now;
  const std::uint64_t size = log.size();
  if (size == 0) return verdict;
  const Micros newest = log.Nth(1);
  verdict.at = std::max(now, newest);
  verdict.blocked_by_min_difference = verdict.at - newest < policy.min_difference();
  for (const Window& window : policy.windows()) {
    const std::uint64_t n = window.max - cost + 1;
    if (size >= n && verdict.at - log.Nth(static_cast<std::uint32_t>(n)) < window.interval) {
      verdict.blocked_by_count = true;
    }
  }
  return verdict;
}

/// Whether the attempt is recorded, be it as an action or as a counted refusal.
template <class P>
bool Records(const Verdict& verdict, const P& policy) {
  return verdict.allowed() || policy.count_blocked();
}

/// How long from `now` until an attempt of `cost` would pass if nothing else is recorded.
template <ActionLog Log, class P>
Micros WaitFor(const Log& log, const P& policy, Micros now, std::uint64_t cost) {
  const std::uint64_t size = log.size();
  if (size == 0) return 0;
  const Micros newest = log.Nth(1);
  Micros allowed_at = newest + policy.min_difference();
  for (const Window& window : policy.windows()) {
    const std::uint64_t n = window.max - cost + 1;
    if (size >= n) allowed_at = std::max(allowed_at, log.Nth(n) + window.interval);
  }
  // Time is never taken as earlier than the newest action, so up to then there is no waiting.
  return allowed_at <= std::max(now, newest) ? 0 : allowed_at - now;
}

/// The wait of a blocked attempt, itself counted where refusals count.
template <ActionLog Log, class P>
Micros TimeLeft(const Log& log, const P& policy, const Verdict& verdict, Micros now,
                std::uint64_t cost) {
  if (verdict.allowed()) return 0;
  const LogWith after(log, verdict.at, Records(verdict, policy) ? cost : 0);
  return WaitFor(after, policy, now, cost);
}

/// How many of the newest actions lie inside the window at `at`, at most its max.
template <ActionLog Log>
std::uint64_t CountInside(const Log& log, const Window& window, Micros at) {
  std::uint64_t inside = 0;
  std::uint64_t outside = std::min<std::uint64_t>(log.size(), window.max) + 1;
  while (outside - inside > 1) {
    const std::uint64_t n = inside + (outside - inside) / 2;
    (at - log.Nth(n) < window.interval ? inside : outside) = n;
  }
  return inside;
}

/// Fills `decision` (its `windows` given by the caller) with what the attempt comes to.
template <ActionLog Log, class P>
void Describe(const Log& log, const P& policy, const Verdict& verdict, Micros now,
              std::uint64_t cost, Decision& decision) {
  const LogWith after(log, verdict.at, Records(verdict, policy) ? cost : 0);
  decision.verdict = verdict;
  decision.time_left = verdict.allowed() ? 0 : WaitFor(after, policy, now, cost);
  decision.wait = WaitFor(after, policy, now, 1);
  bool first = true;
  WindowUse* use = decision.windows.data();
  for (const Window& window : policy.windows()) {
    use->used = CountInside(after, window, verdict.at);
    use->remaining = window.max - use->used;
    use->reset_in = use->used == 0 ? 0 : after.Nth(use->used) + window.interval - now;
    if (first || use->remaining < decision.actions_left) {
      decision.actions_left = use->remaining;
      decision.reset_in = use->reset_in;
    } else if (use->remaining == decision.actions_left) {
      decision.reset_in = std::max(decision.reset_in, use->reset_in);
    }
    first = false;
    ++use;
  }
  if (!verdict.allowed()) decision.reset_in = decision.time_left;
}

/// Records what Decide said. The log's owner has made room for `cost` more actions, as far as the
/// log's capacity goes.
template <class Log, class P>
void Record(Log& log, const P& policy, const Verdict& verdict, std::uint64_t cost) {
  // What an allowed action pushes out is outside of every window, and so is all that was pushed out
  // before it. What a refusal pushes out may have to be missed by a later refund.
  const std::uint64_t free = log.capacity() - log.size();
  const std::uint64_t pushed_out =
      cost > free ? std::min<std::uint64_t>(cost - free, log.size()) : 0;
  bool displaces = false;
  if (pushed_out > 0 && !verdict.allowed()) {
    const auto newest_pushed_out = static_cast<std::uint32_t>(log.size() - pushed_out + 1);
    displaces = verdict.at - log.Nth(newest_pushed_out) < policy.retention();
  }
  for (std::uint64_t i = std::min<std::uint64_t>(cost, log.capacity()); i > 0; --i) {
    log.Push(verdict.at);
  }
  if (pushed_out > 0) log.set_displaced(displaces);
}

/// Decide, Record and TimeLeft in one, for an attempt of cost 1 under a single window, in the
/// fewest steps: the log's capacity is the window's max, so the window is full exactly when the log
/// is full and its oldest action inside. Returns the time left. Precondition: the log is not empty,
/// and its owner has made room for one more action.
template <class Log>
Micros AttemptOne(Log& log, const SingleWindowPolicy& policy, Micros now) {
  const Micros interval = policy.windows()[0].interval;
  const Micros at = std::max(now, log.Nth(1));
  if (log.IsFull()) [[likely]] {
    const Micros oldest = log.Oldest();
    if (at - oldest < interval) {
      if (!policy.count_blocked()) return oldest + interval - now;
      log.set_displaced(true);
      log.ReplaceOldest(at);
      return log.Oldest() + interval - now;
    }
    log.set_displaced(false);
  }
  log.Push(at);
  return 0;
}

/// Takes back what an allowed attempt of `cost` recorded at `at`; tells whether it found anything.
///
/// Exact as long as the clock does not step back behind an action that was taken back. Where
/// counted refusals have pushed older actions out of the log, the places that become free would
/// belong to those; they are kept taken until the oldest known action leaves, which is no earlier
/// than the lost ones would.
template <class Log, class P>
bool Refund(Log& log, const P& policy, Micros at, std::uint64_t cost) {
  // Times never ascend with n: skip the later ones by halves, then take the equal ones.
  std::uint32_t later = 0;
  std::uint32_t not_later = log.size() + 1;
  while (not_later - later > 1) {
    const std::uint32_t n = later + (not_later - later) / 2;
    (log.Nth(n) > at ? later : not_later) = n;
  }
  if (not_later > log.size() || log.Nth(not_later) != at) return false;
  const Micros oldest = log.Oldest();
  const bool keeps_places = log.displaced() && log.Nth(1) - oldest < policy.retention();
  log.set_displaced(keeps_places);
  std::uint64_t removed = 0;
  while (removed < cost && not_later <= log.size() && log.Nth(not_later) == at) {
    log.Remove(not_later);
    ++removed;
  }
  if (keeps_places) {
    if (log.size() == 0) {
      log.Push(oldest);
      --removed;
    }
    for (; removed > 0; --removed) log.PushOldest(oldest);
  }
  return true;
}

}  // namespace rollgate::sliding_window_log
