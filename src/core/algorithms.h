// The list of algorithms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/aligned_counts.h"
#include "core/calendar_window.h"
#include "core/fixed_window.h"
#include "core/gcra.h"
#include "core/policy.h"
#include "core/sliding_window_counter.h"
#include "core/sliding_window_log.h"
#include "core/weighted_log.h"

namespace rollgate {

/// In the order of lib/options/algorithms.js. Stored states contain these numbers: append new ones.
enum class Algorithm : std::uint8_t {
  kSlidingWindowLog,
  kSlidingWindowCounter,
  kFixedWindow,
  kGcra,
  kEnd,
};

/// What a limiter must know about an algorithm, apart from how it counts.
struct AlgorithmTraits {
  std::string_view name;          ///< in users' options
  bool aligns_to_epoch = false;   ///< windows begin at multiples of the interval since the epoch
  bool settles_ask_time = false;  ///< to settle depends on the time it is done
};

inline constexpr std::array<AlgorithmTraits, static_cast<std::size_t>(Algorithm::kEnd)>
    kAlgorithms = {{{.name = "sliding-window-log"},
                    {.name = "sliding-window-counter", .aligns_to_epoch = true},
                    {.name = "fixed-window", .aligns_to_epoch = true},
                    {.name = "gcra", .settles_ask_time = true}}};
static_assert(!kAlgorithms.back().name.empty(), "every algorithm has a name");

inline AlgorithmTraits TraitsOf(const Policy& policy) {
  return kAlgorithms[static_cast<std::size_t>(policy.algorithm())];
}

/// A limit that a store must have room for before actions are recorded whatever the limits say, so
/// that none is lost; 0 if there is none. Counts then have 53 bits.
inline std::uint64_t LimitToRecordUnder(const Policy& policy) {
  if (policy.weighted() || policy.has_calendar() || policy.algorithm() == Algorithm::kGcra)
    return 0;
  const bool is_log = policy.algorithm() == Algorithm::kSlidingWindowLog;
  return is_log ? kKeptByRecords : CountFormat::kMostNarrow;
}

template <class P>
using ShortLog = SlidingWindowLog<P, std::uint32_t>;
template <class P>
using LongLog = SlidingWindowLog<P, std::uint64_t>;

/// Whether only the default algorithm has a form for one window, and all other logs have long
/// stamps. So the module for WebAssembly has two thirds of the size.
#ifdef ROLLGATE_COMPACT
inline constexpr bool kIsCompact = true;
#else
inline constexpr bool kIsCompact = false;
#endif

/// Whether an algorithm in this form is never that of a policy that varies.
template <class Rules>
inline constexpr bool kNeverVaries = std::is_same_v<Rules, Gcra<SingleWindowPolicy>> ||
                                     std::is_same_v<Rules, CalendarWindow<SingleWindowPolicy>>;

/// Returns `make.template operator()<Rules>()`. `Rules` is the policy's algorithm, under
/// SingleWindowPolicy if that fits and else under Policy. Logs have long stamps if they must, or if
/// `has_long_stamps`.
template <class T, class Make>
T WithAlgorithm(const Policy& policy, Make make, bool has_long_stamps = false) {
  assert(policy.algorithm() < Algorithm::kEnd);
  const auto in_form = [&]<template <class> class Rules>() -> T {
    if constexpr (!kIsCompact) {
      if (SingleWindowPolicy::Fits(policy)) {
        return make.template operator()<Rules<SingleWindowPolicy>>();
      }
    }
    return make.template operator()<Rules<Policy>>();
  };
  switch (policy.algorithm()) {
    case Algorithm::kSlidingWindowCounter:
      return in_form.template operator()<SlidingWindowCounter>();
    case Algorithm::kFixedWindow:
      if (policy.has_calendar()) {
        if (policy.varies()) return make.template operator()<CalendarWindow<Policy>>();
        return in_form.template operator()<CalendarWindow>();
      }
      return in_form.template operator()<FixedWindow>();
    case Algorithm::kGcra:
      if (!Gcra<Policy>::FitsSingle(policy)) return make.template operator()<Gcra<Policy>>();
      return in_form.template operator()<Gcra>();
    case Algorithm::kSlidingWindowLog:
    case Algorithm::kEnd:
      break;
  }
  if (policy.weighted()) return make.template operator()<WeightedLog>();
  // Stamps of 32 bits reach back 71 minutes.
  const bool is_short = policy.retention() <= ShortLog<Policy>::Log::kLongestRetention;
  if (is_short && !has_long_stamps) {
    if constexpr (!kIsCompact) return in_form.template operator()<ShortLog>();
    if (SingleWindowPolicy::Fits(policy)) {
      return make.template operator()<ShortLog<SingleWindowPolicy>>();
    }
  }
  return in_form.template operator()<LongLog>();
}

}  // namespace rollgate
