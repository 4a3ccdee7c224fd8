// Makes the file of a region.
#pragma once

#include <string>

#include "shared/boot.h"
#include "shared/region.h"

namespace rollgate::shared {

/// Unless something is at `path` already, puts a new region there: whole at once, so that nobody
/// sees it half made, and nothing is left if this process is killed. If somebody else is faster,
/// theirs stays. Throws SharedError.
void MakeRegion(const std::string& path, const RegionOptions& options, const Boot& boot);

}  // namespace rollgate::shared
