// Wraps libuv's handles, so that their owners may be destroyed at any time.
#include "redis/event_loop.h"

#include <poll.h>
#include <sys/un.h>
#include <uv.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <utility>

namespace rollgate::redis {

struct EventLoop::State {
  uv_loop_t* loop;
  int handles = 0;
  std::function<void()> on_empty{};
  std::array<char, 65'536> read_buffer{};  ///< of all streams: libuv reads one at a time

  void Release() {
    if (--handles == 0 && on_empty) std::exchange(on_empty, nullptr)();
  }
};

EventLoop::EventLoop(uv_loop_s* loop) : state_(std::make_shared<State>(loop)) {}

Millis EventLoop::Now() {
  return static_cast<Millis>(uv_hrtime() / 1'000'000);
}

void EventLoop::WhenEmpty(std::function<void()> on_empty) {
  if (state_->handles == 0) {
    on_empty();
  } else {
    state_->on_empty = std::move(on_empty);
  }
}

namespace {

/// A libuv handle with its callback; the loop deletes it after Close. `Self` is the derived class.
template <class Self, class Uv, class Callback>
struct OwnHandle {
  OwnHandle(std::shared_ptr<EventLoop::State> loop_state, Callback on_event)
      : state(std::move(loop_state)), callback(std::move(on_event)) {
    handle()->data = static_cast<Self*>(this);
    ++state->handles;
  }

  uv_handle_t* handle() { return reinterpret_cast<uv_handle_t*>(&uv); }

  /// The callback itself may call this, because a copy of it runs.
  void Close() {
    callback = nullptr;
    uv_close(handle(), [](uv_handle_t* closed) {
      auto* handle = static_cast<Self*>(closed->data);
      const auto state = std::move(handle->state);
      delete handle;
      state->Release();
    });
  }

  Uv uv{};
  std::shared_ptr<EventLoop::State> state;
  Callback callback;
};

union AnyStream {
  uv_stream_t stream;
  uv_tcp_t tcp;
  uv_pipe_t pipe;
};

union AnyAddress {
  sockaddr any;
  sockaddr_in ipv4;
  sockaddr_in6 ipv6;
};

constexpr unsigned kKeepAliveSeconds = 60;

}  // namespace

/// The callback is the owner, or null once that is destroyed.
struct Stream::Handle : OwnHandle<Stream::Handle, AnyStream, Stream::Owner*> {
  using OwnHandle::OwnHandle;

  static void OnConnected(uv_connect_t* connecting, int status) {
    auto& self = *static_cast<Handle*>(connecting->handle->data);
    if (self.callback == nullptr) return;
    if (status == 0) {
      status = uv_read_start(
          &self.uv.stream,
          [](uv_handle_t* handle, std::size_t, uv_buf_t* buffer) {
            auto& room = static_cast<Handle*>(handle->data)->state->read_buffer;
            *buffer = uv_buf_init(room.data(), static_cast<unsigned>(room.size()));
          },
          OnRead);
    }
    self.callback->OnConnected(status == 0 ? "" : uv_strerror(status));
  }

  static void OnRead(uv_stream_t* stream, ssize_t count, const uv_buf_t* buffer) {
    const auto& self = *static_cast<Handle*>(stream->data);
    if (self.callback == nullptr || count == 0) return;
    if (count > 0) {
      self.callback->OnBytes({buffer->base, static_cast<std::size_t>(count)});
    } else {
      const auto error = static_cast<int>(count);
      self.callback->OnEnd(error == UV_EOF ? "the server closed the connection"
                                           : uv_strerror(error));
    }
  }

  uv_connect_t connecting{};
};

/// Bytes that the socket did not take at once.
struct Rest {
  uv_write_t writing{};
  std::string bytes;
};

Stream::Stream(const EventLoop& loop, const Address& to, Owner& owner)
    : handle_(new Handle(loop.state(), &owner)), to_(to) {
  if (to.path.empty()) {
    uv_tcp_init(loop.state()->loop, &handle_->uv.tcp);
  } else {
    uv_pipe_init(loop.state()->loop, &handle_->uv.pipe, 0);
  }
  uv_unref(handle_->handle());
}

Stream::~Stream() {
  handle_->Close();
}

std::string Stream::Connect() {
  if (!to_.path.empty()) {
    // libuv would cut it.
    if (to_.path.size() >= sizeof(sockaddr_un::sun_path)) return uv_strerror(UV_ENAMETOOLONG);
    uv_pipe_connect(&handle_->connecting, &handle_->uv.pipe, to_.path.c_str(), Handle::OnConnected);
    return {};
  }
  AnyAddress address{};
  int status = uv_ip4_addr(to_.host.c_str(), to_.port, &address.ipv4);
  if (status != 0) status = uv_ip6_addr(to_.host.c_str(), to_.port, &address.ipv6);
  if (status == 0) {
    status =
        uv_tcp_connect(&handle_->connecting, &handle_->uv.tcp, &address.any, Handle::OnConnected);
  }
  if (status != 0) return uv_strerror(status);
  uv_tcp_nodelay(&handle_->uv.tcp, 1);
  uv_tcp_keepalive(&handle_->uv.tcp, 1, kKeepAliveSeconds);
  return {};
}

void Stream::Write(std::string_view bytes) {
  uv_stream_t* const stream = &handle_->uv.stream;
  const auto buffer_of = [](std::string_view part) {
    return uv_buf_init(const_cast<char*>(part.data()), static_cast<unsigned>(part.size()));
  };
  uv_buf_t buffer = buffer_of(bytes);
  const int written = uv_try_write(stream, &buffer, 1);
  bytes.remove_prefix(static_cast<std::size_t>(std::max(written, 0)));
  if (bytes.empty()) return;
  // Errors are not reported: reading meets them as well, after what the server said before.
  auto rest = std::make_unique<Rest>(Rest{{}, std::string(bytes)});
  rest->writing.data = rest.get();
  buffer = buffer_of(rest->bytes);
  const auto on_written = [](uv_write_t* writing, int) {
    delete static_cast<Rest*>(writing->data);
  };
  if (uv_write(&rest->writing, stream, &buffer, 1, on_written) == 0) {
    static_cast<void>(rest.release());
  }
}

bool Stream::HasUnread() const {
  uv_os_fd_t socket = -1;
  if (uv_fileno(handle_->handle(), &socket) != 0) return false;
  pollfd readable{socket, POLLIN, 0};
  return poll(&readable, 1, 0) > 0;
}

struct BeforeWait::Handle : OwnHandle<BeforeWait::Handle, uv_prepare_t, std::function<void()>> {
  using OwnHandle::OwnHandle;
};

BeforeWait::BeforeWait(const EventLoop& loop, std::function<void()> callback)
    : handle_(new Handle(loop.state(), std::move(callback))) {
  uv_prepare_init(loop.state()->loop, &handle_->uv);
  uv_unref(handle_->handle());
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
  uv_unref(handle_->handle());
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
    uv_ref(handle_->handle());
  } else {
    uv_unref(handle_->handle());
  }
}

bool IsAddress(const std::string& host) {
  AnyAddress address{};
  return uv_ip4_addr(host.c_str(), 0, &address.ipv4) == 0 ||
         uv_ip6_addr(host.c_str(), 0, &address.ipv6) == 0;
}

}  // namespace rollgate::redis
