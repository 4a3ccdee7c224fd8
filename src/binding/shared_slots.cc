// The slots of a concurrency limiter that threads and processes share. Attaches to the region with
// the first call, so that a constructor does no I/O.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "binding/addon.h"
#include "binding/functions.h"
#include "binding/host_clocks.h"
#include "binding/id_reader.h"
#include "binding/store_failure.h"
#include "binding/values.h"
#include "shared/held_region.h"

namespace rollgate::binding {
namespace {

using shared::HeldAnswer;
using shared::HeldRegion;
using shared::Holding;

/// A region is not memory of this process. But a limiter takes one of the region's few entries, so
/// unused limiters must be collected in time.
constexpr std::int64_t kBytesToTell = std::int64_t{128} << 10;

struct Held {
  Identity id;
  Holding holding;  ///< its cost is 0 if there is none
};

/// The state of one limiter's functions.
struct SharedSlots {
  SharedSlots(const Napi::Object& callbacks, const Napi::Object& of)
      : env(callbacks.Env()),
        refuse(Borrow(callbacks, "refuse")),
        exhausted(Borrow(callbacks, "exhausted")),
        failed(Borrow(callbacks, "failed")),
        numbers(ReadArray<double>(env, callbacks.Get("numbers")).data()),
        max_age(TimeFromJs(ReadDouble(env, of.Get("maxAge")))) {
    options.name = ReadText(env, of.Get("name"));
    options.directory = ReadText(env, of.Get("directory"));
    options.max_keys = static_cast<std::size_t>(ReadDouble(env, of.Get("maxKeys")));
    options.max = static_cast<std::uint32_t>(ReadDouble(env, of.Get("max")));
    options.room = static_cast<std::uint32_t>(ReadDouble(env, of.Get("room")));
    if (ReadBool(env, of.Get("hasClock"))) {
      options.clock = SharedClock::kOwn;
    } else if (HostClocks::StopsInSleep()) {
      options.clock = SharedClock::kStopsInSleep;
    }
  }
  ~SharedSlots() { Close(); }
  SharedSlots(const SharedSlots&) = delete;
  SharedSlots& operator=(const SharedSlots&) = delete;

  shared::HeldTable<shared::Holders>& Table() {
    if (!region) [[unlikely]] {
      AttachNow();
    }
    return region->table();
  }

  ROLLGATE_COLD void AttachNow() {
    region = std::make_unique<HeldRegion>(options);
    secret = region->secret();
    Napi::MemoryManagement::AdjustExternalMemory(env, kBytesToTell);
  }

  void Close() {
    if (!region) return;
    region = nullptr;
    Napi::MemoryManagement::AdjustExternalMemory(env, -kBytesToTell);
  }

  /// A place for what will be held. Throws std::bad_alloc.
  std::size_t Place() {
    if (!free.empty()) return free.back();
    held.emplace_back();
    free.reserve(held.capacity());  // so that Release needs no memory
    free.push_back(held.size() - 1);
    return free.back();
  }

  /// What is held with another end than it had. This happens only where an id has little room.
  ROLLGATE_COLD void Raise(const Identity& id, const HeldAnswer& answer) {
    const auto& [cost, generation, end] = answer.holding;
    for (auto& [of, holding] : held) {
      if (of == id && holding.generation == generation && holding.end == answer.raised_from) {
        holding.end = end;
      }
    }
  }

  Napi::Env env;
  shared::HeldRegionOptions options;
  Secret secret = {};
  Napi::FunctionReference refuse;
  Napi::FunctionReference exhausted;
  Napi::FunctionReference failed;
  double* numbers;
  Micros max_age;  // 0: none
  std::unique_ptr<HeldRegion> region;
  std::vector<Held> held;
  std::vector<std::size_t> free;  // places in it
};

Micros HostNow() {
  return HostClocks::Nanos() / 1000;
}

/// The user's clock if it was read, else the host's, read when it is needed.
struct Clock {
  explicit Clock(double given)
      : is_known(!std::isnan(given)), time(is_known ? TimeFromJs(given) : 0) {}

  Micros operator()() {
    if (!is_known) time = HostNow();
    is_known = true;
    return time;
  }

