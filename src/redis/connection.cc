// Drives a hiredis context from the event loop.
//
// If a read or write fails, hiredis calls every callback with null, calls the cleanup hook, and
// frees the context. So the code checks after each call into hiredis whether the context exists.
#include "redis/connection.h"

#include <hiredis/async.h>
#include <hiredis/hiredis.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

namespace rollgate::redis {

std::string Endpoint::Name() const {
  return path.empty() ? host + ":" + std::to_string(port) : path;
}

/// What hiredis calls.
struct Connection::Hooks {
  static Connection& From(void* data) { return *static_cast<Connection*>(data); }

  static void AddWrite(void* data) {
    Connection& connection = From(data);
    connection.has_to_write_ = true;
    // Before the connection is made, and after a partial write, wait until the socket is writable.
    if (connection.watch_ && (!connection.is_connected_ || connection.is_writing_)) {
      connection.watch_->WatchWritable(true);
    }
  }

  static void DelWrite(void* data) {
    Connection& connection = From(data);
    connection.has_to_write_ = false;
    if (connection.watch_) connection.watch_->WatchWritable(false);
  }

  static void Cleanup(void* data) {
    Connection& connection = From(data);
    const redisContext& context = connection.context_->c;
    connection.context_failure_ = {
        context.err == REDIS_ERR_PROTOCOL ? Failure::Kind::kReply : Failure::Kind::kUnreachable,
        context.errstr[0] == '\0' ? "the connection was closed" : context.errstr};
    if (connection.got_unexpected_reply_) {
      connection.context_failure_ = {Failure::Kind::kReply, "an answer that nobody asked for"};
    }
#ifdef ROLLGATE_HAS_TLS
    if (connection.tls_session_ != nullptr) {
      const std::string distrust = TlsContext::Distrust(connection.tls_session_);
      if (!distrust.empty()) connection.context_failure_.message = distrust;
      connection.tls_session_ = nullptr;
    }
#endif
    connection.watch_.reset();
    connection.context_ = nullptr;
  }

  static void OnConnect(const redisAsyncContext* context, int status) {
    // hiredis 0.14 reports some failures by the status only; later versions set err as well.
    if (status == REDIS_OK && context->err == 0) From(context->data).OnConnected();
  }

  static void OnReply(redisAsyncContext* context, void* reply, void* data) {
    Connection& connection = From(context->data);
    std::unique_ptr<Request> request(static_cast<Request*>(data));
    --connection.on_the_wire_;
    if (reply == nullptr) {
      connection.unanswered_.push_back(std::move(request));
    } else {
      connection.has_answered_ = true;
      connection.owner_.OnAnswer(connection, std::move(request),
                                 *static_cast<const redisReply*>(reply));
    }
  }

  /// hiredis aborts the process if a reply arrives that no command asked for. These functions make
  /// such a reply an error of the reader, by creating no object. Error replies are excepted: a
  /// server may send one before it closes the connection.
  template <auto kCreate>
  struct Asked;
  template <class... Values,
            void* (*redisReplyObjectFunctions::*kCreate)(const redisReadTask*, Values...)>
  struct Asked<kCreate> {
    static void* Create(const redisReadTask* task, Values... values) {
      if (task->parent == nullptr && task->type != REDIS_REPLY_ERROR) {
        Connection& connection = From(task->privdata);
        if (connection.context_->replies.head == nullptr) {
          connection.got_unexpected_reply_ = true;
          return nullptr;
        }
      }
      return (Originals().*kCreate)(task, values...);
    }
  };

  /// The functions of hiredis; the same in every context.
  static const redisReplyObjectFunctions& Originals(
      const redisReplyObjectFunctions& functions = {}) {
    static const redisReplyObjectFunctions kOriginals = functions;
    return kOriginals;
  }

  static void Guard(Connection& connection, redisReader& reader) {
    using Functions = redisReplyObjectFunctions;
    static Functions guarded = [&reader] {
      Functions functions = Originals(*reader.fn);
      functions.createString = Asked<&Functions::createString>::Create;
      functions.createArray = Asked<&Functions::createArray>::Create;
      functions.createInteger = Asked<&Functions::createInteger>::Create;
      functions.createNil = Asked<&Functions::createNil>::Create;
#if HIREDIS_MAJOR >= 1
      functions.createDouble = Asked<&Functions::createDouble>::Create;
      functions.createBool = Asked<&Functions::createBool>::Create;
#endif
      return functions;
    }();
    reader.fn = &guarded;
    reader.privdata = &connection;
  }

