// Batches calls into requests, applies deadlines and reads replies.
#include "redis/client.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "redis/command.h"

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

/// Whether a script has not run because of some of its keys, while others may be good: a slot is
/// moving, and its keys are on two nodes; or the user may not use the keys of one limiter ("... to
/// access one of the keys", from Redis 8 on "... to access a key").
bool IsForSomeKeys(const Reply& reply, const ScriptRequest& request) {
  if (request.key_count() < 2) return false;
  const bool is_forbidden = reply.IsError("NOPERM") && reply.text.find(" key") != std::string::npos;
  return reply.IsError("TRYAGAIN") || (is_forbidden && request.has_several_limiters());
}

}  // namespace

Client::Client(Host& host, ClientOptions options, Sink& sink)
    : options_(std::move(options)),
      sink_(sink),
      nodes_(host, options_.connection, options_.server, *this) {}

std::optional<CallId> Client::NewCall(std::size_t node) {
  if (is_closed_) return std::nullopt;
  if (calls_of_nodes_.size() <= node) calls_of_nodes_.resize(node + 1);
  if (calls_of_nodes_[node] >= options_.max_queue) return std::nullopt;
  if (free_calls_.empty()) {
    free_calls_.push_back(static_cast<CallId>(calls_.size()));
    calls_.emplace_back();
  }
  const CallId call = free_calls_.back();
  free_calls_.pop_back();
  calls_[call] = {node, 2};
  ++calls_of_nodes_[node];
  ++pending_;
  return call;
}

std::size_t Client::RoomAt(std::size_t node) const {
  return options_.max_queue - (node < calls_of_nodes_.size() ? calls_of_nodes_[node] : 0);
}

void Client::Unuse(CallId call) {
  if (--calls_[call].uses > 0) return;
  --calls_of_nodes_[calls_[call].node];
  free_calls_.push_back(call);
}

void Client::Track(Request& request, std::list<Request*>::iterator before) {
  request.tracked = unanswered_.insert(before, &request);
  request.is_tracked = true;
}

void Client::Untrack(Request& request) {
  const auto sent = std::ranges::find_if(
      sources_, [&](const auto& source) { return source.second.sender == &request; });
  if (sent != sources_.end()) {
    std::ranges::move(sent->second.waiting, std::back_inserter(to_send_again_));
    sources_.erase(sent);
  }
  if (!request.is_tracked) return;
  unanswered_.erase(request.tracked);
  request.is_tracked = false;
}

std::optional<CallId> Client::Ask(Limiter& limiter, std::string_view id, const Question& question,
                                  bool is_change, std::span<const double> amounts) {
  const std::uint16_t hash_slot = HashSlotOf(limiter, id);
  const std::optional<CallId> call = NewCall(nodes_.NumberOf(hash_slot));
  if (!call) return call;
  if (is_change) {
    // Apart from attempts, because these keys are not read together with others.
    auto request =
        std::make_unique<ScriptRequest>(NewDeadline(), Group(limiter.program_, question));
    request->hash_slot = hash_slot;
    request->Add(0, *call, *limiter.program_, id, amounts);
    Send(std::move(request));
    return call;
  }
  const auto [request, group] = OpenGroupOf(limiter, hash_slot, question);
  request->Add(group, *call, *limiter.program_, id, amounts);
  return call;
}

std::uint16_t Client::HashSlotOf(const Limiter& limiter, std::string_view id) {
  if (!nodes_.is_cluster()) return 0;
  key_.assign(limiter.program_->key_prefix).append("{").append(id).append("}");
  key_.append(limiter.program_->key_suffix);  // counts where the id leaves the braces empty
  return HashSlot(key_);
}

/// Whether one more call can join a request.
bool Client::HasRoom(const ScriptRequest* open, Millis deadline) const {
  return open != nullptr && open->key_count() < kMostKeys &&
         deadline - open->deadline <= options_.command_timeout / kSharedPartOfTimeout;
}

