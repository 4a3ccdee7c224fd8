// Commands as they go over the wire, where a cluster keeps keys, and runs of the script, whole and
// split.
#include "redis/request.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

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

const std::string kSha1 = "0123456789abcdef0123456789abcdef01234567";

std::string Encoded(const Request& request) {
  std::string command;
  request.Encode(command);
  return command;
}

std::shared_ptr<const Program> ProgramOf(const std::string& key_prefix) {
  return std::make_shared<const Program>(Program{{"return 1", kSha1}, key_prefix});
}

/// Numbers as the script gets them.
std::string WordOf(std::initializer_list<double> numbers) {
  std::string word;
  AppendDoubles(word, numbers);
  return word;
}

Question QuestionOf(const std::string& head, bool is_apart = false) {
  static std::set<std::string> kept;
  return {*kept.insert(head).first, 1, is_apart};
}

const std::string kPeek = WordOf({0, 0, 9});
const std::string kOther = WordOf({1, 0, 6});
const std::string kAttempt = WordOf({1, 0, 5});

Question Peek() {
  return QuestionOf(kPeek, true);
}

Question Other() {
  return QuestionOf(kOther);
}

Question Attempt() {
  return QuestionOf(kAttempt);
}

std::string Attempts(double keys, const std::string& head = kAttempt) {
  return WordOf({keys}) + head;
}

const auto kProgram = ProgramOf("ns");

/// A request with one group, and an id for each character.
class RequestOf : public ScriptRequest {
 public:
  explicit RequestOf(std::string_view ids) : ScriptRequest(500, Group(kProgram, Attempt())) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      Add(0, static_cast<CallId>(i), *kProgram, ids.substr(i, 1));
    }
  }
};

TEST(ScriptRequest, NamesTheScriptItsKeysAndTheGroup) {
  RequestOf request("");
  const std::string long_id(100, 'x');
  request.Add(0, 7, *kProgram, "a");
  request.Add(0, 9, *kProgram, long_id);
  EXPECT_EQ(Encoded(request), Command({"EVALSHA", kSha1, "2", "ns{a}", "ns{" + long_id + "}",
                                       "together", Attempts(2)}));
  EXPECT_EQ(request.calls, (std::vector<CallId>{7, 9}));
}

// Kills: amounts in the order of keys of another group; a group for each cost.
TEST(ScriptRequest, HasTheAmountsOfCallsBehindTheirGroup) {
  ScriptRequest request(500, Group(kProgram, Other()));
  const double few = 3;
  const double many = 4000;
  request.Add(0, 7, *kProgram, "a", {&few, 1});
  request.Add(request.PlaceOf(Group(kProgram, Other()), 0), 9, *kProgram, "b", {&many, 1});
  EXPECT_EQ(request.PlaceOf(Group(kProgram, Attempt()), 0), 1u);
  request.Add(1, 8, *kProgram, "c");
  const auto word = [](double keys, double amount) {
    return Attempts(keys, kOther) + WordOf({amount});
  };
  EXPECT_EQ(Encoded(request), Command({"EVALSHA", kSha1, "3", "ns{a}", "ns{b}", "ns{c}", "together",
                                       word(2, few) + WordOf({many}), Attempts(1)}));
  EXPECT_EQ(Encoded(*request.SplitByKey()[1]),
            Command({"EVALSHA", kSha1, "1", "ns{b}", "together", word(1, many)}));
}

TEST(ScriptRequest, ReadsKeysApartIfAnyGroupNeedsIt) {
  RequestOf request("ab");
  EXPECT_NE(Encoded(request).find("together"), std::string::npos);
  request.AddGroup(Group(kProgram, Peek()));
  request.Add(1, 8, *kProgram, "a");
  EXPECT_NE(Encoded(request).find("apart"), std::string::npos);
}

TEST(ScriptRequest, SplitsIntoOneForEachKey) {
  const auto other = ProgramOf("other");
  RequestOf request("");
  const std::string awkward("\r\n$1\r\n\0", 8);
  request.Add(0, 7, *kProgram, awkward);
  request.Add(0, 9, *kProgram, "");
  request.AddGroup(Group(other, Peek()));
  request.Add(1, 4, *other, "a");
  request.hash_slot = 11;
  request.SendText();
  const auto parts = request.SplitByKey();
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(Encoded(*parts[0]),
            Command({"EVAL", "return 1", "1", "ns{" + awkward + "}", "together", Attempts(1)}));
  EXPECT_EQ(Encoded(*parts[1]),
            Command({"EVAL", "return 1", "1", "ns{}", "together", Attempts(1)}));
  EXPECT_EQ(Encoded(*parts[2]),
            Command({"EVAL", "return 1", "1", "other{a}", "apart", Attempts(1, kPeek)}));
  const std::vector<CallId> calls{7, 9, 4};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(parts[i]->calls, std::vector<CallId>{calls[i]});
    EXPECT_EQ(parts[i]->hash_slot, 11);
    EXPECT_EQ(parts[i]->deadline, 500);
  }
}

TEST(ScriptRequest, WithOneKeyHasNothingToSplit) {
  EXPECT_TRUE(RequestOf("a").SplitByKey().empty());
}

}  // namespace
}  // namespace rollgate::redis
