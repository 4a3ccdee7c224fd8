// What becomes of the memory of ids that were held. test/slots compares what is held with an
// oracle.
#include "memory/held_counts.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "support/limiter.h"

namespace rollgate::memory {
namespace {

using testing::Id;
using testing::kSecret;

TEST(HeldCounts, LeaveNoBytesBehind) {
  HeldCounts counts(1'000'000, kSecret);
  const std::size_t empty = counts.bytes();
  std::vector<Held*> held;
  for (std::int64_t id = 0; id < 100'000; ++id) held.push_back(counts.Acquire(Id(id), 1, 1).held);
  EXPECT_GT(counts.bytes(), 100'000u * 50);
  for (Held* one : held) counts.Release(one, 1);
  EXPECT_EQ(counts.held_ids(), 0u);
  EXPECT_EQ(counts.bytes(), empty);
}

TEST(HeldCounts, AnIdThatIsHeldAgainAndAgainKeepsItsPlace) {
  HeldCounts counts(10, kSecret);
  Held* const first = counts.Acquire(Id(1), 1, 1).held;
  counts.Release(first, 1);
  EXPECT_EQ(counts.Acquire(Id(1), 1, 1).held, first);
}

}  // namespace
}  // namespace rollgate::memory
