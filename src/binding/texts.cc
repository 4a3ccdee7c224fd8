// Reads strings of any length.
#include "binding/texts.h"

#include <array>
#include <cstdint>

namespace rollgate::binding {

std::string ReadText(napi_env env, napi_value value) {
  std::array<char, 256> buffer;
  std::size_t length = 0;
  if (napi_get_value_string_utf8(env, value, buffer.data(), buffer.size(), &length) != napi_ok) {
    return {};
  }
  // Node-API cuts what is longer, at the end of a character, and always ends with a NUL.
  if (length + 4 < buffer.size()) return std::string(buffer.data(), length);
  std::string text;
  if (napi_get_value_string_utf8(env, value, nullptr, 0, &length) != napi_ok) return {};
  text.resize(length + 1);
  napi_get_value_string_utf8(env, value, text.data(), text.size(), &length);
  text.resize(length);
  return text;
}

std::vector<std::string> ReadTexts(napi_env env, napi_value list) {
  std::vector<std::string> texts;
  std::uint32_t count = 0;
  napi_get_array_length(env, list, &count);
  for (std::uint32_t i = 0; i < count; ++i) {
    napi_value text = nullptr;
    napi_get_element(env, list, i, &text);
    texts.push_back(ReadText(env, text));
  }
  return texts;
}

}  // namespace rollgate::binding
