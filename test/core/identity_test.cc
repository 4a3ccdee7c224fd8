// Identities: no two ids share one, and the same id always has the same.
#include "core/identity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace rollgate {
namespace {

constexpr Secret kSecret{{0x243f6a8885a308d3, 0x13198a2e03707344, 0xa4093822299f31d0,
                          0x082efa98ec4e6c89, 0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL}};

Identity Of(std::u16string_view id) {
  return IdentityOf(id, kSecret);
}

TEST(Identity, KeepsShortLatin1IdsAsTheyAre) {
  const Identity identity = Of(u"sixteen letters!");
  EXPECT_EQ(identity.kind, 16);
  EXPECT_EQ(identity.low, 0x206e656574786973ULL);  // "sixteen " in little-endian order
  EXPECT_EQ(Of(u"").kind, 0);
  EXPECT_EQ(Of(u"").low, 0u);
}

TEST(Identity, TellsApartWhatLooksAlike) {
  const std::u16string nul(1, u'\0');
  std::vector<std::u16string> ids = {
      u"",
      nul,
      nul + nul,
      u"a",
      u"a" + nul,
      nul + u"a",
      u"A",
      u"\u0141",  // Ł is A with a high bit
      u"\u00ff",
      u"\u0100",
      std::u16string(1, char16_t{0xd800}),
      std::u16string(1, char16_t{0xd801}),
      std::u16string(1, char16_t{0xdc00}),
      std::u16string(15, u'x'),
      std::u16string(16, u'x'),
      std::u16string(17, u'x'),
      std::u16string(16, u'\0'),
      std::u16string(17, u'\0'),
      std::u16string(18, u'\0'),
      std::u16string(1 << 20, u'x'),
      std::u16string((1 << 20) + 1, u'x'),
      // The same bytes, once as Latin-1 and once as UTF-16.
      u"a\u0100b\u0100c\u0100d\u0100e\u0100f\u0100g\u0100h\u0100i\u0100",
      std::u16string(u"a") + nul + u"\u0001b" + nul + u"\u0001c" + nul + u"\u0001d" + nul +
          u"\u0001e" + nul + u"\u0001f" + nul + u"\u0001",
  };
  for (std::size_t i = 0; i < ids.size(); ++i) {
    for (std::size_t j = 0; j < ids.size(); ++j) EXPECT_EQ(Of(ids[i]) == Of(ids[j]), i == j);
  }
}

TEST(Identity, ReducesLongIdsInAWayThatDependsOnTheSecret) {
  const std::u16string id(40, u'k');
  EXPECT_EQ(Of(id).kind, Identity::kHashed);
  for (const std::size_t word : {4u, 5u}) {
    Secret other = kSecret;
    other.words[word] ^= 1;
    EXPECT_FALSE(Of(id) == IdentityOf(id, other));
  }
}

TEST(Hash, SpreadsConsecutiveIdsEvenly) {
  constexpr int kIds = 1 << 16;
  constexpr int kBuckets = 256;
  std::vector<int> high(kBuckets);
  std::vector<int> low(kBuckets);
  std::unordered_set<std::uint64_t> seen;
  for (int i = 0; i < kIds; ++i) {
    const std::string digits = "user:" + std::to_string(i);
    const std::uint64_t hash = HashOf(Of(std::u16string(digits.begin(), digits.end())), kSecret);
    ++high[hash >> 56];
    ++low[hash & 0xff];
    seen.insert(hash);
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(kIds));
  // Eight standard deviations around the mean of 256.
  for (const auto& counts : {high, low}) {
    EXPECT_GT(*std::min_element(counts.begin(), counts.end()), 256 - 8 * 16);
    EXPECT_LT(*std::max_element(counts.begin(), counts.end()), 256 + 8 * 16);
  }
}

TEST(Hash, DependsOnTheSecret) {
  Secret other = kSecret;
  for (int word = 0; word < 4; ++word) {
    other = kSecret;
    other.words[static_cast<std::size_t>(word)] ^= 0x8000;
    EXPECT_NE(HashOf(Of(u"somebody"), kSecret), HashOf(Of(u"somebody"), other)) << word;
  }
}

}  // namespace
}  // namespace rollgate
