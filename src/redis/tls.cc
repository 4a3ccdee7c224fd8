// Configures OpenSSL, and passes bytes through it with memory BIOs.
//
// Node uses the same queue of errors on the same thread, so it is emptied before each use and
// after.
#include "redis/tls.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "redis/event_loop.h"
#include "redis/openssl.h"

namespace rollgate::redis {

using namespace openssl;  // NOLINT(google-build-using-namespace): its names have prefixes

namespace {

constexpr unsigned kMajorVersion = 3;
constexpr std::size_t kLargestRecord = 16'384;  // of plain bytes: RFC 8446, 5.1
constexpr char kAlert = 21;                     // types of records that a server can begin with
constexpr char kHandshake = 22;

struct FreeAny {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};

template <class T>
using Owned = std::unique_ptr<T, FreeAny>;

Owned<BIO> Reader(const std::string& text) {
  return Owned<BIO>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

/// The first error in the queue, which leads to the others.
std::string Reason() {
  const unsigned long error = ERR_get_error();
  if (error == 0) return "TLS failed for an unknown reason";
  std::array<char, 200> text{};
  ERR_error_string_n(error, text.data(), text.size());
  ERR_clear_error();
  return text.data();
}

int GivePassphrase(char* buffer, int size, int, void* passphrase) {
  const auto& text = *static_cast<const std::string*>(passphrase);
  const auto length = std::min(text.size(), static_cast<std::size_t>(size));
  std::copy_n(text.data(), length, buffer);
  return static_cast<int>(length);
}

/// Calls `use(certificate, index)` for each certificate until one call is false. Returns an error
/// message; empty after a success.
template <class Use>
std::string ReadCertificates(const std::string& text, Use use) {
  const Owned<BIO> reader = Reader(text);
  int count = 0;
  while (
      const Owned<X509> certificate{PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr)}) {
    if (!use(certificate.get(), count)) return Reason();
    ++count;
  }
  const unsigned long error = ERR_peek_last_error();
  const bool is_at_end =
      ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
  if (!is_at_end) return Reason();
  ERR_clear_error();
  return count == 0 ? "PEM without a certificate" : "";
}

std::string TrustAll(SSL_CTX* context, const std::vector<std::string>& authorities) {
  X509_STORE* const store = SSL_CTX_get_cert_store(context);
  for (const std::string& text : authorities) {
    std::string error = ReadCertificates(
        text, [&](X509* certificate, int) { return X509_STORE_add_cert(store, certificate) == 1; });
    if (!error.empty()) return error;
  }
  return {};
}

std::string UseCertificate(SSL_CTX* context, const std::string& text) {
  return ReadCertificates(text, [&](X509* certificate, int index) {
    if (index == 0) return SSL_CTX_use_certificate(context, certificate) == 1;
    constexpr long kKeepsOwnership = 1;
    return SSL_CTX_ctrl(context, SSL_CTRL_CHAIN_CERT, kKeepsOwnership, certificate) == 1;
  });
}

bool UseKey(SSL_CTX* context, const std::string& text, std::string passphrase) {
  const Owned<BIO> reader = Reader(text);
  const Owned<EVP_PKEY> key(
      PEM_read_bio_PrivateKey(reader.get(), nullptr, GivePassphrase, &passphrase));
  return key && SSL_CTX_use_PrivateKey(context, key.get()) == 1;
}

/// Returns an error message that names the option; empty after a success.
std::string Configure(SSL_CTX* context, const TlsOptions& options) {
  if (const std::string why = TrustAll(context, options.authorities); !why.empty()) {
    return "ca: " + why;
  }
  if (!options.certificate.empty()) {
    const std::string why = UseCertificate(context, options.certificate);
    if (!why.empty()) return "cert: " + why;
  }
  const bool has_key = options.key.empty() || UseKey(context, options.key, options.passphrase);
  const bool needs_key = !options.certificate.empty();
  if (!has_key || (needs_key && SSL_CTX_check_private_key(context) != 1)) {
    return "key: " + Reason();
  }
  const std::string& ciphers = options.ciphers;
  const std::string& suites = options.cipher_suites;
  if ((!ciphers.empty() && SSL_CTX_set_cipher_list(context, ciphers.c_str()) != 1) ||
      (!suites.empty() && SSL_CTX_set_ciphersuites(context, suites.c_str()) != 1)) {
    return "ciphers: " + Reason();
  }
  SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, options.min_version, nullptr);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_verify(context, options.verifies ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  return {};
}

/// Sets what is sent as the server's name, and what its certificate must be for.
bool SetName(SSL* ssl, std::string name) {
  if (IsAddress(name)) {
    return SSL_get_verify_mode(ssl) == SSL_VERIFY_NONE ||
           X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name.c_str()) == 1;
  }
  return SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data()) == 1 &&
         SSL_set1_host(ssl, name.c_str()) == 1;
}

