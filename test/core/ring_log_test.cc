// How much of a log a policy asks for, and how the ring that holds it follows what is in the
// window.
#include "core/ring_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "core/policy.h"

namespace rollgate {
namespace {

TEST(Policy, RemembersForTheLongestWindowAndAsManyActionsAsTheLargestMax) {
  const Policy policy({{{100, 7}, {5000, 3}}, 20, true});
  EXPECT_EQ(policy.retention(), 5000);
  EXPECT_EQ(policy.log_capacity(), 7u);
  EXPECT_FALSE(policy.exceeds_log());
  EXPECT_EQ(Policy({{{100, 7}}, 20'000, true}).retention(), 20'000) << "of minDifference";
}

TEST(Policy, BoundsDurationsAndLogs) {
  const Policy policy({{{INT64_MAX, std::uint64_t{1} << 53}}, INT64_MAX, true});
  EXPECT_EQ(policy.retention(), kLongest);
  EXPECT_EQ(policy.log_capacity(), kLongestLog);
  EXPECT_TRUE(policy.exceeds_log());
}

TEST(RingLog, TakesAsMuchRoomAsWhatIsInsideTheWindow) {
  constexpr Micros kWindow = 1000;
  std::vector<std::byte> ring(1000 * sizeof(std::uint32_t));
  RingLog<std::uint32_t> log(LogHead{}, ring.data(), 0, 1001);
  std::uint32_t largest = 0;
  const auto push = [&](Micros at) {
    if (!log.HasFree(1)) log.ResizeInPlace(log.DropAndPlanRoom(kWindow, 1));
    log.Push(at);
    largest = std::max(largest, log.ring_room());
  };
  Micros now = 0;
  for (int i = 0; i < 2000; ++i) push(now += kWindow / 4);
  EXPECT_EQ(largest, 5u);
  for (int i = 0; i < 500; ++i) push(now += 1);
  EXPECT_GE(log.size(), 500u);
  EXPECT_LE(largest, 1000u);
  for (int i = 0; i < 1000; ++i) push(now += kWindow / 4);
  EXPECT_LE(log.ring_room(), 20u);
}

TEST(RingLog, DropsAnActionAtTheMicrosecondThatTheNewestDoesNotNeedIt) {
  for (const auto& [newest, left, room] :
       {std::tuple{999, 6u, 12u}, std::tuple{1000, 5u, 5u}, std::tuple{1004, 1u, 5u}}) {
    std::vector<std::byte> ring(5 * sizeof(std::uint32_t));
    RingLog<std::uint32_t> log(LogHead{}, ring.data(), 5, 100);
    for (Micros at = 0; at < 5; ++at) log.Push(at);
    log.Push(newest);
    EXPECT_EQ(log.DropAndPlanRoom(1000, 1), room);
    EXPECT_EQ(log.size(), left);
    log.DropUntil(newest);
    EXPECT_EQ(log.size(), 0u);
  }
}

TEST(RingLog, OfDamagedBytesIsNoOlderThanTimeIs) {
  std::uint64_t stamp = std::uint64_t{1} << 63;
  const RingLog<std::uint64_t> log({.newest = -2, .size = 2}, reinterpret_cast<std::byte*>(&stamp),
                                   1, 2);
  EXPECT_EQ(log.Oldest(), -2 - kLongest);
  EXPECT_EQ(log.Nth(2), -2 - kLongest);
}

}  // namespace
}  // namespace rollgate
