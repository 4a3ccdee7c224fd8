// The limiter for any key-value store: an id's state goes in as bytes, and comes out as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/decision.h"
#include "core/policy.h"
#include "core/time.h"

namespace rollgate {

/// One policy applied to states that somebody else keeps. Holds no state of any id and reads no
/// clock; times are as in the stores. Owned by one thread.
///
/// A state is a small byte string, of a form of this version: see portable_state.h. One that was
/// written by another algorithm or under other limits is taken over as far as it goes, or begun
/// anew. No bytes at all are an id that has done nothing.
class PortableLimiter {
 public:
  using Bytes = std::span<const std::byte>;

  enum class Outcome : std::uint8_t {
    kUnchanged,  ///< there is nothing to write
    kChanged,    ///< `out` is to be written, on the condition that the state is still the one given
    kForeign,    ///< the bytes are no state of ours; nothing was decided
  };

  static std::unique_ptr<PortableLimiter> Create(const Policy& policy);

  virtual ~PortableLimiter() = default;
  PortableLimiter(const PortableLimiter&) = delete;
  PortableLimiter& operator=(const PortableLimiter&) = delete;

  /// See Policy::SetMax.
  virtual void SetMax(std::uint64_t max, bool records) = 0;

  /// Attempts an action and tells everything about it; `decision.windows` is the caller's.
  /// `generation` is a random number: that of the id's generation if this is its beginning.
  virtual Outcome Attempt(Bytes state, Micros now, std::uint64_t cost, Generation generation,
                          Decision& decision, std::vector<std::byte>& out) = 0;

  /// What Attempt would tell now. A cost of 0 tells what is used.
  virtual Outcome Peek(Bytes state, Micros now, std::uint64_t cost, Decision& decision) = 0;

  /// Takes back what an allowed attempt recorded; kUnchanged where nothing is left of it.
  virtual Outcome Refund(Bytes state, const Receipt& receipt, Micros now,
                         std::vector<std::byte>& out) = 0;

  /// How long from `now` on the state that was written then can matter; longer than its actions
  /// would if they were made by a clock that was ahead.
  virtual Micros Lifetime(Bytes state, Micros now) const = 0;

  /// The bytes of the largest state; where the max is set, under the last one.
  virtual std::size_t largest_state() const = 0;

 protected:
  PortableLimiter() = default;
};

}  // namespace rollgate
