// A LinkStream is the bytes of a link's socket: plain, or encrypted by TLS 1.3 with a certificate
// at each end. Private to this module.
//
// It never blocks, and does not own the socket. Threads: one at a time. Errors of all calls:
// unavailable (the peer closed, or the network failed); of TLS also denied (a certificate was
// rejected, by this end or by the peer) and corrupt (the bytes are not TLS, or were changed). After
// an error it must not be used again.
#pragma once

#include <sys/uio.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "net/tls_identity.hpp"

namespace trainyard::net {

class LinkStream {
 public:
  virtual ~LinkStream() = default;
  // The event for which the handshake waits.
  enum class Wait { nothing, readable, writable };
  // Continues the handshake. Requires: called until it waits for nothing, before read() and
  // write().
  virtual Result<Wait> shake_hands() = 0;
  // Returns the number of bytes that were read; 0: the peer has closed; nullopt: none are
  // available.
  virtual Result<std::optional<size_t>> read(std::span<char> buffer) = 0;
  // Returns the number of bytes that were written; 0: none can be written now. The next call must
  // then begin with the same bytes, and may have more.
  virtual Result<size_t> write(std::span<const iovec> parts) = 0;
  // The common name in the peer's certificate; "" without TLS. Requires: the handshake is done.
  virtual std::string peer_name() const = 0;
};

std::unique_ptr<LinkStream> plain_stream(int descriptor);

// The certificates and settings of one end. Threads: callable from anywhere.
class TlsEnd {
 public:
  virtual ~TlsEnd() = default;
  // `server`: the name or address that the certificate of the server must have; "": this end is the
  // server.
  virtual std::unique_ptr<LinkStream> stream(int descriptor, const std::string& server) const = 0;
};

enum class TlsRole { server, client };
// Errors: invalid, if the identity is not usable.
Result<std::unique_ptr<TlsEnd>> make_tls_end(const TlsIdentity& identity, TlsRole role);

// The number of bytes by which starts_tls() decides.
inline constexpr size_t kTlsStartBytes = 3;
// Returns true if a connection with these first bytes is TLS: a handshake record (22), version 3.1
// to 3.3. As the length of a frame they exceed 64 KiB; the first frame of a link is shorter.
bool starts_tls(std::string_view first_bytes);

}  // namespace trainyard::net
