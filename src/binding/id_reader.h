// From a JavaScript value to the identity of an id, without a string on the heap.
#pragma once

#include <node_api.h>

#include "core/identity.h"

namespace rollgate::binding {

/// Reads the identity of a string, a finite number, a bigint, undefined or null; false for any
/// other value. 1, 1n and '1' are one id; undefined, null and '' are the one of callers without an
/// id. Runs no code of the caller's.
bool ReadIdentity(napi_env env, napi_value value, const Secret& secret, Identity& identity);

/// A fresh Secret from the system's random numbers.
Secret RandomSecret();

}  // namespace rollgate::binding
