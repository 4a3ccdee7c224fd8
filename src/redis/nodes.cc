// Routes requests, and follows redirections.
#include "redis/nodes.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>
#include <utility>

#include "redis/command.h"

namespace rollgate::redis {
namespace {

constexpr std::uint8_t kMostRedirections = 5;

/// The least time between two requests for a map.
constexpr Millis kBetweenMaps = 100;

/// MOVED and ASK: the slot and its node.
struct Redirection {
  std::uint16_t hash_slot = 0;
  std::string node;
};

/// Reads "3999 127.0.0.1:6381". The host may be an IPv6 address without brackets, or be missing:
/// then it is that of the sender.
bool Parse(std::string_view text, const std::string& sender, Redirection& to) {
  const char* const end = text.data() + text.size();
  const auto [after_slot, error] = std::from_chars(text.data(), end, to.hash_slot);
  const std::size_t space = text.find(' ');
  const std::size_t colon = text.rfind(':');
  if (error != std::errc() || after_slot != text.data() + space || to.hash_slot >= kHashSlots ||
      colon == std::string_view::npos || colon < space || colon + 1 == text.size()) {
    return false;
  }
  std::string host(text.substr(space + 1, colon - space - 1));
  if (host.find(':') != std::string::npos) host = "[" + host + "]";
  to.node = host.empty() || host == "?" ? sender.substr(0, sender.rfind(':')) : host;
  to.node += text.substr(colon);
  return true;
}

}  // namespace

Nodes::Nodes(Host& host, const ConnectionOptions& options, const std::string& server,
             Connection::Owner& owner)
    : host_(host),
      options_(options),
      is_cluster_(server.empty()),
      owner_(owner),
      owners_(is_cluster_ ? kHashSlots : 1, nullptr),
      has_map_(!is_cluster_) {
  if (!is_cluster_) owners_.front() = &NodeNamed(server);
}

Connection& Nodes::NodeNamed(const std::string& name) {
  if (!is_cluster_ && owners_.front() != nullptr) return *owners_.front();
  std::unique_ptr<Connection>& node = nodes_[name];
  Connection::Owner& owner = *this;
  if (!node) node = std::make_unique<Connection>(host_, options_, ++nodes_ever_, name, owner);
  return *node;
}

std::size_t Nodes::NumberOf(std::uint16_t hash_slot) const {
  const Connection* const owner = owners_[is_cluster_ ? hash_slot : 0];
  return owner == nullptr ? kNoNode : owner->number();
}

void Nodes::Send(std::unique_ptr<Request> request) {
  if (has_map_ || !request->node.empty()) {
    Route(std::move(request));
    return;
  }
  waiting_.push_back(std::move(request));
  wants_map_ = true;
}

void Nodes::Route(std::unique_ptr<Request> request) {
  request->asks = false;
  Connection* const node = request->node.empty() ? owners_[is_cluster_ ? request->hash_slot : 0]
                                                 : &NodeNamed(request->node);
  if (node != nullptr) {
    node->Send(std::move(request));
    return;
  }
  wants_map_ = true;
  const std::string slot = std::to_string(request->hash_slot);
  owner_.OnFailure(std::move(request), {Failure::Kind::kUnreachable,
                                        "no node of the cluster is known for hash slot " + slot});
}

Connection* Nodes::Find(std::size_t number) const {
  const auto node = std::ranges::find_if(
      nodes_, [&](const auto& named) { return named.second->number() == number; });
  return node == nodes_.end() ? nullptr : node->second.get();
}

void Nodes::SetMap(const std::optional<std::vector<Range>>& ranges) {
  if (!ranges) {
    const Failure failure{Failure::Kind::kNotFound, std::to_string(kNoNode)};
    for (auto& request : std::exchange(waiting_, {})) owner_.OnFailure(std::move(request), failure);
    return;
  }
  std::ranges::fill(owners_, nullptr);
  for (const auto& [first, last, name] : *ranges) {
    std::fill(owners_.begin() + first, owners_.begin() + last + 1, &NodeNamed(name));
  }
  has_map_ = true;
  has_new_map_ = true;
  wants_map_ = false;
  for (auto& request : std::exchange(waiting_, {})) Route(std::move(request));
}

bool Nodes::FollowRedirection(const Connection& from, std::unique_ptr<Request>& request,
                              std::string_view error) {
  const bool moved = error.starts_with("MOVED ");
  if (!moved && !error.starts_with("ASK ")) return false;
  Redirection to;
  if (!is_cluster_ || !Parse(error.substr(error.find(' ') + 1), from.name(), to)) return false;
  Connection& node = NodeNamed(to.node);
  if (moved) {
    owners_[to.hash_slot] = &node;
    wants_map_ = true;
  }
  if (request->timed_out || !request->node.empty() ||
      request->redirections++ >= kMostRedirections) {
    return false;
  }
  request->asks = !moved;
  node.Send(std::move(request));
  return true;
}

void Nodes::OnAnswer(const Connection& from, std::unique_ptr<Request> request, Reply& reply) {
  if (reply.kind == Reply::Kind::kError) {
    if (FollowRedirection(from, request, reply.text)) return;
    if (reply.IsError("CLUSTERDOWN")) wants_map_ = true;
  }
  owner_.OnAnswer(from, std::move(request), reply);
}

void Nodes::OnFailure(std::unique_ptr<Request> request, const Failure& failure) {
  // Requests for a map have a node. If they fail, the next call is a reason to ask again.
  if (request->node.empty()) wants_map_ = true;
  owner_.OnFailure(std::move(request), failure);
}

void Nodes::Flush(std::uint64_t turn) {
  for (const auto& [name, node] : nodes_) node->Flush(turn);
}

void Nodes::DropTimedOut() {
  while (!waiting_.empty() && waiting_.front()->timed_out) {
    owner_.OnFailure(std::move(waiting_.front()), {Failure::Kind::kTimeout, ""});
    waiting_.pop_front();
  }
  for (const auto& [name, node] : nodes_) node->DropTimedOut();
}

std::string Nodes::Describe(const Request& late) {
  // As in OnFailure.
  if (late.node.empty()) wants_map_ = true;
  const Connection* const node =
      late.node.empty() ? owners_[is_cluster_ ? late.hash_slot : 0] : &NodeNamed(late.node);
  return node == nullptr ? "no map of the cluster yet" : node->Describe();
}

Millis Nodes::NextDue() const {
  Millis due = std::numeric_limits<Millis>::max();
  if (is_cluster_ && wants_map_) due = next_map_at_;
  for (const auto& [name, node] : nodes_) due = std::min(due, node->NextDue());
  return due;
}

void Nodes::OnTime(Millis now) {
  for (const auto& [name, node] : nodes_) node->OnTime(now);
  if (is_cluster_ && wants_map_ && now >= next_map_at_) {
    wants_map_ = false;
    next_map_at_ = now + kBetweenMaps;
    host_.FindMap();
  }
  if (std::exchange(has_new_map_, false)) ForgetIdleNodes();
}

/// Closes nodes that own no slot, except those with requests: slots may be moving to them.
void Nodes::ForgetIdleNodes() {
  const std::set<const Connection*> owners(owners_.begin(), owners_.end());
  std::erase_if(nodes_, [&](const auto& named) {
    Connection& node = *named.second;
    if (owners.contains(&node) || node.is_busy()) return false;
    forgotten_connections_ += node.connections();
    host_.Forget(node.number());
    return true;
  });
}

void Nodes::Close(const Failure& failure) {
  for (auto& request : std::exchange(waiting_, {})) owner_.OnFailure(std::move(request), failure);
  for (const auto& [name, node] : nodes_) node->Close(failure);
}

std::vector<std::string> Nodes::Owners() const {
  const std::set<const Connection*> owners(owners_.begin(), owners_.end());
  std::vector<std::string> names;
  for (const auto& [name, node] : nodes_) {
    if (owners.contains(node.get())) names.push_back(name);
  }
  return names;
}

std::vector<std::string> Nodes::Connected() const {
  std::vector<std::string> names;
  for (const auto& [name, node] : nodes_) {
    if (node->is_up()) names.push_back(name);
  }
  return names;
}

bool Nodes::is_up() const {
  return std::ranges::any_of(nodes_, [](const auto& named) { return named.second->is_up(); });
}

std::uint64_t Nodes::connections() const {
  std::uint64_t sum = forgotten_connections_;
  for (const auto& [name, node] : nodes_) sum += node->connections();
  return sum;
}

}  // namespace rollgate::redis
