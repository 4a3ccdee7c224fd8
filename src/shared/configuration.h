// What the limiters of a region must agree on: as words to compare, and as text for messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/policy.h"
#include "shared/shared_store.h"

namespace rollgate::shared {

/// How a region stores logs.
struct LogForm {
  std::uint32_t room = 0;  ///< actions or weighted entries that a record can hold; 0 without logs
  bool has_long_stamps = false;
};

/// The form for a region that a limiter makes. `room`: for how many actions at least. `rounds_up`:
/// to a power of two, so that limits may grow a little.
LogForm LogFormFor(const Policy& policy, std::uint64_t room, bool rounds_up = true);

/// Throws SharedError if there are too many words.
std::vector<std::uint64_t> ConfigurationOf(const Policy& policy, SharedClock clock,
                                           const LogForm& form);

/// The words of a region of slots. `least_room`: what this limiter asks for, or 0.
std::vector<std::uint64_t> ConfigurationOfSlots(SharedClock clock, std::uint32_t least_room,
                                                std::uint32_t room);

/// How many holders an id has room for, in a configuration with which such words agree.
std::size_t RoomOfSlots(std::span<const std::uint64_t> configuration);

/// Why a limiter of the configuration `ours` cannot use a region of `theirs`; empty if it can. Then
/// each judges by its own limits. `theirs` may be any words.
std::string WhyNot(std::span<const std::uint64_t> ours, std::span<const std::uint64_t> theirs);

/// The form in a configuration with which another one agrees.
LogForm LogFormOf(std::span<const std::uint64_t> configuration);

/// The options that give such words. Takes any words.
std::string TextOf(std::span<const std::uint64_t> configuration);

}  // namespace rollgate::shared