  bool is_known;
  Micros time;
};

// Arguments and results of these two are in `numbers`, which takes less time.

ROLLGATE_FLATTEN napi_value Acquire(napi_env env, napi_callback_info info) {
  const Call<SharedSlots, 1> call(env, info);
  SharedSlots& slots = *call.state;
  double* const numbers = slots.numbers;
  auto& table = slots.Table();
  Identity identity;
  const napi_value id = call.arguments[0];
  if (!ReadIdentity(env, id, slots.secret, identity)) return Invoke(slots.refuse, {&id, 1});
  const auto max = static_cast<std::uint32_t>(numbers[0]);
  const auto cost = static_cast<std::uint32_t>(numbers[1]);
  Clock clock(numbers[2]);
  const auto now = [&clock] { return clock(); };
  const auto end = [&] {
    if (slots.max_age == 0) return kNever;
    const Micros moment = Bounded(clock() + slots.max_age);
    return moment == kLongest ? kNever : moment;
  };
  const std::size_t place = slots.Place();
  const HeldAnswer answer = table.Acquire(identity, cost, max, now, end);
  const bool is_granted = answer.kind == HeldAnswer::Kind::kGranted;
  numbers[0] = is_granted ? answer.used : -1.0 - answer.used;
  if (!is_granted) {
    numbers[1] = answer.kind == HeldAnswer::Kind::kNoRoom ? 1 : 0;
    return nullptr;
  }
  if (answer.raised_from != kNever) slots.Raise(identity, answer);
  slots.free.pop_back();
  slots.held[place] = {identity, answer.holding};
  numbers[1] = static_cast<double>(place);
  return nullptr;
}

ROLLGATE_FLATTEN napi_value Release(napi_env env, napi_callback_info info) {
  SharedSlots& slots = *Call<SharedSlots, 0>(env, info).state;
  double& number = slots.numbers[0];
  const auto place = static_cast<std::size_t>(number);
  number = 0;
  const Held held = std::exchange(slots.held[place], {});
  slots.free.push_back(place);
  if (slots.Table().Release(held.id, held.holding)) number = 1;
  return nullptr;
}

Napi::Value Counts(const Napi::CallbackInfo& info) {
  auto& slots = StateOf<SharedSlots>(info);
  const auto place = static_cast<std::size_t>(slots.numbers[0]);
  const Held& held = slots.held[place];
  slots.numbers[0] = 0;
  if (slots.Table().Holds(held.id, held.holding)) slots.numbers[0] = 1;
  return {};
}

Napi::Value Used(const Napi::CallbackInfo& info) {
  auto& slots = StateOf<SharedSlots>(info);
  auto& table = slots.Table();
  Identity identity;
  const napi_value id = info[0];
  if (!ReadIdentity(info.Env(), id, slots.secret, identity)) {
    return {info.Env(), Invoke(slots.refuse, {&id, 1})};
  }
  Clock clock(slots.numbers[0]);
  return {info.Env(), ToJs(info.Env(), table.UsedOf(identity, [&] { return clock(); }))};
}

Napi::Value Clear(const Napi::CallbackInfo& info) {
  auto& slots = StateOf<SharedSlots>(info);
  auto& table = slots.Table();
  if (info.Length() == 0) {
    table.ClearAll();
    return {};
  }
  Identity identity;
  const napi_value id = info[0];
  if (!ReadIdentity(info.Env(), id, slots.secret, identity)) {
    return {info.Env(), Invoke(slots.refuse, {&id, 1})};
  }
  table.Clear(identity);
  return {};
}

Napi::Value Stats(const Napi::CallbackInfo& info) {
  auto& slots = StateOf<SharedSlots>(info);
  auto& table = slots.Table();
  std::uint64_t sum = 0;
  for (const auto& [id, holding] : slots.held) {
    if (holding.cost > 0 && table.Holds(id, holding)) sum += holding.cost;
  }
  slots.numbers[0] = static_cast<double>(slots.region->keys());
  slots.numbers[1] = static_cast<double>(sum);
  slots.numbers[2] = static_cast<double>(slots.region->bytes());
  return {};
}

Napi::Value Now(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), static_cast<double>(HostNow()));
}

Napi::Value Close(const Napi::CallbackInfo& info) {
  StateOf<SharedSlots>(info).Close();
  return {};
}

}  // namespace

Napi::Value CreateSharedSlots(const Napi::CallbackInfo& info) {
  static constexpr std::array kFunctions{
      Function{"acquire", Guarded<Acquire, AnswerStoreFailure<SharedSlots>>},
      Function{"release", Guarded<Release, AnswerStoreFailure<SharedSlots>>},
      Function{"counts", Guarded<Counts, AnswerStoreFailure<SharedSlots>>},
      Function{"used", Guarded<Used, AnswerStoreFailure<SharedSlots>>},
      Function{"clear", Guarded<Clear, AnswerStoreFailure<SharedSlots>>},
      Function{"stats", Guarded<Stats, AnswerStoreFailure<SharedSlots>>},
      Function{"now", Guarded<Now, AnswerStoreFailure<SharedSlots>>},
      Function{"close", Guarded<Close, AnswerStoreFailure<SharedSlots>>},
  };
  return MakeFunctions(
      info.Env(),
      std::make_shared<SharedSlots>(info[1].As<Napi::Object>(), info[0].As<Napi::Object>()),
      kFunctions);
}

}  // namespace rollgate::binding
