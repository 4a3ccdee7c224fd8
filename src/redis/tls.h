// TLS on a connection, where hiredis has it: the build says ROLLGATE_HAS_TLS.
//
// OpenSSL is that of the Node executable itself, whose symbols and headers addons may use: there is
// no second one in the process.
#pragma once

#include <memory>
#include <string>
#include <vector>

struct redisContext;
struct ssl_ctx_st;
struct ssl_st;

namespace rollgate::redis {

/// All certificates and keys are PEM texts.
struct TlsOptions {
  std::vector<std::string> authorities;  ///< whom to trust
  std::string certificate;               ///< the client's own, with its chain; empty: none
  std::string key;
  std::string passphrase;   ///< of the key
  bool verifies = true;     ///< whether to refuse servers that cannot prove who they are
  std::string server_name;  ///< who the server has to be; empty: the host that was asked for
};

/// What the connections of one client share.
class TlsContext {
 public:
  /// Null where a text makes no sense; `error` says which.
  static std::unique_ptr<TlsContext> Create(const TlsOptions& options, std::string& error);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  /// Begins TLS on a connected context, to which nothing was written yet. Null with the reason in
  /// `error`, or what the connection has until it is freed.
  ssl_st* Start(redisContext& connected, const std::string& host, std::string& error) const;

  /// Why the server was not trusted; empty where that is not what went wrong.
  static std::string Distrust(const ssl_st* session);

 private:
  TlsContext(ssl_ctx_st* context, const TlsOptions& options);

  ssl_ctx_st* context_;
  bool verifies_;
  std::string server_name_;
};

}  // namespace rollgate::redis
