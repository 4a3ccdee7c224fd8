// The store in memory answers the recorded traces as their oracle did.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/policy.h"
#include "core/time.h"
#include "memory/memory_store.h"
#include "support/limiter.h"
#include "support/oracle.h"

namespace rollgate::testing {
namespace {

struct TraceOperation {
  std::string kind;
  std::int64_t id = 0;
  Micros now = 0;
  std::uint64_t cost = 0;
  Answer answer = {};       ///< to an attempt or a peek; of a usage the windows alone
  std::size_t refunds = 0;  ///< the place of the operation that is taken back
  bool found = false;
  int line = 0;
};

struct Trace {
  PolicyOptions policy;
  std::vector<TraceOperation> operations;
};

PolicyOptions ReadTracePolicy(std::istream& words) {
  PolicyOptions policy;
  int algorithm = 0;
  std::size_t windows = 0;
  std::size_t blocks = 0;
  words >> algorithm >> policy.count_blocked >> policy.min_difference >> windows;
  policy.algorithm = static_cast<Algorithm>(algorithm);
  policy.windows.resize(windows);
  for (Window& window : policy.windows) words >> window.interval >> window.max;
  words >> blocks;
  policy.blocks.resize(blocks);
  for (Micros& length : policy.blocks) words >> length;
  return policy;
}

TraceOperation ReadTraceOperation(const std::string& kind, std::istream& words,
                                  std::size_t windows) {
  TraceOperation operation{.kind = kind};
  if (kind == "clearAll") return operation;
  words >> operation.id;
  if (kind == "clear") return operation;
  words >> operation.now;
  if (kind == "refund") {
    words >> operation.refunds >> operation.found;
    return operation;
  }
  Answer& answer = operation.answer;
  if (kind == "attempt" || kind == "peek") {
    words >> operation.cost >> answer.blocked_by >> answer.time_left >> answer.wait >>
        answer.actions_left >> answer.reset_in >> answer.at;
  } else if (kind != "usage") {
    words.setstate(std::ios::failbit);
  }
  answer.windows.resize(windows);
  for (auto& [used, reset_in] : answer.windows) words >> used >> reset_in;
  return operation;
}

/// All traces of a file, whose format test/conformance/write-traces.js describes; none if it cannot
/// be read to its end.
std::vector<Trace> ReadTraces(const std::string& path) {
  std::vector<Trace> traces;
  std::ifstream file(path);
  std::string text;
  for (int line = 1; std::getline(file, text); ++line) {
    if (text.empty() || text.front() == '#') continue;
    std::istringstream words(text);
    std::string kind;
    words >> kind;
    if (kind == "policy") {
      traces.push_back({ReadTracePolicy(words), {}});
    } else if (traces.empty()) {
      return {};
    } else {
      Trace& trace = traces.back();
      trace.operations.push_back(ReadTraceOperation(kind, words, trace.policy.windows.size()));
      trace.operations.back().line = line;
    }
    if (words.fail()) return {};
  }
  return traces;
}

/// Replays a trace on a store of its own.
class Replay {
 public:
  explicit Replay(const Trace& trace)
      : trace_(trace),
        store_(CreateMemoryStore(Policy(trace.policy), {1000, kSecret, true, nullptr})),
        decisions_(trace.operations.size()),
        uses_(trace.policy.windows.size()) {}

  /// With `by_check`, attempts that are not refunded are made by Check where they can be.
  void Run(bool by_check) {
    std::set<std::size_t> refunded;
    for (const TraceOperation& operation : trace_.operations) {
      if (operation.kind == "refund") refunded.insert(operation.refunds);
    }
    for (std::size_t i = 0; i < trace_.operations.size(); ++i) {
      const TraceOperation& operation = trace_.operations[i];
      SCOPED_TRACE(::testing::Message() << "line " << operation.line);
      if (by_check && operation.kind == "attempt" && operation.cost == 1 && !refunded.contains(i)) {
        ASSERT_EQ(store_->Check(Id(operation.id), operation.now), operation.answer.time_left);
      } else {
        Perform(operation, i);
      }
      if (::testing::Test::HasFailure()) return;  // what follows means nothing
    }
  }

 private:
  void Perform(const TraceOperation& operation, std::size_t place) {
    const Identity id = Id(operation.id);
    if (operation.kind == "clear") {
      store_->Clear(id);
    } else if (operation.kind == "clearAll") {
      store_->ClearAll();
    } else if (operation.kind == "refund") {
      Decision& taken = decisions_[operation.refunds];
      const std::uint64_t cost = trace_.operations[operation.refunds].cost;
      // As lib does it: a refusal has nothing to give back, and a refund is made once.
      const bool found =
          taken.verdict.allowed() &&
          store_->Settle(id, {taken.verdict.at, cost, taken.token}, 0, operation.now);
      EXPECT_EQ(found, operation.found);
      if (found) taken.verdict.blocked_by_count = true;
    } else {
      EXPECT_EQ(Ask(operation, place), operation.answer);
    }
  }

  Answer Ask(const TraceOperation& operation, std::size_t place) {
    Decision& decision = decisions_[place];
    decision.windows = uses_;
    if (operation.kind == "attempt") {
      store_->Decide(Id(operation.id), operation.now, operation.cost, Recording::kAttempt,
                     decision);
    } else {
      store_->Decide(Id(operation.id), operation.now, operation.cost, Recording::kNothing,
                     decision);
    }
    Answer answer = AnswerOf(decision);
    return operation.kind == "usage" ? Answer{.windows = answer.windows} : answer;
  }

  const Trace& trace_;
  std::unique_ptr<Store> store_;
  std::vector<Decision> decisions_;
  std::vector<WindowUse> uses_;
};

class Traces : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Memory, Traces, ::testing::Bool(), [](const auto& by_check) {
  return by_check.param ? "ByCheck" : "ByAttempt";
});

TEST_P(Traces, AreAnsweredAsByTheirOracle) {
  const std::vector<Trace> traces = ReadTraces(ROLLGATE_TRACES);
  ASSERT_GE(traces.size(), 100u) << ROLLGATE_TRACES;
  for (const Trace& trace : traces) {
    Replay(trace).Run(GetParam());
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace rollgate::testing
