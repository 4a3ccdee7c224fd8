// The store in memory answers the recorded traces as their oracle did.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

#include "memory/memory_store.h"
#include "support/limiter.h"
#include "support/trace_file.h"

namespace rollgate::testing {
namespace {

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
      const bool found = taken.verdict.allowed() &&
                         store_->Refund(id, {taken.verdict.at, cost, taken.token}, operation.now);
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
      store_->Attempt(Id(operation.id), operation.now, operation.cost, decision);
    } else {
      store_->Peek(Id(operation.id), operation.now, operation.cost, decision);
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
