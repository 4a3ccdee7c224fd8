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
#include <cstddef>
#include <cstdint>

#include "core/block.h"
#include "core/decision.h"
#include "core/judgement.h"
#include "core/policy.h"
#include "core/time.h"

namespace rollgate::sliding_window_log {

/// An id's newest actions, newest first, times never ascending.
template <class L>
concept ActionLog = requires(const L& log, std::uint64_t n) {
  { log.size() } -> std::convertible_to<std::uint64_t>;
  { log.Nth(n) } -> std::convertible_to<Micros>;
};

/// The log of an id that has done nothing.
struct EmptyLog {
  std::uint32_t size() const { return 0; }
  Micros Nth(std::uint64_t) const { return 0; }
};

/// A log as it is once `times` more actions are recorded at `at`; changes nothing.
template <ActionLog Log>
class LogWith {
 public:
  LogWith(const Log& log, Micros at, std::uint64_t times) : log_(log), at_(at), times_(times) {}

  std::uint64_t size() const { return log_.size() + times_; }
  Micros Nth(std::uint64_t n) const { return n <= times_ ? at_ : log_.Nth(n - times_); }

 private:
  const Log& log_;
  Micros at_;
  std::uint64_t times_;
};

// A policy `P` is a Policy or anything with its accessors.

/// What a log tells of its id's windows.
template <ActionLog Log, class P>
class LogAccount {
 public:
  LogAccount(const Log& log, const P& policy) : log_(log), policy_(policy) {}

  Micros Newest() const { return log_.size() == 0 ? kLongAgo : log_.Nth(1); }
  Micros At(Micros now) const { return std::max(now, Newest()); }

  bool Reaches(std::size_t window, std::uint64_t n, Micros at) const {
    return log_.size() >= n && at - log_.Nth(n) < policy_.windows()[window].interval;
  }

  std::uint64_t Used(std::size_t window, Micros at) const {
    const auto& [interval, max] = policy_.windows()[window];
    std::uint64_t inside = 0;
    std::uint64_t outside = std::min<std::uint64_t>(log_.size(), max) + 1;
    // Mostly all of them are.
    if (outside > 1 && at - log_.Nth(outside - 1) < interval) return outside - 1;
    while (outside - inside > 1) {
      const std::uint64_t n = inside + (outside - inside) / 2;
      (at - log_.Nth(n) < interval ? inside : outside) = n;
    }
    return inside;
  }

  Micros BelowAt(std::size_t window, std::uint64_t n) const {
    return log_.size() >= n ? log_.Nth(n) + policy_.windows()[window].interval : kLongAgo;
  }

 private:
  const Log& log_;
  const P& policy_;
};

/// Judges an attempt: see judgement.h.
template <ActionLog Log, class P>
Verdict Decide(const Log& log, const P& policy, Micros now, std::uint64_t cost,
               const Block& block = {}) {
  return Judge(LogAccount(log, policy), policy, block, now, cost);
}

/// The wait of a blocked attempt, itself counted where refusals count. `block` is as the attempt
/// has left it.
template <ActionLog Log, class P>
Micros TimeLeft(const Log& log, const P& policy, const Verdict& verdict, Micros now,
                std::uint64_t cost, const Block& block = {}) {
  if (verdict.allowed()) return 0;
  const LogWith after(log, verdict.at, Records(verdict, policy) ? cost : 0);
  return WaitFor(LogAccount(after, policy), policy, block, now, cost);
}

/// Tells what the attempt comes to, from the log before it and the block after it.
template <ActionLog Log, class P>
void Describe(const Log& log, const P& policy, const Verdict& verdict, Micros now,
              std::uint64_t cost, Decision& decision, const Block& block = {}) {
  const LogWith after(log, verdict.at, Records(verdict, policy) ? cost : 0);
  rollgate::Describe(LogAccount(after, policy), policy, block, verdict, now, cost, decision);
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
    displaces = verdict.at - log.Nth(log.size() - pushed_out + 1) < policy.retention();
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
