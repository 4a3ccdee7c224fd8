// Connects, greets, and matches replies to requests.
#include "redis/connection.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace rollgate::redis {
namespace {

/// How many attempts double the delay before the next one.
constexpr int kMostDoublings = 20;

/// A server that cannot serve, while another one may: behind the same name or address, or later.
/// Before version 7, an error in a script contains the error of its command.
bool IsOutOfService(const Reply& reply) {
  return reply.IsError("LOADING ") ||
         (reply.kind == Reply::Kind::kError && reply.text.find("READONLY ") != std::string::npos);
}

bool IsStatus(const Reply& reply) {
  return reply.kind == Reply::Kind::kString || reply.kind == Reply::Kind::kError;
}

/// The reply does not match its request, so later replies cannot be trusted either.
Failure Foreign() {
  return {Failure::Kind::kReply, "the reply does not fit the command"};
}

bool IsMaster(const Reply& role) {
  return role.kind == Reply::Kind::kArray && !role.elements.empty() &&
         role.elements.front().text == "master";
}

}  // namespace

Connection::Connection(const EventLoop& loop, const ConnectionOptions& options, std::size_t number,
                       std::string name, Owner& owner)
    : loop_(loop),
      options_(options),
      number_(number),
      name_(std::move(name)),
      owner_(owner),
      random_(static_cast<std::uint_fast32_t>(options.jitter_seed + number)) {}

void Connection::Send(std::unique_ptr<Request> request) {
  if (state_ == State::kWaiting && retry_at_ > request->deadline) {
    owner_.OnFailure(std::move(request), last_failure_);
    return;
  }
  waiting_.push_back(std::move(request));
  if (state_ == State::kIdle) Find();
}

void Connection::Flush() {
  if (stream_ == nullptr || broken_) return;
  if (state_ == State::kUp && !waiting_.empty() && !IsDoubtful()) WriteWaiting();
  if (to_write_.empty()) return;
  if (tls_ == nullptr) {
    stream_->Write(to_write_);
  } else {
    std::string error;
    if (!tls_->Send(to_write_, error)) Break(Unreachable(error));
    WriteEncrypted();
  }
  to_write_.clear();
}

/// Whether the server may have closed the connection, or may never answer on it. Requests then wait
/// until the loop has read what arrived: on another connection only those can be sent that were not
/// written. The process may have been stopped for hours at any point before this.
bool Connection::IsDoubtful() const {
  if (sent_.empty()) return stream_->HasUnread();
  return EventLoop::Now() - silent_since_ > options_.longest_silence / 2;
}

void Connection::WriteWaiting() {
  while (!waiting_.empty()) {
    std::unique_ptr<Request> request = std::move(waiting_.front());
    waiting_.pop_front();
    if (request->timed_out) {
      owner_.OnFailure(std::move(request), last_failure_);
      continue;
    }
    if (request->asks) to_write_ += Command({"ASKING"});
    request->Encode(to_write_);
    if (sent_.empty()) silent_since_ = EventLoop::Now();
    sent_.push_back(std::move(request));
  }
}

void Connection::WriteEncrypted() {
  encrypted_.clear();
  tls_->TakeOutput(encrypted_);
  if (!encrypted_.empty()) stream_->Write(encrypted_);
}

void Connection::DropTimedOut() {
  while (!waiting_.empty() && waiting_.front()->timed_out) {
    owner_.OnFailure(std::move(waiting_.front()), last_failure_);
    waiting_.pop_front();
  }
}

void Connection::Find() {
  state_ = State::kFinding;
  ++attempt_;
  connect_by_ = EventLoop::Now() + options_.connect_timeout;
  owner_.OnRouteWanted(*this);
}

void Connection::Connect(std::uint32_t attempt, const std::optional<Route>& route) {
  if (state_ != State::kFinding || attempt != attempt_) return;
  if (!route || route->addresses.empty()) {
    Lose({Failure::Kind::kNotFound, std::to_string(number_)});
    return;
  }
  route_ = *route;
  // If there is a choice, the server that was lost is tried last: it may not be the master any
  // more.
  std::stable_partition(route_.addresses.begin(), route_.addresses.end(),
                        [&](const Address& address) { return address != last_address_; });
  next_address_ = 0;
  ConnectToNextAddress();
}

