// Replies of a server, from bytes that arrive in any pieces.
#include "redis/reply.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rollgate::redis {
namespace {

using Kind = Reply::Kind;

/// A reply in one line: integers as digits, strings in quotes, errors behind `!`.
std::string Shown(const Reply& reply) {
  switch (reply.kind) {
    case Kind::kNil:
      return "nil";
    case Kind::kInteger:
      return std::to_string(reply.integer);
    case Kind::kString:
      return '"' + reply.text + '"';
    case Kind::kError:
      return '!' + reply.text;
    case Kind::kArray:
      break;
  }
  std::string shown = "[";
  for (const Reply& element : reply.elements) shown += Shown(element) + ' ';
  return shown + ']';
}

/// What a reader makes of these pieces; its error is the last one.
std::vector<std::string> Read(const std::vector<std::string_view>& pieces) {
  ReplyReader reader;
  std::vector<std::string> replies;
  for (const std::string_view piece : pieces) {
    reader.Feed(piece);
    while (const Reply* reply = reader.Next()) replies.push_back(Shown(*reply));
  }
  if (!reader.error().empty()) replies.push_back("error");
  return replies;
}

std::string ArrayOf(std::size_t count) {
  std::string bytes = "*" + std::to_string(count) + "\r\n";
  for (std::size_t i = 0; i < count; ++i) bytes += ":7\r\n";
  return bytes;
}

using Replies = std::vector<std::string>;

TEST(ReplyReader, ReadsEachKind) {
  EXPECT_EQ(Read({"+OK\r\n-ERR no\r\n:-5\r\n$3\r\na\r\n\r\n$0\r\n\r\n$-1\r\n*-1\r\n*0\r\n"}),
            (Replies{"\"OK\"", "!ERR no", "-5", "\"a\r\n\"", "\"\"", "nil", "nil", "[]"}));
  EXPECT_EQ(Read({":9223372036854775807\r\n"}), Replies{"9223372036854775807"});
  EXPECT_EQ(Read({std::string_view("$3\r\na\0\xff\r\n", 9)}),
            Replies{std::string("\"a\0\xff\"", 5)});
}

TEST(ReplyReader, ReadsNestedArrays) {
  EXPECT_EQ(Read({"*3\r\n*2\r\n:1\r\n*1\r\n$1\r\nx\r\n*0\r\n-no\r\n:4\r\n"}),
            (Replies{"[[1 [\"x\" ] ] [] !no ]", "4"}));
}

TEST(ReplyReader, ReadsTheSameInPiecesOfAnySize) {
  const std::string bytes =
      "*3\r\n:12\r\n*2\r\n$4\r\n\r\n\r\n\r\n$-1\r\n-ERR\r\n+OK\r\n*1\r\n:0\r\n";
  const std::string_view all = bytes;
  const Replies expected = Read({all});
  ASSERT_EQ(expected.size(), 3u);
  for (std::size_t first = 0; first <= all.size(); ++first) {
    for (std::size_t second = first; second <= all.size(); ++second) {
      ASSERT_EQ(Read({all.substr(0, first), all.substr(first, second - first), all.substr(second)}),
                expected)
          << first << ' ' << second;
    }
  }
  std::vector<std::string_view> single;
  for (std::size_t at = 0; at < all.size(); ++at) single.push_back(all.substr(at, 1));
  EXPECT_EQ(Read(single), expected);
}

// A reader that kept the elements, or their count, would show them again.
TEST(ReplyReader, BeginsEachReplyFromNothing) {
  ReplyReader reader;
  reader.Feed("*2\r\n:1\r\n$1\r\nx\r\n*2\r\n$-1\r\n:2\r\n$-1\r\n");
  Reply* reply = reader.Next();
  ASSERT_NE(reply, nullptr);
  EXPECT_EQ(Shown(*reply), "[1 \"x\" ]");
  const std::vector<Reply> taken = std::move(reply->elements);
  reply = reader.Next();
  ASSERT_NE(reply, nullptr);
  EXPECT_EQ(Shown(*reply), "[nil 2 ]");
  EXPECT_EQ(taken.size(), 2u);
  reply = reader.Next();
  ASSERT_NE(reply, nullptr);
  EXPECT_EQ(Shown(*reply), "nil");
}

TEST(ReplyReader, ReadsAMillionElementsForEachReply) {
  ReplyReader reader;
  const std::string bytes = ArrayOf(1'000'000);
  for (int i = 0; i < 2; ++i) {
    reader.Feed(bytes);
    const Reply* reply = reader.Next();
    ASSERT_NE(reply, nullptr) << i;
    EXPECT_EQ(reply->elements.size(), 1'000'000u);
    EXPECT_EQ(reply->elements.back().integer, 7);
  }
}

class TooLarge : public testing::TestWithParam<std::string> {};

// Nothing is reserved for what a header announces, so this takes no time or memory.
TEST_P(TooLarge, IsAnErrorBeforeItsElements) {
  ReplyReader reader;
  reader.Feed(":1\r\n" + GetParam());
  ASSERT_NE(reader.Next(), nullptr);
  EXPECT_EQ(reader.Next(), nullptr);
  EXPECT_EQ(reader.error(), "a reply of more than a million elements");
}

INSTANTIATE_TEST_SUITE_P(ReplyReader, TooLarge,
                         testing::Values("*2147483647\r\n", "*1000001\r\n", "*1000000\r\n*1\r\n",
                                         "*2\r\n*999999\r\n", "*600000\r\n*600000\r\n"));

class Invalid : public testing::TestWithParam<std::string> {};

// Also behind a reply, which must not be given twice.
TEST_P(Invalid, IsAnErrorForGood) {
  ReplyReader reader;
  reader.Feed("*1\r\n:0\r\n");
  ASSERT_NE(reader.Next(), nullptr);
  reader.Feed(GetParam());
  EXPECT_EQ(reader.Next(), nullptr);
  EXPECT_FALSE(reader.error().empty());
  reader.Feed(":1\r\n");
  EXPECT_EQ(reader.Next(), nullptr);
}

INSTANTIATE_TEST_SUITE_P(ReplyReader, Invalid,
                         testing::Values("HTTP/1.1 400\r\n", "*-2\r\n", "*x\r\n", "$-2\r\n",
                                         ":x\r\n", ":99999999999999999999\r\n", "\r\n",
                                         "*1\r\n:x\r\n", std::string("\0\r\n", 3)));

// No client that stays with RESP2 gets them. Newer hiredis takes "_" for a null.
INSTANTIATE_TEST_SUITE_P(TypesOfResp3, Invalid,
                         testing::Values(",1.5\r\n", "#t\r\n", "(1\r\n", "=5\r\ntxt:0\r\n",
                                         "!1\r\n0\r\n", "|1\r\n:0\r\n:0\r\n:0\r\n",
                                         "%1\r\n:1\r\n:2\r\n", "~1\r\n:0\r\n", ">1\r\n:0\r\n",
                                         "*1\r\n,0\r\n", "*1\r\n#t\r\n"));

TEST(ReplyReader, RefusesArraysThatAreNestedTooDeeply) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes += "*1\r\n";
  EXPECT_EQ(Read({bytes}), Replies{"error"});
}

}  // namespace
}  // namespace rollgate::redis
