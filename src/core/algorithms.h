// The list of the algorithms.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/fixed_window.h"
#include "core/gcra.h"
#include "core/policy.h"
#include "core/sliding_window_counter.h"
#include "core/sliding_window_log.h"

namespace rollgate {

/// In the order of lib/algorithms.js, and of states that are kept: new ones come last.
enum class Algorithm : std::uint8_t {
  kSlidingWindowLog,
  kSlidingWindowCounter,
  kFixedWindow,
  kGcra,
  kEnd,
};

/// What users call them.
inline constexpr std::array<std::string_view, static_cast<std::size_t>(Algorithm::kEnd)>
    kAlgorithmNames = {"sliding-window-log", "sliding-window-counter", "fixed-window", "gcra"};
static_assert(!kAlgorithmNames.back().empty(), "every algorithm has a name");

template <class P>
using ShortLog = SlidingWindowLog<P, std::uint32_t>;
template <class P>
using LongLog = SlidingWindowLog<P, std::uint64_t>;

/// Returns `make.template operator()<Rules>()`, where Rules is the policy's algorithm under the
/// form of the policy that fits.
template <class T, class Make>
T WithAlgorithm(const Policy& policy, Make make) {
  const auto in_form = [&]<template <class> class Rules>() -> T {
    return SingleWindowPolicy::Fits(policy) ? make.template operator()<Rules<SingleWindowPolicy>>()
                                            : make.template operator()<Rules<Policy>>();
  };
  switch (policy.algorithm()) {
    case Algorithm::kSlidingWindowCounter:
      return in_form.template operator()<SlidingWindowCounter>();
    case Algorithm::kFixedWindow:
      return in_form.template operator()<FixedWindow>();
    case Algorithm::kGcra:
      return in_form.template operator()<Gcra>();
    case Algorithm::kSlidingWindowLog:
    case Algorithm::kEnd:
      break;
  }
  // Half the bytes where the longest window allows it: up to 71 minutes.
  return policy.retention() <= ShortLog<Policy>::Log::kLongestRetention
             ? in_form.template operator()<ShortLog>()
             : in_form.template operator()<LongLog>();
}

/// What a limiter has to know of an algorithm besides how it counts.
struct AlgorithmTraits {
  bool aligns_to_epoch = false;   ///< its windows begin at the epoch
  bool refunds_ask_time = false;  ///< what a refund gives back depends on when it is made
};

inline AlgorithmTraits TraitsOf(const Policy& policy) {
  return WithAlgorithm<AlgorithmTraits>(policy, []<class Rules>() -> AlgorithmTraits {
    return {Rules::kAlignsToEpoch, Rules::kRefundsAskTime};
  });
}

}  // namespace rollgate
