// One native Redis client: its functions, and the way of its results back to JavaScript.
#include "binding/redis_client.h"

#include <hiredis/hiredis.h>
#include <uv.h>

#include <algorithm>
#include <array>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "binding/redis_options.h"
#include "binding/redis_reply.h"
#include "binding/texts.h"
#include "binding/values.h"
#include "redis/client.h"

namespace rollgate::binding {
namespace {

using redis::CallId;
using redis::Failure;

const char* Name(Failure::Kind kind) {
  switch (kind) {
    case Failure::Kind::kTimeout:
      return "timeout";
    case Failure::Kind::kUnreachable:
      return "unreachable";
    case Failure::Kind::kReply:
      return "reply";
    case Failure::Kind::kClosed:
      break;
  }
  return "closed";
}

constexpr std::size_t kManyResults = 128;

/// A client, its functions' common data, and what it has to tell JavaScript. Lives until its
/// functions are collected and nothing of it is left in the event loop.
class RedisClient final : private redis::Client::Sink {
 public:
  RedisClient(napi_env env, uv_loop_s* loop, redis::ClientOptions options)
      : env_(env), client_(loop, std::move(options), *this) {}

  /// Takes hold of what it calls back; false if that failed.
  bool Bind(napi_value keep) {
    napi_value name = nullptr;
    return napi_create_string_utf8(env_, "rollgate:redis", NAPI_AUTO_LENGTH, &name) == napi_ok &&
           napi_async_init(env_, nullptr, name, &context_) == napi_ok &&
           napi_create_reference(env_, keep, 0, &keep_) == napi_ok &&
           napi_add_async_cleanup_hook(env_, OnEnvironmentEnds, this, &hook_) == napi_ok;
  }

  redis::Client& client() { return client_; }

  /// For a result that will come: JavaScript's side must still be there then.
  void Hold() {
    if (!holds_ && napi_reference_ref(env_, keep_, nullptr) == napi_ok) holds_ = true;
  }

  /// Fails what is pending, which JavaScript is told later.
  void Close() {
    if (is_closed_) return;
    is_closed_ = true;
    client_.Close();
    client_.WhenGone(
        [this] {
          if (!is_ending_) Deliver();
        },
        [this] { OnGone(); });
  }

  void AddFunction() { ++functions_; }