Limiter::OpenGroup Client::OpenGroupOf(Limiter& limiter, std::uint16_t hash_slot,
                                       const Question& question) {
  if (!limiter.empty_group_ || question.head != limiter.empty_group_->head) {
    limiter.empty_group_.emplace(limiter.program_, question);
  }
  const Group& group = *limiter.empty_group_;
  if (std::exchange(limiter.open_turn_, turn_) != turn_) limiter.open_by_slot_.clear();
  Limiter::OpenGroup& open = limiter.open_by_slot_[hash_slot];
  const Millis deadline = NewDeadline();
  ScriptRequest* request = open.request;
  if (!HasRoom(request, deadline)) {
    request = OpenRequestFor(group, hash_slot, deadline);
    open = {request, 0};
  }
  // A limiter's calls are judged in their order, so never in a group before that of its latest.
  open.place = request->PlaceOf(group, open.place);
  return open;
}

/// A request of this turn with room for one more call.
ScriptRequest* Client::OpenRequestFor(const Group& group, std::uint16_t hash_slot,
                                      Millis deadline) {
  ScriptRequest*& latest = open_by_script_[{hash_slot, group.program->script.sha1}];
  if (HasRoom(latest, deadline)) return latest;
  auto request = std::make_unique<ScriptRequest>(deadline, group);
  request->hash_slot = hash_slot;
  Track(*request, unanswered_.end());
  latest = request.get();
  open_.push_back(std::move(request));
  return latest;
}

void Client::SendOpen() {
  ++turn_;
  open_by_script_.clear();
  for (auto& request : std::exchange(open_, {})) nodes_.Send(std::move(request));
}

void Client::Send(std::unique_ptr<Request> request) {
  SendOpen();
  Track(*request, unanswered_.end());
  nodes_.Send(std::move(request));
}

std::optional<CallId> Client::Command(const std::vector<std::string>& words,
                                      const std::string& node, std::string_view key) {
  if (is_closed_) return std::nullopt;
  const std::uint16_t hash_slot = HashSlot(key);
  const std::optional<CallId> call =
      NewCall(node.empty() ? nodes_.NumberOf(hash_slot) : nodes_.NumberOf(node));
  if (!call) return call;
  auto request = std::make_unique<PlainRequest>(NewDeadline(), words);
  request->node = node;
  request->hash_slot = hash_slot;
  request->calls.push_back(*call);
  Send(std::move(request));
  return call;
}

void Client::OnAnswer(const Connection& from, std::unique_ptr<Request> request, Reply& reply) {
  auto* const script = dynamic_cast<ScriptRequest*>(request.get());
  if (!request->timed_out && script != nullptr) {
    if (reply.IsError("NOSCRIPT") && !script->sends_text()) {
      const auto [source, is_first] =
          sources_.try_emplace({from.number(), script->script().sha1}, Source{script, {}});
      if (!is_first && ++script->times_unknown < kMostTimesUnknown) {
        source->second.waiting.push_back(std::move(request));
        return;
      }
      script->SendText();
      nodes_.Send(std::move(request));
      return;
    }
    if (IsForSomeKeys(reply, *script)) {
      for (auto& part : script->SplitByKey()) {
        Track(*part, request->tracked);
        nodes_.Send(std::move(part));
      }
      Untrack(*request);
      return;
    }
  }
  if (!request->timed_out) {
    if (reply.kind == Reply::Kind::kError) {
      ReportFailure(*request, FromErrorReply(reply.text));
    } else if (script == nullptr) {
      sink_.OnReply(request->calls.front(), std::move(reply));
    } else {
      ReportNumbers(*script, reply);
    }
  }
  Finish(*request);
}

void Client::ReportNumbers(const ScriptRequest& request, const Reply& reply) {
  if (!request.CanBeAnsweredBy(reply)) {
    ReportFailure(request, {Failure::Kind::kReply, "the reply is not what the script answers"});
    return;
  }
  std::span<const Reply> numbers = reply.elements;
  for (const Group& group : request.groups()) {
    for (const CallId call : group.calls) {
      sink_.OnNumbers(call, numbers.first(group.numbers_per_key));
      numbers = numbers.subspan(group.numbers_per_key);
    }
  }
}

void Client::ReportFailure(const Request& request, const Failure& failure) {
  for (const CallId call : request.calls) sink_.OnFailure(call, failure);
}

