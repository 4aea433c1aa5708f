// Packets between two processes of this machine, each whole or not at all, with a descriptor if wanted: a pair of Unix
// sockets, one end of which a process is started with.
//
// Threads: callable from anywhere; packets of several senders do not mix. Errors: cancelled (the other side has closed),
// exhausted (longer than kPacketBytesMax), by errno.
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

// What the kernel takes at once without being asked for more.
inline constexpr size_t kPacketBytesMax = 128 << 10;

class PacketSocket {
 public:
  explicit PacketSocket(File socket) : socket_(std::move(socket)) {}
  // Ours, and the one to give away.
  static Result<std::pair<PacketSocket, File>> pair();

  struct Packet {
    std::string bytes;
    File descriptor;  // that came with it, if one did
  };
  Result<void> send(std::string_view bytes, int descriptor = -1) const;
  // Nothing: none came in time.
  Result<std::optional<Packet>> receive(Duration at_most) const;
  int descriptor() const { return socket_.descriptor(); }

 private:
  File socket_;
};

}  // namespace trainyard::os
