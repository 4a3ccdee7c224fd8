// The list of the algorithms that keep a few numbers of each id.
#pragma once

#include "core/fixed_window.h"
#include "core/gcra.h"
#include "core/policy.h"
#include "core/sliding_window_counter.h"

namespace rollgate {

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

}  // namespace rollgate
