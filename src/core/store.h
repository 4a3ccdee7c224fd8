// The interface of limiters that answer at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/decision.h"
#include "core/identity.h"
#include "core/time.h"

namespace rollgate {

struct StoreStats {
  std::uint64_t keys;     ///< ids held, including expired ones not yet forgotten
  std::uint64_t allowed;  ///< attempts
  std::uint64_t blocked;  ///< attempts
  std::uint64_t evicted;  ///< ids dropped before they expired
  std::size_t bytes;      ///< memory held for ids

  /// Adds what was counted under earlier limits.
  void Add(const StoreStats& earlier) {
    allowed += earlier.allowed;
    blocked += earlier.blocked;
    evicted += earlier.evicted;
  }
};

/// One policy applied to every id. Owned by one thread. Reads no clock: `now` comes from the
/// caller, in microseconds within ±kLongest, and may step back. Costs are not all 0 except to ask
/// what is used, which records nothing. They differ between windows only under a weighted policy.
/// Throws only std::bad_alloc, and what Calendars throw.
class Store {
 public:
  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// See Policy::UseLimits, for the calls that follow. Returns false, and changes nothing, if the
  /// states of this store have no room for one of the limits.
  virtual bool UseLimits(std::span<const std::uint64_t> limits) = 0;

  /// Attempts an action of cost 1. Returns 0 if it is allowed, else the time left.
  virtual Micros Check(const Identity& id, Micros now) = 0;

  /// Decides on an action; the caller owns `decision.windows`.
  virtual void Decide(const Identity& id, Micros now, const Costs& costs, Recording recording,
                      Decision& decision) = 0;

  /// Replaces what an allowed attempt cost by `actual`, at the time when it was made; 0 takes it
  /// back, more may overdraw windows. Returns whether anything was left of the attempt, which is
  /// false after the id was cleared or forgotten. Only GCRA uses `now`.
  virtual bool Settle(const Identity& id, const Receipt& receipt, const Costs& actual,
                      Micros now) = 0;

  /// Refuses an id for `duration` from `now` on, or from its newest action if that is later; a
  /// later end of its block stays. 0 ends any block. Attempts during a block leave no trace.
  virtual void BlockFor(const Identity& id, Micros now, Micros duration) = 0;

  /// Forgets an id and its block. Returns whether it was known.
  virtual bool Clear(const Identity& id) = 0;
  virtual void ClearAll() = 0;

  virtual StoreStats stats() const = 0;

 protected:
  Store() = default;
};

}  // namespace rollgate
