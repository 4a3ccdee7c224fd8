// The functions of a native Redis client, and the delivery of its results to JavaScript.
#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
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

/// Results that are delivered at once. A socket of node:tls needs much time for each write.
constexpr std::size_t kGroup = 32;
constexpr std::size_t kManyResults = 128;
constexpr std::size_t kGroupOfMany = 64;
constexpr std::size_t kGroupOfManyWithTls = 256;

/// The state of one client's functions. What the client wants and answers is noted while it runs,
/// and delivered to JavaScript at the end of the function that lib called.
class RedisClient final : public std::enable_shared_from_this<RedisClient>,
                          private redis::Host,
                          private redis::Client::Sink {
 public:
  RedisClient(const Napi::Object& callbacks, redis::ClientOptions options)
      : env_(callbacks.Env()),
        callbacks_(Napi::Weak(callbacks)),
        write_(Borrow(callbacks, "write")),
        settle_(Borrow(callbacks, "settle")),
        group_of_many_(options.connection.has_tls ? kGroupOfManyWithTls : kGroupOfMany),
        client_(*this, std::move(options), *this) {}

  redis::Client& client() { return client_; }

  /// Delivers what the client has noted, and returns when lib must call onTime: Infinity if that is
  /// not necessary. A user's code that is called meanwhile may close the client: what that leads to
  /// is delivered afterwards.
  Napi::Value Deliver() {
    constexpr double kNever = std::numeric_limits<double>::infinity();
    if (delivery_ != Delivery::kNone) {
      delivery_ = Delivery::kAgain;
      return Napi::Number::New(env_, kNever);
    }
    const struct AtEnd {
      ~AtEnd() { delivery = Delivery::kNone; }
      Delivery& delivery;
    } at_end{delivery_};
    delivery_ = Delivery::kOnce;
    const Napi::Object callbacks = callbacks_.Value();
    DeliverEvents(callbacks);
    DeliverNumbers(callbacks);
    DeliverFailures(callbacks);
    while (std::exchange(delivery_, Delivery::kOnce) == Delivery::kAgain) {
      DeliverEvents(callbacks);
      DeliverFailures(callbacks);
    }
    const redis::Millis due = client_.NextDue();
    const bool never = due == std::numeric_limits<redis::Millis>::max();
    return Napi::Number::New(env_, never ? kNever : static_cast<double>(due));
  }

 private:
  enum class Delivery { kNone, kOnce, kAgain };

  struct FailedCalls {
    Failure failure;
    std::vector<CallId> calls;
  };

  void FindRoute(std::size_t node, std::uint32_t attempt, const std::string& name) override {
    Note("find", [this, node, attempt, name] {
      return Arguments{Number(node), Number(attempt), Napi::String::New(env_, name)};
    });
  }

  void FindMap() override {
    Note("findMap", [] { return Arguments{}; });
  }

  void Open(redis::SocketId socket, std::size_t address) override {
    Note("open", [this, socket, address] {
      return Arguments{Number(socket.node), Number(socket.number), Number(address)};
    });
  }

  void Write(redis::SocketId socket, std::string bytes) override {
    events_.emplace_back([this, socket, bytes = std::move(bytes)](const Napi::Object& callbacks) {
      for (std::size_t from = 0; from < bytes.size();) {
        const std::span<char> output = ReadArray<char>(env_, callbacks.Get("output"));
        const std::size_t count = bytes.copy(output.data(), output.size(), from);
        const napi_value is_writable = CallBack(write_, {Number(socket.node), Number(count)});
        if (!ReadBool(env_, is_writable)) client_.OnWritable(socket, false);
        from += count;
      }
    });
  }

  void Close(redis::SocketId socket) override {
    Note("close", [this, socket] { return Arguments{Number(socket.node)}; });
  }

  void Forget(std::size_t node) override {
    Note("forget", [this, node] { return Arguments{Number(node)}; });
  }

  void WaitForTurn() override {
    Note("turn", [] { return Arguments{}; });
  }

  void OnReply(CallId call, redis::Reply reply) override {
    Note("reply", [this, call, reply = std::move(reply)] {
      client_.HandingOn(call);
      return Arguments{Number(call), ToJs(env_, reply)};
    });
  }

  void OnNumbers(CallId call, std::span<const redis::Reply> numbers) override {
    ++results_;
    records_.push_back(call);
    records_.push_back(static_cast<double>(numbers.size()));
    for (const redis::Reply& number : numbers) {
      records_.push_back(static_cast<double>(number.integer));
    }
  }

  void OnFailure(CallId call, const Failure& failure) override {
    if (failures_.empty() || failures_.back().failure.kind != failure.kind ||
        failures_.back().failure.message != failure.message) {
      failures_.push_back({failure, {}});
    }
    failures_.back().calls.push_back(call);
  }

  void DeliverEvents(const Napi::Object& callbacks) {
    for (const auto& event : std::exchange(events_, {})) event(callbacks);
    DeliverState(callbacks);
  }

  /// Reports whether there is a connection, if that has changed.
  void DeliverState(const Napi::Object& callbacks) {
    const bool is_up = client_.nodes().is_up();
    if (std::exchange(was_up_, is_up) != is_up) {
      CallBack(callbacks, "changed", {Napi::Boolean::New(env_, is_up)});
    }
  }

  /// Delivers one group of results. Calls that JavaScript makes in response to it are sent before
  /// the next, so that the server is busy meanwhile.
  void DeliverNumbers(const Napi::Object& callbacks) {
    if (results_ == 0) return;
    const std::span<double> numbers = ReadArray<double>(env_, callbacks.Get("numbers"));
    if (delivered_ == 0) group_ = results_ > kManyResults ? group_of_many_ : kGroup;
    std::size_t to = delivered_;
    std::size_t count = 0;
    while (to < records_.size() && count < group_) {
      const std::size_t length = 2 + static_cast<std::size_t>(records_[to + 1]);
      if (to + length - delivered_ > numbers.size()) break;
      client_.HandingOn(static_cast<CallId>(records_[to]));
      to += length;
      ++count;
    }
    assert(count > 0);
    std::copy(records_.begin() + static_cast<std::ptrdiff_t>(delivered_),
              records_.begin() + static_cast<std::ptrdiff_t>(to), numbers.begin());
    results_ -= count;
    delivered_ = to;
    if (results_ == 0) {
      records_.clear();
      delivered_ = 0;
    }
    CallBack(settle_, {Number(count)});
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

  using Arguments = std::vector<napi_value>;

  /// Notes a call of a function of `callbacks`, with what `arguments` returns then.
  template <class MakeArguments>
  void Note(const char* name, MakeArguments arguments) {
    events_.emplace_back(
        [this, name, arguments = std::move(arguments)](const Napi::Object& callbacks) {
          CallBack(callbacks, name, arguments());
        });
  }

  void CallBack(const Napi::Object& callbacks, const char* name, const Arguments& arguments) {
    CallBack(Borrow(callbacks, name), arguments);
  }

  /// An exception is uncaught, so that the other callbacks run.
  napi_value CallBack(const Napi::FunctionReference& function, const Arguments& arguments) {
    if (const napi_value result = Invoke(function, arguments)) return result;
    bool is_pending = false;  // not if the thread is being terminated
    napi_is_exception_pending(env_, &is_pending);
    napi_value error = nullptr;
    if (is_pending && napi_get_and_clear_last_exception(env_, &error) == napi_ok) {
      napi_fatal_exception(env_, error);
    }
    return nullptr;
  }

  Napi::Number Number(std::size_t number) const {
    return Napi::Number::New(env_, static_cast<double>(number));
  }

  Napi::Env env_;
  Napi::ObjectReference callbacks_;
  Napi::FunctionReference write_;  ///< found once, because these run in each turn
  Napi::FunctionReference settle_;
  const std::size_t group_of_many_;
  Delivery delivery_ = Delivery::kNone;
  bool was_up_ = false;  // as reported last
  std::vector<double> records_;
  std::size_t results_ = 0;    ///< in records_, not delivered yet
  std::size_t delivered_ = 0;  ///< numbers in records_
  std::size_t group_ = 0;      ///< results delivered at once
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

napi_value ToJs(napi_env env, std::optional<CallId> call) {
  return binding::ToJs(env, call ? static_cast<Micros>(*call) : kTooMany);
}

std::size_t ReadSize(napi_env env, napi_value from) {
  return static_cast<std::size_t>(ReadDouble(env, from));
}

/// Raw: runs once per check.
napi_value Ask(napi_env env, napi_callback_info info) {
  Call<RedisLimiter, 6> call(env, info);
  const auto head = ReadArray<char>(env, call.arguments[1]);
  const redis::Question question{{head.data(), head.size()},
                                 static_cast<std::size_t>(ReadDouble(env, call.arguments[2])),
                                 ReadBool(env, call.arguments[3])};
  const bool is_change = ReadBool(env, call.arguments[4]);
  const double amount = ReadDouble(env, call.arguments[5]);
  std::span<const double> amounts = ReadArray<double>(env, call.arguments[5]);
  if (amount > 1) amounts = {&amount, 1};
  redis::Limiter& limiter = call.state->limiter;
  redis::Client& client = call.state->client->client();
  std::array<char, 256> buffer;
  std::size_t length = 0;
  if (napi_get_value_string_utf8(env, call.arguments[0], buffer.data(), buffer.size(), &length) ==
          napi_ok &&
      length + 4 < buffer.size()) {
    const std::string_view id(buffer.data(), length);
    return ToJs(env, client.Ask(limiter, id, question, is_change, amounts));
  }
  const std::string id = ReadText(env, call.arguments[0]);
  return ToJs(env, client.Ask(limiter, id, question, is_change, amounts));
}

constexpr std::array kLimiterFunctions{
    Function{"ask", Guarded<Ask, ThrowInJs>},
};

Napi::Value CreateLimiter(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  redis::Program program{{ReadText(env, info[2]), ReadText(env, info[3])},
                         ReadText(env, info[0]),
                         ReadText(env, info[1])};
  const std::shared_ptr<RedisLimiter> limiter(new RedisLimiter{
      StateOf<RedisClient>(info).shared_from_this(), redis::Limiter(std::move(program))});
  return MakeFunctions(env, limiter, kLimiterFunctions);
}

Napi::Value Command(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const std::optional<CallId> call = StateOf<RedisClient>(info).client().Command(
      ReadTexts(env, info[0]), ReadText(env, info[1]), ReadText(env, info[2]));
  return {env, ToJs(env, call)};
}

/// A function that lib calls when something has happened: passes that on to the client, and
/// delivers what it leads to. kTell is a function of the client without arguments, or reads them.
template <auto kTell>
Napi::Value Tell(const Napi::CallbackInfo& info) {
  auto& self = StateOf<RedisClient>(info);
  if constexpr (std::is_member_function_pointer_v<decltype(kTell)>) {
    (self.client().*kTell)();
  } else {
    kTell(self.client(), info);
  }
  return self.Deliver();
}

redis::SocketId ReadSocket(const Napi::CallbackInfo& info) {
  return {ReadSize(info.Env(), info[0]), static_cast<std::uint32_t>(ReadSize(info.Env(), info[1]))};
}

void Connect(redis::Client& client, const Napi::CallbackInfo& info) {
  std::optional<redis::Route> route;
  if (info[2].IsObject()) route = ReadRoute(info[2].As<Napi::Object>());
  const auto [node, attempt] = ReadSocket(info);
  client.Connect(node, attempt, route);
}

void SetMap(redis::Client& client, const Napi::CallbackInfo& info) {
  std::optional<std::vector<redis::Nodes::Range>> ranges;
  if (info[0].IsArray()) ranges = ReadRanges(info[0].As<Napi::Array>());
  client.SetMap(ranges);
}

void OnAccepted(redis::Client& client, const Napi::CallbackInfo& info) {
  client.OnAccepted(ReadSocket(info));
}

void OnConnected(redis::Client& client, const Napi::CallbackInfo& info) {
  client.OnConnected(ReadSocket(info));
}

void OnBytes(redis::Client& client, const Napi::CallbackInfo& info) {
  const auto bytes = ReadArray<char>(info.Env(), info[2]);
  const std::size_t count = std::min(bytes.size(), ReadSize(info.Env(), info[3]));
  client.OnBytes(ReadSocket(info), {bytes.data(), count});
}

void OnEnd(redis::Client& client, const Napi::CallbackInfo& info) {
  client.OnEnd(ReadSocket(info), ReadText(info.Env(), info[2]));
}

void OnWritable(redis::Client& client, const Napi::CallbackInfo& info) {
  client.OnWritable(ReadSocket(info), true);
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

Napi::Value Now(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), static_cast<double>(redis::Now()));
}

Napi::Value Stats(const Napi::CallbackInfo& info) {
  const redis::Client& client = StateOf<RedisClient>(info).client();
  const auto stats = Napi::Object::New(info.Env());
  stats.Set("isUp", client.nodes().is_up());
  stats.Set("pending", client.pending());
  stats.Set("connections", client.nodes().connections());
  return stats;
}

constexpr std::array kFunctions{
    Function{"createLimiter", Guarded<CreateLimiter, ThrowInJs>},
    Function{"command", Guarded<Command, ThrowInJs>},
    Function{"connect", Guarded<Tell<Connect>, ThrowInJs>},
    Function{"setMap", Guarded<Tell<SetMap>, ThrowInJs>},
    Function{"onTurn", Guarded<Tell<&redis::Client::OnTurn>, ThrowInJs>},
    Function{"onMore", Guarded<Tell<&redis::Client::SendNow>, ThrowInJs>},
    Function{"onTime", Guarded<Tell<&redis::Client::OnTime>, ThrowInJs>},
    Function{"onAccepted", Guarded<Tell<OnAccepted>, ThrowInJs>},
    Function{"onConnected", Guarded<Tell<OnConnected>, ThrowInJs>},
    Function{"onBytes", Guarded<Tell<OnBytes>, ThrowInJs>},
    Function{"onEnd", Guarded<Tell<OnEnd>, ThrowInJs>},
    Function{"onWritable", Guarded<Tell<OnWritable>, ThrowInJs>},
    Function{"nodes", Guarded<Nodes, ThrowInJs>},
    Function{"nodeOf", Guarded<NodeOf, ThrowInJs>},
    Function{"roomAt", Guarded<RoomAt, ThrowInJs>},
    Function{"now", Guarded<Now, ThrowInJs>},
    Function{"stats", Guarded<Stats, ThrowInJs>},
    Function{"close", Guarded<Tell<&redis::Client::Close>, ThrowInJs>},
};

}  // namespace

Napi::Value CreateRedisClient(const Napi::CallbackInfo& info) {
  const auto client = std::make_shared<RedisClient>(info[1].As<Napi::Object>(),
                                                    ReadClientOptions(info[0].As<Napi::Object>()));
  return MakeFunctions(info.Env(), client, kFunctions);
}

}  // namespace rollgate::binding
