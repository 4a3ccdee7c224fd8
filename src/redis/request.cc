// Encodes a script's run as a command.
#include "redis/request.h"

#include <algorithm>
#include <functional>

namespace rollgate::redis {

void ScriptRequest::AddKey(std::string_view store_namespace, std::string_view id) {
  AppendJoined(keys_, {store_namespace, "{", id, "}"});
  key_ends_.push_back(keys_.size());
  // A collision only makes the script take the slower way. A request has at most 64 keys.
  const std::size_t hash = std::hash<std::string_view>()(id);
  keys_may_repeat_ = keys_may_repeat_ || std::ranges::count(hashes_of_ids_, hash) > 0;
  hashes_of_ids_.push_back(hash);
}

void ScriptRequest::Encode(std::string& command) const {
  AppendHeader(command, 4 + key_count() + argument_count_);
  AppendWord(command, sends_text_ ? std::string_view("EVAL") : std::string_view("EVALSHA"));
  AppendWord(command, sends_text_ ? script_.source : script_.sha1);
  AppendWord(command, static_cast<std::int64_t>(key_count()));
  command += keys_;
  AppendWord(command, keys_may_repeat_ ? operation_.word_if_keys_repeat : operation_.word);
  command += arguments_;
}

std::vector<std::unique_ptr<Request>> ScriptRequest::SplitByKey() const {
  std::vector<std::unique_ptr<Request>> parts;
  if (key_count() < 2 || calls.size() != key_count()) return parts;
  std::size_t from = 0;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    auto part = std::make_unique<ScriptRequest>(deadline, script_, operation_, arguments_,
                                                argument_count_, numbers_per_key_);
    part->keys_ = keys_.substr(from, key_ends_[i] - from);
    part->key_ends_.push_back(part->keys_.size());
    part->sends_text_ = sends_text_;
    part->calls.push_back(calls[i]);
    part->hash_slot = hash_slot;
    part->redirections = redirections;
    part->timed_out = timed_out;
    parts.push_back(std::move(part));
    from = key_ends_[i];
  }
  return parts;
}

}  // namespace rollgate::redis
