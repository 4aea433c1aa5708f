// Opens the sockets of links (link.hpp), by their addresses: "unix:/path" or "tcp:127.0.0.1:4570".
// Private to this module.
//
// Threads: callable from anywhere. Errors: of listening: conflict, denied; of connecting:
// unavailable, not_found; invalid addresses.
#pragma once

#include <sys/socket.h>

#include <string>

#include "base/result.hpp"
#include "net/link.hpp"
#include "os/files.hpp"

namespace trainyard::net {

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t length = 0;
  // Descriptor of the directory of a unix socket, through which it is accessed if its path is too
  // long for sockaddr_un.
  os::File folder;
  std::string path;  // complete path of a unix socket

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
};

Result<SocketAddress> socket_address(const std::string& text, bool listening);
Result<os::File> listening_socket(const std::string& text, const SocketAddress& address);
// Waits for the connection, at most kConnectLimit.
Result<os::File> connected_socket(const std::string& text, const SocketAddress& address,
                                  const LinkLimits& limits);
// Sets the options of a TCP connection; no effect on unix sockets.
void tune(const os::File& socket, const LinkLimits& limits);
// Returns the host of "tcp:HOST:PORT", without the brackets of an IPv6 address.
std::string host_of(const std::string& address);
// Returns the address with the port of the socket instead of port 0.
std::string with_real_port(const std::string& text, const os::File& socket);

// a host that does not answer within this time is unreachable
inline constexpr Duration kConnectLimit = 10s;

}  // namespace trainyard::net
