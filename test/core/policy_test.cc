// What a policy asks of a log.
#include "core/policy.h"

#include <gtest/gtest.h>

namespace rollgate {
namespace {

TEST(Policy, RemembersForTheLongestWindowAndAsManyActionsAsTheLargestMax) {
  const Policy policy({{{100, 7}, {5000, 3}}, 20, true});
  EXPECT_EQ(policy.retention(), 5000);
  EXPECT_EQ(policy.log_capacity(), 7u);
  EXPECT_EQ(policy.smallest_max(), 3u);
  EXPECT_FALSE(policy.exceeds_log());
}

TEST(Policy, RemembersForTheLeastDifferenceIfThatIsLonger) {
  EXPECT_EQ(Policy({{{100, 7}}, 20'000, true}).retention(), 20'000);
}

TEST(Policy, BoundsDurationsAndLogs) {
  const Policy policy({{{INT64_MAX, std::uint64_t{1} << 53}}, INT64_MAX, true});
  EXPECT_EQ(policy.retention(), kLongest);
  EXPECT_EQ(policy.log_capacity(), kLongestLog);
  EXPECT_TRUE(policy.exceeds_log());
  EXPECT_EQ(policy.smallest_max(), std::uint64_t{1} << 53);
}

}  // namespace
}  // namespace rollgate
