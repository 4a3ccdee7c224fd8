// Values in bytes, at any alignment.
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>

namespace rollgate {

template <class T>
T LoadAs(const std::byte* from) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
void StoreAs(std::byte* to, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(to, &value, sizeof value);
}

}  // namespace rollgate
