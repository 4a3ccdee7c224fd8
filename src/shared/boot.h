// The current start of the host: clocks of different starts do not compare.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace rollgate::shared {

using Boot = std::array<std::uint64_t, 2>;

/// `system_root`: see RegionOptions. Throws SharedError if the system does not say.
Boot CurrentBoot(const std::string& system_root);

}  // namespace rollgate::shared
