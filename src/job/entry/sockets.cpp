#include "entry/sockets.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/text.hpp"

namespace trainyard::entry {
namespace {

constexpr std::string_view kHelpersName = "trainyard-entry";
constexpr int kWaitingConnectionsMax = 1024;
constexpr size_t kReceiveBytesMax = 64 << 10;

struct Address {
  sockaddr_storage bytes{};
  socklen_t size = 0;
};

Result<Address> parse_address(const std::string& text, uint16_t port) {
  Address address;
  auto* four = reinterpret_cast<sockaddr_in*>(&address.bytes);
  if (::inet_pton(AF_INET, text.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(port);
    address.size = sizeof *four;
    return address;
  }
  auto* six = reinterpret_cast<sockaddr_in6*>(&address.bytes);
  if (::inet_pton(AF_INET6, text.c_str(), &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(port);
    address.size = sizeof *six;
    return address;
  }
  return invalid("invalid address '" + shorten(text, 80) + "'");
}

Address helpers_address() {
  Address address;
  auto* unix_address = reinterpret_cast<sockaddr_un*>(&address.bytes);
  unix_address->sun_family = AF_UNIX;
  // A first byte of zero makes it an abstract name instead of a file.
  std::memcpy(unix_address->sun_path + 1, kHelpersName.data(), kHelpersName.size());
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + kHelpersName.size());
  return address;
}

const sockaddr* as_socket_address(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address.bytes);
}

Error failed(const std::string& doing) { return unavailable(doing + ": " + std::strerror(errno)); }

}  // namespace

std::string address_of(std::string_view hosts_file, std::string_view name) {
  for (auto line : split(hosts_file, '\n')) {
    line = line.substr(0, line.find('#'));
    std::string_view address;
    for (size_t at = 0; at < line.size();) {
      const size_t begin = line.find_first_not_of(" \t\r", at);
      if (begin == std::string_view::npos) break;
      const size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
      const auto word = line.substr(begin, end - begin);
      if (address.empty()) {
        address = word;
      } else if (equals_ignoring_case(word, name)) {
        return std::string(address);
      }
      at = end;
    }
  }
  return "";
}

Result<os::File> listen_for_gang(uint16_t port) {
  os::File socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  const int off = 0, on = 1;
  Address any;
  if (socket &&
      ::setsockopt(socket.descriptor(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0) {
    std::memcpy(&any.bytes, &six, sizeof six);
    any.size = sizeof six;
  } else {
    socket = os::File(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    any = TRY(parse_address("0.0.0.0", port));
  }
  if (!socket) return failed("making a socket");
  ::setsockopt(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(socket.descriptor(), as_socket_address(any), any.size) != 0 ||
      ::listen(socket.descriptor(), kWaitingConnectionsMax) != 0)
    return failed("listening on port " + std::to_string(port));
  return socket;
}

Result<os::File> begin_connecting(const std::string& address, uint16_t port) {
  const auto there = TRY(parse_address(address, port));
  os::File socket(::socket(there.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return failed("making a socket");
  const int on = 1;
  ::setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket.descriptor(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  if (::connect(socket.descriptor(), as_socket_address(there), there.size) != 0 &&
      errno != EINPROGRESS)
    return failed("connecting to " + address);
  return socket;
}

Result<void> finish_connecting(const os::File& socket) {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return unavailable(std::string("connecting: ") + std::strerror(error));
  return {};
}

Result<os::File> listen_for_helpers() {
  os::File socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return failed("making a socket");
  const auto address = helpers_address();
  if (::bind(socket.descriptor(), as_socket_address(address), address.size) != 0 ||
      ::listen(socket.descriptor(), kWaitingConnectionsMax) != 0)
    return failed("listening for helpers");
  return socket;
}

Result<os::File> connect_to_entry() {
  os::File socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return failed("making a socket");
  const auto address = helpers_address();
  if (::connect(socket.descriptor(), as_socket_address(address), address.size) != 0)
    return failed("connecting to the host's entry");
  return socket;
}

std::optional<os::File> accept_one(const os::File& listener) {
  os::File socket(::accept4(listener.descriptor(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) return {};
  const int on = 1;
  ::setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket.descriptor(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  return socket;
}

void Link::seal_with(const std::string& key, bool leads) {
  sealer_ = Sealer(key, leads ? kFromLeader : kToLeader);
  opener_.expect_seals(key, leads ? kToLeader : kFromLeader);
}

bool Link::send(const Message& message) {
  unsent_ += sealer_.seal(message);
  return unsent_.size() <= kUnsentBytesMax && send_more();
}

bool Link::send_more() {
  while (!unsent_.empty()) {
    const ssize_t sent = ::send(descriptor(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      unsent_.erase(0, static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      return true;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool Link::receive() {
  char buffer[kReceiveBytesMax];
  for (;;) {
    const ssize_t got = ::recv(descriptor(), buffer, sizeof buffer, 0);
    if (got > 0) {
      opener_.add({buffer, static_cast<size_t>(got)});
      return true;
    }
    if (got < 0 && errno == EINTR) continue;
    return got < 0 && errno == EAGAIN;
  }
}

}  // namespace trainyard::entry
