// Checks for room before a region is reserved.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "shared/file.h"
#include "shared/layout.h"
#include "shared/region.h"

namespace rollgate::shared {

/// Throws SharedError, kSystem, if the region exceeds its file system, the largest file of this
/// process or, in memory, the container's limit. `file` is the region's, for `path`; `bytes` must
/// be left, the region's size unless given.
void RequireRoom(const File& file, const std::string& path, const RegionOptions& options,
                 const Geometry& geometry, std::optional<std::uint64_t> bytes = std::nullopt);

}  // namespace rollgate::shared
