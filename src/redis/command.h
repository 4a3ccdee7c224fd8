// Commands in the format of Redis: arrays of binary-safe strings.
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

/// Appends one word that consists of these parts.
void AppendJoined(std::string& command, std::initializer_list<std::string_view> parts);

/// Appends little-endian doubles to the bytes of a word.
void AppendDoubles(std::string& word, std::span<const double> numbers);
inline void AppendDoubles(std::string& word, std::initializer_list<double> numbers) {
  AppendDoubles(word, std::span(numbers.begin(), numbers.size()));
}

/// Appends the header of a command with this number of words.
void AppendHeader(std::string& command, std::size_t words);

std::string Command(std::initializer_list<std::string_view> words);

/// The hash slot of a key in a Redis Cluster. Source: the Redis Cluster specification (CRC16/XMODEM
/// of the key, or of its part between the first `{` and the next `}` if that is not empty; modulo
/// 16384).
std::uint16_t HashSlot(std::string_view key);

inline constexpr std::size_t kHashSlots = 16384;

}  // namespace rollgate::redis
