// Reads strings and policies.
#include "binding/values.h"

#include <array>

namespace rollgate::binding {

std::string ReadText(napi_env env, napi_value value) {
  std::array<char, 256> buffer;
  std::size_t length = 0;
  if (napi_get_value_string_utf8(env, value, buffer.data(), buffer.size(), &length) != napi_ok) {
    return {};
  }
  // Node-API truncates a longer string at the end of a character, and adds a NUL.
  if (length + 4 < buffer.size()) return std::string(buffer.data(), length);
  return Napi::String(env, value).Utf8Value();
}

std::vector<std::string> ReadTexts(napi_env env, napi_value array) {
  std::vector<std::string> texts;
  std::uint32_t count = 0;
  napi_get_array_length(env, array, &count);
  for (std::uint32_t i = 0; i < count; ++i) {
    napi_value text = nullptr;
    napi_get_element(env, array, i, &text);
    texts.push_back(ReadText(env, text));
  }
  return texts;
}

PolicyOptions ReadPolicy(const Napi::Object& options) {
  const Napi::Env env = options.Env();
  PolicyOptions policy;
  const std::span<double> windows = ReadArray<double>(env, options.Get("windows"));
  for (std::size_t i = 0; i + 1 < windows.size(); i += 2) {
    policy.windows.push_back(
        {static_cast<Micros>(windows[i]), static_cast<std::uint64_t>(windows[i + 1])});
  }
  policy.min_difference = static_cast<Micros>(ReadDouble(env, options.Get("minDifference")));
  policy.count_blocked = ReadBool(env, options.Get("countBlocked"));
  policy.algorithm = static_cast<Algorithm>(ReadDouble(env, options.Get("algorithm")));
  policy.sets_max = ReadBool(env, options.Get("setsMax"));
  policy.weighted = ReadBool(env, options.Get("isWeighted"));
  for (const double length : ReadArray<double>(env, options.Get("blocks"))) {
    policy.blocks.push_back(static_cast<Micros>(length));
  }
  return policy;
}

}  // namespace rollgate::binding
