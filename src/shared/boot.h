// Which start of the host this is: a region made before the last one counts time from elsewhere.
#pragma once

#include <array>
#include <cstdint>

namespace rollgate::shared {

using Boot = std::array<std::uint64_t, 2>;

/// Throws SharedError where the system does not tell.
Boot CurrentBoot();

}  // namespace rollgate::shared
