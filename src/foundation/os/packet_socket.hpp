// PacketSocket sends packets between two processes of this machine, each whole or not at all, and
// optionally with a descriptor. It is one of a pair of Unix sockets; a process inherits the other
// one at its start.
//
// Threads: callable from anywhere; packets of several senders do not mix. Errors: cancelled (the
// other side has closed its socket), exhausted (longer than kPacketBytesMax), by errno.
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

// limit of one packet, which the kernel accepts by default
inline constexpr size_t kPacketBytesMax = 128 << 10;

class PacketSocket {
 public:
  explicit PacketSocket(File socket) : socket_(std::move(socket)) {}
  // Returns the end for this process, and the end to pass to the other process.
  static Result<std::pair<PacketSocket, File>> pair();

  struct Packet {
    std::string bytes;
    File descriptor;  // the descriptor that was sent with the packet, if any
  };
  Result<void> send(std::string_view bytes, int descriptor = -1) const;
  // Returns nullopt if no packet arrives in time.
  Result<std::optional<Packet>> receive(Duration at_most) const;
  int descriptor() const { return socket_.descriptor(); }

 private:
  File socket_;
};

}  // namespace trainyard::os
