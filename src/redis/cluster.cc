// Routes requests, follows redirections and updates the map.
#include "redis/cluster.h"

#include <hiredis/hiredis.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>
#include <utility>

namespace rollgate::redis {
namespace {

constexpr std::uint8_t kMostRedirections = 5;

/// The least time between two requests for a map.
constexpr Millis kBetweenMaps = 100;

/// How long one node may take before the next one is asked as well.
constexpr Millis kPatience = 100;

/// MOVED and ASK: the slot and its node.
struct Redirection {
  std::uint16_t hash_slot;
  std::string host;
  int port;
};

/// Reads "3999 127.0.0.1:6381". The host may be missing, and may contain colons.
bool Parse(std::string_view text, Redirection& to) {
  const char* const end = text.data() + text.size();
  const auto [after_slot, slot_error] = std::from_chars(text.data(), end, to.hash_slot);
  const std::size_t colon = text.rfind(':');
  if (slot_error != std::errc() || after_slot == end || *after_slot != ' ' ||
      colon == std::string_view::npos || to.hash_slot >= kHashSlots) {
    return false;
  }
  const char* const host = after_slot + 1;
  if (host > text.data() + colon) return false;
  to.host.assign(host, text.data() + colon);
  const auto [after_port, port_error] = std::from_chars(text.data() + colon + 1, end, to.port);
  return port_error == std::errc() && after_port == end;
}

bool IsText(const redisReply& reply) {
  return reply.type == REDIS_REPLY_STRING || reply.type == REDIS_REPLY_STATUS;
}

}  // namespace

struct Cluster::MapRequest final : PlainRequest {
  MapRequest(Millis until, std::uint32_t at)
      : PlainRequest(until, Command({"CLUSTER", "SLOTS"})), asking(at) {}

  const std::uint32_t asking;
};

Cluster::Cluster(const EventLoop& loop, const ConnectionOptions& options,
                 std::vector<Endpoint> seeds, Transport::Owner& owner)
    : loop_(loop),
      options_(options),
      seeds_(std::move(seeds)),
      owner_(owner),
      owners_(kHashSlots, nullptr) {}

Connection& Cluster::NodeAt(const std::string& host, int port) {
  Endpoint endpoint{host, port, ""};
  std::unique_ptr<Connection>& node = nodes_[endpoint.Name()];
  Transport::Owner& owner = *this;
  if (!node) node = std::make_unique<Connection>(loop_, options_, std::move(endpoint), owner);
  return *node;
}

void Cluster::Send(std::unique_ptr<Request> request) {
  if (has_map_) {
    Route(std::move(request));
    return;
  }
  waiting_.push_back(std::move(request));
  AskForMap();
}

void Cluster::Route(std::unique_ptr<Request> request) {
  Connection* node = owners_[request->hash_slot];
  if (!request->node.empty()) {
    const auto found = nodes_.find(request->node);
    node = found == nodes_.end() ? nullptr : found->second.get();
  }
  if (node != nullptr) {
    node->Send(std::move(request));
    return;
  }
  wants_map_ = true;
  const std::string missing =
      request->node.empty() ? "hash slot " + std::to_string(request->hash_slot) : request->node;
  owner_.OnFailure(std::move(request),
                   {Failure::Kind::kUnreachable, "no node of the cluster is known for " + missing});
}

void Cluster::AskForMap() {
  if (is_asking_for_map_) return;
  is_asking_for_map_ = true;
  ++asking_;
  asked_ = 0;
  wants_map_ = false;
  next_map_at_ = EventLoop::Now() + kBetweenMaps;
  map_sources_.clear();
  // Connected nodes first, then the seeds, in case all other nodes have left.
  for (const auto& [name, node] : nodes_) {
    if (node->is_up()) map_sources_.push_front(node.get());
  }
  for (const Endpoint& seed : seeds_) {
    Connection* const node = &NodeAt(seed.host, seed.port);
    if (!node->is_up()) map_sources_.push_back(node);
  }
  AskNextForMap();
}

void Cluster::AskNextForMap() {
  Connection* const source = map_sources_.front();
  map_sources_.pop_front();
  ++asked_;
  const Millis now = EventLoop::Now();
  ask_next_at_ = now + kPatience;
  source->Send(std::make_unique<MapRequest>(now + options_.connect_timeout, asking_));
}

void Cluster::OnMap(const Connection& from, const redisReply& reply) {
  if (!ReadMap(from, reply)) {
    OnNoMap(reply.type == REDIS_REPLY_ERROR
                ? FromErrorReply(std::string(reply.str, reply.len))
                : Failure{Failure::Kind::kReply, "CLUSTER SLOTS: no list of slots"});
    return;
  }
  is_asking_for_map_ = false;
  map_sources_.clear();
  for (auto& request : std::exchange(waiting_, {})) Route(std::move(request));
}

void Cluster::OnNoMap(const Failure& failure) {
  --asked_;
  if (!map_sources_.empty()) {
    AskNextForMap();
  } else if (asked_ == 0) {
    is_asking_for_map_ = false;
    wants_map_ = true;
    for (auto& request : std::exchange(waiting_, {})) owner_.OnFailure(std::move(request), failure);
  }
}

bool Cluster::ReadMap(const Connection& from, const redisReply& reply) {
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements == 0) return false;
  std::vector<Connection*> owners(kHashSlots, nullptr);
  for (std::size_t i = 0; i < reply.elements; ++i) {
    const redisReply& range = *reply.element[i];
    if (range.type != REDIS_REPLY_ARRAY || range.elements < 3) return false;
    const redisReply& first = *range.element[0];
    const redisReply& last = *range.element[1];
    const redisReply& node = *range.element[2];
    if (first.type != REDIS_REPLY_INTEGER || last.type != REDIS_REPLY_INTEGER ||
        first.integer < 0 || last.integer >= static_cast<long long>(kHashSlots) ||
        node.type != REDIS_REPLY_ARRAY || node.elements < 2 ||
        node.element[1]->type != REDIS_REPLY_INTEGER) {
      return false;
    }
    // A node without an address is the one that sent the map.
    const redisReply& host = *node.element[0];
    const bool has_host = IsText(host) && host.len > 0 && host.str[0] != '?';
    Connection& owner = NodeAt(has_host ? std::string(host.str, host.len) : from.endpoint().host,
                               static_cast<int>(node.element[1]->integer));
    for (long long slot = first.integer; slot <= last.integer; ++slot) {
      owners[static_cast<std::size_t>(slot)] = &owner;
    }
  }
  owners_ = std::move(owners);
  has_map_ = true;
  return true;
}