void Client::OnFailure(std::unique_ptr<Request> request, const Failure& failure) {
  if (!request->timed_out) ReportFailure(*request, failure);
  Finish(*request);
}

/// Sends the requests that waited for a script, once another request has sent it or failed.
void Client::SendAgain() {
  for (auto& request : std::exchange(to_send_again_, {})) {
    if (request->timed_out) {
      Finish(*request);
    } else {
      nodes_.Send(std::move(request));
    }
  }
}

/// Releases a request whose results are known.
void Client::Finish(Request& request) {
  Untrack(request);
  for (const CallId call : request.calls) Unuse(call);
  if (!request.timed_out) pending_ -= request.calls.size();
}

void Client::Connect(std::size_t node, std::uint32_t attempt, const std::optional<Route>& route) {
  if (Connection* const connection = nodes_.Find(node)) connection->Connect(attempt, route);
  Flush();
}

void Client::SetMap(const std::optional<std::vector<Nodes::Range>>& ranges) {
  if (is_closed_) return;
  nodes_.SetMap(ranges);
  Flush();
}

void Client::OnAccepted(SocketId socket) {
  if (Connection* const node = nodes_.Find(socket.node)) node->OnAccepted(socket.number);
}

void Client::OnConnected(SocketId socket) {
  if (Connection* const node = nodes_.Find(socket.node)) node->OnConnected(socket.number);
  Flush();
}

void Client::OnBytes(SocketId socket, std::string_view bytes) {
  if (Connection* const node = nodes_.Find(socket.node)) node->OnBytes(socket.number, bytes);
  Flush();
}

void Client::OnEnd(SocketId socket, const std::string& error) {
  if (Connection* const node = nodes_.Find(socket.node)) node->OnEnd(socket.number, error);
  Flush();
}

void Client::OnWritable(SocketId socket, bool is_writable) {
  if (Connection* const node = nodes_.Find(socket.node)) {
    node->OnWritable(socket.number, is_writable);
  }
  if (is_writable) Flush();
}

void Client::OnTurn() {
  ++loop_turn_;
  SendNow();
}

void Client::SendNow() {
  SendOpen();
  Flush();
}

void Client::Flush() {
  if (is_closed_) return;
  SendAgain();
  nodes_.Flush(loop_turn_);
}

Millis Client::NextDue() const {
  if (is_closed_) return std::numeric_limits<Millis>::max();
  Millis due = nodes_.NextDue();
  if (!unanswered_.empty()) due = std::min(due, unanswered_.front()->deadline);
  return std::max(due, grace_until_);
}

void Client::OnTime() {
  if (is_closed_) return;
  const Millis now = Now();
  const Millis due = NextDue();
  // One grace period for each deadline, or a loop that is always busy would postpone it forever.
  const bool gets_grace = due > grace_until_ && now - due > kLate;
  SendOpen();
  if (gets_grace) {
    grace_until_ = now + kGrace;
  } else {
    TimeOut(now);
    nodes_.OnTime(now);
  }
  Flush();
}

void Client::TimeOut(Millis now) {
  bool dropped = false;
  while (!unanswered_.empty() && unanswered_.front()->deadline <= now) {
    Request& request = *unanswered_.front();
    ReportFailure(request, {Failure::Kind::kTimeout, nodes_.Describe(request)});
    pending_ -= request.calls.size();
    request.timed_out = true;
    Untrack(request);
    dropped = true;
  }
  if (dropped) nodes_.DropTimedOut();
}

void Client::Close() {
  if (is_closed_) return;
  is_closed_ = true;
  const Failure failure{Failure::Kind::kClosed, "the client was closed"};
  for (auto& request : std::exchange(open_, {})) OnFailure(std::move(request), failure);
  for (auto& [key, source] : std::exchange(sources_, {})) {
    for (auto& request : source.waiting) OnFailure(std::move(request), failure);
  }
  for (auto& request : std::exchange(to_send_again_, {})) OnFailure(std::move(request), failure);
  nodes_.Close(failure);
}

}  // namespace rollgate::redis
