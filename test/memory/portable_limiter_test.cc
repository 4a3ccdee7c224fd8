// The bytes of states: foreign and damaged ones, those of other limits, and those of earlier
// releases. What they decide is in trace_test.cc.
#include "core/portable_limiter.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/algorithms.h"
#include "support/carrier.h"
#include "support/limiter.h"
#include "support/traces.h"

namespace rollgate {
namespace {

using Outcome = PortableLimiter::Outcome;
using testing::Carrier;
using testing::kHour;
using testing::kSecond;
using testing::Random;

PolicyOptions PolicyFor(Random& random, Algorithm algorithm) {
  const bool count_blocked = algorithm != Algorithm::kGcra && random.Chance(50);
  PolicyOptions policy = testing::RandomPolicy(random, count_blocked, 30);
  policy.algorithm = algorithm;
  if (random.Chance(40)) policy.blocks = {random.Between(1, 30), random.Between(1, 90)};
  // Now and then longer than four bytes can count.
  if (random.Chance(20)) policy.windows[0].interval = 2 * kHour + random.Between(0, 9);
  return policy;
}

class Portable : public ::testing::TestWithParam<Algorithm> {};
INSTANTIATE_TEST_SUITE_P(Algorithms, Portable,
                         ::testing::Values(Algorithm::kSlidingWindowLog,
                                           Algorithm::kSlidingWindowCounter,
                                           Algorithm::kFixedWindow, Algorithm::kGcra));

TEST_P(Portable, KnowsItsOwnStatesAtTheEndsOfTime) {
  for (const Micros now : {-kLongest, Micros{0}, Micros{5'000'000'000'000'000}, kLongest}) {
    for (const bool has_blocks : {false, true}) {
      SCOPED_TRACE(now);
      PolicyOptions policy{{{1'000'000'000'000'000'000, 1007}}, 0, false, GetParam(), {}};
      if (has_blocks) policy.blocks = {kSecond};
      Carrier carrier(policy);
      const Decision decision = carrier.Attempt(now, 1007);
      EXPECT_EQ(carrier.outcome, Outcome::kChanged);
      EXPECT_FALSE(carrier.Attempt(now).verdict.allowed());
      EXPECT_NE(carrier.outcome, Outcome::kForeign);
      EXPECT_TRUE(carrier.Refund(decision, now, 1007));
      carrier.Peek(now);
      EXPECT_NE(carrier.outcome, Outcome::kForeign);
      EXPECT_FALSE(carrier.Refund(decision, now, 1007));
    }
  }
}

TEST_P(Portable, LivesAsLongAsItCanMatter) {
  Carrier carrier({{{kSecond, 2}, {60 * kSecond, 5}}, 0, false, GetParam(), {90 * kSecond}});
  const bool is_counter = GetParam() == Algorithm::kSlidingWindowCounter;
  const Micros usual = (is_counter ? 120 : 60) * kSecond + 150 * kSecond;
  carrier.Attempt(1'000 * kSecond);
  EXPECT_EQ(carrier.limiter().Lifetime(carrier.state, 1'000 * kSecond), usual);
  // Seen from a clock that is behind, what it did matters longer.
  for (int i = 0; i < 5; ++i) carrier.Attempt(1'000 * kSecond);
  const Micros lifetime = carrier.limiter().Lifetime(carrier.state, 0);
  EXPECT_EQ(lifetime, 1'150 * kSecond);
  EXPECT_FALSE(carrier.Attempt(lifetime - 61 * kSecond).verdict.allowed());
}

TEST_P(Portable, TakesNoForeignBytes) {
  Carrier carrier({{{kSecond, 2}}, 0, false, GetParam(), {}});
  for (const std::string text : {"x", "hello", "{\"count\":1,\"reset\":1700000000}",
                                 "a text that is longer than any header could ever be"}) {
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    carrier.state.assign(bytes, bytes + text.size());
    carrier.Attempt(0);
    EXPECT_EQ(carrier.outcome, Outcome::kForeign) << text;
    carrier.Peek(0);
    EXPECT_EQ(carrier.outcome, Outcome::kForeign) << text;
    carrier.Refund({}, 0);
    EXPECT_EQ(carrier.outcome, Outcome::kForeign) << text;
  }
}

TEST_P(Portable, StandsAnyBytes) {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    Random random(seed);
    const PolicyOptions policy = PolicyFor(random, GetParam());
    Carrier carrier(policy);
    for (int i = 0; i < 5; ++i) carrier.Attempt(i);
    // Damaged, cut, or of other limits.
    for (std::int64_t i = random.Between(0, 4); i > 0; --i) {
      carrier.state[static_cast<std::size_t>(
          random.Between(0, static_cast<std::int64_t>(carrier.state.size()) - 1))] =
          static_cast<std::byte>(random.Between(0, 255));
    }
    if (random.Chance(20)) {
      carrier.state.resize(static_cast<std::size_t>(
          random.Between(0, static_cast<std::int64_t>(carrier.state.size()))));
    }
    Carrier other(random.Chance(50) ? policy : PolicyFor(random, GetParam()));
    other.state = carrier.state;
    for (Micros now = 0; now < 100; now += 10) {
      const Decision decision = other.Attempt(now);
      if (other.outcome == Outcome::kForeign) break;
      EXPECT_EQ(decision.time_left > 0, !decision.verdict.allowed());
    }
  }
}

TEST(PortableState, ALogOutlivesOtherLimits) {
  Carrier before({{{kHour, 10}}, 0, true});
  for (int i = 0; i < 10; ++i) before.Attempt(i * kSecond);
  Carrier lower({{{kHour, 5}}, 0, true});
  lower.state = before.state;
  EXPECT_FALSE(lower.Peek(10 * kSecond).verdict.allowed());
  Carrier longer({{{3 * kHour, 20}}, 0, true});  // with wider stamps
  longer.state = before.state;
  EXPECT_EQ(longer.Attempt(10 * kSecond).windows[0].used, 11u);
  Carrier back({{{kHour, 20}}, 0, true});
  back.state = longer.state;
  EXPECT_EQ(back.Peek(10 * kSecond).windows[0].used, 12u);
}

// Kills: entries that are forgotten where no log turns into such.
TEST(PortableState, WeightedEntriesOutliveLowerLimits) {
  Carrier before({{{kHour, 2000}}, 0, false});
  EXPECT_TRUE(before.Attempt(0, 1500).verdict.allowed());
  Carrier lower({{{kHour, 1000}}, 0, false});
  lower.state = before.state;
  EXPECT_FALSE(lower.Attempt(kSecond).verdict.allowed());
  EXPECT_TRUE(lower.Attempt(kHour, 1000).verdict.allowed());
}

// Kills: arrival times in the units of other limits; a rate of the limits before; counts that begin
// anew.
TEST(PortableState, BucketsKeepTheirCountUnderOtherLimits) {
  for (const Micros gap : {Micros{0}, Micros{1}}) {
    Carrier before({{{kHour, 2}}, gap, false, Algorithm::kGcra, {}});
    before.Attempt(0);
    for (const std::uint64_t max : {1u, 2u, 4u, 4000u}) {
      const Micros emission = kHour / static_cast<Micros>(max);
      Carrier other({{{kHour, max}}, gap, false, Algorithm::kGcra, {}});
      other.state = before.state;
      EXPECT_EQ(other.Peek(0, 0).windows[0].used, 1u);
      EXPECT_EQ(other.Peek(0, 0).windows[0].reset_in, emission);
      EXPECT_EQ(other.Peek(emission - 1, 0).windows[0].used, 1u);
      EXPECT_EQ(other.Peek(emission, 0).windows[0].used, 0u);
    }
  }
}

// Kills: a number of which half is lost.
TEST(PortableState, NumbersOfMoreThan32BitsComeAndGoWithLimits) {
  constexpr std::uint64_t kMax = std::uint64_t{1} << 40;
  constexpr Micros kInterval = Micros{1} << 43;  // one leaks in 8 us
  const auto bucket = [&](std::uint64_t max) {
    return Carrier({{{kInterval, max}}, 0, false, Algorithm::kGcra, {}});
  };
  Carrier large = bucket(kMax);
  const Decision first = large.Attempt(0, kMax / 4);
  const Decision second = large.Attempt(1, kMax / 4);
  ASSERT_TRUE(large.Refund(first, 1, kMax / 4));
  ASSERT_TRUE(large.Refund(second, 1, kMax / 4));
  EXPECT_EQ(large.Peek(1, 0).windows[0].used, 0u);

  large.Attempt(2, kMax / 2);
  Carrier small = bucket(4);
  small.state = large.state;
  EXPECT_GT(small.Peek(3, 0).windows[0].used, 4u) << "as many as there is time for";
  EXPECT_FALSE(small.Attempt(4).verdict.allowed());
  large.state = small.state;
  EXPECT_TRUE(large.Refund(large.Attempt(5, 5), 6, 5));
  EXPECT_EQ(large.Peek(6, 0).windows[0].used, kMax / 2);

  Carrier late = bucket(kMax);
  const Decision gone = late.Attempt(0, kMax / 4);
  const Micros leaked = Micros{8} * (kMax / 4);
  late.Attempt(leaked, kMax / 4);
  EXPECT_FALSE(late.Refund(gone, leaked, kMax / 4));
  EXPECT_EQ(late.Peek(leaked, 0).windows[0].used, kMax / 4);
}

// Kills: a state that a refusal brings under the limits of its call, because it starts a block.
TEST(PortableState, ARefusalThatStartsABlockLeavesTheLimitsOfTheBucket) {
  PolicyOptions policy{{{160, 1}}, 0, false, Algorithm::kGcra, {570}};
  policy.largest_limit = 10;
  testing::Limiter memory(policy);
  Carrier carrier(policy);
  const std::vector<std::uint64_t> seven{7};
  memory.store->UseLimits(seven);
  carrier.limiter().UseLimits(seven);
  const Decision in_memory = memory.Attempt(1, 114);
  const Decision carried = carrier.Attempt(114);
  memory.store->UseLimits({});
  carrier.limiter().UseLimits({});
  EXPECT_FALSE(memory.Attempt(1, 204).verdict.allowed());
  EXPECT_FALSE(carrier.Attempt(204).verdict.allowed());
  EXPECT_FALSE(memory.Refund(1, in_memory, 1, 204)) << "it has leaked under seven";
  EXPECT_FALSE(carrier.Refund(carried, 204));
}

/// The bytes of numbers, one behind the other.
template <class... Numbers>
std::vector<std::byte> BytesOf(Numbers... numbers) {
  std::vector<std::byte> bytes;
  const auto add = [&](auto number) {
    const auto* const from = reinterpret_cast<const std::byte*>(&number);
    bytes.insert(bytes.end(), from, from + sizeof number);
  };
  (add(numbers), ...);
  return bytes;
}

// Kills: states of earlier releases that begin anew, in each of their forms.
TEST(PortableState, BucketsOfEarlierReleasesAreRead) {
  constexpr std::uint32_t kHead = 0x0301;  // version 1, gcra
  const Micros arrival = 3 * kHour;        // in halves of a us: 1.5 hours
  const auto window = BytesOf(kHour, std::uint64_t{2});
  auto single = BytesOf(kHead, 7u, 0u, 0u, arrival, 3u);
  auto general = BytesOf(kHead, 7u, 0u, 0u, kHour * 3 / 2, Micros{0}, 3u, arrival);
  for (std::vector<std::byte>* const state : {&single, &general}) {
    for (const bool has_high_word : {false, true}) {
      Carrier carrier({{{kHour, 2}}, 0, false, Algorithm::kGcra, {}});
      carrier.state = *state;
      if (has_high_word) carrier.state.insert(carrier.state.end(), 4, std::byte{0});
      carrier.state.insert(carrier.state.end(), window.begin(), window.end());
      EXPECT_EQ(carrier.Peek(kHour / 2, 0).windows[0].used, 2u);
      EXPECT_EQ(carrier.outcome, Outcome::kUnchanged);
      EXPECT_FALSE(carrier.Attempt(kHour / 2).verdict.allowed());
      const Decision decision = carrier.Attempt(kHour);
      EXPECT_TRUE(decision.verdict.allowed());
      EXPECT_EQ(decision.windows[0].used, 2u);
      EXPECT_TRUE(carrier.Refund(decision, kHour));
      EXPECT_EQ(carrier.Peek(kHour, 0).windows[0].used, 1u);
    }
  }
}

// Kills: counts that end where three bytes do.
TEST(PortableState, CountsOfRecordsTakeTheBytesThatTheyNeed) {
  for (const Algorithm algorithm : {Algorithm::kSlidingWindowCounter, Algorithm::kFixedWindow}) {
    Carrier carrier({{{kHour, 5}}, 0, false, algorithm, {}});
    carrier.Attempt(0);
    const std::size_t bytes = carrier.state.size();
    const Decision usage = carrier.Decide(0, 2'000'000'000, Recording::kRecord);
    EXPECT_EQ(usage.windows[0].used, 2'000'000'001u);
    EXPECT_GT(carrier.state.size(), bytes);
    EXPECT_EQ(carrier.Peek(1, 0).windows[0].used, 2'000'000'001u);
  }
}

// Kills: a form that earlier releases would take for one of theirs, and overwrite.
TEST(PortableState, WhatEarlierReleasesCannotReadHasAnotherVersion) {
  Carrier bucket({{{kHour, 2}}, 0, false, Algorithm::kGcra, {}});
  bucket.Attempt(0);
  EXPECT_EQ(bucket.state[0], std::byte{2});
  Carrier counts({{{kHour, 2}}, 0, false, Algorithm::kFixedWindow, {}});
  counts.Attempt(0);
  EXPECT_EQ(counts.state[0], std::byte{1});
}

TEST(PortableState, AnotherAlgorithmBeginsAnew) {
  Carrier counter({{{kHour, 2}}, 0, true, Algorithm::kSlidingWindowCounter, {}});
  for (int i = 0; i < 5; ++i) counter.Attempt(i);
  Carrier log({{{kHour, 2}}, 0, true});
  log.state = counter.state;
  EXPECT_TRUE(log.Attempt(9).verdict.allowed());
  EXPECT_EQ(log.outcome, Outcome::kChanged);
}

}  // namespace
}  // namespace rollgate
