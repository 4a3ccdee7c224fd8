// Commands as they go over the wire, where a cluster keeps keys, and runs of the script, whole and
// split.
#include "redis/request.h"

#include <gtest/gtest.h>

#include <string>

#include "redis/command.h"

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

const Script kScript{"return 1", "0123456789abcdef0123456789abcdef01234567"};

std::string Encoded(const Request& request) {
  std::string command;
  request.Encode(command);
  return command;
}

constexpr Operation kOperation{"attempt", "attempt, keys repeat"};

ScriptRequest TwoKeys() {
  return ScriptRequest(500, kScript, kOperation, "$5\r\nbrief\r\n$0\r\n\r\n", 2, 3);
}

TEST(ScriptRequest, NamesTheScriptAndItsKeys) {
  ScriptRequest request = TwoKeys();
  request.AddKey("ns", "a");
  request.AddKey("ns", std::string(100, 'x'));
  EXPECT_EQ(Encoded(request),
            Command({"EVALSHA", kScript.sha1, "2", "ns{a}", "ns{" + std::string(100, 'x') + "}",
                     "attempt", "brief", ""}));
}

TEST(ScriptRequest, SaysThatAKeyMayOccurMoreThanOnce) {
  ScriptRequest request = TwoKeys();
  for (const char* id : {"a", "b", "c", "b"}) request.AddKey("ns", id);
  EXPECT_EQ(Encoded(request), Command({"EVALSHA", kScript.sha1, "4", "ns{a}", "ns{b}", "ns{c}",
                                       "ns{b}", "attempt, keys repeat", "brief", ""}));
  for (const auto& repeating : {"aab", "aba", "abb"}) {
    ScriptRequest three = TwoKeys();
    for (const char id : std::string_view(repeating)) three.AddKey("ns", std::string_view(&id, 1));
    EXPECT_NE(Encoded(three).find("keys repeat"), std::string::npos) << repeating;
    three.SendText();
    EXPECT_NE(Encoded(three).find("keys repeat"), std::string::npos) << repeating;
  }
  request.calls = {1, 2, 3, 4};
  const auto parts = request.SplitByKey();
  ASSERT_EQ(parts.size(), 4u);
  EXPECT_EQ(Encoded(*parts[3]),
            Command({"EVALSHA", kScript.sha1, "1", "ns{b}", "attempt", "brief", ""}));
}

TEST(ScriptRequest, SendsTheTextWhenAsked) {
  ScriptRequest request = TwoKeys();
  request.AddKey("ns", "a");
  request.SendText();
  EXPECT_EQ(Encoded(request),
            Command({"EVAL", kScript.source, "1", "ns{a}", "attempt", "brief", ""}));
}

TEST(ScriptRequest, SplitsIntoOneForEachKey) {
  ScriptRequest request = TwoKeys();
  const std::string awkward("\r\n$1\r\n\0", 8);
  request.AddKey("ns", awkward);
  request.AddKey("ns", "");
  request.calls = {7, 9};
  request.hash_slot = 11;
  request.SendText();
  const auto parts = request.SplitByKey();
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(Encoded(*parts[0]),
            Command({"EVAL", kScript.source, "1", "ns{" + awkward + "}", "attempt", "brief", ""}));
  EXPECT_EQ(Encoded(*parts[1]),
            Command({"EVAL", kScript.source, "1", "ns{}", "attempt", "brief", ""}));
  EXPECT_EQ(parts[0]->calls, std::vector<CallId>{7});
  EXPECT_EQ(parts[1]->calls, std::vector<CallId>{9});
  EXPECT_EQ(parts[1]->hash_slot, 11);
  EXPECT_EQ(parts[1]->deadline, 500);
}

TEST(ScriptRequest, WithOneKeyHasNothingToSplit) {
  ScriptRequest request = TwoKeys();
  request.AddKey("ns", "a");
  request.calls = {1};
  EXPECT_TRUE(request.SplitByKey().empty());
}

}  // namespace
}  // namespace rollgate::redis
