#include "collectives/transport/tcp/tls.hpp"

#include <dlfcn.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string>
#include <utility>

#include "base/sha256.hpp"
#include "collectives/transport/tcp/sockets.hpp"

// Types of OpenSSL, used only through pointers.
extern "C" {
struct ssl_st;
struct ssl_ctx_st;
struct ssl_method_st;
struct bio_st;
struct bio_method_st;
}

namespace trainyard::collectives {
namespace {

using Ssl = ssl_st;
using Context = ssl_ctx_st;
using Bio = bio_st;

// Constants of openssl/ssl.h and openssl/bio.h, which are macros there.
constexpr int kCtrlSetMinProtoVersion = 123;
constexpr int kCtrlMode = 33;
constexpr long kModePartialWrite = 1;
constexpr long kModeMovingBuffer = 2;
constexpr long kVersionTls13 = 0x0304;
constexpr int kErrorWantRead = 2;
constexpr int kErrorWantWrite = 3;
constexpr int kErrorZeroReturn = 6;
constexpr unsigned long kReasonBits = 0x7fffff;
constexpr unsigned long kReasonUnexpectedEnd = 294;
constexpr int kBioTypeDescriptor = 0x0100 | 0x0400;
constexpr int kBioCtrlFlush = 11;
constexpr int kBioRetryRead = 0x01 | 0x08;
constexpr int kBioRetryWrite = 0x02 | 0x08;
constexpr int kBioRetryFlags = 0x0f;
constexpr int kApplicationDataIndex = 0;

// Both use SHA-256, the default hash of a pre-shared key.
constexpr const char* kCiphers = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";
constexpr const char* kIdentity = "trainyard rank";

struct Library {
  const ssl_method_st* (*TLS_method)();
  Context* (*SSL_CTX_new)(const ssl_method_st*);
  void (*SSL_CTX_free)(Context*);
  long (*SSL_CTX_ctrl)(Context*, int, long, void*);
  int (*SSL_CTX_set_ciphersuites)(Context*, const char*);
  int (*SSL_CTX_set_num_tickets)(Context*, size_t);
  int (*SSL_CTX_set_ex_data)(Context*, int, void*);
  void* (*SSL_CTX_get_ex_data)(const Context*, int);
  void (*SSL_CTX_set_psk_client_callback)(Context*, unsigned (*)(Ssl*, const char*, char*, unsigned,
                                                                 unsigned char*, unsigned));
  void (*SSL_CTX_set_psk_server_callback)(Context*, unsigned (*)(Ssl*, const char*, unsigned char*,
                                                                 unsigned));
  Ssl* (*SSL_new)(Context*);
  void (*SSL_free)(Ssl*);
  Context* (*SSL_get_SSL_CTX)(const Ssl*);
  void (*SSL_set_connect_state)(Ssl*);
  void (*SSL_set_accept_state)(Ssl*);
  void (*SSL_set_bio)(Ssl*, Bio*, Bio*);
  int (*SSL_do_handshake)(Ssl*);
  int (*SSL_read)(Ssl*, void*, int);
  int (*SSL_write)(Ssl*, const void*, int);
  int (*SSL_get_error)(const Ssl*, int);
  unsigned long (*ERR_get_error)();
  void (*ERR_clear_error)();
  void (*ERR_error_string_n)(unsigned long, char*, size_t);
  bio_method_st* (*BIO_meth_new)(int, const char*);
  int (*BIO_meth_set_write)(bio_method_st*, int (*)(Bio*, const char*, int));
  int (*BIO_meth_set_read)(bio_method_st*, int (*)(Bio*, char*, int));
  int (*BIO_meth_set_ctrl)(bio_method_st*, long (*)(Bio*, int, long, void*));
  Bio* (*BIO_new)(const bio_method_st*);
  void (*BIO_set_data)(Bio*, void*);
  void* (*BIO_get_data)(Bio*);
  void (*BIO_set_init)(Bio*, int);
  void (*BIO_set_flags)(Bio*, int);
  void (*BIO_clear_flags)(Bio*, int);

