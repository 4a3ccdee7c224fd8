// Creates the file of a region.
#pragma once

#include "shared/layout.h"
#include "shared/region.h"

namespace rollgate::shared {

/// Creates a region at `path`, unless there is something. It appears complete; if this process is
/// killed, nothing is left. If another process is faster, its region stays. Throws SharedError.
void MakeRegion(const std::string& path, const RegionOptions& options, const Boot& boot);

}  // namespace rollgate::shared
