// TLS for a connection, if hiredis has it: the build then defines ROLLGATE_HAS_TLS.
//
// OpenSSL is the one in the Node executable, whose symbols and headers addons may use. The process
// has no second copy.
#pragma once

#include <memory>
#include <string>
#include <vector>

struct redisContext;
struct ssl_ctx_st;
struct ssl_st;

namespace rollgate::redis {

/// Certificates and keys are PEM.
struct TlsOptions {
  std::vector<std::string> authorities;  ///< certificates to trust
  std::string certificate;               ///< of the client, with its chain; empty: none
  std::string key;
  std::string passphrase;   ///< of the key
  bool verifies = true;     ///< whether to reject servers without a valid certificate
  std::string server_name;  ///< expected in the certificate; empty: the host of the endpoint
};

/// Shared by the connections of one client.
class TlsContext {
 public:
  /// Null if an option is invalid; `error` then names it.
  static std::unique_ptr<TlsContext> Create(const TlsOptions& options, std::string& error);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  /// Starts TLS on a connected context, to which nothing was written yet. Returns the session,
  /// which the context owns, or null with the reason in `error`.
  ssl_st* Start(redisContext& connected, const std::string& host, std::string& error) const;

  /// Why the server was not trusted; empty if the connection failed for another reason.
  static std::string Distrust(const ssl_st* session);

 private:
  TlsContext(ssl_ctx_st* context, const TlsOptions& options);

  ssl_ctx_st* context_;
  bool verifies_;
  std::string server_name_;
};

}  // namespace rollgate::redis
