// What all who share a table must agree in: as words to compare, and as text for those who do not.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/policy.h"

namespace rollgate::shared {

/// Equal words mean that one table can serve both. Throws SharedError if there are more than a
/// region has room for.
std::vector<std::uint64_t> ConfigurationOf(const Policy& policy, bool has_own_clock);

/// The options that users write for such a configuration. Takes any words.
std::string TextOf(std::span<const std::uint64_t> configuration);

}  // namespace rollgate::shared