  static void OnGreeting(redisAsyncContext* context, void* reply, void*) {
    Connection& connection = From(context->data);
    if (reply == nullptr) return;
    --connection.greetings_;
    const auto& answer = *static_cast<const redisReply*>(reply);
    if (answer.type == REDIS_REPLY_ERROR && !connection.greeting_failure_) {
      connection.greeting_failure_ =
          std::make_unique<Failure>(FromErrorReply(std::string(answer.str, answer.len)));
    }
  }
};

Connection::Connection(const EventLoop& loop, const ConnectionOptions& options, Endpoint endpoint,
                       Owner& owner)
    : loop_(loop),
      options_(options),
      endpoint_(std::move(endpoint)),
      owner_(owner),
      random_(static_cast<std::uint_fast32_t>(options.jitter_seed)) {}

Connection::~Connection() {
  lookup_.reset();
  FreeContext();
}

void Connection::FreeContext() {
  if (context_ == nullptr) return;
  context_->ev.data = this;
  redisAsyncFree(context_);
  context_ = nullptr;
}

void Connection::Send(std::unique_ptr<Request> request) {
  if (state_ == State::kUp) {
    Write(std::move(request));
    return;
  }
  if (state_ == State::kWaiting && retry_at_ > request->deadline) {
    owner_.OnFailure(std::move(request), last_failure_);
    return;
  }
  waiting_.push_back(std::move(request));
  if (state_ == State::kIdle) Connect();
}

void Connection::Write(std::unique_ptr<Request> request) {
  buffer_.clear();
  request->Encode(buffer_);
  if (on_the_wire_++ == 0) silent_since_ = EventLoop::Now();
  Request* const sent = request.release();
  if (redisAsyncFormattedCommand(context_, Hooks::OnReply, sent, buffer_.data(), buffer_.size()) !=
      REDIS_OK) {
    --on_the_wire_;
    owner_.OnFailure(std::unique_ptr<Request>(sent),
                     {Failure::Kind::kUnreachable, "the connection is being closed"});
  }
}

void Connection::Flush() {
  if (context_ == nullptr || !has_to_write_ || !is_connected_) return;
  HandleWrite();
  CheckContext();
}

void Connection::HandleWrite() {
  is_writing_ = true;
  redisAsyncHandleWrite(context_);
  is_writing_ = false;
}

void Connection::DropTimedOut() {
  while (!waiting_.empty() && waiting_.front()->timed_out) {
    owner_.OnFailure(std::move(waiting_.front()), last_failure_);
    waiting_.pop_front();
  }
}

void Connection::Connect() {
  state_ = State::kConnecting;
  connect_by_ = EventLoop::Now() + options_.connect_timeout;
  addresses_.clear();
  if (!endpoint_.path.empty() || IsAddress(endpoint_.host)) {
    addresses_.push_back(endpoint_.host);
    ConnectToNextAddress();
    return;
  }
  const auto fail = [this](const std::string& error) {
    Lose({Failure::Kind::kUnreachable, "looking up '" + endpoint_.host + "': " + error});
  };
  lookup_ = std::make_unique<NameLookup>(
      loop_, endpoint_.host,
      [this, fail](std::vector<std::string> addresses, const std::string& error) {
        lookup_.reset();
        if (addresses.empty()) {
          fail(error);
        } else {
          addresses_.assign(addresses.begin(), addresses.end());
          ConnectToNextAddress();
        }
        owner_.OnSettled();
      });
  if (const std::string error = lookup_->error(); !error.empty()) fail(error);
}

void Connection::ConnectToNextAddress() {
  // Each address gets a share of the time, so that one that does not answer leaves time for others.
  const Millis now = EventLoop::Now();
  address_by_ = now + (connect_by_ - now) / static_cast<Millis>(addresses_.size());
  const std::string address = std::move(addresses_.front());
  addresses_.pop_front();
  context_ = endpoint_.path.empty() ? redisAsyncConnect(address.c_str(), endpoint_.port)
                                    : redisAsyncConnectUnix(endpoint_.path.c_str());
  if (context_ == nullptr || context_->err != 0) {
    const std::string error = context_ == nullptr ? "out of memory" : context_->errstr;
    if (context_ != nullptr) redisAsyncFree(context_);
    context_ = nullptr;
    if (!addresses_.empty()) {
      ConnectToNextAddress();
    } else {
      Lose({Failure::Kind::kUnreachable, error});
    }
    return;
  }
  is_connected_ = false;
  has_answered_ = false;
  greetings_ = 0;
  greeting_failure_.reset();
  got_unexpected_reply_ = false;
  Hooks::Guard(*this, *context_->c.reader);
  context_->data = this;
  context_->ev.data = this;
  context_->ev.addWrite = Hooks::AddWrite;
  context_->ev.delWrite = Hooks::DelWrite;
  context_->ev.cleanup = Hooks::Cleanup;
  watch_ = std::make_unique<SocketWatch>(
      loop_, context_->c.fd,
      [this](bool is_readable, bool is_writable) { OnSocket(is_readable, is_writable); });
  redisAsyncSetConnectCallback(context_, Hooks::OnConnect);
}

/// Starts TLS before anything is written. If that fails, nothing is written.
void Connection::OnConnected() {
  is_connected_ = true;
#ifdef ROLLGATE_HAS_TLS
  if (options_.tls) {
    std::string error;
    tls_session_ = options_.tls->Start(context_->c, endpoint_.host, error);
    if (tls_session_ == nullptr) {
      greeting_failure_ = std::make_unique<Failure>(Failure{Failure::Kind::kUnreachable, error});
      return;
    }
  }
#endif
  Greet();
}

void Connection::Greet() {
  const auto greet = [this](const std::string& command) {
    if (redisAsyncFormattedCommand(context_, Hooks::OnGreeting, nullptr, command.data(),
                                   command.size()) == REDIS_OK) {
      ++greetings_;
    }
  };
  if (!options_.password.empty()) {
    greet(options_.username.empty() ? Command({"AUTH", options_.password})
                                    : Command({"AUTH", options_.username, options_.password}));
  }
  if (options_.db != 0) greet(Command({"SELECT", std::to_string(options_.db)}));
  if (!options_.name.empty()) greet(Command({"CLIENT", "SETNAME", options_.name}));
}

void Connection::OnGreeted() {
  state_ = State::kUp;
  ++connections_;
  if (endpoint_.path.empty()) redisEnableKeepAlive(&context_->c);
  while (!waiting_.empty() && state_ == State::kUp) {
    std::unique_ptr<Request> request = std::move(waiting_.front());
    waiting_.pop_front();
    if (request->timed_out) {
      owner_.OnFailure(std::move(request), last_failure_);
    } else {
      Write(std::move(request));
    }
  }
  Flush();
}

void Connection::OnSocket(bool is_readable, bool is_writable) {
  if (is_writable && context_ != nullptr) HandleWrite();
  if (is_readable && context_ != nullptr) {
    silent_since_ = EventLoop::Now();
    redisAsyncHandleRead(context_);
  }
  CheckContext();
  owner_.OnSettled();
}

/// Handles the state in which a call into hiredis left the context.
void Connection::CheckContext() {
  if (context_ == nullptr) {
    if (state_ == State::kConnecting && !is_connected_ && !addresses_.empty()) {
      ConnectToNextAddress();
    } else {
      Lose(greeting_failure_ ? *greeting_failure_ : context_failure_);
    }
    return;
  }
  if (state_ != State::kConnecting || !is_connected_) return;
  if (greeting_failure_) {
    Lose(*greeting_failure_);
  } else if (greetings_ == 0) {
    OnGreeted();
  }
}

void Connection::Lose(Failure failure) {
  const bool was_up = state_ == State::kUp;
  lookup_.reset();
  FreeContext();
  if (failure.kind == Failure::Kind::kUnreachable) {
    failure.message = endpoint_.Name() + ": " + failure.message;
  }
  last_failure_ = failure;
  // A connection that has served is made again at once; otherwise the delay doubles with each try.
  failed_tries_ = was_up && has_answered_ ? 0 : failed_tries_ + 1;
  Millis delay = 0;
  if (failed_tries_ > 0) {
    delay = std::min(options_.retry_max, options_.retry_min << std::min(failed_tries_ - 1, 20));
    delay -= std::uniform_int_distribution<Millis>(0, delay / 2)(random_);
  }
  state_ = State::kWaiting;
  retry_at_ = EventLoop::Now() + delay;
  FailAll(!was_up, failure);
  owner_.OnLost();
}

void Connection::FailAll(bool waiting_too, const Failure& failure) {
  std::vector<std::unique_ptr<Request>> failed = std::exchange(unanswered_, {});
  if (waiting_too) {
    for (auto& request : std::exchange(waiting_, {})) failed.push_back(std::move(request));
  }
  for (auto& request : failed) owner_.OnFailure(std::move(request), failure);
}

void Connection::Close(const Failure& failure) {
  lookup_.reset();
  addresses_.clear();
  FreeContext();
  state_ = State::kIdle;
  FailAll(true, failure);
}

Millis Connection::NextDue() const {
  switch (state_) {
    case State::kConnecting:
      return context_ == nullptr || is_connected_ ? connect_by_ : address_by_;
    case State::kWaiting:
      return retry_at_;
    case State::kUp:
      if (on_the_wire_ > 0) return silent_since_ + options_.longest_silence;
      break;
    case State::kIdle:
      break;
  }
  return std::numeric_limits<Millis>::max();
}

void Connection::OnTime(Millis now) {
  if (now < NextDue()) return;
  switch (state_) {
    case State::kConnecting:
      if (context_ != nullptr && !is_connected_ && !addresses_.empty()) {
        FreeContext();
        ConnectToNextAddress();
        break;
      }
      Lose({Failure::Kind::kUnreachable,
            "no connection within " + std::to_string(options_.connect_timeout) + " ms"});
      break;
    case State::kWaiting:
      Connect();
      break;
    case State::kUp:
      Lose({Failure::Kind::kUnreachable,
            "no answer for " + std::to_string(options_.longest_silence) + " ms"});
      break;
    case State::kIdle:
      break;
  }
}

}  // namespace rollgate::redis
