// The functions of a native Redis client, and the delivery of its results to JavaScript.
#include <uv.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "binding/addon.h"
#include "binding/functions.h"
#include "binding/redis_values.h"
#include "binding/values.h"
#include "redis/client.h"

namespace rollgate::binding {
namespace {

using redis::CallId;
using redis::Failure;

/// In the order of Failure::Kind.
constexpr std::array kFailureNames{"timeout", "unreachable", "reply", "notFound", "closed"};

constexpr std::size_t kManyResults = 128;

/// The state of one client's functions. Lives until they are collected and nothing of the client is
/// left in the event loop.
class RedisClient final : public std::enable_shared_from_this<RedisClient>,
                          private redis::Client::Sink {
 public:
  RedisClient(const Napi::Object& callbacks, uv_loop_s* loop, redis::ClientOptions options)
      : env_(callbacks.Env()),
        callbacks_(Napi::Weak(callbacks)),
        client_(loop, std::move(options), *this) {
    // Napi::AsyncContext holds its resource weakly, so an AsyncLocalStorage would lose its store.
    napi_async_init(env_, nullptr, Napi::String::New(env_, "rollgate:redis"), &context_);
    napi_add_async_cleanup_hook(env_, OnEnvironmentEnds, this, &hook_);
  }

  redis::Client& client() { return client_; }

  /// Keeps `callbacks` alive until the pending results are delivered.
  void Hold() {
    if (holds_) return;
    callbacks_.Ref();
    holds_ = true;
  }

  /// Fails pending calls; JavaScript receives the failures later.
  void Close() {
    if (is_closed_) return;
    is_closed_ = true;
    client_.Close();
    client_.WhenGone([this] { OnGone(); });
  }

  /// Closes the client, and deletes it as soon as nothing of it is left in the loop.
  void Abandon() {
    Close();
    is_released_ = true;
    if (is_gone_) delete this;
  }

 private:
  struct FailedCalls {
    Failure failure;
    std::vector<CallId> calls;
  };

  ~RedisClient() = default;

  static void OnEnvironmentEnds(napi_async_cleanup_hook_handle, void* data) {
    auto* client = static_cast<RedisClient*>(data);
    client->is_ending_ = true;
    client->Close();
  }

  void OnGone() {
    if (!is_ending_) Deliver();
    if (context_ != nullptr) napi_async_destroy(env_, std::exchange(context_, nullptr));
    callbacks_.Reset();
    is_gone_ = true;
    const auto hook = std::exchange(hook_, nullptr);
    if (is_released_) delete this;
    napi_remove_async_cleanup_hook(hook);
  }

  void OnNumbers(CallId call, std::span<const redis::Reply> numbers) override {
    ++results_;
    records_.push_back(call);
    records_.push_back(static_cast<double>(numbers.size()));
    for (const redis::Reply& number : numbers) {
      records_.push_back(static_cast<double>(number.integer));
    }
  }

  void OnReply(CallId call, redis::Reply reply) override {
    events_.emplace_back([this, call, reply = std::move(reply)](const Napi::Object& callbacks) {
      client_.HandingOn(call);
      CallBack(callbacks, "reply", {Number(call), ToJs(env_, reply)});
    });
  }

  void OnRouteWanted(std::size_t node, std::uint32_t attempt, const std::string& name) override {
    events_.emplace_back([this, node, attempt, name](const Napi::Object& callbacks) {
      if (is_closed_) return;
      CallBack(callbacks, "find", {Number(node), Number(attempt), Napi::String::New(env_, name)});
    });
  }

  void OnMapWanted() override {
    events_.emplace_back([this](const Napi::Object& callbacks) {
      if (!is_closed_) CallBack(callbacks, "findMap", {});
    });
  }

  void OnFailure(CallId call, const Failure& failure) override {
    if (failures_.empty() || failures_.back().failure.kind != failure.kind ||
        failures_.back().failure.message != failure.message) {
      failures_.push_back({failure, {}});
    }
    failures_.back().calls.push_back(call);
  }

  void Deliver() override {
    const Napi::HandleScope scope(env_);
    try {
      if (const Napi::Object callbacks = callbacks_.Value(); !callbacks.IsEmpty()) {
        DeliverState(callbacks);
        DeliverNumbers(callbacks);
        DeliverFailures(callbacks);
        for (const auto& event : std::exchange(events_, {})) event(callbacks);
      }
    } catch (const Napi::Error&) {
      return;  // the thread is being terminated, so a property could not be read
    }
    if (holds_ && client_.pending() == 0 && records_.empty() && failures_.empty() &&
        events_.empty()) {
      holds_ = false;
      callbacks_.Unref();
    }
  }

  /// Reports whether there is a connection, if that has changed.
  void DeliverState(const Napi::Object& callbacks) {
    const bool is_up = !is_closed_ && client_.nodes().is_up();
    if (std::exchange(was_up_, is_up) != is_up) {
      CallBack(callbacks, "changed", {Napi::Boolean::New(env_, is_up)});
    }
  }

  /// Delivers results in groups. Calls that JavaScript makes in response to one group are sent
  /// before the next, so that the server is busy meanwhile. Measured: a quarter more checks.
  void DeliverNumbers(const Napi::Object& callbacks) {
    const std::size_t group = std::exchange(results_, 0) > kManyResults ? 64 : 32;
    std::vector<double> records = std::exchange(records_, std::move(spare_records_));
    records_.clear();
    for (std::size_t from = 0; from < records.size();) {
      // Read again, because a callback may make a limiter that needs a larger array.
      const std::span<double> numbers = ReadArray<double>(env_, callbacks.Get("numbers"));
      std::size_t to = from;
      std::size_t count = 0;
      while (to < records.size()) {
        const std::size_t length = 2 + static_cast<std::size_t>(records[to + 1]);
        if (to + length - from > numbers.size() || count == group) break;
        client_.HandingOn(static_cast<CallId>(records[to]));
        to += length;
        ++count;
      }
      assert(count > 0);
      std::copy(records.begin() + static_cast<std::ptrdiff_t>(from),
                records.begin() + static_cast<std::ptrdiff_t>(to), numbers.begin());
      CallBack(callbacks, "settle", {Number(count)});
      from = to;
      if (from < records.size()) client_.SendNow();
    }
    spare_records_ = std::move(records);
  }

  void DeliverFailures(const Napi::Object& callbacks) {
    for (const auto& [failure, calls] : std::exchange(failures_, {})) {
      for (std::size_t from = 0; from < calls.size();) {
        const std::span<double> numbers = ReadArray<double>(env_, callbacks.Get("numbers"));
        const std::size_t count = std::min(numbers.size(), calls.size() - from);
        for (std::size_t i = 0; i < count; ++i) {
          client_.HandingOn(calls[from + i]);
          numbers[i] = calls[from + i];
        }
        CallBack(callbacks, "fail",
                 {Napi::String::New(env_, kFailureNames[static_cast<std::size_t>(failure.kind)]),
                  Napi::String::New(env_, failure.message), Number(count)});
        from += count;
      }
    }
  }

  /// Calls a function of `callbacks` from the event loop. An exception in it is uncaught.
  void CallBack(const Napi::Object& callbacks, const char* name,
                std::initializer_list<napi_value> arguments) {
    const auto function = callbacks.Get(name).As<Napi::Function>();
    try {
      function.MakeCallback(callbacks, arguments, context_);
    } catch (const Napi::Error& error) {
      napi_fatal_exception(env_, error.Value());
    }
  }

  napi_value Number(std::size_t number) const {
    return Napi::Number::New(env_, static_cast<double>(number));
  }

  Napi::Env env_;
  napi_async_context context_ = nullptr;
  Napi::ObjectReference callbacks_;
  napi_async_cleanup_hook_handle hook_ = nullptr;
  bool holds_ = false;
  bool is_closed_ = false;
  bool was_up_ = false;  // as reported last
  bool is_ending_ = false;
  bool is_released_ = false;
  bool is_gone_ = false;
  std::vector<double> records_;
  std::size_t results_ = 0;  ///< in records_
  std::vector<double> spare_records_;
  std::vector<FailedCalls> failures_;
  std::vector<std::function<void(const Napi::Object& callbacks)>> events_;
  redis::Client client_;
};

/// The state of a limiter's functions.
struct RedisLimiter {
  std::shared_ptr<RedisClient> client;
  redis::Limiter limiter;
};

constexpr Micros kTooMany = -1;

napi_value ToJs(napi_env env, RedisClient& client, std::optional<CallId> call) {
  if (call) client.Hold();
  return binding::ToJs(env, call ? static_cast<Micros>(*call) : kTooMany);
}

/// The reading of the user's clock, if there is one.
std::optional<std::int64_t> ReadTime(napi_env env, napi_value from) {
  double time;
  if (napi_get_value_double(env, from, &time) != napi_ok) return std::nullopt;
  return static_cast<std::int64_t>(time);
}

std::size_t ReadSize(napi_env env, napi_value from) {
  return static_cast<std::size_t>(ReadDouble(env, from));
}

/// Raw: runs once per check.
napi_value Ask(napi_env env, napi_callback_info info) {
  Call<RedisLimiter, 8> call(env, info);
  redis::Limiter& limiter = call.state->limiter;
  redis::Question question;
  question.operation = static_cast<redis::Question::Operation>(ReadDouble(env, call.arguments[1]));
  question.is_full = ReadBool(env, call.arguments[2]);
  const double cost = ReadDouble(env, call.arguments[3]);
  std::span<const double> amounts = ReadArray<double>(env, call.arguments[3]);
  const std::int64_t with_amounts =
      limiter.program().has_names ? redis::kAmounts : redis::kOneAmount;
  question.cost = amounts.empty() ? static_cast<std::int64_t>(cost) : with_amounts;
  question.now = ReadTime(env, call.arguments[4]);
  if (call.count > 5) {
    const auto policy = ReadArray<double>(env, call.arguments[5]);
    question.policy.assign(policy.begin(), policy.end());
  }
  if (call.count > 6) {
    question.settled_at = static_cast<std::int64_t>(ReadDouble(env, call.arguments[6]));
    question.settled_of = static_cast<std::uint64_t>(ReadDouble(env, call.arguments[7]));
  } else if (cost > 1) {  // so that calls of different costs share a group
    question.cost = redis::kOneAmount;
    amounts = {&cost, 1};
  }
  RedisClient& client = *call.state->client;
  std::array<char, 256> buffer;
  std::size_t length = 0;
  if (napi_get_value_string_utf8(env, call.arguments[0], buffer.data(), buffer.size(), &length) ==
          napi_ok &&
      length + 4 < buffer.size()) {
    const std::string_view id(buffer.data(), length);
    return ToJs(env, client, client.client().Ask(limiter, id, question, amounts));
  }
  return ToJs(env, client,
              client.client().Ask(limiter, ReadText(env, call.arguments[0]), question, amounts));
}

Napi::Value SetPolicy(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  redis::Limiter& limiter = StateOf<RedisLimiter>(info).limiter;
  redis::Program program = limiter.program();
  const auto policy = ReadArray<double>(env, info[0]);
  program.policy.assign(policy.begin(), policy.end());
  program.has_long_logs = ReadBool(env, info[1]);
  limiter.SetProgram(std::move(program));
  return {};
}

constexpr std::array kLimiterFunctions{
    Function{"ask", Guarded<Ask, ThrowInJs>},
    Function{"setPolicy", Guarded<SetPolicy, ThrowInJs>},
};

Napi::Value CreateLimiter(const Napi::CallbackInfo& info) {
  auto& client = StateOf<RedisClient>(info);
  redis::Program program = ReadProgram(info[0].As<Napi::Object>());
  const std::shared_ptr<RedisLimiter> limiter(
      new RedisLimiter{client.shared_from_this(), redis::Limiter(std::move(program))});
  return MakeFunctions(info.Env(), limiter, kLimiterFunctions);
}

Napi::Value Command(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  auto& self = StateOf<RedisClient>(info);
  const std::optional<CallId> call = self.client().Command(
      ReadTexts(env, info[0]), ReadText(env, info[1]), ReadText(env, info[2]));
  return {env, ToJs(env, self, call)};
}

Napi::Value Connect(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  std::optional<redis::Route> route;
  if (info[2].IsObject()) route = ReadRoute(info[2].As<Napi::Object>());
  StateOf<RedisClient>(info).client().Connect(
      ReadSize(env, info[0]), static_cast<std::uint32_t>(ReadSize(env, info[1])), route);
  return {};
}

Napi::Value SetMap(const Napi::CallbackInfo& info) {
  std::optional<std::vector<redis::Nodes::Range>> ranges;
  if (info[0].IsArray()) ranges = ReadRanges(info[0].As<Napi::Array>());
  StateOf<RedisClient>(info).client().SetMap(ranges);
  return {};
}

Napi::Array ToJs(Napi::Env env, const std::vector<std::string>& texts) {
  const auto array = Napi::Array::New(env, texts.size());
  for (std::uint32_t i = 0; i < texts.size(); ++i) array.Set(i, texts[i]);
  return array;
}

Napi::Value Nodes(const Napi::CallbackInfo& info) {
  const redis::Nodes& nodes = StateOf<RedisClient>(info).client().nodes();
  const auto lists = Napi::Object::New(info.Env());
  lists.Set("owners", ToJs(info.Env(), nodes.Owners()));
  lists.Set("connected", ToJs(info.Env(), nodes.Connected()));
  return lists;
}

Napi::Value NodeOf(const Napi::CallbackInfo& info) {
  const std::uint16_t hash_slot = redis::HashSlot(ReadText(info.Env(), info[0]));
  const std::size_t node = StateOf<RedisClient>(info).client().nodes().NumberOf(hash_slot);
  return {info.Env(), binding::ToJs(info.Env(), static_cast<Micros>(node))};
}

Napi::Value RoomAt(const Napi::CallbackInfo& info) {
  const std::size_t room =
      StateOf<RedisClient>(info).client().RoomAt(ReadSize(info.Env(), info[0]));
  return {info.Env(), binding::ToJs(info.Env(), static_cast<Micros>(room))};
}

Napi::Value Stats(const Napi::CallbackInfo& info) {
  const redis::Client& client = StateOf<RedisClient>(info).client();
  const auto stats = Napi::Object::New(info.Env());
  stats.Set("isUp", client.nodes().is_up());
  stats.Set("pending", client.pending());
  stats.Set("connections", client.nodes().connections());
  return stats;
}

Napi::Value Close(const Napi::CallbackInfo& info) {
  StateOf<RedisClient>(info).Close();
  return {};
}

constexpr std::array kFunctions{
    Function{"createLimiter", Guarded<CreateLimiter, ThrowInJs>},
    Function{"command", Guarded<Command, ThrowInJs>},
    Function{"connect", Guarded<Connect, ThrowInJs>},
    Function{"setMap", Guarded<SetMap, ThrowInJs>},
    Function{"nodes", Guarded<Nodes, ThrowInJs>},
    Function{"nodeOf", Guarded<NodeOf, ThrowInJs>},
    Function{"roomAt", Guarded<RoomAt, ThrowInJs>},
    Function{"stats", Guarded<Stats, ThrowInJs>},
    Function{"close", Guarded<Close, ThrowInJs>},
};

}  // namespace

Napi::Value CreateTlsContext(const Napi::CallbackInfo& info) {
  auto context = std::make_unique<SharedTlsContext>(ReadTls(info[0].As<Napi::Object>()));
  return Napi::External<SharedTlsContext>::New(
      info.Env(), context.release(), [](Napi::Env, SharedTlsContext* owned) { delete owned; });
}

Napi::Value CreateRedisClient(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  redis::ClientOptions options = ReadClientOptions(info[0].As<Napi::Object>());
  uv_loop_s* loop = nullptr;
  if (napi_get_uv_event_loop(env, &loop) != napi_ok) throw Napi::Error::New(env);
  const auto callbacks = info[1].As<Napi::Object>();
  const std::shared_ptr<RedisClient> client(new RedisClient(callbacks, loop, std::move(options)),
                                            [](RedisClient* owned) { owned->Abandon(); });
  return MakeFunctions(env, client, kFunctions);
}

}  // namespace rollgate::binding
