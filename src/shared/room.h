// Whether there is room for a new region, asked before any of it is taken.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "shared/file.h"
#include "shared/layout.h"
#include "shared/region.h"

namespace rollgate::shared {

/// Throws SharedError of kind kSystem if the region does not fit into its file system, into the
/// memory limit of the container where that file system is in memory, or into the largest file
/// that this process may make: what is needed, what there is, where, and which option to lower.
/// `file` is the region's, which is to be at `path`. `bytes` are how many must be left, those of
/// the whole region unless given.
void RequireRoom(const File& file, const std::string& path, const RegionOptions& options,
                 const Geometry& geometry, std::optional<std::uint64_t> bytes = std::nullopt);

}  // namespace rollgate::shared
