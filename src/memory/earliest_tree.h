// A tournament tree: finds the earliest of many moments while single ones change.
#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <vector>

#include "core/time.h"

namespace rollgate::memory {

class EarliestTree {
 public:
  explicit EarliestTree(std::size_t count)
      : leaves_(std::bit_ceil(count)), nodes_(2 * leaves_, kNever) {
    assert(count >= 1);
  }

  Micros least() const { return nodes_[1]; }
  Micros operator[](std::size_t leaf) const { return nodes_[leaves_ + leaf]; }

  /// A leaf that holds least().
  std::size_t LeastLeaf() const {
    std::size_t node = 1;
    while (node < leaves_) node = 2 * node + (nodes_[2 * node] != nodes_[node]);
    assert(nodes_[node] == least());
    return node - leaves_;
  }

  void Set(std::size_t leaf, Micros moment) {
    assert(leaf < leaves_);
    std::size_t node = leaves_ + leaf;
    nodes_[node] = moment;
    while (node > 1) {
      node /= 2;
      const Micros least = std::min(nodes_[2 * node], nodes_[2 * node + 1]);
      if (nodes_[node] == least) break;
      nodes_[node] = least;
    }
  }

  std::size_t bytes() const { return nodes_.size() * sizeof(Micros); }

 private:
  std::size_t leaves_;
  std::vector<Micros> nodes_;
};

}  // namespace rollgate::memory
