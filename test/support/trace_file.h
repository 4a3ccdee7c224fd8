// Reads test/conformance/traces/traces.txt: what an oracle that shares no code with us has
// answered. Its format is told in test/conformance/traces/format.js.
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/decision.h"
#include "core/policy.h"
#include "core/time.h"

namespace rollgate::testing {

/// What an attempt or a peek comes to; of a usage the windows alone.
struct TraceAnswer {
  int blocked_by = 0;  ///< bits: 1 count, 2 minDifference, 4 block
  Micros time_left = 0;
  Micros wait = 0;
  std::uint64_t actions_left = 0;
  Micros reset_in = 0;
  Micros at = 0;
  std::vector<std::pair<std::uint64_t, Micros>> windows;  ///< used, reset in

  bool operator==(const TraceAnswer&) const = default;
};

struct TraceOperation {
  std::string kind;
  std::int64_t id = 0;
  Micros now = 0;
  std::uint64_t cost = 0;
  TraceAnswer answer;
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

inline void ReadTraceWindows(std::istream& words, std::size_t count, TraceAnswer& answer) {
  answer.windows.resize(count);
  for (auto& [used, reset_in] : answer.windows) words >> used >> reset_in;
}

inline TraceOperation ReadTraceOperation(const std::string& kind, std::istream& words,
                                         std::size_t windows) {
  TraceOperation operation;
  operation.kind = kind;
  if (kind == "clearAll") return operation;
  words >> operation.id;
  if (kind == "refund") {
    words >> operation.now >> operation.refunds >> operation.found;
  } else if (kind == "usage") {
    words >> operation.now;
    ReadTraceWindows(words, windows, operation.answer);
  } else if (kind == "attempt" || kind == "peek") {
    TraceAnswer& answer = operation.answer;
    words >> operation.now >> operation.cost >> answer.blocked_by >> answer.time_left >>
        answer.wait >> answer.actions_left >> answer.reset_in >> answer.at;
    ReadTraceWindows(words, windows, answer);
  } else if (kind != "clear") {
    words.setstate(std::ios::failbit);
  }
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
