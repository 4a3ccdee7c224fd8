// From a JavaScript value to the identity of an id, without a string on the heap.
#pragma once

#include <node_api.h>

#include <optional>

#include "core/identity.h"

namespace rollgate::binding {

/// The identity of a string, a finite number, a bigint, undefined or null; none for any other
/// value. 1, 1n and '1' are one id; undefined, null and '' are the one of callers without an id.
/// Runs no code of the caller's.
std::optional<Identity> ReadIdentity(napi_env env, napi_value value, const Secret& secret);

/// A fresh Secret from the system's random numbers.
Secret RandomSecret();

}  // namespace rollgate::binding
