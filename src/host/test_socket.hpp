// A client's end of a connection to a port of this machine, for tests.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "host/files.hpp"

namespace trainyard::host::test {

// No file, when nobody listens there.
inline File connect_to(uint16_t port) {
  File socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(port);
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket.descriptor(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0)
    return File();
  return socket;
}

}  // namespace trainyard::host::test
