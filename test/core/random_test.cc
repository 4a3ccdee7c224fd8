// Random words of the system.
#include "core/random.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>

namespace rollgate {
namespace {

TEST(RandomTest, NoWordComesTwiceAndAllBitsAreUsed) {
  std::set<std::uint64_t> words;
  std::uint64_t ones = 0;
  std::uint64_t zeros = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t word = RandomWord();
    words.insert(word);
    ones |= word;
    zeros |= ~word;
  }
  EXPECT_EQ(words.size(), 1000U);
  EXPECT_EQ(ones, UINT64_MAX);
  EXPECT_EQ(zeros, UINT64_MAX);
}

}  // namespace
}  // namespace rollgate
