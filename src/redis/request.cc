// Encodes a script's run as a command.
#include "redis/request.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace rollgate::redis {

void Group::Add(CallId call, const Program& limiter, std::string_view id,
                std::span<const double> own_amounts) {
  calls.push_back(call);
  if (!own_amounts.empty()) AppendDoubles(amounts, own_amounts);
  AppendJoined(keys, {limiter.key_prefix, "{", id, "}", limiter.key_suffix});
  key_ends.push_back(keys.size());
}

std::size_t ScriptRequest::AddGroup(Group group) {
  calls.insert(calls.end(), group.calls.begin(), group.calls.end());
  groups_.push_back(std::move(group));
  return groups_.size() - 1;
}

std::size_t ScriptRequest::PlaceOf(const Group& group, std::size_t first) {
  for (std::size_t place = first; place < groups_.size(); ++place) {
    if (groups_[place].head == group.head) return place;
  }
  return AddGroup(group);
}

void ScriptRequest::Add(std::size_t group, CallId call, const Program& limiter, std::string_view id,
                        std::span<const double> amounts) {
  Group& joined = groups_[group];
  const std::size_t from = joined.keys.size();
  calls.push_back(call);
  joined.Add(call, limiter, id, amounts);
  // A collision only makes the script take the slower way. A request has at most 64 keys.
  const std::size_t hash =
      std::hash<std::string_view>{}(std::string_view(joined.keys).substr(from));
  keys_may_repeat_ = keys_may_repeat_ || std::ranges::count(hashes_of_keys_, hash) > 0;
  hashes_of_keys_.push_back(hash);
  has_several_limiters_ = has_several_limiters_ || &limiter != groups_.front().program.get();
}

void ScriptRequest::Encode(std::string& command) const {
  AppendHeader(command, 4 + key_count() + groups_.size());
  AppendWord(command, sends_text_ ? std::string_view("EVAL") : std::string_view("EVALSHA"));
  AppendWord(command, sends_text_ ? script().source : script().sha1);
  AppendWord(command, static_cast<std::int64_t>(key_count()));
  for (const Group& group : groups_) command += group.keys;
  const bool is_apart = std::ranges::any_of(groups_, &Group::is_apart);
  AppendWord(command, std::string_view(is_apart           ? "apart"
                                       : keys_may_repeat_ ? "together, keys repeat"
                                                          : "together"));
  std::string count;
  for (const Group& group : groups_) {
    count.clear();
    AppendDoubles(count, {static_cast<double>(group.calls.size())});
    AppendJoined(command, {count, group.head, group.amounts});
  }
}

void PlainRequest::Encode(std::string& command) const {
  AppendHeader(command, words_.size());
  for (const std::string& word : words_) AppendWord(command, word);
}

bool PlainRequest::CanBeAnsweredBy(const Reply& reply) const {
  using Kind = Reply::Kind;
  const auto are = [](const std::vector<Reply>& elements, Kind kind) {
    return std::ranges::all_of(elements, [&](const Reply& one) { return one.kind == kind; });
  };
  if (reply.kind == Kind::kError) return true;
  const std::string& name = words_.front();
  if (name == "unlink" || name == "pttl") return reply.kind == Kind::kInteger;
  if (name == "CLUSTER" && words_.back() == "INFO") return reply.kind == Kind::kString;
  if (name == "CLUSTER") return reply.kind == Kind::kArray && are(reply.elements, Kind::kArray);
  if (name == "SENTINEL" && reply.kind != Kind::kNil) {
    return reply.kind == Kind::kArray && are(reply.elements, Kind::kString);
  }
  if (name != "scan") return true;
  return reply.elements.size() == 2 && reply.elements[0].kind == Kind::kString &&
         reply.elements[1].kind == Kind::kArray && are(reply.elements[1].elements, Kind::kString);
}

bool ScriptRequest::CanBeAnsweredBy(const Reply& reply) const {
  if (reply.kind == Reply::Kind::kError) return true;
  std::size_t count = 0;
  for (const Group& group : groups_) count += group.calls.size() * group.numbers_per_key;
  return reply.kind == Reply::Kind::kArray && reply.elements.size() == count &&
         std::ranges::all_of(reply.elements, [](const Reply& element) {
           return element.kind == Reply::Kind::kInteger;
         });
}

std::vector<std::unique_ptr<Request>> ScriptRequest::SplitByKey() const {
  std::vector<std::unique_ptr<Request>> parts;
  if (key_count() < 2) return parts;
  for (const Group& group : groups_) {
    std::size_t from = 0;
    const std::size_t amounts_per_call = group.amounts.size() / group.calls.size();
    for (std::size_t i = 0; i < group.calls.size(); ++i) {
      Group one = group;
      one.calls = {group.calls[i]};
      one.keys = group.keys.substr(from, group.key_ends[i] - from);
      one.key_ends = {one.keys.size()};
      one.amounts = group.amounts.substr(i * amounts_per_call, amounts_per_call);
      from = group.key_ends[i];
      auto part = std::make_unique<ScriptRequest>(deadline, std::move(one));
      part->sends_text_ = sends_text_;
      part->hash_slot = hash_slot;
      part->redirections = redirections;
      part->timed_out = timed_out;
      parts.push_back(std::move(part));
    }
  }
  return parts;
}

}  // namespace rollgate::redis
