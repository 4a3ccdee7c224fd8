// What algorithms share: the snapshot of an id for other limits, and the times of most of them.
#pragma once

#include <cstdint>
#include <vector>

#include "core/decision.h"
#include "core/time.h"

namespace rollgate {

/// What an id has recorded, in a form that other limits of the same shape can take over.
struct Snapshot {
  Generation generation = 0;
  Block block;
  Micros newest = kLongAgo;     ///< not of logs
  std::vector<Micros> actions;  ///< of logs: moments, oldest first
  /// Of logs: for each action a cost in each window; none if all are 1. Of others: the account's
  /// numbers, in an order of its own.
  std::vector<std::uint64_t> numbers;
  bool displaced = false;     ///< see LogHead
  Micros dropped = kLongAgo;  ///< these two of logs with costs: see WeightedEntries
  Micros merged = kLongAgo;
};

/// The times of Rules (see decider.h) whose tables and records have the clock's own unit.
struct PlainTimes {
  static Micros Cut(Micros now) { return now; }
  static Micros TableTime(Micros now) { return now; }
  static Micros FromTableTime(Micros moment) { return moment; }
  static Micros FirstMoment(Micros at, const Costs&) { return at; }
};

}  // namespace rollgate
