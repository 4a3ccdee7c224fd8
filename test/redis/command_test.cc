// Commands as they go over the wire, and where a cluster keeps keys.
#include "redis/command.h"

#include <gtest/gtest.h>

#include <string>

namespace rollgate::redis {
namespace {

TEST(Command, IsAnArrayOfBinarySafeStrings) {
  EXPECT_EQ(Command({"SET", std::string_view("a\0b", 3), ""}),
            std::string("*3\r\n$3\r\nSET\r\n$3\r\na\0b\r\n$0\r\n\r\n", 28));
}

TEST(Command, WritesNumbersAsDigits) {
  std::string words;
  AppendWord(words, std::int64_t{-9007199254740992});
  EXPECT_EQ(words, "$17\r\n-9007199254740992\r\n");
}

// The values are those of CLUSTER KEYSLOT of redis-server 7.0.
TEST(HashSlot, IsWhereAClusterKeepsTheKey) {
  EXPECT_EQ(HashSlot("123456789"), 0x31C3);
  EXPECT_EQ(HashSlot("foo"), 12182);
  EXPECT_EQ(HashSlot(""), 0);
}

TEST(HashSlot, IsThatOfTheHashTagAlone) {
  EXPECT_EQ(HashSlot("namespace{foo}"), HashSlot("foo"));
  EXPECT_EQ(HashSlot("{foo}{bar}"), HashSlot("foo"));
  EXPECT_EQ(HashSlot("a{foo}b}"), HashSlot("foo"));
  EXPECT_EQ(HashSlot("a{{foo}"), HashSlot("{foo"));
}

TEST(HashSlot, IsThatOfTheWholeKeyWhereTheTagIsEmptyOrOpen) {
  EXPECT_NE(HashSlot("namespace{}"), HashSlot(""));
  EXPECT_NE(HashSlot("namespace{}foo"), HashSlot("foo"));
  EXPECT_NE(HashSlot("namespace{foo"), HashSlot("foo"));
}

}  // namespace
}  // namespace rollgate::redis
