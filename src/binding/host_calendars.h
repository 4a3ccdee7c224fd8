// Asks lib for the boundaries of calendar windows, which follow from the host's zone data.
#pragma once

#include <napi.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "binding/functions.h"
#include "binding/values.h"
#include "core/numbers.h"
#include "core/policy.h"
#include "core/time.h"

namespace rollgate::binding {

/// `callbacks` have findWindow(index, at, isOfCall): writes ordinal, start and end of the calendar
/// window that contains `at` to span, a Float64Array of three; times in us.
class HostCalendars final : public Calendars {
 public:
  explicit HostCalendars(const Napi::Object& callbacks)
      : find_window_(Borrow(callbacks, "findWindow")),
        span_(ReadArray<double>(callbacks.Env(), callbacks.Get("span")).data()) {}

  /// Throws Napi::Error if the callback throws.
  Span Find(std::size_t window, Micros at) override {
    const napi_env env = find_window_.Env();
    const std::array<napi_value, 3> arguments{Napi::Number::New(env, static_cast<double>(window)),
                                              Napi::Number::New(env, static_cast<double>(at)),
                                              Napi::Boolean::New(env, are_of_call)};
    if (Invoke(find_window_, arguments) == nullptr) throw Napi::Error::New(env);
    return SpanFromJs(span_);
  }

 private:
  Napi::FunctionReference find_window_;
  const double* span_;  // points into `callbacks`
};

}  // namespace rollgate::binding
