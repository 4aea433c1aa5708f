// The sockets between entries: TCP inside the gang's network, and one of the host's own for its helpers.
//
// Nothing here blocks but connect_to_entry() and what helpers do after it.
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

// Where the leading host listens: beside the ports that the contract names (22, 2222, 2223, 7592, 7777, 8890).
inline constexpr uint16_t kGangPort = 7779;
// More waits to be sent to one peer than a few daemons' command lines: it does not read.
inline constexpr size_t kUnsentBytesMax = 4 << 20;

// The address that a hosts file gives a name; "" when it gives none.
std::string address_of(std::string_view hosts_file, std::string_view name);

Result<os::File> listen_for_gang(uint16_t port);
// Begins; whether it is there is known when the socket can be written.
Result<os::File> begin_connecting(const std::string& address, uint16_t port);
Result<void> finish_connecting(const os::File& socket);
// Helpers of this host meet here: a name in its network namespace, no file.
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
  // Queues, and sends what goes at once. False: it is gone.
  bool send(const Message& message);
  bool send_more();
  // What has come. False: it is gone, or sends what it must not.
  bool receive();
  Result<std::optional<Message>> next() { return opener_.next(); }

 private:
  os::File socket_;
  Sealer sealer_;
  Opener opener_;
  std::string unsent_;
};

}  // namespace trainyard::entry
