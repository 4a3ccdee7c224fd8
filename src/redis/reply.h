// The replies of a server, parsed by hiredis.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct redisReader;

namespace rollgate::redis {

struct Reply {
  enum class Kind : std::uint8_t { kNil, kInteger, kString, kError, kArray };

  Kind kind = Kind::kNil;
  std::int64_t integer = 0;
  std::string text;  ///< of a string or an error
  std::vector<Reply> elements;

  bool IsError(std::string_view code) const {
    return kind == Kind::kError && std::string_view(text).starts_with(code);
  }
};

/// Splits what a connection receives into replies.
class ReplyReader {
 public:
  ReplyReader();

  void Feed(std::string_view bytes);
  /// The next complete reply, valid until the next call; null if bytes are missing, or after an
  /// error.
  Reply* Next();
  /// Why the bytes are no reply; empty without an error.
  const std::string& error() const { return error_; }

 private:
  struct Builder;
  struct Free {
    void operator()(redisReader* reader) const;
  };

  Reply reply_;
  std::size_t elements_ = 0;  ///< of the reply, nested ones included
  std::string error_;
  std::unique_ptr<redisReader, Free> reader_;
};

}  // namespace rollgate::redis
