// What all limiters of a region must agree on: as words to compare, and as text for messages.
#pragma once

#include <cstdint>
#include <string>

#include "core/policy.h"

namespace rollgate::shared {

/// Limiters with equal words share a region. Throws SharedError if there are too many words.
std::vector<std::uint64_t> ConfigurationOf(const Policy& policy, bool has_own_clock);

/// The options that give such words. Takes any words.
std::string TextOf(std::span<const std::uint64_t> configuration);

}  // namespace rollgate::shared
