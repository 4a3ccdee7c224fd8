// What every limiter that answers at once stands on: one policy applied to every id.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/decision.h"
#include "core/identity.h"
#include "core/time.h"

namespace rollgate {

struct StoreStats {
  std::uint64_t keys;     ///< ids held, expired ones not yet forgotten included
  std::uint64_t allowed;  ///< attempts
  std::uint64_t blocked;  ///< attempts
  std::uint64_t evicted;  ///< ids dropped before they expired
  std::size_t bytes;      ///< memory held for ids
};

/// Owned by one thread. Reads no clock: `now` comes from the caller, in microseconds within
/// ±kLongest; a time before an id's newest action counts as the algorithm says. A `cost` is
/// in [1, policy.smallest_max()], or 0 in a Peek that is to tell what is used. Throws nothing but
/// std::bad_alloc.
class Store {
 public:
  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// See Policy::SetMax.
  virtual void SetMax(std::uint64_t max, bool records) = 0;

  /// Attempts an action of cost 1: 0 when allowed, else the time left until it would be.
  virtual Micros Check(const Identity& id, Micros now) = 0;

  /// Attempts an action and tells everything about it; `decision.windows` is the caller's.
  virtual void Attempt(const Identity& id, Micros now, std::uint64_t cost, Decision& decision) = 0;

  /// What Attempt would tell now; records nothing and creates nothing.
  virtual void Peek(const Identity& id, Micros now, std::uint64_t cost, Decision& decision) = 0;

  /// Takes back what an allowed attempt recorded; tells whether there was anything left of it.
  /// After the id was cleared or forgotten there is not. GCRA alone asks for the time.
  virtual bool Refund(const Identity& id, const Receipt& receipt, Micros now) = 0;

  /// Forgets an id; tells whether it was known.
  virtual bool Clear(const Identity& id) = 0;
  virtual void ClearAll() = 0;

  virtual StoreStats stats() const = 0;

 protected:
  Store() = default;
};

}  // namespace rollgate
