// Reads what lib has checked: anything wrong here could not be read, for the thread is to end.
#include "binding/policy_reader.h"

#include <cstddef>
#include <cstdint>
#include <span>

#include "binding/values.h"

namespace rollgate::binding {

PolicyOptions ReadPolicy(napi_env env, napi_value options) {
  PolicyOptions policy;
  const std::span<double> windows = ReadDoubles(env, Get(env, options, "windows"));
  for (std::size_t i = 0; i + 1 < windows.size(); i += 2) {
    policy.windows.push_back(
        {static_cast<Micros>(windows[i]), static_cast<std::uint64_t>(windows[i + 1])});
  }
  policy.min_difference = static_cast<Micros>(ReadDouble(env, Get(env, options, "minDifference")));
  policy.count_blocked = ReadBool(env, Get(env, options, "countBlocked"));
  policy.algorithm = static_cast<Algorithm>(ReadDouble(env, Get(env, options, "algorithm")));
  policy.sets_max = ReadBool(env, Get(env, options, "setsMax"));
  for (const double length : ReadDoubles(env, Get(env, options, "blocks"))) {
    policy.blocks.push_back(static_cast<Micros>(length));
  }
  return policy;
}

}  // namespace rollgate::binding
