// Wraps libuv's handles, so that their owners may be destroyed at any time.
#include "redis/event_loop.h"

#include <uv.h>

#include <algorithm>
#include <utility>

namespace rollgate::redis {

struct EventLoop::State {
  uv_loop_t* loop;
  int handles = 0;
  int lookups = 0;
  std::function<void()> on_idle;
  std::function<void()> on_empty;

  void Release(int& count) {
    --count;
    CallBackIfEmpty();
  }
  void CallBackIfEmpty() {
    if (handles > 0) return;
    if (on_idle) std::exchange(on_idle, nullptr)();
    if (lookups == 0 && on_empty) std::exchange(on_empty, nullptr)();
  }
};

EventLoop::EventLoop(uv_loop_s* loop)
    : state_(std::make_shared<State>(State{loop, 0, 0, nullptr, nullptr})) {}

Millis EventLoop::Now() {
  return static_cast<Millis>(uv_hrtime() / 1'000'000);
}

void EventLoop::WhenEmpty(std::function<void()> on_idle, std::function<void()> on_empty) {
  state_->on_idle = std::move(on_idle);
  state_->on_empty = std::move(on_empty);
  const auto state = state_;
  state->CallBackIfEmpty();
}

namespace {

/// A libuv handle with its callback; the loop deletes it after Close. `Self` is the derived class.
template <class Self, class Uv, class Callback>
struct OwnHandle {
  OwnHandle(std::shared_ptr<EventLoop::State> loop_state, Callback on_event)
      : state(std::move(loop_state)), callback(std::move(on_event)) {
    uv.data = static_cast<Self*>(this);
    ++state->handles;
  }

  void Unref() { uv_unref(reinterpret_cast<uv_handle_t*>(&uv)); }
  void Ref() { uv_ref(reinterpret_cast<uv_handle_t*>(&uv)); }

  /// The callback itself may call this, because a copy of it runs.
  void Close() {
    callback = nullptr;
    uv_close(reinterpret_cast<uv_handle_t*>(&uv), [](uv_handle_t* closed) {
      auto* handle = static_cast<Self*>(closed->data);
      const auto state = std::move(handle->state);
      delete handle;
      state->Release(state->handles);
    });
  }

