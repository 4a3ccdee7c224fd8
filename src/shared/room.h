// Checks for room before a region is reserved.
#pragma once

#include <cstdint>

#include "shared/file.h"
#include "shared/layout.h"
#include "shared/region.h"

namespace rollgate::shared {

/// Throws SharedError, kSystem, unless the region fits into its file system, this process's largest
/// file and, in memory, the container. `bytes` must be left: the region's unless given.
void RequireRoom(const File& file, const std::string& path, const RegionOptions& options,
                 const Geometry& geometry, std::optional<std::uint64_t> bytes = std::nullopt);

}  // namespace rollgate::shared
