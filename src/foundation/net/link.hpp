// Opens links: connections that carry whole frames (u32 little-endian length + that many bytes), in
// order or not at all, between agents and server. An address is "unix:/path" or
// "tcp:127.0.0.1:4570".
//
// Events of one link come one at a time, from one thread of the implementation; different links may
// have events at once. After closed() no event follows. send() never blocks: past queue_bytes_max
// the link is closed with `exhausted`. While an event handler runs nothing more is read from the
// links of its listener: a slow reader slows its senders.
//
// The kernel detects a TCP peer that vanishes without closing (dead_peer.hpp), with and without
// unsent frames; callers need no heartbeats for that.
//
// closed() tells the reason: unavailable (the peer closed, died or vanished, the network failed),
// cancelled (we closed), exhausted, corrupt (the peer announced a frame past frame_bytes_max),
// invalid (we sent one).
//
// Threads: send() and close() from anywhere, event handlers included; a listener or client is not
// destroyed by its own handlers. Errors: listening: conflict, denied; connecting: unavailable,
// not_found. Lifetime: a Link's shared_ptr is held by the transport until closed(), and by each of
// its senders.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "base/time.hpp"
#include "net/dead_peer.hpp"

namespace trainyard::net {

class Link {
 public:
  virtual ~Link() = default;
  // Sends a frame. No effect after the link closed.
  virtual void send(std::string frame) = 0;
  // Closes at once: unsent frames are dropped.
  virtual void close() = 0;
};

struct LinkEvents {
  std::function<void(const std::shared_ptr<Link>&)> opened;
  std::function<void(const std::shared_ptr<Link>&, std::string frame)> frame;
  // also after our own close()
  std::function<void(const std::shared_ptr<Link>&, Error why)> closed;
};

struct LinkLimits {
  size_t frame_bytes_max = 8 << 20;
  size_t queue_bytes_max = 64 << 20;  // unsent bytes of one link
  size_t links_max = 4096;            // of a listener: further connections are refused
  DeadPeerLimits dead_peer = {};      // for TCP
};

class LinkListener {
 public:
  virtual ~LinkListener() = default;  // stops: closes the listener and its links, joins its thread
  // The requested address, with the real port in place of port 0.
  virtual std::string address() const = 0;
};

// Listens. A unix socket is made with mode 0600; an existing one without a listener is replaced.
// Paths may be longer than sockaddr_un allows.
Result<std::unique_ptr<LinkListener>> listen_links(const std::string& address, LinkEvents events,
                                                   LinkLimits limits = {});

// Connects and keeps a thread for the link until it closes. The caller retries.
class LinkClient {
 public:
  virtual ~LinkClient() = default;  // closes the link, joins its thread
  virtual const std::shared_ptr<Link>& link() const = 0;
};
Result<std::unique_ptr<LinkClient>> connect_link(const std::string& address, LinkEvents events,
                                                 LinkLimits limits = {});

}  // namespace trainyard::net