  Uv uv{};
  std::shared_ptr<EventLoop::State> state;
  Callback callback;
};

}  // namespace

struct SocketWatch::Handle
    : OwnHandle<SocketWatch::Handle, uv_poll_t, std::function<void(bool, bool)>> {
  using OwnHandle::OwnHandle;

  static void OnReady(uv_poll_t* poll, int status, int events) {
    const auto callback = static_cast<Handle*>(poll->data)->callback;
    const bool failed = status < 0;
    if (callback) callback(failed || (events & UV_READABLE), failed || (events & UV_WRITABLE));
  }
};

SocketWatch::SocketWatch(const EventLoop& loop, int socket,
                         std::function<void(bool, bool)> on_ready)
    : handle_(new Handle(loop.state(), std::move(on_ready))) {
  uv_poll_init_socket(loop.state()->loop, &handle_->uv, socket);
  uv_poll_start(&handle_->uv, UV_READABLE, Handle::OnReady);
  handle_->Unref();
}

SocketWatch::~SocketWatch() {
  handle_->Close();
}

void SocketWatch::WatchWritable(bool wanted) {
  if (wanted == watches_writable_) return;
  watches_writable_ = wanted;
  uv_poll_start(&handle_->uv, wanted ? UV_READABLE | UV_WRITABLE : UV_READABLE, Handle::OnReady);
}

struct BeforeWait::Handle : OwnHandle<BeforeWait::Handle, uv_prepare_t, std::function<void()>> {
  using OwnHandle::OwnHandle;
};

BeforeWait::BeforeWait(const EventLoop& loop, std::function<void()> callback)
    : handle_(new Handle(loop.state(), std::move(callback))) {
  uv_prepare_init(loop.state()->loop, &handle_->uv);
  handle_->Unref();
}

BeforeWait::~BeforeWait() {
  handle_->Close();
}

void BeforeWait::Request() {
  uv_prepare_start(&handle_->uv, [](uv_prepare_t* prepare) {
    uv_prepare_stop(prepare);
    const auto callback = static_cast<Handle*>(prepare->data)->callback;
    if (callback) callback();
  });
}

struct Timer::Handle : OwnHandle<Timer::Handle, uv_timer_t, std::function<void()>> {
  using OwnHandle::OwnHandle;
  Millis due = 0;
};

Timer::Timer(const EventLoop& loop, std::function<void()> callback)
    : handle_(new Handle(loop.state(), std::move(callback))) {
  uv_timer_init(loop.state()->loop, &handle_->uv);
  handle_->Unref();
}

Timer::~Timer() {
  handle_->Close();
}

void Timer::CallAt(Millis at) {
  const bool is_active = uv_is_active(reinterpret_cast<uv_handle_t*>(&handle_->uv)) != 0;
  if (is_active && handle_->due <= at) return;
  handle_->due = at;
  uv_update_time(handle_->state->loop);
  const Millis delay = std::max<Millis>(0, at - EventLoop::Now());
  uv_timer_start(
      &handle_->uv,
      [](uv_timer_t* timer) {
        const auto callback = static_cast<Handle*>(timer->data)->callback;
        if (callback) callback();
      },
      static_cast<std::uint64_t>(delay), 0);
}

void Timer::KeepProcessAlive(bool alive) {
  if (alive == keeps_alive_) return;
  keeps_alive_ = alive;
  if (alive) {
    handle_->Ref();
  } else {
    handle_->Unref();
  }
}

bool IsAddress(const std::string& host) {
  sockaddr_in ipv4{};
  sockaddr_in6 ipv6{};
  return uv_ip4_addr(host.c_str(), 0, &ipv4) == 0 || uv_ip6_addr(host.c_str(), 0, &ipv6) == 0;
}

struct NameLookup::Request {
  uv_getaddrinfo_t uv{};
  std::shared_ptr<EventLoop::State> state;
  NameLookup* owner;
  Callback callback;
};

NameLookup::NameLookup(const EventLoop& loop, const std::string& host, Callback callback)
    : request_(new Request{{}, loop.state(), this, std::move(callback)}) {
  request_->uv.data = request_;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  const auto on_found = [](uv_getaddrinfo_t* uv, int status, addrinfo* found) {
    const std::unique_ptr<Request> request(static_cast<Request*>(uv->data));
    std::vector<std::string> addresses;
    for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
      char text[64] = "";
      if (one->ai_family == AF_INET) {
        uv_ip4_name(reinterpret_cast<const sockaddr_in*>(one->ai_addr), text, sizeof text);
      } else if (one->ai_family == AF_INET6) {
        uv_ip6_name(reinterpret_cast<const sockaddr_in6*>(one->ai_addr), text, sizeof text);
      }
      if (text[0] != '\0') addresses.emplace_back(text);
    }
    uv_freeaddrinfo(found);
    if (request->owner != nullptr) {
      request->owner->request_ = nullptr;
      request->callback(std::move(addresses), status < 0 ? uv_strerror(status) : "no address");
    }
    request->state->Release(request->state->lookups);
  };
  const int status =
      uv_getaddrinfo(loop.state()->loop, &request_->uv, on_found, host.c_str(), nullptr, &hints);
  if (status < 0) {
    error_ = uv_strerror(status);
    delete std::exchange(request_, nullptr);
    return;
  }
  ++request_->state->lookups;
}

NameLookup::~NameLookup() {
  if (request_ == nullptr) return;
  request_->owner = nullptr;
  uv_cancel(reinterpret_cast<uv_req_t*>(&request_->uv));
}

}  // namespace rollgate::redis
