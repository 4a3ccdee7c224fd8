// Strings from JavaScript, as UTF-8.
#pragma once

#include <node_api.h>

#include <string>
#include <vector>

namespace rollgate::binding {

/// A well-formed string; empty for any other value.
std::string ReadText(napi_env env, napi_value value);

/// An array of such strings.
std::vector<std::string> ReadTexts(napi_env env, napi_value list);

}  // namespace rollgate::binding