/// Why the server is not trusted; empty if the failure has another reason.
std::string Distrust(const SSL* ssl) {
  const long result = SSL_get_verify_result(ssl);
  if (result == X509_V_OK || SSL_get_verify_mode(ssl) == SSL_VERIFY_NONE) return {};
  return std::string("certificate verify failed: ") + X509_verify_cert_error_string(result);
}

/// After a call that did not succeed: whether it only needs more bytes from the server. If not,
/// `error` says why the connection ends.
bool IsWaiting(const SSL* ssl, std::string& error) {
  const int kind = SSL_get_error(ssl, 0);
  if (kind == SSL_ERROR_ZERO_RETURN) {
    error = "the server closed the connection";
  } else if (kind != SSL_ERROR_WANT_READ) {
    error = Distrust(ssl);
    if (error.empty()) error = Reason();
  }
  ERR_clear_error();
  return kind == SSL_ERROR_WANT_READ;
}

}  // namespace

bool TlsContext::IsAvailable() {
#define ROLLGATE_IS_THERE(result, name, arguments) &&(name) != nullptr
  return true ROLLGATE_OPENSSL_FUNCTIONS(ROLLGATE_IS_THERE) &&
         OPENSSL_version_major() == kMajorVersion;
#undef ROLLGATE_IS_THERE
}

std::unique_ptr<TlsContext> TlsContext::Create(const TlsOptions& options, std::string& error) {
  ERR_clear_error();
  Owned context(SSL_CTX_new(TLS_client_method()));
  error = context ? Configure(context.get(), options) : Reason();
  if (!error.empty()) return nullptr;
  return std::unique_ptr<TlsContext>(new TlsContext(std::move(context), options.server_name));
}

TlsContext::TlsContext(Owned context, std::string server_name)
    : context_(std::move(context)), server_name_(std::move(server_name)) {}

void TlsContext::Free::operator()(SSL_CTX* context) const {
  SSL_CTX_free(context);
}

std::unique_ptr<TlsSession> TlsSession::Create(const TlsContext& context, const std::string& host,
                                               std::string& error) {
  ERR_clear_error();
  Owned ssl(SSL_new(context.context_.get()));
  redis::Owned<BIO> incoming(BIO_new(BIO_s_mem()));
  redis::Owned<BIO> outgoing(BIO_new(BIO_s_mem()));
  if (!ssl || !incoming || !outgoing) {
    error = Reason();
    return nullptr;
  }
  const std::string& name = context.server_name_.empty() ? host : context.server_name_;
  if (!SetName(ssl.get(), name)) {
    ERR_clear_error();
    error = "'" + name + "' is no name that a certificate could have";
    return nullptr;
  }
  SSL_set_bio(ssl.get(), incoming.get(), outgoing.get());
  SSL_set_connect_state(ssl.get());
  std::unique_ptr<TlsSession> session(
      new TlsSession(std::move(ssl), incoming.release(), outgoing.release()));
  SSL_do_handshake(session->ssl_.get());
  if (!IsWaiting(session->ssl_.get(), error)) return nullptr;
  return session;
}

TlsSession::TlsSession(Owned ssl, BIO* incoming, BIO* outgoing)
    : ssl_(std::move(ssl)), incoming_(incoming), outgoing_(outgoing) {}

void TlsSession::Free::operator()(SSL* ssl) const {
  SSL_free(ssl);
}

bool TlsSession::Receive(std::string_view encrypted, std::string& plain, std::string& error) {
  if (encrypted.empty()) return true;
  const bool is_first = !std::exchange(has_received_, true);
  if (is_first && encrypted.front() != kAlert && encrypted.front() != kHandshake) {
    error = "the server does not speak TLS on this port; without TLS, the URL begins with redis://";
    return false;
  }
  ERR_clear_error();
  std::size_t length = 0;
  if (BIO_write_ex(incoming_, encrypted.data(), encrypted.size(), &length) != 1) {
    error = Reason();
    return false;
  }
  std::array<char, kLargestRecord> record;  // not initialized: it is large
  while (SSL_read_ex(ssl_.get(), record.data(), record.size(), &length) == 1) {
    plain.append(record.data(), length);
  }
  return IsWaiting(ssl_.get(), error);
}

bool TlsSession::Send(std::string_view plain, std::string& error) {
  if (plain.empty()) return true;
  ERR_clear_error();
  std::size_t length = 0;
  if (SSL_write_ex(ssl_.get(), plain.data(), plain.size(), &length) == 1) return true;
  error = Reason();
  return false;
}

void TlsSession::TakeOutput(std::string& encrypted) {
  const std::size_t before = encrypted.size();
  std::size_t length = BIO_ctrl_pending(outgoing_);
  if (length == 0) return;
  encrypted.resize(before + length);
  BIO_read_ex(outgoing_, encrypted.data() + before, length, &length);
}

bool TlsSession::is_established() const {
  return SSL_is_init_finished(ssl_.get()) == 1;
}

std::string_view TlsSession::DescribeHandshake() const {
  return has_received_
             ? "the TLS handshake was not completed"
             : "no answer to the TLS handshake; without TLS, the URL begins with redis://";
}

}  // namespace rollgate::redis
