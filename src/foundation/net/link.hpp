// A Link is a connection between agent and server that transfers whole frames (u32 little-endian
// length + that number of bytes), in order or not at all. An address is "unix:/path" or
// "tcp:127.0.0.1:4570".
//
// Events of one link occur one at a time, on one thread of the implementation; events of different
// links may occur at once. closed() is the last event. send() never blocks: if more than
// queue_bytes_max are unsent, the link is closed with `exhausted`. While an event handler runs, no
// bytes are read from the links of its listener, so a slow reader slows its senders.
//
// A listener closes a link without a frame after greeting_max. If links_max exist, a new one
// replaces the oldest without a frame, so that idle connections do not keep others out.
//
// With a TlsIdentity at both ends, a TCP link is encrypted by TLS 1.3, and each end verifies that
// the other's certificate is of the same authority. Such a listener also accepts peers of an
// earlier release, without TLS: their peer_name() is "", and the receiver of their frames decides
// whether to accept them.
//
// The kernel detects a TCP peer that vanishes without closing (dead_peer.hpp), with and without
// unsent frames. Callers need no heartbeats for that.
//
// The error of closed() is the reason: unavailable (the peer closed, died or vanished, or the
// network failed), cancelled (this side closed), exhausted, corrupt (the peer sent a length above
// frame_bytes_max), invalid (this side sent such a frame).
//
// Threads: send() and close() from anywhere, including event handlers. A listener or client must
// not be destroyed by its own handlers. Errors: of listening: conflict, denied; of connecting:
// unavailable, not_found. Lifetime: the transport holds the shared_ptr of a Link until closed();
// each sender holds one too.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "base/time.hpp"
#include "net/dead_peer.hpp"
#include "net/tls_identity.hpp"

namespace trainyard::net {

class Link {
 public:
  virtual ~Link() = default;
  // Sends a frame. No effect after the link closed.
  virtual void send(std::string frame) = 0;
  // Closes the link at once; unsent frames are dropped.
  virtual void close() = 0;
  // The common name in the certificate of the peer; "" for a link without TLS. Constant.
  virtual std::string peer_name() const { return ""; }
};

struct LinkEvents {
  std::function<void(const std::shared_ptr<Link>&)> opened;
  std::function<void(const std::shared_ptr<Link>&, std::string frame)> frame;
  // called after close() too
  std::function<void(const std::shared_ptr<Link>&, Error why)> closed;
};

struct LinkLimits {
  size_t frame_bytes_max = 8 << 20;
  size_t queue_bytes_max = 64 << 20;  // unsent bytes of one link
  size_t links_max = 4096;            // limit of a listener
  DeadPeerLimits dead_peer = {};      // for TCP
  // The longest time from a connection to the first frame of its peer, with the TLS handshake; a
  // listener closes links that take longer. For a client: the longest time of the handshake.
  Duration greeting_max = 10s;
};

class LinkListener {
 public:
  virtual ~LinkListener() = default;  // stops: closes the listener and its links, joins its thread
  // Returns the requested address, with the real port instead of port 0.
  virtual std::string address() const = 0;
  // Uses another identity for new links. Callable from any thread. Errors: invalid; the current
  // identity is then still used.
  virtual Result<void> renew(const TlsIdentity& identity) = 0;
};

// Listens at an address. A unix socket is made with mode 0600; an existing socket file without a
// listener is replaced. Paths may be longer than sockaddr_un allows.
Result<std::unique_ptr<LinkListener>> listen_links(const std::string& address, LinkEvents events,
                                                   LinkLimits limits = {},
                                                   const std::optional<TlsIdentity>& identity = {});

// LinkClient is the connecting end. It has a thread until the link closes. It does not reconnect.
class LinkClient {
 public:
  virtual ~LinkClient() = default;  // closes the link, joins its thread
  virtual const std::shared_ptr<Link>& link() const = 0;
};
// With an identity, the certificate of the server must be of the host in `address`. Errors also:
// denied (a certificate was rejected), corrupt (the server does not use TLS), invalid (the
// identity).
Result<std::unique_ptr<LinkClient>> connect_link(const std::string& address, LinkEvents events,
                                                 LinkLimits limits = {},
                                                 const std::optional<TlsIdentity>& identity = {});

}  // namespace trainyard::net
