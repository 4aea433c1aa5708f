// Makes connections to ports of this machine for tests, and networks in which a test makes peers
// vanish.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstring>
#include <functional>
#include <thread>

#include "os/files.hpp"

namespace trainyard::net::test {

// Connects to a port of this machine. Returns an empty File if there is no listener.
inline os::File connect_to(uint16_t port) {
  os::File socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(port);
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket.descriptor(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0)
    return os::File();
  return socket;
}

// Sets the flags of the loopback interface, IFF_UP or 0, in the network of the calling thread.
inline void set_loopback(short flags) {
  const os::File socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = {};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = flags;
  ASSERT_EQ(::ioctl(socket.descriptor(), SIOCSIFFLAGS, &request), 0);
}

// Runs `test` on a thread in a new network namespace, in which 127.0.0.1 is up. Threads that it
// starts are in the same namespace. Requires: root.
inline void in_own_network(const std::function<void()>& test) {
  std::thread([&] {
    ASSERT_EQ(::unshare(CLONE_NEWNET), 0);
    set_loopback(IFF_UP);
    test();
  }).join();
}

}  // namespace trainyard::net::test
