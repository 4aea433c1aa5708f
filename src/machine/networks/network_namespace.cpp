#include "networks/network_namespace.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>

#include <thread>

#include "base/text.hpp"

namespace trainyard::networks {
namespace {

// limit of connections that wait for accept(): more than a program of a job opens at once
constexpr int kBacklog = 128;

Result<os::File> listen_here(const std::string& address) {
  const std::string doing = "listening on " + address;
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return invalid(doing + ": expected ADDRESS:PORT");
  const auto port = TRY(parse_int(address.substr(colon + 1)).in(doing));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(static_cast<uint16_t>(port));
  if (port < 0 || port > UINT16_MAX ||
      ::inet_pton(AF_INET, address.substr(0, colon).c_str(), &name.sin_addr) != 1) {
    return invalid(doing + ": invalid IPv4 address or port");
  }
  os::File listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener) return from_errno(doing);
  const int on = 1;
  ::setsockopt(listener.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(listener.descriptor(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0 ||
      ::listen(listener.descriptor(), kBacklog) != 0) {
    return from_errno(doing);
  }
  return listener;
}

}  // namespace

Result<void> in_network_namespace(const std::string& network_namespace,
                                  const std::function<Result<void>()>& work) {
  if (network_namespace.empty()) return work();
  const os::File file(::open(network_namespace.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return from_errno("opening the network namespace " + network_namespace);
  Result<void> result;
  // The thread ends with the work, because it cannot be reused after it has entered a namespace.
  std::thread([&] {
    if (::setns(file.descriptor(), CLONE_NEWNET) != 0) {
      result = from_errno("entering the network namespace " + network_namespace);
    } else {
      result = work();
    }
  }).join();
  return result;
}

Result<os::File> listen_in_namespace(const std::string& network_namespace,
                                     const std::string& address) {
  return std::move(
      TRY(listen_in_namespace(network_namespace, std::vector<std::string>{address}))[0]);
}

Result<std::vector<os::File>> listen_in_namespace(const std::string& network_namespace,
                                                  const std::vector<std::string>& addresses) {
  std::vector<os::File> listeners;
  TRY(in_network_namespace(network_namespace, [&]() -> Result<void> {
    for (const auto& address : addresses) listeners.push_back(TRY(listen_here(address)));
    return {};
  }));
  return listeners;
}

Result<uint16_t> listening_port(const os::File& listener) {
  sockaddr_in name{};
  socklen_t size = sizeof name;
  if (::getsockname(listener.descriptor(), reinterpret_cast<sockaddr*>(&name), &size) != 0) {
    return from_errno("reading a socket's port");
  }
  return ntohs(name.sin_port);
}

}  // namespace trainyard::networks
