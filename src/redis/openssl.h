// The OpenSSL inside the Node executable, declared without its headers, as in the manual of 3.0.
//
// The functions are weak: where the process does not export them, they are null, and the addon
// still loads. dlsym would need glibc 2.34 if the addon is built on a new system.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rollgate::redis::openssl {

struct BIO;
struct BIO_METHOD;
struct EVP_PKEY;
struct SSL;
struct SSL_CTX;
struct SSL_METHOD;
struct X509;
struct X509_STORE;
struct X509_STORE_CTX;
struct X509_VERIFY_PARAM;

using PasswordCallback = int (*)(char* buffer, int size, int is_writing, void* data);
using VerifyCallback = int (*)(int is_good, X509_STORE_CTX* chain);

// NOLINTBEGIN(readability-identifier-naming): names of OpenSSL
/// F(result, name, arguments) for each function that is used.
#define ROLLGATE_OPENSSL_FUNCTIONS(F)                                                \
  F(unsigned, OPENSSL_version_major, ())                                             \
  F(void, ERR_clear_error, ())                                                       \
  F(unsigned long, ERR_get_error, ())                                                \
  F(unsigned long, ERR_peek_last_error, ())                                          \
  F(void, ERR_error_string_n, (unsigned long, char*, std::size_t))                   \
  F(const BIO_METHOD*, BIO_s_mem, ())                                                \
  F(BIO*, BIO_new, (const BIO_METHOD*))                                              \
  F(BIO*, BIO_new_mem_buf, (const void*, int))                                       \
  F(int, BIO_free, (BIO*))                                                           \
  F(std::size_t, BIO_ctrl_pending, (BIO*))                                           \
  F(int, BIO_read_ex, (BIO*, void*, std::size_t, std::size_t*))                      \
  F(int, BIO_write_ex, (BIO*, const void*, std::size_t, std::size_t*))               \
  F(X509*, PEM_read_bio_X509, (BIO*, X509**, PasswordCallback, void*))               \
  F(EVP_PKEY*, PEM_read_bio_PrivateKey, (BIO*, EVP_PKEY**, PasswordCallback, void*)) \
  F(void, X509_free, (X509*))                                                        \
  F(void, EVP_PKEY_free, (EVP_PKEY*))                                                \
  F(int, X509_STORE_add_cert, (X509_STORE*, X509*))                                  \
  F(int, X509_VERIFY_PARAM_set1_ip_asc, (X509_VERIFY_PARAM*, const char*))           \
  F(const char*, X509_verify_cert_error_string, (long))                              \
  F(const SSL_METHOD*, TLS_client_method, ())                                        \
  F(SSL_CTX*, SSL_CTX_new, (const SSL_METHOD*))                                      \
  F(void, SSL_CTX_free, (SSL_CTX*))                                                  \
  F(long, SSL_CTX_ctrl, (SSL_CTX*, int, long, void*))                                \
  F(std::uint64_t, SSL_CTX_set_options, (SSL_CTX*, std::uint64_t))                   \
  F(void, SSL_CTX_set_verify, (SSL_CTX*, int, VerifyCallback))                       \
  F(int, SSL_CTX_set_cipher_list, (SSL_CTX*, const char*))                           \
  F(int, SSL_CTX_set_ciphersuites, (SSL_CTX*, const char*))                          \
  F(int, SSL_CTX_use_certificate, (SSL_CTX*, X509*))                                 \
  F(int, SSL_CTX_use_PrivateKey, (SSL_CTX*, EVP_PKEY*))                              \
  F(int, SSL_CTX_check_private_key, (const SSL_CTX*))                                \
  F(X509_STORE*, SSL_CTX_get_cert_store, (const SSL_CTX*))                           \
  F(SSL*, SSL_new, (SSL_CTX*))                                                       \
  F(void, SSL_free, (SSL*))                                                          \
  F(long, SSL_ctrl, (SSL*, int, long, void*))                                        \
  F(int, SSL_set1_host, (SSL*, const char*))                                         \
  F(X509_VERIFY_PARAM*, SSL_get0_param, (SSL*))                                      \
  F(void, SSL_set_bio, (SSL*, BIO*, BIO*))                                           \
  F(void, SSL_set_connect_state, (SSL*))                                             \
  F(int, SSL_do_handshake, (SSL*))                                                   \
  F(int, SSL_is_init_finished, (const SSL*))                                         \
  F(int, SSL_read_ex, (SSL*, void*, std::size_t, std::size_t*))                      \
  F(int, SSL_write_ex, (SSL*, const void*, std::size_t, std::size_t*))               \
  F(int, SSL_get_error, (const SSL*, int))                                           \
  F(int, SSL_get_verify_mode, (const SSL*))                                          \
  F(long, SSL_get_verify_result, (const SSL*))

extern "C" {
#define ROLLGATE_DECLARE(result, name, arguments) [[gnu::weak]] result name arguments;
ROLLGATE_OPENSSL_FUNCTIONS(ROLLGATE_DECLARE)
#undef ROLLGATE_DECLARE
}

// Macros of OpenSSL's headers. The SSL_CTRL_ numbers are commands of SSL_CTX_ctrl and SSL_ctrl.
inline constexpr int SSL_CTRL_SET_TLSEXT_HOSTNAME = 55;
inline constexpr long TLSEXT_NAMETYPE_host_name = 0;
inline constexpr int SSL_CTRL_CHAIN_CERT = 89;
inline constexpr int SSL_CTRL_SET_MIN_PROTO_VERSION = 123;
inline constexpr std::uint64_t SSL_OP_NO_RENEGOTIATION = std::uint64_t{1} << 30;
inline constexpr int SSL_VERIFY_NONE = 0;
inline constexpr int SSL_VERIFY_PEER = 1;
inline constexpr long X509_V_OK = 0;
inline constexpr int SSL_ERROR_WANT_READ = 2;
inline constexpr int SSL_ERROR_ZERO_RETURN = 6;
inline constexpr unsigned long ERR_LIB_PEM = 9;
inline constexpr unsigned long PEM_R_NO_START_LINE = 108;

constexpr unsigned long ERR_GET_LIB(unsigned long error) {
  return (error >> 23) & 0xFF;
}
constexpr unsigned long ERR_GET_REASON(unsigned long error) {
  return error & 0x7FFFFF;
}
// NOLINTEND(readability-identifier-naming)

}  // namespace rollgate::redis::openssl
