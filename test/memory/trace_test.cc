// The store in memory answers the traces of test/conformance as their oracle did.
#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <set>
#include <vector>

#include "memory/memory_store.h"
#include "support/limiter.h"
#include "support/trace_file.h"

namespace rollgate::testing {

void PrintTo(const TraceAnswer& answer, std::ostream* out) {
  *out << "blocked by " << answer.blocked_by << ", time left " << answer.time_left << ", wait "
       << answer.wait << ", actions left " << answer.actions_left << ", reset in "
       << answer.reset_in << ", at " << answer.at << ", windows";
  for (const auto& [used, reset_in] : answer.windows)
    *out << " (" << used << ", " << reset_in << ")";
}

namespace {

TraceAnswer AnswerOf(const Decision& decision) {
  const Verdict& verdict = decision.verdict;
  TraceAnswer answer;
  answer.blocked_by = (verdict.blocked_by_count ? 1 : 0) +
                      (verdict.blocked_by_min_difference ? 2 : 0) +
                      (verdict.blocked_by_block ? 4 : 0);
  answer.time_left = decision.time_left;
  answer.wait = decision.wait;
  answer.actions_left = decision.actions_left;
  answer.reset_in = decision.reset_in;
  answer.at = verdict.at;
  for (const WindowUse& use : decision.windows) {
    answer.windows.emplace_back(use.used, use.reset_in);
  }
  return answer;
}

/// Replays a trace on a store of its own.
class Replay {
 public:
  explicit Replay(const Trace& trace)
      : trace_(trace),
        store_(CreateMemoryStore(Policy(trace.policy), {1000, kSecret, true, nullptr})),
        decisions_(trace.operations.size()),
        uses_(trace.policy.windows.size()) {}

  /// With `by_check` the attempts that nobody takes back are made by Check where they can be.
  void Run(bool by_check) {
    std::set<std::size_t> refunded;
    for (const TraceOperation& operation : trace_.operations) {
      if (operation.kind == "refund") refunded.insert(operation.refunds);
    }
    for (std::size_t i = 0; i < trace_.operations.size(); ++i) {
      const TraceOperation& operation = trace_.operations[i];
      SCOPED_TRACE(::testing::Message() << "line " << operation.line);
      const bool is_check = by_check && operation.cost == 1 && !refunded.contains(i);
      if (operation.kind == "attempt" && is_check) {
        EXPECT_EQ(store_->Check(Id(operation.id), operation.now), operation.answer.time_left);
      } else {
        Perform(operation, i);
      }
      if (::testing::Test::HasFailure()) return;  // what follows says nothing
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
      const Decision& taken = decisions_[operation.refunds];
      const bool allowed = taken.verdict.allowed();
      const std::uint64_t cost = trace_.operations[operation.refunds].cost;
      // As lib does it: a refusal has nothing to give back.
      const bool found =
          allowed && store_->Refund(id, {taken.verdict.at, cost, taken.token}, operation.now);
      EXPECT_EQ(found, operation.found);
      if (found) decisions_[operation.refunds].verdict.blocked_by_count = true;  // only once
    } else {
      EXPECT_EQ(Ask(operation, place), operation.answer);
    }
  }

  TraceAnswer Ask(const TraceOperation& operation, std::size_t place) {
    Decision decision;
    decision.windows = uses_;
    if (operation.kind == "attempt") {
      store_->Attempt(Id(operation.id), operation.now, operation.cost, decision);
    } else {
      store_->Peek(Id(operation.id), operation.now, operation.cost, decision);
    }
    decisions_[place] = decision;
    TraceAnswer answer = AnswerOf(decision);
    if (operation.kind != "usage") return answer;
    TraceAnswer usage;
    usage.windows = answer.windows;
    return usage;
  }

  const Trace& trace_;
  std::unique_ptr<Store> store_;
  std::vector<Decision> decisions_;
  std::vector<WindowUse> uses_;
};

class TraceTest : public ::testing::TestWithParam<bool> {};

TEST_P(TraceTest, IsAnsweredAsByTheOracle) {
  const std::vector<Trace> traces = ReadTraces(ROLLGATE_TRACES);
  ASSERT_GE(traces.size(), 100u) << ROLLGATE_TRACES;
  for (const Trace& trace : traces) {
    Replay(trace).Run(GetParam());
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Memory, TraceTest, ::testing::Bool(), [](const auto& by_check) {
  return by_check.param ? "ByCheck" : "ByAttempt";
});

}  // namespace
}  // namespace rollgate::testing
