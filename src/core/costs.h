// What an attempt costs in each window.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rollgate {

/// The same in every window, or one cost for each window of the policy. A window is not asked for a
/// cost of 0. Refers to the costs that it was made of.
class Costs {
 public:
  /// The same in every window. Implicit: a number is a cost.
  constexpr Costs(std::uint64_t all) : all_(all) {}

  /// One for each window, in the order of the policy.
  explicit Costs(std::span<const std::uint64_t> each)
      : each_(each.data()),
        all_(std::any_of(each.begin(), each.end(), [](std::uint64_t cost) { return cost > 0; })) {}

  constexpr std::uint64_t operator[](std::size_t window) const {
    return each_ == nullptr ? all_ : each_[window];
  }

  /// Whether it costs anything in any window.
  constexpr bool IsAny() const { return all_ > 0; }

  constexpr bool IsUniform() const { return each_ == nullptr; }

  /// The cost in every window. Precondition: IsUniform().
  constexpr std::uint64_t uniform() const {
    assert(IsUniform());
    return all_;
  }

 private:
  const std::uint64_t* each_ = nullptr;
  std::uint64_t all_;  // with `each_`, whether any of them is not 0
};

}  // namespace rollgate
