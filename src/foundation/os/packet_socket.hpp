// Sends packets between two processes of this machine, each whole or not at all, optionally with a
// descriptor: a pair of Unix sockets, one end of which a process inherits at its start.
//
// Threads: callable from anywhere; packets of several senders do not mix. Errors: cancelled (the
// other side has closed), exhausted (longer than kPacketBytesMax), by errno.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"
#include "base/time.hpp"
#include "os/files.hpp"

namespace trainyard::os {

// The size that the kernel accepts in one piece by default.
inline constexpr size_t kPacketBytesMax = 128 << 10;

class PacketSocket {
 public:
  explicit PacketSocket(File socket) : socket_(std::move(socket)) {}
  // Returns our end, and the one to pass to the other process.
  static Result<std::pair<PacketSocket, File>> pair();

  struct Packet {
    std::string bytes;
    File descriptor;  // the packet's descriptor, if it has one
  };
  Result<void> send(std::string_view bytes, int descriptor = -1) const;
  // Returns nothing if no packet arrives in time.
  Result<std::optional<Packet>> receive(Duration at_most) const;
  int descriptor() const { return socket_.descriptor(); }

 private:
  File socket_;
};

}  // namespace trainyard::os
