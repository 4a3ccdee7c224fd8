// The core's decisions on states that JavaScript keeps elsewhere, as bytes.
#pragma once

#include <node_api.h>

namespace rollgate::binding {

/// createPortableLimiter(options, keep) -> { decide, refund, lifetime, largestState }
///
/// `options`, checked by lib: what ReadPolicy reads.
///
/// `keep` is an object that lib holds as long as any of the functions (see MakeLocalFunctions):
///   report      Float64Array that decide writes to
///   exhausted   () => throws: there is no memory left
///
/// A state is a Uint8Array that was given before, or undefined for an id that has done nothing. The
/// next state is given as an ArrayBuffer; undefined if nothing changes, null if what came is no
/// state.
///
/// decide(state, cost, records, now, generation, max?) -> next state; writes report[0..]: see
///   WriteDecision. `now` in us; `generation`, a random integer below 2^32, is for a generation of
///   the id that may begin; a max is given where setsMax is true, that of the window from now on. A
///   cost of 0 records nothing and tells what is used
/// refund(state, at, cost, token, now) -> next state
/// lifetime(state, now) -> us: how long a state that is written now can matter
/// largestState() -> bytes of the largest state that can come to be
napi_value CreatePortableLimiter(napi_env env, napi_callback_info info);

}  // namespace rollgate::binding
