// Batches calls into requests, applies deadlines and reads replies.
#include "redis/client.h"

#include <hiredis/hiredis.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "redis/cluster.h"

namespace rollgate::redis {
namespace {

/// Keys in one run of the script: more gain nothing, and other clients have to wait longer.
constexpr std::size_t kMostKeys = 64;

/// Calls share a deadline, and so a request, if they are made within this part of the timeout.
constexpr Millis kSharedPartOfTimeout = 50;

/// After so many NOSCRIPT replies a request sends the source itself instead of waiting for another
/// request to do so, whose EVAL may be refused, or may have gone to another node of a cluster.
constexpr std::uint8_t kMostTimesUnknown = 8;

/// If the timer is this late, the event loop was busy, and gets a grace period to read its sockets
/// first.
constexpr Millis kLate = 5;
constexpr Millis kGrace = 20;

/// The operations of the scripts.
constexpr Operation kAttempt{"attempt", "attempt, keys repeat"};
constexpr Operation kPeek{"peek", "peek"};
constexpr Operation kRefund{"refund", "refund"};

/// The script's first number if the key holds something that is not its state.
constexpr long long kNoLog = -1;

bool IsError(const redisReply& reply, std::string_view code) {
  return reply.type == REDIS_REPLY_ERROR &&
         std::string_view(reply.str, reply.len).starts_with(code);
}

bool AreIntegers(const redisReply& reply, std::size_t count) {
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements != count) return false;
  return std::all_of(reply.element, reply.element + count, [](const redisReply* element) {
    return element->type == REDIS_REPLY_INTEGER;
  });
}

/// The arguments of a script after its operation. Without `now`, the server has its own clock.
std::string Arguments(std::string_view first, std::optional<std::int64_t> now, std::uint64_t cost,
                      const std::vector<std::string>& policy) {
  std::string arguments;
  AppendWord(arguments, first);
  AppendWord(arguments, now ? std::to_string(*now) : std::string());
  AppendWord(arguments, static_cast<std::int64_t>(cost));
  for (const std::string& word : policy) AppendWord(arguments, word);
  return arguments;
}

}  // namespace

Client::Client(uv_loop_s* loop, ClientOptions options, Sink& sink)
    : loop_(loop),
      options_(std::move(options)),
      sink_(sink),
      before_wait_(std::make_unique<BeforeWait>(loop_,
                                                [this] {
                                                  SendOpen();
                                                  OnSettled();
                                                })),
      timer_(std::make_unique<Timer>(loop_, [this] { OnTimer(); })) {
  Transport::Owner& owner = *this;
  if (options_.is_cluster) {
    transport_ = std::make_unique<Cluster>(loop_, options_.connection, options_.endpoints, owner);
  } else {
    transport_ =
        std::make_unique<Connection>(loop_, options_.connection, options_.endpoints.front(), owner);
  }
}

Client::~Client() = default;

std::optional<CallId> Client::NewCall() {
  if (is_closed_) return std::nullopt;
  CallId call;
  if (!free_calls_.empty()) {
    call = free_calls_.back();
    free_calls_.pop_back();
  } else if (uses_.size() < options_.max_queue) {
    call = static_cast<CallId>(uses_.size());
    uses_.push_back(0);
  } else {
    return std::nullopt;
  }
  uses_[call] = 2;
  if (pending_++ == 0) timer_->KeepProcessAlive(true);
  return call;
}

void Client::Unuse(CallId call) {
  if (--uses_[call] == 0) free_calls_.push_back(call);
}

void Client::Track(Request& request, std::list<Request*>::iterator before) {
  request.tracked = unanswered_.insert(before, &request);
  request.is_tracked = true;
}

void Client::Untrack(Request& request) {
  if (with_text_ == &request) {
    with_text_ = nullptr;
    sends_again_ = true;
  }
  if (!request.is_tracked) return;
  unanswered_.erase(request.tracked);
  request.is_tracked = false;
}

std::optional<CallId> Client::Try(std::string_view id, const Attempt& attempt) {
  const std::optional<CallId> call = NewCall();
  if (!call) return call;
  ScriptRequest& request = OpenRequest(HashSlotOf(id), attempt);
  request.AddKey(options_.key_prefix, id);
  request.calls.push_back(*call);
  return call;
}