  bio_method_st* descriptors = nullptr;  // connects sessions to their sockets
  std::string missing;                   // why OpenSSL cannot be used; empty: it can be used
};

// Set before the first session, and constant afterwards.
const Library* library = nullptr;

int descriptor_of(Bio* bio) { return int(reinterpret_cast<intptr_t>(library->BIO_get_data(bio))); }

// Writes to the socket. Unlike OpenSSL's own function, does not raise SIGPIPE if the peer has
// closed the connection.
int write_to_socket(Bio* bio, const char* bytes, int size) {
  library->BIO_clear_flags(bio, kBioRetryFlags);
  const ssize_t sent = ::send(descriptor_of(bio), bytes, size_t(size), MSG_NOSIGNAL);
  if (sent < 0 && (would_block(errno) || errno == EINTR))
    library->BIO_set_flags(bio, kBioRetryWrite);
  return int(sent);
}

int read_from_socket(Bio* bio, char* bytes, int size) {
  library->BIO_clear_flags(bio, kBioRetryFlags);
  const ssize_t got = ::recv(descriptor_of(bio), bytes, size_t(size), 0);
  if (got < 0 && (would_block(errno) || errno == EINTR)) library->BIO_set_flags(bio, kBioRetryRead);
  return int(got);
}

long control_socket(Bio*, int what, long, void*) { return what == kBioCtrlFlush ? 1 : 0; }

Digest key_of(const Ssl* session) {
  Digest key;
  std::memcpy(
      key.data(),
      library->SSL_CTX_get_ex_data(library->SSL_get_SSL_CTX(session), kApplicationDataIndex),
      key.size());
  return key;
}

unsigned give_key(Ssl* session, unsigned char* key, unsigned size) {
  const Digest digest = key_of(session);
  if (size < digest.size()) return 0;
  std::copy(digest.begin(), digest.end(), key);
  return unsigned(digest.size());
}

unsigned key_to_connect(Ssl* session, const char*, char* name, unsigned name_size,
                        unsigned char* key, unsigned size) {
  if (name_size <= std::strlen(kIdentity)) return 0;
  std::strcpy(name, kIdentity);
  return give_key(session, key, size);
}

unsigned key_to_accept(Ssl* session, const char* name, unsigned char* key, unsigned size) {
  return name != nullptr && std::strcmp(name, kIdentity) == 0 ? give_key(session, key, size) : 0;
}

// Finds the functions in libssl, or in its dependency libcrypto.
void find_functions(void* handle, Library& found) {
  const auto find = [&](auto& function, const char* name) {
    void* const symbol = ::dlsym(handle, name);
    if (symbol == nullptr)
      found.missing = std::string("the OpenSSL of this machine has no ") + name;
    std::memcpy(&function, &symbol, sizeof symbol);
  };
  find(found.TLS_method, "TLS_method");
  find(found.SSL_CTX_new, "SSL_CTX_new");
  find(found.SSL_CTX_free, "SSL_CTX_free");
  find(found.SSL_CTX_ctrl, "SSL_CTX_ctrl");
  find(found.SSL_CTX_set_ciphersuites, "SSL_CTX_set_ciphersuites");
  find(found.SSL_CTX_set_num_tickets, "SSL_CTX_set_num_tickets");
  find(found.SSL_CTX_set_ex_data, "SSL_CTX_set_ex_data");
  find(found.SSL_CTX_get_ex_data, "SSL_CTX_get_ex_data");
  find(found.SSL_CTX_set_psk_client_callback, "SSL_CTX_set_psk_client_callback");
  find(found.SSL_CTX_set_psk_server_callback, "SSL_CTX_set_psk_server_callback");
  find(found.SSL_new, "SSL_new");
  find(found.SSL_free, "SSL_free");
  find(found.SSL_get_SSL_CTX, "SSL_get_SSL_CTX");
  find(found.SSL_set_connect_state, "SSL_set_connect_state");
  find(found.SSL_set_accept_state, "SSL_set_accept_state");
  find(found.SSL_set_bio, "SSL_set_bio");
  find(found.SSL_do_handshake, "SSL_do_handshake");
  find(found.SSL_read, "SSL_read");
  find(found.SSL_write, "SSL_write");
  find(found.SSL_get_error, "SSL_get_error");
  find(found.ERR_get_error, "ERR_get_error");
  find(found.ERR_clear_error, "ERR_clear_error");
  find(found.ERR_error_string_n, "ERR_error_string_n");
  find(found.BIO_meth_new, "BIO_meth_new");
  find(found.BIO_meth_set_write, "BIO_meth_set_write");
  find(found.BIO_meth_set_read, "BIO_meth_set_read");
  find(found.BIO_meth_set_ctrl, "BIO_meth_set_ctrl");
  find(found.BIO_new, "BIO_new");
  find(found.BIO_set_data, "BIO_set_data");
  find(found.BIO_get_data, "BIO_get_data");
  find(found.BIO_set_init, "BIO_set_init");
  find(found.BIO_set_flags, "BIO_set_flags");
  find(found.BIO_clear_flags, "BIO_clear_flags");
}

Library load() {
  Library found{};
  void* handle = nullptr;
  for (const char* name : {"libssl.so.3", "libssl.so.1.1"}) {
    if (handle == nullptr) handle = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (handle == nullptr) {
    found.missing = "libssl.so.3 not found: encryption between ranks needs OpenSSL; install it";
    return found;
  }
  find_functions(handle, found);
  if (!found.missing.empty()) return found;
  found.descriptors = found.BIO_meth_new(kBioTypeDescriptor, "socket of a rank");
  if (found.descriptors == nullptr) {
    found.missing = "OpenSSL cannot create a BIO";
    return found;
  }
  found.BIO_meth_set_write(found.descriptors, write_to_socket);
  found.BIO_meth_set_read(found.descriptors, read_from_socket);
  found.BIO_meth_set_ctrl(found.descriptors, control_socket);
  return found;
}

}  // namespace

struct TlsKey::Impl {
  Digest key;
  Context* context = nullptr;
  ~Impl() {
    if (context) library->SSL_CTX_free(context);
  }
};

struct TlsSession::Impl {
  Ssl* session = nullptr;
  bool wants_to_write = false;
  bool broken = false;  // after an error the session must not be used
  ~Impl() {
    if (session) library->SSL_free(session);
  }
  // Translates the failed `answer` of a call: -1 with errno, or 0 when the peer has closed.
  ssize_t refused(int answer) {
    const int system_error = errno;
    const int what = library->SSL_get_error(session, answer);
    wants_to_write = what == kErrorWantWrite;
    if (what == kErrorWantRead || what == kErrorWantWrite) {
      errno = EAGAIN;
      return -1;
    }
    broken = true;
    if (what == kErrorZeroReturn) return 0;
    const unsigned long code = library->ERR_get_error();
    // the peer's process died: treated like a close
    if ((code & kReasonBits) == kReasonUnexpectedEnd) return 0;
    const bool by_protocol = code != 0;
    errno = by_protocol ? EPROTO : system_error;
    return !by_protocol && answer == 0 ? 0 : -1;
  }
};

TlsKey::TlsKey() : impl_(std::make_unique<Impl>()) {}
TlsKey::~TlsKey() = default;

Result<std::shared_ptr<const TlsKey>> TlsKey::make(std::string_view secret) {
  static const Library* const loaded = [] {
    static const Library all = load();
    library = &all;
    return library;
  }();
  if (!loaded->missing.empty()) return unavailable(loaded->missing);
  std::shared_ptr<TlsKey> key(new TlsKey());
  Impl& inside = *key->impl_;
  inside.key = hmac_sha256(secret, "the key of connections between ranks");
  inside.context = library->SSL_CTX_new(library->TLS_method());
  if (inside.context == nullptr ||
      library->SSL_CTX_ctrl(inside.context, kCtrlSetMinProtoVersion, kVersionTls13, nullptr) != 1 ||
      library->SSL_CTX_set_ciphersuites(inside.context, kCiphers) != 1 ||
      library->SSL_CTX_set_num_tickets(inside.context, 0) != 1 ||
      library->SSL_CTX_set_ex_data(inside.context, kApplicationDataIndex, inside.key.data()) != 1) {
    return unavailable("this machine's OpenSSL does not support TLS 1.3");
  }
  library->SSL_CTX_ctrl(inside.context, kCtrlMode, kModePartialWrite | kModeMovingBuffer, nullptr);
  library->SSL_CTX_set_psk_client_callback(inside.context, key_to_connect);
  library->SSL_CTX_set_psk_server_callback(inside.context, key_to_accept);
  return std::shared_ptr<const TlsKey>(std::move(key));
}

std::unique_ptr<TlsSession> TlsKey::session(int descriptor, TlsSide side) const {
  auto inside = std::make_unique<TlsSession::Impl>();
  inside->session = library->SSL_new(impl_->context);
  Bio* const bio = library->BIO_new(library->descriptors);
  library->BIO_set_data(bio, reinterpret_cast<void*>(intptr_t(descriptor)));
  library->BIO_set_init(bio, 1);
  library->SSL_set_bio(inside->session, bio, bio);
  if (side == TlsSide::connects) {
    library->SSL_set_connect_state(inside->session);
  } else {
    library->SSL_set_accept_state(inside->session);
  }
  return std::make_unique<TlsSession>(std::move(inside));
}

TlsSession::TlsSession(std::unique_ptr<Impl> inside) : impl_(std::move(inside)) {}
TlsSession::~TlsSession() = default;

bool TlsSession::wants_to_write() const { return impl_->wants_to_write; }

Result<bool> TlsSession::handshake() {
  if (impl_->broken) return unavailable("it closed the connection");
  library->ERR_clear_error();
  impl_->wants_to_write = false;
  const int answer = library->SSL_do_handshake(impl_->session);
  if (answer == 1) return true;
  errno = 0;
  const int what = library->SSL_get_error(impl_->session, answer);
  impl_->wants_to_write = what == kErrorWantWrite;
  if (what == kErrorWantRead || what == kErrorWantWrite) return false;
  impl_->broken = true;
  const unsigned long code = library->ERR_get_error();
  if (code == 0) return unavailable("it closed the connection");
  char why[256];
  library->ERR_error_string_n(code, why, sizeof why);
  return conflict("it belongs to another job or does not encrypt: " + std::string(why));
}

ssize_t TlsSession::receive(std::span<std::byte> into) {
  if (impl_->broken) return 0;
  library->ERR_clear_error();
  const int got =
      library->SSL_read(impl_->session, into.data(), int(std::min<size_t>(into.size(), INT_MAX)));
  return got > 0 ? got : impl_->refused(got);
}

ssize_t TlsSession::send(std::span<const std::byte> bytes) {
  if (impl_->broken) {
    errno = EPIPE;
    return -1;
  }
  library->ERR_clear_error();
  const int sent = library->SSL_write(impl_->session, bytes.data(),
                                      int(std::min<size_t>(bytes.size(), INT_MAX)));
  return sent > 0 ? sent : impl_->refused(sent);
}

}  // namespace trainyard::collectives
