// Reads recorded traces: operations and what an independent oracle answered. The format is
// described in test/conformance/traces/format.js.
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/policy.h"
#include "core/time.h"
#include "support/oracle.h"

namespace rollgate::testing {

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

inline PolicyOptions ReadTracePolicy(std::istream& words) {
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

inline TraceOperation ReadTraceOperation(const std::string& kind, std::istream& words,
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

/// All traces of a file; none if it cannot be read to its end.
inline std::vector<Trace> ReadTraces(const std::string& path) {
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

}  // namespace rollgate::testing
