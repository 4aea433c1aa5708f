// One connection between a member and the service: frames in, frames out, without waiting. Whoever connected says hello
// first; then each proves that it knows the secret (transport/tcp/frame.hpp), and messages follow.
//
// Threads: confined to one at a time. Errors: unavailable when the other side closed; conflict when it does not know
// the secret; corrupt when its bytes make no sense.
// Limits: message_bytes_max to read; outgoing_bytes_max waiting to be sent, to one that does not read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "collectives/transport/tcp/tcp_transport.hpp"
#include "membership/messages.hpp"

namespace trainyard::membership {

inline constexpr size_t outgoing_bytes_max = 4 * message_bytes_max;

class Wire {
 public:
  enum class Side : uint8_t { service, member };
  Wire(collectives::Socket socket, std::string secret, Side side);

  int descriptor() const { return socket_.descriptor(); }
  bool proved() const { return proved_; }
  // Whether poll should say when more can be written.
  bool wants_to_write() const { return !outgoing_.empty(); }
  void send(const Message& message);
  // What came and is whole, in order. Also writes what waits.
  Result<std::vector<Message>> look();

 private:
  void hello();
  Result<void> read();
  Result<void> write();
  Result<std::optional<Message>> next();

  collectives::Socket socket_;
  const std::string secret_;
  const Side side_;
  collectives::Hello ours_;
  std::optional<collectives::Hello> theirs_;
  bool proved_ = false;
  std::string incoming_;
  std::string outgoing_;
};

// A machine that vanishes closes nothing: its connections break after TcpOptions::dead_peer_max.
void watch_for_death(int descriptor);

// Our side of a connection, as an address.
Result<std::string> own_address_of(int descriptor);

}  // namespace trainyard::membership
