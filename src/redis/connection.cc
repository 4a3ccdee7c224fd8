// Connects, greets, and matches replies to requests.
#include "redis/connection.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>
#include <utility>

namespace rollgate::redis {
namespace {

/// How many attempts double the delay before the next one.
constexpr int kMostDoublings = 20;
/// Bytes that a server may send while nobody waits for an answer, such as the reason of its end.
constexpr std::size_t kMostUnasked = 4096;

/// After so long without a reply, the server may have closed the connection unseen.
constexpr std::chrono::milliseconds kPause{100};

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

Connection::Connection(Host& host, const ConnectionOptions& options, std::size_t number,
                       std::string name, Owner& owner)
    : host_(host),
      options_(options),
      number_(number),
      name_(std::move(name)),
      owner_(owner),
      random_(static_cast<std::uint_fast32_t>(options.jitter_seed + number)) {}

Connection::~Connection() {
  CloseSocket();
}

void Connection::CloseSocket() {
  is_accepted_ = false;
  if (std::exchange(is_open_, false)) host_.Close({number_, socket_});
}

void Connection::Send(std::unique_ptr<Request> request) {
  if (state_ == State::kWaiting && retry_at_ > request->deadline) {
    owner_.OnFailure(std::move(request), last_failure_);
    return;
  }
  waiting_.push_back(std::move(request));
  if (state_ == State::kIdle) Find();
}

void Connection::Flush(std::uint64_t turn) {
  if (!is_open_ || broken_ || !is_writable_) return;
  if (state_ == State::kUp && !waiting_.empty() && MayWrite(turn)) WriteWaiting();
  if (!to_write_.empty()) host_.Write({number_, socket_}, std::exchange(to_write_, {}));
}

/// False if the server may have closed the connection, or may never answer on it. Requests then
/// wait until what arrived was read: on another connection only those can be sent that were not
/// written. The process may have been stopped for hours at any point before this.
bool Connection::MayWrite(std::uint64_t turn) {
  if (!sent_.empty()) return Now() - silent_since_ <= options_.longest_silence / 2;
  // By the calendar's clock, because the other one may stand still while the machine is suspended.
  const auto pause = std::chrono::system_clock::now() - heard_at_;
  if (pause >= pause.zero() && pause < kPause) return true;
  if (!paused_) paused_ = turn;
  // The first of these turns may end before the loop reads again.
  if (turn >= *paused_ + 2) return true;
  host_.WaitForTurn();
  return false;
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
    if (sent_.empty()) silent_since_ = Now();
    sent_.push_back(std::move(request));
  }
  paused_.reset();
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
  connect_by_ = Now() + options_.connect_timeout;
  host_.FindRoute(number_, attempt_, name_);
}

void Connection::Connect(std::uint32_t attempt, const std::optional<Route>& route) {
  if (state_ != State::kFinding || attempt != attempt_) return;
  if (!route || route->addresses == 0) {
    Lose({Failure::Kind::kNotFound, std::to_string(number_)});
    return;
  }
  route_ = *route;
  next_address_ = 0;
  ConnectToNextAddress();
}

void Connection::ConnectToNextAddress() {
  // Each address gets a share of the time, so that one that does not answer leaves time for others.
  const Millis now = Now();
  const auto left = static_cast<Millis>(route_.addresses - next_address_);
  address_by_ = now + (connect_by_ - now) / left;
  state_ = State::kConnecting;
  broken_.reset();
  is_writable_ = true;
  has_received_ = false;
  has_served_ = false;
  greetings_ = 0;
  to_write_.clear();
  reader_ = std::make_unique<ReplyReader>();
  is_open_ = true;
  host_.Open({number_, ++socket_}, next_address_++);
}

void Connection::OnAccepted(std::uint32_t socket) {
  if (IsCurrent(socket)) is_accepted_ = true;
}

void Connection::OnConnected(std::uint32_t socket) {
  if (!IsCurrent(socket)) return;
  is_accepted_ = true;
  state_ = State::kGreeting;
  to_write_ += route_.greeting;
  greetings_ = route_.greetings;
  if (greetings_ == 0) OnGreeted();
}

void Connection::OnGreeted() {
  state_ = State::kUp;
  ++connections_;
  heard_at_ = std::chrono::system_clock::now();
  WriteWaiting();  // they fail if this attempt does
}

void Connection::OnBytes(std::uint32_t socket, std::string_view bytes) {
  if (!IsCurrent(socket)) return;
  has_received_ = true;
  Read(bytes);
  LoseIfBroken();
}

void Connection::OnEnd(std::uint32_t socket, const std::string& error) {
  if (!IsCurrent(socket)) return;
  Break(Unreachable(options_.has_tls ? error : error + HintAtTls()));
  LoseIfBroken();
}

void Connection::OnWritable(std::uint32_t socket, bool is_writable) {
  if (IsCurrent(socket)) is_writable_ = is_writable;
}

void Connection::Read(std::string_view bytes) {
  const bool is_unasked = state_ == State::kUp && sent_.empty();
  unasked_ = is_unasked ? unasked_ + bytes.size() : 0;
  if (unasked_ > kMostUnasked) return Break({Failure::Kind::kReply, "an unsolicited reply"});
  reader_->Feed(bytes);
  while (Reply* const reply = broken_ ? nullptr : reader_->Next()) {
    if (state_ == State::kGreeting) {
      OnGreetingReply(*reply);
    } else {
      OnReply(*reply);
    }
  }
  if (reader_->error().empty()) return;
  const bool is_tls = bytes.starts_with('\x15') && !options_.has_tls;
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
  silent_since_ = Now();
  heard_at_ = std::chrono::system_clock::now();
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
  return name_ + ": still connecting" + HintAtTls();
}

/// What may be the reason if a server that accepts connections does not answer.
std::string Connection::HintAtTls() const {
  if (!is_accepted_ || has_received_) return {};
  if (!options_.has_tls) return "; no answer yet; with TLS, the URL begins with rediss://";
  if (state_ != State::kConnecting) return {};
  return "; the TLS handshake was not completed; without TLS, the URL begins with redis://";
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
  CloseSocket();
  broken_.reset();
  to_write_.clear();
  last_failure_ = std::move(failure);
  const bool has_next = state_ == State::kConnecting || state_ == State::kGreeting;
  if (has_next && next_address_ < route_.addresses) {
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
  retry_at_ = Now() + std::uniform_int_distribution<Millis>(shortest, longest)(random_);
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
  CloseSocket();
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
    Lose(Unreachable("no connection within " + std::to_string(options_.connect_timeout) + " ms" +
                     HintAtTls()));
  }
}

}  // namespace rollgate::redis