  /// One of the functions was collected.
  void Release() {
    if (--functions_ > 0) return;
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

  /// Nothing of the client is left in the loop, and its last results have been told.
  void OnGone() {
    if (context_ != nullptr) napi_async_destroy(env_, std::exchange(context_, nullptr));
    if (keep_ != nullptr) napi_delete_reference(env_, std::exchange(keep_, nullptr));
    is_gone_ = true;
    const auto hook = std::exchange(hook_, nullptr);
    if (is_released_) delete this;
    napi_remove_async_cleanup_hook(hook);
  }

  void OnNumbers(CallId call, const redisReply* const* numbers, std::size_t count) override {
    ++results_;
    records_.push_back(call);
    records_.push_back(static_cast<double>(count));
    for (std::size_t i = 0; i < count; ++i) {
      records_.push_back(static_cast<double>(numbers[i]->integer));
    }
  }

  void OnReply(CallId call, const redisReply& reply) override {
    replies_.emplace_back(call, Reply::Copy(reply));
  }

  void OnFailure(CallId call, const Failure& failure) override {
    if (failures_.empty() || failures_.back().failure.kind != failure.kind ||
        failures_.back().failure.message != failure.message) {
      failures_.push_back({failure, {}});
    }
    failures_.back().calls.push_back(call);
  }

  void Deliver() override {
    napi_handle_scope scope = nullptr;
    napi_value keep = nullptr;
    if (napi_open_handle_scope(env_, &scope) != napi_ok) return;
    if (napi_get_reference_value(env_, keep_, &keep) == napi_ok && keep != nullptr) {
      DeliverState(keep);
      DeliverNumbers(keep);
      DeliverFailures(keep);
      DeliverReplies(keep);
    }
    if (holds_ && client_.pending() == 0 && records_.empty() && failures_.empty() &&
        replies_.empty()) {
      holds_ = false;
      napi_reference_unref(env_, keep_, nullptr);
    }
    napi_close_handle_scope(env_, scope);
  }

  /// Whether there is a connection, where that has changed.
  void DeliverState(napi_value keep) {
    const bool is_up = !is_closed_ && client_.transport().is_up();
    if (std::exchange(was_up_, is_up) != is_up) {
      Call(keep, "changed", std::array{binding::ToJs(env_, is_up)});
    }
  }

  /// In groups: what JavaScript asks on hearing of the first goes out before the next is told. So
  /// the server has something to do meanwhile; measured, this gives a fourth more checks per
  /// second.
  void DeliverNumbers(napi_value keep) {
    const std::size_t group = std::exchange(results_, 0) > kManyResults ? 64 : 32;
    std::vector<double> records = std::exchange(records_, std::move(spare_records_));
    records_.clear();
    const std::span<double> numbers = ReadDoubles(env_, Get(env_, keep, "numbers"));
    for (std::size_t from = 0; from < records.size();) {
      std::size_t to = from;
      std::size_t count = 0;
      while (to < records.size()) {
        const std::size_t length = 2 + static_cast<std::size_t>(records[to + 1]);
        if (to + length - from > numbers.size() || count == group) break;
        client_.HandingOn(static_cast<CallId>(records[to]));
        to += length;
        ++count;
      }
      if (count == 0) break;  // the array is gone with its thread
      std::copy(records.begin() + static_cast<std::ptrdiff_t>(from),
                records.begin() + static_cast<std::ptrdiff_t>(to), numbers.begin());
      Call(keep, "settle", std::array{binding::ToJs(env_, static_cast<Micros>(count))});
      from = to;
      if (from < records.size()) client_.SendNow();
    }
    spare_records_ = std::move(records);
  }

  void DeliverFailures(napi_value keep) {
    for (const FailedCalls& failed : std::exchange(failures_, {})) {
      const std::span<double> numbers = ReadDoubles(env_, Get(env_, keep, "numbers"));
      if (numbers.empty()) return;
      const std::string& message = failed.failure.message;
      for (std::size_t from = 0; from < failed.calls.size(); from += numbers.size()) {
        const std::size_t count = std::min(numbers.size(), failed.calls.size() - from);
        for (std::size_t i = 0; i < count; ++i) {
          client_.HandingOn(failed.calls[from + i]);
          numbers[i] = failed.calls[from + i];
        }
        napi_value kind = nullptr;
        napi_value text = nullptr;
        napi_create_string_utf8(env_, Name(failed.failure.kind), NAPI_AUTO_LENGTH, &kind);
        napi_create_string_utf8(env_, message.data(), message.size(), &text);
        Call(keep, "fail", std::array{kind, text, binding::ToJs(env_, static_cast<Micros>(count))});
      }
    }
  }

  void DeliverReplies(napi_value keep) {
    for (const auto& [call, reply] : std::exchange(replies_, {})) {
      client_.HandingOn(call);
      Call(keep, "reply",
           std::array{binding::ToJs(env_, static_cast<Micros>(call)), binding::ToJs(env_, reply)});
    }
  }

  /// Calls one of keep's functions as the loop does; what it throws is an uncaught exception.
  void Call(napi_value keep, const char* name, std::span<const napi_value> arguments) {
    napi_value function = Get(env_, keep, name);
    if (function == nullptr ||
        std::find(arguments.begin(), arguments.end(), nullptr) != arguments.end()) {
      return;
    }
    const napi_status status = napi_make_callback(env_, context_, keep, function, arguments.size(),
                                                  arguments.data(), nullptr);
    napi_value error = nullptr;
    if (status == napi_pending_exception &&
        napi_get_and_clear_last_exception(env_, &error) == napi_ok) {
      napi_fatal_exception(env_, error);
    }
  }

  napi_env env_;
  napi_async_context context_ = nullptr;
  napi_ref keep_ = nullptr;
  napi_async_cleanup_hook_handle hook_ = nullptr;
  bool holds_ = false;
  bool is_closed_ = false;
  bool was_up_ = false;  // as JavaScript was told last
  bool is_ending_ = false;
  bool is_released_ = false;
  bool is_gone_ = false;
  int functions_ = 0;
  std::vector<double> records_;
  std::size_t results_ = 0;  ///< in records_
  std::vector<double> spare_records_;
  std::vector<FailedCalls> failures_;
  std::vector<std::pair<CallId, Reply>> replies_;
  redis::Client client_;
};

constexpr int kTooMany = -1;

napi_value ToJs(napi_env env, RedisClient& client, std::optional<CallId> call) {
  if (call) client.Hold();
  return binding::ToJs(env, call ? static_cast<Micros>(*call) : Micros{kTooMany});
}

/// Of the user's clock; nothing where there is none.
std::optional<std::int64_t> ReadTime(napi_env env, napi_value from) {
  double time;
  if (napi_get_value_double(env, from, &time) != napi_ok) return std::nullopt;
  return static_cast<std::int64_t>(time);
}

napi_value Attempt(napi_env env, napi_callback_info info) {
  binding::Call<RedisClient, 6> call(env, info);
  redis::Attempt attempt;
  attempt.cost = static_cast<std::uint64_t>(ReadDouble(env, call.arguments[1]));
  attempt.records = ReadBool(env, call.arguments[2]);
  attempt.wants_all = ReadBool(env, call.arguments[3]);
  attempt.now = ReadTime(env, call.arguments[4]);
  if (call.count == 6) attempt.policy = ReadTexts(env, call.arguments[5]);
  std::array<char, 256> buffer;
  std::size_t length = 0;
  if (napi_get_value_string_utf8(env, call.arguments[0], buffer.data(), buffer.size(), &length) ==
          napi_ok &&
      length + 4 < buffer.size()) {
    return ToJs(env, *call.state,
                call.state->client().Try(std::string_view(buffer.data(), length), attempt));
  }
  return ToJs(env, *call.state,
              call.state->client().Try(ReadText(env, call.arguments[0]), attempt));
}

napi_value Refund(napi_env env, napi_callback_info info) {
  binding::Call<RedisClient, 5> call(env, info);
  const redis::Receipt receipt{
      static_cast<std::int64_t>(ReadDouble(env, call.arguments[1])),
      static_cast<std::int64_t>(ReadDouble(env, call.arguments[2])),
      static_cast<std::uint64_t>(ReadDouble(env, call.arguments[3])),
  };
  return ToJs(env, *call.state,
              call.state->client().Refund(ReadText(env, call.arguments[0]), receipt,
                                          ReadTime(env, call.arguments[4])));
}

napi_value Command(napi_env env, napi_callback_info info) {
  binding::Call<RedisClient, 3> call(env, info);
  return ToJs(env, *call.state,
              call.state->client().Command(ReadTexts(env, call.arguments[0]),
                                           ReadText(env, call.arguments[1]),
                                           ReadText(env, call.arguments[2])));
}

napi_value Nodes(napi_env env, napi_callback_info info) {
  const binding::Call<RedisClient, 0> call(env, info);
  Reply list{REDIS_REPLY_ARRAY};
  for (std::string& name : call.state->client().transport().Nodes()) {
    Reply node{REDIS_REPLY_STRING};
    node.text = std::move(name);
    list.elements.push_back(std::move(node));
  }
  return binding::ToJs(env, list);
}

napi_value Stats(napi_env env, napi_callback_info info) {
  const binding::Call<RedisClient, 0> call(env, info);
  const redis::Client& client = call.state->client();
  napi_value stats = nullptr;
  if (napi_create_object(env, &stats) != napi_ok) return nullptr;
  napi_set_named_property(env, stats, "isUp", binding::ToJs(env, client.transport().is_up()));
  napi_set_named_property(env, stats, "pending",
                          binding::ToJs(env, static_cast<Micros>(client.pending())));
  napi_set_named_property(
      env, stats, "connections",
      binding::ToJs(env, static_cast<Micros>(client.transport().connections())));
  return stats;
}

napi_value Close(napi_env env, napi_callback_info info) {
  binding::Call<RedisClient, 0>(env, info).state->Close();
  return nullptr;
}

void Release(napi_env, void* data, void*) {
  static_cast<RedisClient*>(data)->Release();
}

/// A callback that answers exhausted memory with an exception in JavaScript.
template <napi_value (*kCallback)(napi_env, napi_callback_info)>
napi_value Guarded(napi_env env, napi_callback_info info) {
  try {
    return kCallback(env, info);
  } catch (const std::invalid_argument& error) {
    napi_throw_error(env, "ERR_ROLLGATE_OPTION", error.what());
  } catch (const std::exception& error) {
    napi_throw_error(env, "ERR_ROLLGATE_MEMORY", error.what());
  }
  return nullptr;
}

napi_value Create(napi_env env, napi_callback_info info) {
  const binding::Call<void, 2> call(env, info);
  const auto [options, keep] = call.arguments;
  uv_loop_s* loop = nullptr;
  napi_value functions = nullptr;
  redis::ClientOptions client_options = ReadClientOptions(env, options);
  // lib has checked all this: what is missing could not be read, for the thread is to end.
  if (napi_get_uv_event_loop(env, &loop) != napi_ok || client_options.endpoints.empty() ||
      client_options.policy.empty() || napi_create_object(env, &functions) != napi_ok) {
    return nullptr;
  }
  auto* const client = new RedisClient(env, loop, std::move(client_options));
  client->AddFunction();  // until all functions are there
  bool all = client->Bind(keep);
  const auto add = [&](const char* name, napi_callback callback) {
    napi_value function = nullptr;
    if (!all ||
        napi_create_function(env, name, NAPI_AUTO_LENGTH, callback, client, &function) != napi_ok) {
      all = false;
      return;
    }
    all = napi_add_finalizer(env, function, client, Release, nullptr, nullptr) == napi_ok;
    if (!all) return;
    client->AddFunction();
    all = napi_set_named_property(env, functions, name, function) == napi_ok;
  };
  add("attempt", Guarded<Attempt>);
  add("refund", Guarded<Refund>);
  add("command", Guarded<Command>);
  add("nodes", Guarded<Nodes>);
  add("stats", Guarded<Stats>);
  add("close", Guarded<Close>);
  client->Release();
  return all ? functions : nullptr;
}

}  // namespace

napi_value CreateRedisClient(napi_env env, napi_callback_info info) {
  return Guarded<Create>(env, info);
}

}  // namespace rollgate::binding
