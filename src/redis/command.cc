// Formats commands and computes hash slots.
#include "redis/command.h"

#include <array>
#include <bit>
#include <charconv>
#include <cstdint>

namespace rollgate::redis {
namespace {

class Digits {
 public:
  explicit Digits(std::int64_t number)
      : end_(std::to_chars(digits_.data(), digits_.data() + digits_.size(), number).ptr) {}

  operator std::string_view() const { return {digits_.data(), end_}; }

 private:
  std::array<char, 20> digits_;
  const char* end_;
};

constexpr std::array<std::uint16_t, 256> kCrc16 = [] {
  std::array<std::uint16_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t crc = byte << 8;
    for (int bit = 0; bit < 8; ++bit) crc = crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1;
    table[byte] = static_cast<std::uint16_t>(crc);
  }
  return table;
}();

}  // namespace

void AppendHeader(std::string& command, std::size_t words) {
  command += '*';
  command += Digits(static_cast<std::int64_t>(words));
  command += "\r\n";
}

void AppendJoined(std::string& command, std::initializer_list<std::string_view> parts) {
  std::size_t length = 0;
  for (const std::string_view part : parts) length += part.size();
  command += '$';
  command += Digits(static_cast<std::int64_t>(length));
  command += "\r\n";
  for (const std::string_view part : parts) command += part;
  command += "\r\n";
}

void AppendWord(std::string& command, std::string_view word) {
  AppendJoined(command, {word});
}

void AppendWord(std::string& command, std::int64_t number) {
  AppendWord(command, Digits(number));
}

void AppendDoubles(std::string& word, std::span<const double> numbers) {
  for (const double number : numbers) {
    auto bits = std::bit_cast<std::uint64_t>(number);
    for (int byte = 0; byte < 8; ++byte, bits >>= 8) word += static_cast<char>(bits & 0xff);
  }
}

std::string Command(std::initializer_list<std::string_view> words) {
  std::string command;
  AppendHeader(command, words.size());
  for (const std::string_view word : words) AppendWord(command, word);
  return command;
}

std::uint16_t HashSlot(std::string_view key) {
  const std::size_t open = key.find('{');
  if (open != std::string_view::npos) {
    const std::size_t close = key.find('}', open + 1);
    if (close != std::string_view::npos && close > open + 1) {
      key = key.substr(open + 1, close - open - 1);
    }
  }
  std::uint16_t crc = 0;
  for (const char byte : key) {
    crc = static_cast<std::uint16_t>(crc << 8 ^
                                     kCrc16[(crc >> 8 ^ static_cast<unsigned char>(byte)) & 0xff]);
  }
  return crc % kHashSlots;
}

}  // namespace rollgate::redis
