// TLS without a socket: bytes in, bytes out, by the OpenSSL inside the Node executable.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rollgate::redis {

namespace openssl {
struct BIO;
struct SSL;
struct SSL_CTX;
}  // namespace openssl

/// Certificates and keys are PEM.
struct TlsOptions {
  std::vector<std::string> authorities;  ///< certificates to trust
  std::string certificate;               ///< of the client, with its chain; empty: none
  std::string key;
  std::string passphrase;     ///< of the key
  bool verifies = true;       ///< whether to reject servers without a valid certificate
  std::string server_name;    ///< expected in the certificate; empty: the host of the endpoint
  int min_version = 0x0303;   ///< as TLS numbers its versions: 0x0303 is TLS 1.2, 0x0304 TLS 1.3
  std::string ciphers;        ///< up to TLS 1.2, as OpenSSL writes them; empty: its default
  std::string cipher_suites;  ///< of TLS 1.3; empty: OpenSSL's default
};

/// Shared by the connections of one client.
class TlsContext {
 public:
  /// Whether the process exports OpenSSL 3. Without it, nothing else here may be called.
  static bool IsAvailable();

  /// Null if an option is invalid; `error` then names it: "ca: ...", "cert: ...", "key: ...",
  /// "ciphers: ...".
  static std::unique_ptr<TlsContext> Create(const TlsOptions& options, std::string& error);

 private:
  friend class TlsSession;
  struct Free {
    void operator()(openssl::SSL_CTX* context) const;
  };
  using Owned = std::unique_ptr<openssl::SSL_CTX, Free>;

  TlsContext(Owned context, std::string server_name);

  Owned context_;
  std::string server_name_;
};

/// The client's side of one connection. After a failure, only TakeOutput may be called: it has
/// the alert for the server.
class TlsSession {
 public:
  /// Begins the handshake: its first bytes are there to take. Null with the reason in `error` if
  /// the name of the server cannot be checked. Does not need the context afterwards.
  static std::unique_ptr<TlsSession> Create(const TlsContext& context, const std::string& host,
                                            std::string& error);

  /// Takes bytes of the server and appends what they say to `plain`. False if the connection
  /// failed or the server closed it, with the reason in `error`; `plain` may have grown before.
  bool Receive(std::string_view encrypted, std::string& plain, std::string& error);

  /// Precondition: is_established().
  bool Send(std::string_view plain, std::string& error);

  /// Appends the bytes for the server, if there are any: after each call of another function.
  void TakeOutput(std::string& encrypted);

  /// Whether the handshake is complete, so that data may be sent.
  bool is_established() const;

  /// What to say of a connection that ends, by a timeout or by the server, before it is
  /// established.
  std::string_view DescribeHandshake() const;

 private:
  struct Free {
    void operator()(openssl::SSL* ssl) const;
  };
  using Owned = std::unique_ptr<openssl::SSL, Free>;

  TlsSession(Owned ssl, openssl::BIO* incoming, openssl::BIO* outgoing);

  Owned ssl_;
  openssl::BIO* incoming_;  ///< of ssl_, like outgoing_
  openssl::BIO* outgoing_;
  bool has_received_ = false;
};

}  // namespace rollgate::redis
