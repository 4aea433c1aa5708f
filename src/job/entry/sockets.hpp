// Opens the sockets of entry: TCP between the hosts of a gang, and a local socket for helper
// processes.
//
// Only connect_to_entry() blocks, and the helper processes' use of its socket.
//
// Threads: confined to one. Errors: unavailable, by errno.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "entry/frames.hpp"
#include "os/files.hpp"

namespace trainyard::entry {

// The port of the leading host. Differs from the ports that the contract names (22, 2222, 2223,
// 7592, 7777, 8890).
inline constexpr uint16_t kGangPort = 7779;
// The limit of unsent bytes, enough for some daemons' command lines: beyond it the peer does not
// read.
inline constexpr size_t kUnsentBytesMax = 4 << 20;

// Returns the address of a name in a hosts file; "" when it is missing.
std::string address_of(std::string_view hosts_file, std::string_view name);

Result<os::File> listen_for_gang(uint16_t port);
// Begins to connect; the socket becomes writable when the result is known.
Result<os::File> begin_connecting(const std::string& address, uint16_t port);
Result<void> finish_connecting(const os::File& socket);
// Listens for helper processes of this host, at an abstract name in the network namespace.
Result<os::File> listen_for_helpers();
Result<os::File> connect_to_entry();
std::optional<os::File> accept_one(const os::File& listener);

// One connected peer.
class Link {
 public:
  explicit Link(os::File socket) : socket_(std::move(socket)) {}
  int descriptor() const { return socket_.descriptor(); }
  bool wants_to_send() const { return !unsent_.empty(); }

  void seal_with(const std::string& key, bool leads);
  // Queues the message, and sends as much as the socket accepts. Returns false if the connection is
  // lost.
  bool send(const Message& message);
  bool send_more();
  // Reads what has arrived. Returns false if the connection is lost, or the bytes are invalid.
  bool receive();
  Result<std::optional<Message>> next() { return opener_.next(); }

 private:
  os::File socket_;
  Sealer sealer_;
  Opener opener_;
  std::string unsent_;
};

}  // namespace trainyard::entry