void Connection::ConnectToNextAddress() {
  // Each address gets a share of the time, so that one that does not answer leaves time for others.
  const Millis now = EventLoop::Now();
  const auto left = static_cast<Millis>(route_.addresses.size() - next_address_);
  address_by_ = now + (connect_by_ - now) / left;
  state_ = State::kConnecting;
  last_address_ = route_.addresses[next_address_++];
  broken_.reset();
  has_received_ = false;
  has_served_ = false;
  greetings_ = 0;
  to_write_.clear();
  tls_.reset();
  reader_ = std::make_unique<ReplyReader>();
  Stream::Owner& owner = *this;
  stream_ = std::make_unique<Stream>(loop_, last_address_, owner);
  if (const std::string error = stream_->Connect(); !error.empty()) Lose(Unreachable(error));
}

void Connection::OnConnected(const std::string& error) {
  if (!error.empty()) {
    Lose(Unreachable(error));
  } else {
    state_ = State::kGreeting;
    if (options_.tls) {
      StartTls();
    } else {
      Greet();
    }
  }
  LoseIfBroken();
  owner_.OnSettled();
}

void Connection::StartTls() {
  std::string error;
  tls_ = TlsSession::Create(*options_.tls, route_.host, error);
  if (tls_ == nullptr) {
    Break(Unreachable(error));
    return;
  }
  WriteEncrypted();
}

void Connection::Greet() {
  to_write_ += route_.greeting;
  greetings_ = route_.greetings;
  if (greetings_ == 0) OnGreeted();
  Flush();
}

void Connection::OnGreeted() {
  state_ = State::kUp;
  ++connections_;
  WriteWaiting();  // they fail if this attempt does
  Flush();
}

void Connection::OnBytes(std::string_view bytes) {
  has_received_ = true;
  if (tls_ == nullptr) {
    Read(bytes);
  } else {
    const bool was_established = tls_->is_established();
    std::string error;
    decrypted_.clear();
    const bool is_good = tls_->Receive(bytes, decrypted_, error);
    WriteEncrypted();
    if (is_good && !was_established && tls_->is_established()) Greet();
    Read(decrypted_);
    if (!is_good) Break(Unreachable(error));
  }
  LoseIfBroken();
  owner_.OnSettled();
}

void Connection::OnEnd(const std::string& error) {
  Break(Unreachable(error + HintAtTls()));
  LoseIfBroken();
  owner_.OnSettled();
}

void Connection::Read(std::string_view bytes) {
  reader_->Feed(bytes);
  while (Reply* const reply = broken_ ? nullptr : reader_->Next()) {
    if (state_ == State::kGreeting) {
      OnGreetingReply(*reply);
    } else {
      OnReply(*reply);
    }
  }
  if (reader_->error().empty()) return;
  const bool is_tls = bytes.starts_with('\x15') && tls_ == nullptr;
  Break(is_tls ? Unreachable("the server speaks TLS; with TLS, the URL begins with rediss://")
               : Failure{Failure::Kind::kReply, reader_->error()});
}

void Connection::OnGreetingReply(const Reply& reply) {
  if (reply.kind == Reply::Kind::kError) {
    Break(FromErrorReply(reply.text));
  } else if (greetings_ == 1 && route_.wants_master && !IsMaster(reply)) {
    Break(Unreachable("the sentinels' master is no master"));
  } else if (!IsStatus(reply) && !(greetings_ == 1 && route_.wants_master)) {
    Break(Foreign());
  } else if (--greetings_ == 0 && !broken_) {
    OnGreeted();
  }
}

void Connection::OnReply(Reply& reply) {
  if (sent_.empty()) {
    // A server may send an error before it closes the connection.
    Break(reply.kind == Reply::Kind::kError
              ? FromErrorReply(reply.text)
              : Failure{Failure::Kind::kReply, "an unsolicited reply"});
    return;
  }
  silent_since_ = EventLoop::Now();
  if (sent_.front()->asks) {
    sent_.front()->asks = false;
    if (!IsStatus(reply)) Break(Foreign());
    return;
  }
  if (IsOutOfService(reply)) {
    Break(FromErrorReply(reply.text));
  } else if (reply.kind != Reply::Kind::kError) {
    has_served_ = true;
  }
  std::unique_ptr<Request> request = std::move(sent_.front());
  sent_.pop_front();
  if (!request->CanBeAnsweredBy(reply)) {
    Break(Foreign());
  }
  owner_.OnAnswer(*this, std::move(request), reply);
}

