// The limiter for any key-value store: an id's state goes in and comes out as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/decision.h"
#include "core/policy.h"
#include "core/time.h"

namespace rollgate {

/// One policy applied to states that the caller keeps. Holds no state of any id and reads no clock.
/// Owned by one thread. Times and costs: see Store.
///
/// portable_state.h defines the bytes; none are an id without actions. A state of another algorithm
/// or of other limits is used as far as possible, else replaced by an empty one.
class PortableLimiter {
 public:
  using Bytes = std::span<const std::byte>;

  enum class Outcome : std::uint8_t {
    kUnchanged,  ///< nothing to write
    kChanged,    ///< write `out` if the stored state is still the one given
    kForeign,    ///< the bytes are not a state; nothing was decided
  };

  static std::unique_ptr<PortableLimiter> Create(const Policy& policy);

  virtual ~PortableLimiter() = default;
  PortableLimiter(const PortableLimiter&) = delete;
  PortableLimiter& operator=(const PortableLimiter&) = delete;

  /// See Policy::UseLimits, for the calls that follow.
  virtual void UseLimits(std::span<const std::uint64_t> limits) = 0;

  /// Decides on an action; the caller owns `decision.windows`. `generation` is a random number,
  /// used if this is the first attempt of a generation.
  virtual Outcome Decide(Bytes state, Micros now, const Costs& costs, Recording recording,
                         Generation generation, Decision& decision,
                         std::vector<std::byte>& out) = 0;

  /// Replaces what an allowed attempt cost by `actual`; kUnchanged if nothing of it is left.
  virtual Outcome Settle(Bytes state, const Receipt& receipt, const Costs& actual, Micros now,
                         std::vector<std::byte>& out) = 0;

  /// Refuses the id for `duration` from `now` on, or from its newest action if that is later; a
  /// later end of its block stays. 0 ends any block.
  virtual Outcome BlockFor(Bytes state, Micros now, Micros duration, Generation generation,
                           std::vector<std::byte>& out) = 0;

  /// How long a state written at `now` can affect decisions: longer if it has later actions.
  virtual Micros Lifetime(Bytes state, Micros now) const = 0;

  /// The size of the largest state, under the latest max.
  virtual std::size_t largest_state() const = 0;

 protected:
  PortableLimiter() = default;
};

}  // namespace rollgate