std::uint16_t Client::HashSlotOf(std::string_view id) {
  if (!transport_->is_cluster()) return 0;
  key_.assign(options_.key_prefix).append("{").append(id).append("}");
  return HashSlot(key_);
}

ScriptRequest& Client::OpenRequest(std::uint16_t hash_slot, const Attempt& attempt) {
  if (!open_.empty() && attempt != open_attempt_) SendOpen();
  open_attempt_ = attempt;
  ScriptRequest*& open = open_by_slot_[hash_slot];
  const Millis deadline = NewDeadline();
  if (open != nullptr && open->key_count() < kMostKeys &&
      deadline - open->deadline <= options_.command_timeout / kSharedPartOfTimeout) {
    return *open;
  }
  const auto& policy = attempt.policy.empty() ? options_.policy : attempt.policy;
  auto request = std::make_unique<ScriptRequest>(
      deadline, options_.script, attempt.records ? kAttempt : kPeek,
      Arguments(attempt.wants_all ? "full" : "brief", attempt.now, attempt.cost, policy),
      3 + policy.size(), attempt.wants_all ? 7 + 2 * options_.windows : 1);
  request->hash_slot = hash_slot;
  Track(*request, unanswered_.end());
  open = request.get();
  open_.push_back(std::move(request));
  if (open_.size() == 1) {
    before_wait_->Request();
    ArmTimer();
  }
  return *open;
}

void Client::SendOpen() {
  open_by_slot_.clear();
  for (auto& request : std::exchange(open_, {})) transport_->Send(std::move(request));
}

void Client::SendNow() {
  if (is_closed_ || open_.empty()) return;
  SendOpen();
  transport_->Flush();
}

void Client::Send(std::unique_ptr<Request> request) {
  SendOpen();
  Track(*request, unanswered_.end());
  transport_->Send(std::move(request));
  before_wait_->Request();
  ArmTimer();
}

std::optional<CallId> Client::Refund(std::string_view id, const Receipt& receipt,
                                     std::optional<std::int64_t> now) {
  const std::optional<CallId> call = NewCall();
  if (!call) return call;
  const std::string action = std::to_string(receipt.at) + ',' + std::to_string(receipt.token);
  auto request = std::make_unique<ScriptRequest>(
      NewDeadline(), options_.script, kRefund,
      Arguments(action, now, receipt.cost, options_.policy), 3 + options_.policy.size(), 1);
  request->hash_slot = HashSlotOf(id);
  request->AddKey(options_.key_prefix, id);
  request->calls.push_back(*call);
  Send(std::move(request));
  return call;
}

std::optional<CallId> Client::Command(const std::vector<std::string>& words,
                                      const std::string& node, std::string_view key) {
  const std::optional<CallId> call = NewCall();
  if (!call) return call;
  std::string command;
  AppendHeader(command, words.size());
  for (const std::string& word : words) AppendWord(command, word);
  auto request = std::make_unique<PlainRequest>(NewDeadline(), std::move(command));
  request->node = node;
  request->hash_slot = HashSlot(key);
  request->calls.push_back(*call);
  Send(std::move(request));
  return call;
}

void Client::OnAnswer(const Connection&, std::unique_ptr<Request> request,
                      const redisReply& reply) {
  auto* const script = dynamic_cast<ScriptRequest*>(request.get());
  if (!request->timed_out && script != nullptr) {
    if (IsError(reply, "NOSCRIPT") && !script->sends_text()) {
      if (with_text_ != nullptr && ++script->times_unknown < kMostTimesUnknown) {
        without_script_.push_back(std::move(request));
        return;
      }
      script->SendText();
      with_text_ = script;
      transport_->Send(std::move(request));
      return;
    }
    if (IsError(reply, "TRYAGAIN") && script->key_count() > 1) {
      // The slot is moving, and its keys are on two nodes. The script has not run.
      for (auto& part : script->SplitByKey()) {
        Track(*part, request->tracked);
        transport_->Send(std::move(part));
      }
      Untrack(*request);
      return;
    }
  }
  if (!request->timed_out) {
    if (reply.type == REDIS_REPLY_ERROR) {
      ReportFailure(*request, FromErrorReply(std::string(reply.str, reply.len)));
    } else if (script == nullptr) {
      for (const CallId call : request->calls) sink_.OnReply(call, reply);
      has_results_ = true;
    } else {
      ReportNumbers(*script, reply);
    }
  }
  Finish(*request);
}

