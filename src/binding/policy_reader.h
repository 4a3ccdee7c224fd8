// The limits of a limiter, as JavaScript tells them.
#pragma once

#include <node_api.h>

#include "core/policy.h"

namespace rollgate::binding {

/// From an object with windows (Float64Array of interval in us and max, one pair each),
/// minDifference (us), countBlocked, algorithm (a number: see Algorithm) and blocks (Float64Array
/// of lengths in us). Without windows it could not be read.
PolicyOptions ReadPolicy(napi_env env, napi_value options);

}  // namespace rollgate::binding
