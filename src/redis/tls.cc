// Configures OpenSSL for hiredis.
#include "redis/tls.h"

#ifdef ROLLGATE_HAS_TLS

#include <hiredis/hiredis.h>
#include <hiredis/hiredis_ssl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>

#include "redis/event_loop.h"

namespace rollgate::redis {
namespace {

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};

template <class T>
using Owned = std::unique_ptr<T, Free>;

Owned<BIO> Reader(const std::string& text) {
  return Owned<BIO>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string Reason() {
  std::array<char, 200> text{};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  ERR_clear_error();
  return text.data();
}

int GivePassphrase(char* buffer, int size, int, void* passphrase) {
  const auto& text = *static_cast<const std::string*>(passphrase);
  const auto length = std::min(text.size(), static_cast<std::size_t>(size));
  std::copy_n(text.data(), length, buffer);
  return static_cast<int>(length);
}

/// Returns an error message; empty if all were added.
std::string TrustAll(SSL_CTX* context, const std::vector<std::string>& authorities) {
  X509_STORE* const store = SSL_CTX_get_cert_store(context);
  for (const std::string& text : authorities) {
    const Owned<BIO> reader = Reader(text);
    int count = 0;
    while (
        const Owned<X509> certificate{PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr)}) {
      if (X509_STORE_add_cert(store, certificate.get()) != 1) return Reason();
      ++count;
    }
    ERR_clear_error();  // the end of the input counts as an error
    if (count == 0) return "a text without a certificate";
  }
  return {};
}

bool UseCertificate(SSL_CTX* context, const std::string& text) {
  const Owned<BIO> reader = Reader(text);
  const Owned<X509> own(PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr));
  if (!own || SSL_CTX_use_certificate(context, own.get()) != 1) return false;
  while (Owned<X509> above{PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr)}) {
    if (SSL_CTX_add1_chain_cert(context, above.get()) != 1) return false;
  }
  ERR_clear_error();
  return true;
}

bool UseKey(SSL_CTX* context, const std::string& text, std::string passphrase) {
  const Owned<BIO> reader = Reader(text);
  const Owned<EVP_PKEY> key(
      PEM_read_bio_PrivateKey(reader.get(), nullptr, GivePassphrase, &passphrase));
  return key && SSL_CTX_use_PrivateKey(context, key.get()) == 1;
}

}  // namespace

std::unique_ptr<TlsContext> TlsContext::Create(const TlsOptions& options, std::string& error) {
  Owned<SSL_CTX> context(SSL_CTX_new(TLS_client_method()));
  if (!context) {
    error = Reason();
  } else if (const std::string why = TrustAll(context.get(), options.authorities); !why.empty()) {
    error = "ca: " + why;
  } else if (!options.certificate.empty() && !UseCertificate(context.get(), options.certificate)) {
    error = "cert: " + Reason();
  } else if (!options.key.empty() && !UseKey(context.get(), options.key, options.passphrase)) {
    error = "key: " + Reason();
  } else {
    SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
    SSL_CTX_set_verify(context.get(), options.verifies ? SSL_VERIFY_PEER : SSL_VERIFY_NONE,
                       nullptr);
    return std::unique_ptr<TlsContext>(new TlsContext(context.release(), options));
  }
  return nullptr;
}

TlsContext::TlsContext(ssl_ctx_st* context, const TlsOptions& options)
    : context_(context), verifies_(options.verifies), server_name_(options.server_name) {}

TlsContext::~TlsContext() {
  SSL_CTX_free(context_);
}

std::string TlsContext::Distrust(const ssl_st* session) {
  const long result = SSL_get_verify_result(session);
  if (result == X509_V_OK || SSL_get_verify_mode(session) == SSL_VERIFY_NONE) return {};
  return std::string("certificate verify failed: ") + X509_verify_cert_error_string(result);
}

ssl_st* TlsContext::Start(redisContext& connected, const std::string& host,
                          std::string& error) const {
  const std::string& name = server_name_.empty() ? host : server_name_;
  ERR_clear_error();
  SSL* const ssl = SSL_new(context_);
  if (ssl == nullptr) {
    error = Reason();
    return nullptr;
  }
  bool good = true;
  if (IsAddress(name)) {
    if (verifies_) good = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name.c_str()) == 1;
  } else {
    good = SSL_set_tlsext_host_name(ssl, name.c_str()) == 1 &&
           (!verifies_ || SSL_set1_host(ssl, name.c_str()) == 1);
  }
  // If SSL_connect fails at once, hiredis before 1.3 leaves the TLS functions in the context, but
  // not the session that they dereference.
  const auto* const plain_functions = connected.funcs;
  if (good && redisInitiateSSL(&connected, ssl) == REDIS_OK) return ssl;
  connected.funcs = plain_functions;
  error = good ? Distrust(ssl) : "'" + name + "' is no name that a certificate could have";
  if (error.empty()) error = connected.errstr;
  SSL_free(ssl);  // the context does not own it after a failure
  return nullptr;
}

}  // namespace rollgate::redis

#endif  // ROLLGATE_HAS_TLS