void Client::ReportNumbers(const ScriptRequest& request, const redisReply& reply) {
  const std::size_t count = request.numbers_per_key();
  if (!AreIntegers(reply, request.key_count() * count)) {
    ReportFailure(request, {Failure::Kind::kReply, "the reply is not what the script answers"});
    return;
  }
  has_results_ = true;
  redisReply** numbers = reply.element;
  for (const CallId call : request.calls) {
    if (numbers[0]->integer == kNoLog) {
      sink_.OnFailure(
          call, {Failure::Kind::kReply, "the key of this id holds something that is not its log"});
    } else {
      sink_.OnNumbers(call, numbers, count);
    }
    numbers += count;
  }
}

void Client::ReportFailure(const Request& request, const Failure& failure) {
  has_results_ = true;
  for (const CallId call : request.calls) sink_.OnFailure(call, failure);
}

void Client::OnFailure(std::unique_ptr<Request> request, const Failure& failure) {
  if (!request->timed_out) ReportFailure(*request, failure);
  Finish(*request);
}

/// Sends the requests that waited for the script, once another request has sent it or failed.
void Client::SendAgain() {
  if (!std::exchange(sends_again_, false)) return;
  for (auto& request : std::exchange(without_script_, {})) {
    if (request->timed_out) {
      Finish(*request);
    } else {
      transport_->Send(std::move(request));
    }
  }
}

/// Releases a request whose results are known.
void Client::Finish(Request& request) {
  Untrack(request);
  for (const CallId call : request.calls) Unuse(call);
  if (!request.timed_out) pending_ -= request.calls.size();
}

void Client::OnSettled() {
  if (is_closed_) return;
  SendAgain();
  transport_->Flush();
  const bool is_up = transport_->is_up();
  if (has_results_ || is_up != was_up_) {
    was_up_ = is_up;
    has_results_ = false;
    sink_.Deliver();
    if (is_closed_) return;
  }
  ArmTimer();
}

Millis Client::NextDue() const {
  const Millis due = transport_->NextDue();
  return unanswered_.empty() ? due : std::min(due, unanswered_.front()->deadline);
}

void Client::ArmTimer() {
  // Calls that failed at once are not delivered yet, and nothing else may keep the process alive.
  const Millis due = has_results_ ? EventLoop::Now() : NextDue();
  if (due < std::numeric_limits<Millis>::max()) timer_->CallAt(std::max(due, grace_until_));
  timer_->KeepProcessAlive(pending_ > 0 || has_results_);
}

void Client::OnTimer() {
  const Millis now = EventLoop::Now();
  // One grace period only, or a loop that is always busy would postpone every deadline forever.
  is_in_grace_ = !is_in_grace_ && now - NextDue() > kLate;
  SendOpen();
  if (is_in_grace_) {
    grace_until_ = now + kGrace;
  } else {
    TimeOut(now);
    transport_->OnTime(now);
  }
  OnSettled();
}

void Client::TimeOut(Millis now) {
  bool dropped = false;
  while (!unanswered_.empty() && unanswered_.front()->deadline <= now) {
    Request& request = *unanswered_.front();
    ReportFailure(request,
                  {Failure::Kind::kTimeout,
                   "no answer within " + std::to_string(options_.command_timeout) + " ms"});
    pending_ -= request.calls.size();
    request.timed_out = true;
    Untrack(request);
    dropped = true;
  }
  if (dropped) transport_->DropTimedOut();
}

void Client::Close() {
  if (is_closed_) return;
  is_closed_ = true;
  const Failure failure{Failure::Kind::kClosed, "the client was closed"};
  for (auto& request : std::exchange(open_, {})) OnFailure(std::move(request), failure);
  open_by_slot_.clear();
  for (auto& request : std::exchange(without_script_, {})) OnFailure(std::move(request), failure);
  transport_->Close(failure);
  before_wait_.reset();
  timer_.reset();
}

}  // namespace rollgate::redis
