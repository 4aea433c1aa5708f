#include "net/link_socket.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/text.hpp"

namespace trainyard::net {
namespace {

// backlog of connections before accept(): enough for a restart of many agents at once
constexpr int kBacklogMax = 1024;

Result<SocketAddress> unix_address(const std::string& path) {
  SocketAddress address;
  address.path = path;
  auto* parts = reinterpret_cast<sockaddr_un*>(&address.storage);
  parts->sun_family = AF_UNIX;
  std::string reach = path;
  if (reach.size() >= sizeof parts->sun_path) {
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos)
      return invalid("invalid unix socket: name too long: " + shorten(path, 64));
    const std::string parent = slash == 0 ? "/" : path.substr(0, slash);
    address.folder = os::File(::open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!address.folder) return from_errno("unix socket: opening " + parent);
    reach = "/proc/self/fd/" + std::to_string(address.folder.descriptor()) + path.substr(slash);
    if (reach.size() >= sizeof parts->sun_path)
      return invalid("invalid unix socket: name too long: " + shorten(path.substr(slash + 1), 64));
  }
  if (reach.empty()) return invalid("invalid unix socket: the path is empty");
  std::memcpy(parts->sun_path, reach.data(), reach.size());
  address.length = socklen_t(offsetof(sockaddr_un, sun_path) + reach.size() + 1);
  return address;
}

std::string without_brackets(std::string_view host) {
  const bool has_them = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  return std::string(has_them ? host.substr(1, host.size() - 2) : host);
}

Result<SocketAddress> tcp_address(std::string_view text, bool listening) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos)
    return invalid("invalid address '" + shorten(text, 64) + "': the port is missing");
  const std::string name = without_brackets(text.substr(0, colon)), port(text.substr(colon + 1));
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (listening ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  if (const int why = ::getaddrinfo(name.c_str(), port.c_str(), &hints, &found); why != 0) {
    const Kind kind = why == EAI_AGAIN ? Kind::unavailable : Kind::not_found;
    return Error{kind, "address '" + shorten(text, 64) + "': " + ::gai_strerror(why)};
  }
  SocketAddress address;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  address.length = found->ai_addrlen;
  ::freeaddrinfo(found);
  return address;
}

Result<os::File> make_socket(const SocketAddress& address) {
  os::File socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return from_errno("making a socket");
  return socket;
}

// Returns true if a socket file was left by a listener that has ended.
bool abandoned(const SocketAddress& address) {
  struct stat status;
  if (::lstat(address.path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return false;
  const auto probe = make_socket(address);
  return probe && ::connect(probe->descriptor(), address.get(), address.length) != 0 &&
         errno == ECONNREFUSED;
}

}  // namespace

// Resolves "127.0.0.1:4570", "[::1]:4570" or "name:4570".
Result<SocketAddress> socket_address(const std::string& text, bool listening) {
  if (text.starts_with("unix:")) return unix_address(text.substr(5));
  if (text.starts_with("tcp:")) return tcp_address(std::string_view(text).substr(4), listening);
  return invalid("invalid address '" + shorten(text, 64) + "': it must start with unix: or tcp:");
}

void tune(const os::File& socket, const LinkLimits& limits) {
  const int on = 1;
  ::setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  end_with_dead_peer(socket.descriptor(), limits.dead_peer);
}

Result<os::File> listening_socket(const std::string& text, const SocketAddress& address) {
  os::File socket = TRY(make_socket(address));
  const bool is_unix = address.family() == AF_UNIX;
  const int on = 1;
  if (!is_unix) ::setsockopt(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // Linux makes the file with the mode of the unbound socket, so other users can never connect.
  if (is_unix) ::fchmod(socket.descriptor(), 0600);
  int bound = ::bind(socket.descriptor(), address.get(), address.length);
  if (bound != 0 && errno == EADDRINUSE && is_unix) {
    if (abandoned(address)) {
      ::unlink(address.path.c_str());
      bound = ::bind(socket.descriptor(), address.get(), address.length);
    } else {
      errno = EADDRINUSE;
    }
  }
  if (bound != 0) return from_errno("listening on " + text);
  if (::listen(socket.descriptor(), kBacklogMax) != 0) return from_errno("listening on " + text);
  return socket;
}

Result<os::File> connected_socket(const std::string& text, const SocketAddress& address,
                                  const LinkLimits& limits) {
  os::File socket = TRY(make_socket(address));
  if (::connect(socket.descriptor(), address.get(), address.length) != 0) {
    if (errno != EINPROGRESS) return from_errno("connecting to " + text);
    pollfd ready = {socket.descriptor(), POLLOUT, 0};
    int answer;
    do answer = ::poll(&ready, 1, int(kConnectLimit.count()));
    while (answer < 0 && errno == EINTR);
    int why = answer == 0 ? ETIMEDOUT : 0;
    socklen_t length = sizeof why;
    if (answer > 0) ::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &why, &length);
    if (why != 0) return from_errno("connecting to " + text, why);
  }
  if (address.family() != AF_UNIX) tune(socket, limits);
  return socket;
}

std::string host_of(const std::string& address) {
  return without_brackets(std::string_view(address).substr(4, address.rfind(':') - 4));
}

std::string with_real_port(const std::string& text, const os::File& socket) {
  if (!text.starts_with("tcp:")) return text;
  sockaddr_storage storage = {};
  socklen_t length = sizeof storage;
  ::getsockname(socket.descriptor(), reinterpret_cast<sockaddr*>(&storage), &length);
  const auto port = storage.ss_family == AF_INET6
                        ? reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port
                        : reinterpret_cast<sockaddr_in*>(&storage)->sin_port;
  return text.substr(0, text.rfind(':') + 1) + std::to_string(ntohs(port));
}

}  // namespace trainyard::net