std::string Connection::Describe() const {
  if (state_ == State::kUp) return name_;
  return name_ + ": still connecting" + (state_ == State::kGreeting ? HintAtTls() : "");
}

/// What may be the reason if a server that accepts connections does not answer.
std::string Connection::HintAtTls() const {
  if (tls_ != nullptr && !tls_->is_established()) {
    return "; " + std::string(tls_->DescribeHandshake());
  }
  if (tls_ != nullptr || has_received_) return {};
  return "; no answer yet; with TLS, the URL begins with rediss://";
}

/// Marks the connection as lost. The first reason counts. Nothing is destroyed yet, because the
/// caller may be in the middle of its use.
void Connection::Break(Failure failure) {
  if (!broken_) broken_ = std::move(failure);
}

void Connection::LoseIfBroken() {
  if (broken_) Lose(*std::exchange(broken_, std::nullopt));
}

Failure Connection::Unreachable(const std::string& reason) const {
  return {Failure::Kind::kUnreachable, name_ + ": " + reason};
}

void Connection::Lose(Failure failure) {
  const bool was_up = state_ == State::kUp;
  broken_.reset();
  stream_.reset();
  tls_.reset();
  to_write_.clear();
  last_failure_ = std::move(failure);
  const bool has_next = state_ == State::kConnecting || state_ == State::kGreeting;
  if (has_next && next_address_ < route_.addresses.size()) {
    ConnectToNextAddress();
    return;
  }
  // The delay doubles with each attempt in a row, and its jitter spreads the clients of a server
  // that restarts. An error is no service: a server that is full accepts connections, too.
  const bool had_served = std::exchange(has_served_, false);
  failed_tries_ = had_served ? 1 : failed_tries_ + 1;
  const int doublings = std::min(failed_tries_ - 1, kMostDoublings);
  const Millis longest = std::min(options_.retry_max, options_.retry_min << doublings);
  const Millis shortest = failed_tries_ == 1 ? 0 : longest / 2;
  state_ = State::kWaiting;
  retry_at_ = EventLoop::Now() + std::uniform_int_distribution<Millis>(shortest, longest)(random_);
  FailAll(!was_up, last_failure_);
  // The others were not written. They fail now if the next attempt is too late for them.
  for (auto& request : std::exchange(waiting_, {})) Send(std::move(request));
  if (had_served) owner_.OnLost();
}

void Connection::FailAll(bool waiting_too, const Failure& failure) {
  std::deque<std::unique_ptr<Request>> failed = std::exchange(sent_, {});
  if (waiting_too) std::ranges::move(std::exchange(waiting_, {}), std::back_inserter(failed));
  for (auto& request : failed) owner_.OnFailure(std::move(request), failure);
}

void Connection::Close(const Failure& failure) {
  stream_.reset();
  tls_.reset();
  broken_.reset();
  to_write_.clear();
  state_ = State::kIdle;
  FailAll(true, failure);
}

Millis Connection::NextDue() const {
  switch (state_) {
    case State::kFinding:
      return connect_by_;
    case State::kConnecting:
    case State::kGreeting:
      return address_by_;
    case State::kWaiting:
      return retry_at_;
    case State::kUp:
      if (broken_) return 0;
      if (!sent_.empty()) return silent_since_ + options_.longest_silence;
      break;
    case State::kIdle:
      break;
  }
  return std::numeric_limits<Millis>::max();
}

void Connection::OnTime(Millis now) {
  if (now < NextDue()) return;
  if (broken_) {
    LoseIfBroken();
  } else if (state_ == State::kWaiting && failed_tries_ > 1 && waiting_.empty()) {
    // Further attempts could keep the process alive, by lookups, though nobody needs a connection.
    state_ = State::kIdle;
  } else if (state_ == State::kWaiting) {
    Find();
  } else if (state_ == State::kUp) {
    Lose(Unreachable("no answer for " + std::to_string(options_.longest_silence) + " ms"));
  } else if (state_ != State::kIdle) {
    const std::string hint = state_ == State::kGreeting ? HintAtTls() : "";
    Lose(Unreachable("no connection within " + std::to_string(options_.connect_timeout) + " ms" +
                     hint));
  }
}

}  // namespace rollgate::redis
