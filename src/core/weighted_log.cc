// Derives how entries are merged.
#include "core/weighted_log.h"

namespace rollgate {

WeightedLog::WeightedLog(const Policy& policy) : policy_(policy) {
  // The windows share so many cells, so a merge leaves about half of the entries.
  constexpr Micros kCells = WeightedEntries::kMost / 2;
  const auto windows = static_cast<Micros>(policy.windows().size());
  for (const Window& window : policy_.windows()) {
    const Micros width = window.interval / kCells * windows +
                         (window.interval % kCells * windows + kCells - 1) / kCells;
    zones_.push_back({window.interval, std::max<Micros>(width, 1)});
  }
  std::sort(zones_.begin(), zones_.end(),
            [](const MergeZone& a, const MergeZone& b) { return a.interval < b.interval; });
}

}  // namespace rollgate
