// Commands as Redis reads them: arrays of binary-safe strings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace rollgate::redis {

/// Appends one word of a command.
void AppendWord(std::string& command, std::string_view word);
void AppendWord(std::string& command, std::int64_t number);

/// Appends the beginning of a command of so many words.
void AppendHeader(std::string& command, std::size_t words);

std::string Command(std::span<const std::string_view> words);
inline std::string Command(std::initializer_list<std::string_view> words) {
  return Command(std::span(words.begin(), words.size()));
}

/// Where a Redis Cluster keeps a key. Source: the Redis Cluster specification (CRC16/XMODEM of the
/// key, or of its part between the first `{` and the next `}` if that is not empty; modulo 16384).
std::uint16_t HashSlot(std::string_view key);

inline constexpr std::size_t kHashSlots = 16384;

}  // namespace rollgate::redis
