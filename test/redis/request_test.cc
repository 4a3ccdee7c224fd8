// Runs of the script as commands, whole and split.
#include "redis/request.h"

#include <gtest/gtest.h>

#include <string>

namespace rollgate::redis {
namespace {

constexpr Script kScript{"return 1", "0123456789abcdef0123456789abcdef01234567"};

std::string Encoded(const Request& request) {
  std::string command;
  request.Encode(command);
  return command;
}

ScriptRequest TwoKeys() {
  return ScriptRequest(500, kScript, "$4\r\npeek\r\n$0\r\n\r\n", 2, 3);
}

TEST(ScriptRequest, NamesTheScriptAndItsKeys) {
  ScriptRequest request = TwoKeys();
  request.AddKey("ns", "a");
  request.AddKey("ns", std::string(100, 'x'));
  EXPECT_EQ(Encoded(request), Command({"EVALSHA", kScript.sha1, "2", "ns{a}",
                                       "ns{" + std::string(100, 'x') + "}", "peek", ""}));
}

TEST(ScriptRequest, SendsTheTextWhenAsked) {
  ScriptRequest request = TwoKeys();
  request.AddKey("ns", "a");
  request.SendText();
  EXPECT_EQ(Encoded(request), Command({"EVAL", kScript.text, "1", "ns{a}", "peek", ""}));
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
            Command({"EVAL", kScript.text, "1", "ns{" + awkward + "}", "peek", ""}));
  EXPECT_EQ(Encoded(*parts[1]), Command({"EVAL", kScript.text, "1", "ns{}", "peek", ""}));
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
