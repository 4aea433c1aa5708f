// A Wire is one connection between a member and the service: it reads and writes frames without
// blocking. The side that connected sends the first hello; then both sides prove that they know the
// secret (transport/tcp/frame.hpp), and messages follow.
//
// Threads: confined to one at a time. Errors: unavailable, if the peer closed the connection;
// conflict, if the peer has another secret; corrupt, if its bytes are invalid.
// Limits: kMessageBytesMax per message; kOutgoingBytesMax of queued messages to a peer that does
// not read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "collectives/transport/tcp/tcp_transport.hpp"
#include "membership/messages.hpp"

namespace trainyard::membership {

inline constexpr size_t kOutgoingBytesMax = 4 * kMessageBytesMax;

// Make an eventfd readable, which wakes the thread that polls it, and clear that again.
void wake(const collectives::Socket& event);
void clear(const collectives::Socket& event);

class Wire {
 public:
  enum class Side : uint8_t { service, member };
  Wire(collectives::Socket socket, std::string secret, Side side);

  int descriptor() const { return socket_.descriptor(); }
  bool proved() const { return proved_; }
  // Returns true if the caller should poll for writability.
  bool wants_to_write() const { return !outgoing_.empty(); }
  void send(const Message& message);
  // Writes queued messages, and returns the complete messages that have arrived, in order.
  Result<std::vector<Message>> exchange();

 private:
  void send_hello();
  Result<void> read();
  Result<void> write();
  Result<std::optional<Message>> next();

  collectives::Socket socket_;
  const std::string secret_;
  const Side side_;
  collectives::Hello own_hello_;
  std::optional<collectives::Hello> peer_hello_;
  bool proved_ = false;
  bool ended_ = false;  // the peer has closed the connection
  std::string incoming_;
  std::string outgoing_;
};

// Returns the local address of a connection.
Result<std::string> own_address_of(int descriptor);

}  // namespace trainyard::membership
