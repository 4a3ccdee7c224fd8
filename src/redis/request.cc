// Writes a script's run as a command.
#include "redis/request.h"

#include <algorithm>
#include <charconv>
#include <functional>

namespace rollgate::redis {

void ScriptRequest::AddKey(std::string_view store_namespace, std::string_view id) {
  keys_ += '$';
  char digits[20];
  keys_.append(
      digits,
      std::to_chars(digits, digits + sizeof digits, store_namespace.size() + id.size() + 2).ptr);
  keys_ += "\r\n";
  keys_ += store_namespace;
  keys_ += '{';
  keys_ += id;
  keys_ += "}\r\n";
  ++key_count_;
  // As many as a client puts into one request, 64; and another id of the same hash only makes the
  // script more careful.
  const std::size_t hash = std::hash<std::string_view>()(id);
  keys_may_repeat_ = keys_may_repeat_ || std::find(hashes_of_ids_.begin(), hashes_of_ids_.end(),
                                                   hash) != hashes_of_ids_.end();
  hashes_of_ids_.push_back(hash);
}

void ScriptRequest::Encode(std::string& command) const {
  AppendHeader(command, 4 + key_count_ + argument_count_);
  AppendWord(command, sends_text_ ? std::string_view("EVAL") : std::string_view("EVALSHA"));
  AppendWord(command, sends_text_ ? script_.source : script_.sha1);
  AppendWord(command, static_cast<std::int64_t>(key_count_));
  command += keys_;
  AppendWord(command, keys_may_repeat_ ? operation_.word_if_keys_repeat : operation_.word);
  command += arguments_;
}

std::vector<std::unique_ptr<Request>> ScriptRequest::SplitByKey() const {
  std::vector<std::unique_ptr<Request>> parts;
  if (key_count_ < 2 || calls.size() != key_count_) return parts;
  std::size_t from = 0;
  for (const CallId call : calls) {
    std::size_t length = 0;
    const char* const digits = keys_.data() + from + 1;
    const char* const end = std::from_chars(digits, keys_.data() + keys_.size(), length).ptr;
    const std::size_t word = static_cast<std::size_t>(end - keys_.data()) + 2 + length + 2 - from;
    auto part = std::make_unique<ScriptRequest>(deadline, script_, operation_, arguments_,
                                                argument_count_, numbers_per_key_);
    part->keys_ = keys_.substr(from, word);
    part->key_count_ = 1;
    part->sends_text_ = sends_text_;
    part->calls.push_back(call);
    part->hash_slot = hash_slot;
    part->redirections = redirections;
    part->timed_out = timed_out;
    parts.push_back(std::move(part));
    from += word;
  }
  return parts;
}

}  // namespace rollgate::redis
