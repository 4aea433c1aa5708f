#include "sdk/python/c10d/rendezvous.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>

namespace trainyard::sdk {
namespace {

constexpr size_t kSecretBytes = 32;
constexpr size_t kAddressesMax = 64;  // of one host: limits the values in the store
constexpr int kBacklogConnections = 1024;
constexpr size_t kAnnouncedAddressesMax = 8;  // an unreachable one delays each peer by a second

std::string text_of(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN + IF_NAMESIZE + 1];
  const socklen_t length =
      address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  if (::getnameinfo(address, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return text;
}

struct AddressList {
  addrinfo* first = nullptr;
  ~AddressList() {
    if (first) ::freeaddrinfo(first);
  }
};

// Resolves a host. Errors: unavailable for an unknown name.
Result<void> look_up(const std::string& host, uint16_t port, AddressList& list) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  const int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list.first);
  if (code != 0) return unavailable("looking up " + host + ": " + ::gai_strerror(code));
  return ok();
}

// Returns the local address from which the kernel would send to a host. Sends nothing.
std::string source_towards(const std::string& host) {
  AddressList list;
  if (!look_up(host, 9, list)) return "";
  const int descriptor = ::socket(list.first->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return "";
  sockaddr_storage source{};
  socklen_t length = sizeof source;
  auto* address = reinterpret_cast<sockaddr*>(&source);
  const bool found = ::connect(descriptor, list.first->ai_addr, list.first->ai_addrlen) == 0 &&
                     ::getsockname(descriptor, address, &length) == 0;
  ::close(descriptor);
  return found ? text_of(address) : "";
}

// Returns a socket that listens at a free port of the address; writes the port to `port`.
Result<int> listen_at(const std::string& host, uint16_t& port) {
  AddressList list;
  TRY(look_up(host, 0, list));
  const int descriptor =
      ::socket(list.first->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0) return from_errno("opening a socket for " + host);
  const int off = 0;
  if (host == "::")
    (void)::setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);  // both versions
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  auto* address = reinterpret_cast<sockaddr*>(&bound);
  if (::bind(descriptor, list.first->ai_addr, list.first->ai_addrlen) != 0 ||
      ::listen(descriptor, kBacklogConnections) != 0 ||
      ::getsockname(descriptor, address, &length) != 0) {
    auto error = from_errno("listening at " + host);
    ::close(descriptor);
    return error;
  }
  // The port has the same offset in both address families.
  port = ntohs(reinterpret_cast<const sockaddr_in*>(&bound)->sin_port);
  return descriptor;
}

// Returns a socket that listens at a free port of all addresses of this machine.
Result<int> listen_everywhere(uint16_t& port) {
  auto listener = listen_at("::", port);
  return listener ? std::move(listener) : listen_at("0.0.0.0", port);
}

Result<std::string> fresh_secret() {
  unsigned char bytes[kSecretBytes];
  if (::getrandom(bytes, sizeof bytes, 0) != ssize_t(sizeof bytes))
    return from_errno("reading random bytes for the secret");
  std::string text;
  for (const unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

}  // namespace

std::string encode(const Presence& presence) {
  std::string text = presence.machine;
  for (const auto& address : presence.addresses) text += "\n" + address;
  return text;
}

Result<Presence> decode_presence(const std::string& text) {
  std::istringstream lines(text);
  Presence presence;
  std::getline(lines, presence.machine);
  if (presence.machine.empty()) return corrupt("the identifier of the machine is empty");
  for (std::string line; std::getline(lines, line) && presence.addresses.size() < kAddressesMax;)
    presence.addresses.push_back(line);
  return presence;
}

Result<Presence> own_presence() {
  Presence presence;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> presence.machine;
  struct stat network {};
  if (presence.machine.empty() || ::stat("/proc/self/ns/net", &network) != 0)
    return from_errno("reading the machine's identifier from /proc");
  presence.machine += "/" + std::to_string(network.st_ino);
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return from_errno("listing our addresses");
  for (const ifaddrs* each = all; each; each = each->ifa_next) {
    if (!each->ifa_addr || !(each->ifa_flags & IFF_UP) || (each->ifa_flags & IFF_LOOPBACK))
      continue;
    if (each->ifa_addr->sa_family != AF_INET && each->ifa_addr->sa_family != AF_INET6) continue;
    const std::string text = text_of(each->ifa_addr);
    // valid on this host only
    const bool link_local = text.find('%') != std::string::npos;
    if (!text.empty() && !link_local && presence.addresses.size() < kAddressesMax)
      presence.addresses.push_back(text);
  }
  ::freeifaddrs(all);
  // Addresses reserved for documentation, to which the default route leads.
  for (const char* world : {"2001:db8::1", "192.0.2.1"}) {
    const auto found =
        std::find(presence.addresses.begin(), presence.addresses.end(), source_towards(world));
    if (found != presence.addresses.end())
      std::rotate(presence.addresses.begin(), found, found + 1);
  }
  return presence;
}

std::vector<std::string> choose_addresses(
    const std::vector<Presence>& all, size_t rank,
    const std::function<std::string(const std::string&)>& source_towards) {
  const Presence& own = all[rank];
  const auto has = [](const Presence& presence, const std::string& address) {
    return std::find(presence.addresses.begin(), presence.addresses.end(), address) !=
           presence.addresses.end();
  };
  std::vector<std::string> chosen;
  const auto choose = [&](const std::string& address) {
    if (std::find(chosen.begin(), chosen.end(), address) == chosen.end()) chosen.push_back(address);
  };
  bool others = false;
  for (const Presence& peer : all) {
    if (peer.machine == own.machine) continue;
    others = true;
    for (const auto& address : peer.addresses) {
      if (has(own, address)) continue;  // a bridge that has the same address on every host
      const auto source = source_towards(address);
      if (has(own, source)) choose(source);
    }
  }
  if (!others || own.addresses.empty()) return {"127.0.0.1"};
  // If another rank has the same address, a connection may reach that rank.
  for (const auto& address : own.addresses) {
    const bool shared = std::any_of(all.begin(), all.end(), [&](const Presence& peer) {
      return peer.machine != own.machine && has(peer, address);
    });
    if (!shared) choose(address);
  }
  if (chosen.empty()) return {own.addresses.front()};
  chosen.resize(std::min(chosen.size(), kAnnouncedAddressesMax));
  return chosen;
}

namespace {

// Reads a value that rank `peer` wrote.
Result<std::string> read_of(const KeyValueStore& store, size_t peer, const std::string& what) {
  return store.read(what + "/" + std::to_string(peer))
      .in("rank " + std::to_string(peer) + " did not join: waiting for its " + what);
}

// Reads the endpoints of the other ranks, and the secret.
Result<void> read_endpoints(const KeyValueStore& store, const RendezvousOptions& options,
                            collectives::TcpOptions& tcp) {
  for (size_t peer = 0; peer < tcp.endpoints.size(); ++peer) {
    if (peer == size_t(options.rank)) continue;
    std::istringstream text(TRY(read_of(store, peer, "endpoint")));
    text >> tcp.endpoints[peer].port >> tcp.endpoints[peer].host;
    if (text.fail()) return corrupt("rank " + std::to_string(peer) + " wrote an invalid endpoint");
  }
  tcp.shared_value =
      TRY(store.read("secret").in("waiting for the secret of rank 0")) + options.secret;
  tcp.shared_value = tcp.shared_value.substr(0, collectives::TcpOptions::kSharedValueBytesMax);
  return ok();
}

}  // namespace

Result<std::unique_ptr<collectives::Group>> rendezvous(const KeyValueStore& store,
                                                       RendezvousOptions options) {
  if (options.encrypt && options.secret.empty())
    return invalid(
        "TRAINYARD_ENCRYPT needs TRAINYARD_SECRET: what the store holds goes over the network in "
        "the clear");
  const auto rank = size_t(options.rank);
  const auto ranks = size_t(options.size);
  if (ranks == 1) {
    auto groups = collectives::join_in_memory(1, {.deterministic = true});
    return std::move(groups.front());
  }

  std::vector<Presence> all(ranks);
  all[rank] = TRY(own_presence());
  if (rank == 0) store.write("secret", TRY(fresh_secret()));
  store.write("presence/" + std::to_string(rank), encode(all[rank]));
  for (size_t peer = 0; peer < ranks; ++peer) {
    if (peer == rank) continue;
    all[peer] = TRY(
        decode_presence(TRY(read_of(store, peer, "presence"))).in("rank " + std::to_string(peer)));
  }

  collectives::TcpOptions tcp;
  tcp.endpoints.resize(ranks);
  const auto addresses = options.address.empty() ? choose_addresses(all, rank, source_towards)
                                                 : std::vector<std::string>{options.address};
  std::string address = addresses.front();
  for (size_t i = 1; i < addresses.size(); ++i) address += "," + addresses[i];
  uint16_t port = 0;
  tcp.listener = TRY(addresses.size() == 1 ? listen_at(address, port) : listen_everywhere(port));
  tcp.endpoints[rank] = {address, port};
  store.write("endpoint/" + std::to_string(rank), std::to_string(port) + " " + address);
  if (auto read = read_endpoints(store, options, tcp); !read) {
    ::close(tcp.listener);
    return std::move(read).error();
  }
  tcp.rank = options.rank;
  tcp.encrypt = options.encrypt;
  tcp.sockets_per_peer = options.sockets_per_peer;
  tcp.join_deadline = options.join_deadline;
  tcp.peer_timeout = options.peer_timeout;
  tcp.cancelled = std::move(options.cancelled);
  tcp.group = std::move(options.group);
  return collectives::join_over_tcp(std::move(tcp));
}

}  // namespace trainyard::sdk
