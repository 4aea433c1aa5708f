#include "collectives/transport/tcp/addresses.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cstring>

namespace trainyard::collectives {
namespace {

Result<Address> first_of(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (code != 0) return unavailable("looking up " + host + ": " + ::gai_strerror(code));
  Address address;
  address.length = list->ai_addrlen;
  std::memcpy(&address.storage, list->ai_addr, list->ai_addrlen);
  ::freeaddrinfo(list);
  return address;
}

}  // namespace

std::vector<std::string> hosts_of(const Endpoint& endpoint) {
  std::vector<std::string> hosts;
  size_t begin = 0;
  for (size_t comma = 0; comma != std::string::npos; begin = comma + 1) {
    comma = endpoint.host.find(',', begin);
    hosts.push_back(
        endpoint.host.substr(begin, comma == std::string::npos ? comma : comma - begin));
  }
  return hosts;
}

Result<std::vector<Address>> resolve(const Endpoint& endpoint) {
  std::vector<Address> addresses;
  std::optional<Error> failure;
  for (const std::string& host : hosts_of(endpoint)) {
    auto address = first_of(host, endpoint.port);
    if (address) {
      addresses.push_back(*address);
    } else {
      failure = std::move(address).error();
    }
  }
  if (addresses.empty()) return *failure;
  return addresses;
}

std::string text_of(const Endpoint& endpoint) {
  const bool bracketed = endpoint.host.find(':') != std::string::npos;
  return (bracketed ? "[" + endpoint.host + "]" : endpoint.host) + ":" +
         std::to_string(endpoint.port);
}

Result<Address> listen_address(const Endpoint& endpoint) {
  if (hosts_of(endpoint).size() == 1) return first_of(endpoint.host, endpoint.port);
  Address any;
  // Fails on a machine without IPv6.
  const int six_exists = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (six_exists < 0) {
    auto* four = reinterpret_cast<sockaddr_in*>(&any.storage);
    four->sin_family = AF_INET;
    four->sin_port = htons(endpoint.port);
    four->sin_addr.s_addr = htonl(INADDR_ANY);
    any.length = sizeof *four;
    return any;
  }
  ::close(six_exists);
  auto* six = reinterpret_cast<sockaddr_in6*>(&any.storage);
  six->sin6_family = AF_INET6;
  six->sin6_port = htons(endpoint.port);
  six->sin6_addr = in6addr_any;
  any.length = sizeof *six;
  return any;
}

}  // namespace trainyard::collectives