bool Cluster::FollowRedirection(const Connection& from, std::unique_ptr<Request>& request,
                                std::string_view error) {
  const bool moved = error.starts_with("MOVED ");
  if (!moved && !error.starts_with("ASK ")) return false;
  Redirection to;
  if (!Parse(error.substr(error.find(' ') + 1), to)) return false;
  if (to.host.empty() || to.host == "?") to.host = from.endpoint().host;
  Connection& node = NodeAt(to.host, to.port);
  if (moved) {
    owners_[to.hash_slot] = &node;
    wants_map_ = true;
  }
  if (request->timed_out || !request->node.empty() ||
      request->redirections++ >= kMostRedirections) {
    return false;
  }
  if (!moved) {
    node.Send(std::make_unique<PlainRequest>(request->deadline, Command({"ASKING"})));
  }
  node.Send(std::move(request));
  return true;
}

void Cluster::OnAnswer(const Connection& from, std::unique_ptr<Request> request,
                       const redisReply& reply) {
  if (const auto* const map = dynamic_cast<MapRequest*>(request.get())) {
    if (is_asking_for_map_ && map->asking == asking_) OnMap(from, reply);
    return;
  }
  if (request->calls.empty()) return;  // ASKING
  if (reply.type == REDIS_REPLY_ERROR) {
    const std::string_view error(reply.str, reply.len);
    if (FollowRedirection(from, request, error)) return;
    if (error.starts_with("CLUSTERDOWN") || error.starts_with("READONLY")) wants_map_ = true;
  }
  owner_.OnAnswer(from, std::move(request), reply);
}

void Cluster::OnFailure(std::unique_ptr<Request> request, const Failure& failure) {
  if (const auto* const map = dynamic_cast<MapRequest*>(request.get())) {
    if (is_asking_for_map_ && map->asking == asking_) OnNoMap(failure);
    return;
  }
  wants_map_ = true;
  if (!request->calls.empty()) owner_.OnFailure(std::move(request), failure);
}

void Cluster::Flush() {
  for (const auto& [name, node] : nodes_) node->Flush();
}

void Cluster::DropTimedOut() {
  wants_map_ = true;
  while (!waiting_.empty() && waiting_.front()->timed_out) {
    owner_.OnFailure(std::move(waiting_.front()), {Failure::Kind::kTimeout, ""});
    waiting_.pop_front();
  }
  for (const auto& [name, node] : nodes_) node->DropTimedOut();
}

Millis Cluster::NextDue() const {
  Millis due = std::numeric_limits<Millis>::max();
  if (is_asking_for_map_) {
    if (!map_sources_.empty()) due = ask_next_at_;
  } else if (wants_map_ && has_map_) {
    due = next_map_at_;
  }
  for (const auto& [name, node] : nodes_) due = std::min(due, node->NextDue());
  return due;
}

void Cluster::OnTime(Millis now) {
  for (const auto& [name, node] : nodes_) node->OnTime(now);
  if (is_asking_for_map_) {
    if (!map_sources_.empty() && now >= ask_next_at_) AskNextForMap();
  } else if (wants_map_ && has_map_ && now >= next_map_at_) {
    AskForMap();
  }
  ForgetIdleNodes();
}

/// Closes nodes that own no slot. Seeds stay, and nodes with requests: slots may be moving to them.
void Cluster::ForgetIdleNodes() {
  if (!has_map_ || is_asking_for_map_) return;
  std::set<std::string> kept;
  for (const Endpoint& seed : seeds_) kept.insert(seed.Name());
  const std::set<const Connection*> owners(owners_.begin(), owners_.end());
  std::erase_if(nodes_, [&](const auto& named) {
    const auto& [name, node] = named;
    if (owners.contains(node.get()) || kept.contains(name) || node->is_busy()) return false;
    node->Close({Failure::Kind::kUnreachable, "the node has left the cluster"});
    return true;
  });
}

void Cluster::Close(const Failure& failure) {
  map_sources_.clear();
  is_asking_for_map_ = false;
  for (auto& request : std::exchange(waiting_, {})) owner_.OnFailure(std::move(request), failure);
  for (const auto& [name, node] : nodes_) node->Close(failure);
}

std::vector<std::string> Cluster::Nodes() const {
  const std::set<const Connection*> owners(owners_.begin(), owners_.end());
  std::vector<std::string> names;
  for (const auto& [name, node] : nodes_) {
    if (owners.contains(node.get())) names.push_back(name);
  }
  return names;
}

bool Cluster::is_up() const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [](const auto& named) { return named.second->is_up(); });
}

std::uint64_t Cluster::connections() const {
  std::uint64_t sum = 0;
  for (const auto& [name, node] : nodes_) sum += node->connections();
  return sum;
}

}  // namespace rollgate::redis
