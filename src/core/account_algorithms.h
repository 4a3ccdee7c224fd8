// The list of the algorithms, and the rules of those that keep a few numbers of each id.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/fixed_window.h"
#include "core/gcra.h"
#include "core/policy.h"
#include "core/sliding_window_counter.h"

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

/// Returns `make.template operator()<Rules>()`, where Rules is the policy's algorithm under the
/// form of the policy that fits, or an empty T where the policy asks for the log.
template <class T, class Make>
T WithAccountAlgorithm(const Policy& policy, Make make) {
  const auto in_form = [&]<template <class> class Rules>() -> T {
    const bool is_single =
        SingleWindowPolicy::Fits(policy) && Rules<SingleWindowPolicy>::FitsSingleWindow(policy);
    return is_single ? make.template operator()<Rules<SingleWindowPolicy>>()
                     : make.template operator()<Rules<Policy>>();
  };
  switch (policy.algorithm()) {
    case Algorithm::kSlidingWindowLog:
    case Algorithm::kEnd:
      break;
    case Algorithm::kSlidingWindowCounter:
      return in_form.template operator()<SlidingWindowCounter>();
    case Algorithm::kFixedWindow:
      return in_form.template operator()<FixedWindow>();
    case Algorithm::kGcra:
      return in_form.template operator()<Gcra>();
  }
  return T();
}

/// What a limiter has to know of an algorithm besides how it counts.
struct AlgorithmTraits {
  bool aligns_to_epoch = false;   ///< its windows begin at the epoch
  bool refunds_ask_time = false;  ///< what a refund gives back depends on when it is made
};

inline AlgorithmTraits TraitsOf(const Policy& policy) {
  return WithAccountAlgorithm<AlgorithmTraits>(policy, []<class Rules>() -> AlgorithmTraits {
    return {Rules::kAlignsToEpoch, Rules::kRefundsAskTime};
  });
}

}  // namespace rollgate
