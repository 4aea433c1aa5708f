#include "networks/network.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <thread>

#include "base/check.hpp"
#include "base/text.hpp"
#include "containers/rootless_sandbox.hpp"
#include "networks/firewall.hpp"
#include "os/files.hpp"
#include "os/process.hpp"

namespace trainyard::networks {
namespace {

constexpr size_t kMessageBytesMax = 1024;  // limit of a request; requests have less than 300
constexpr size_t kReplyBytesMax = 32 << 10;
// the kernel answers at once; if it hangs, it must not block the caller forever
constexpr int kReplySecondsMax = 10;
// Builds a request to the kernel's routing socket, attribute by attribute.
class Request {
 public:
  Request(uint16_t type, uint16_t flags) {
    header()->nlmsg_len = NLMSG_HDRLEN;
    header()->nlmsg_type = type;
    header()->nlmsg_flags = uint16_t(NLM_F_REQUEST | NLM_F_ACK | flags);
  }
  template <class T>
  T& body() {
    T* at = reinterpret_cast<T*>(buffer_ + header()->nlmsg_len);
    grow(NLMSG_ALIGN(sizeof(T)));
    return *at;
  }
  void put(uint16_t type, const void* bytes, size_t size) {
    auto* attribute = reinterpret_cast<rtattr*>(buffer_ + header()->nlmsg_len);
    grow(RTA_SPACE(size));
    attribute->rta_type = type;
    attribute->rta_len = uint16_t(RTA_LENGTH(size));
    if (size > 0) std::memcpy(RTA_DATA(attribute), bytes, size);
  }
  void put(uint16_t type, const std::string& text) { put(type, text.c_str(), text.size() + 1); }
  void put_number(uint16_t type, uint32_t number) { put(type, &number, sizeof number); }
  void put_address(uint16_t type, Address address) { put_number(type, htonl(address)); }
  // Attributes that are added between open() and close() are nested in one attribute.
  size_t open(uint16_t type) {
    const size_t at = header()->nlmsg_len;
    put(type, nullptr, 0);
    return at;
  }
  void close(size_t at) {
    reinterpret_cast<rtattr*>(buffer_ + at)->rta_len = uint16_t(header()->nlmsg_len - at);
  }
  nlmsghdr* header() { return reinterpret_cast<nlmsghdr*>(buffer_); }

 private:
  void grow(size_t bytes) {
    CHECK(header()->nlmsg_len + bytes <= sizeof buffer_,
          "a request has a few attributes of bounded size");
    header()->nlmsg_len += uint32_t(bytes);
  }
  alignas(NLMSG_ALIGNTO) char buffer_[kMessageBytesMax] = {};
};

// A routing socket. It belongs to the network namespace in which it was opened, even if a thread in
// another namespace uses it.
class Netlink {
 public:
  static Result<Netlink> open() {
    os::File socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
    if (!socket) return from_errno("opening a routing socket");
    const timeval limit{kReplySecondsMax, 0};
    ::setsockopt(socket.descriptor(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return Netlink(std::move(socket));
  }

  // Sends a request and calls `each` for each answer, until the end of a dump or an
  // acknowledgement. Returns 0 or an error number.
  int send(
      Request& request, const std::function<void(const nlmsghdr&)>& each = [](const nlmsghdr&) {}) {
    request.header()->nlmsg_seq = ++sequence_;
    if (::send(socket_.descriptor(), request.header(), request.header()->nlmsg_len, 0) < 0)
      return errno;
    alignas(NLMSG_ALIGNTO) char reply[kReplyBytesMax];
    for (;;) {
      const ssize_t got = ::recv(socket_.descriptor(), reply, sizeof reply, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return errno == EAGAIN ? ETIMEDOUT : errno;
      int left = int(got);
      for (auto* message = reinterpret_cast<nlmsghdr*>(reply); NLMSG_OK(message, unsigned(left));
           message = NLMSG_NEXT(message, left)) {
        if (message->nlmsg_seq != sequence_) continue;
        if (message->nlmsg_type == NLMSG_DONE) return 0;
        if (message->nlmsg_type == NLMSG_ERROR)
          return -reinterpret_cast<nlmsgerr*>(NLMSG_DATA(message))->error;
        each(*message);
      }
    }
  }

  // Returns the index of an interface in the namespace of this socket.
  Result<unsigned> index_of(const std::string& name) {
    Request request(RTM_GETLINK, 0);
    request.body<ifinfomsg>().ifi_family = AF_UNSPEC;
    request.put(IFLA_IFNAME, name);
    unsigned index = 0;
    const int error = send(request, [&](const nlmsghdr& message) {
      if (message.nlmsg_type == RTM_NEWLINK)
        index = unsigned(reinterpret_cast<const ifinfomsg*>(NLMSG_DATA(&message))->ifi_index);
    });
    if (error) return from_errno("finding the interface " + name, error);
    return index;
  }

 private:
  explicit Netlink(os::File socket) : socket_(std::move(socket)) {}
  os::File socket_;
  uint32_t sequence_ = 0;
};

Error refused(const std::string& doing, int error_number) {
  Error error = from_errno(doing, error_number);
  if (error_number == EOPNOTSUPP)
    error = denied(doing + ": this kernel does not support that kind of interface");
  return error;
}

// Returns the kernel's interface group of a network. The interfaces of a group are removed
// together, since the kernel waits for its readers at each removal. The number is far above those
// that people use.
uint32_t group_of(const std::string& bridge) {
  uint32_t hash = 0x811c9dc5;  // FNV-1a
  for (const char byte : bridge) hash = (hash ^ uint8_t(byte)) * 0x01000193;
  return hash | 0x80000000;
}

Result<void> make_bridge(Netlink& netlink, const std::string& name, const std::string& alias) {
  Request request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
  request.body<ifinfomsg>().ifi_family = AF_UNSPEC;
  request.put(IFLA_IFNAME, name);
  request.put_number(IFLA_GROUP, group_of(name));
  const size_t info = request.open(IFLA_LINKINFO);
  request.put(IFLA_INFO_KIND, "bridge", 6);
  request.close(info);
  if (const int error = netlink.send(request)) return refused("making the bridge " + name, error);
  // Set after the creation, for which kernels accept different attributes.
  Request named(RTM_SETLINK, 0);
  named.body<ifinfomsg>().ifi_index = int(TRY(netlink.index_of(name)));
  named.put(IFLA_IFALIAS, alias.substr(0, 255));
  (void)netlink.send(named);
  return ok();
}

std::string name_inside(const PrivateNetwork& network) {
  return network.encrypted ? std::string(kUnderlay) : "eth0";
}

// Makes a pair of interfaces: `name` here, up and attached to the bridge, and `inside` in the
// namespace. `bridge` 0: attached to none.
Result<void> make_pair(Netlink& netlink, const std::string& name, const std::string& inside,
                       const std::string& group, unsigned bridge, int namespace_descriptor) {
  Request request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
  auto& header = request.body<ifinfomsg>();
  header.ifi_family = AF_UNSPEC;
  header.ifi_flags = header.ifi_change = IFF_UP;
  request.put(IFLA_IFNAME, name);
  if (bridge != 0) request.put_number(IFLA_MASTER, bridge);
  request.put_number(IFLA_GROUP, group_of(group));
  const size_t info = request.open(IFLA_LINKINFO);
  request.put(IFLA_INFO_KIND, "veth", 4);
  const size_t data = request.open(IFLA_INFO_DATA);
  const size_t peer = request.open(VETH_INFO_PEER);
  request.body<ifinfomsg>().ifi_family = AF_UNSPEC;
  request.put(IFLA_IFNAME, inside);
  request.put_number(IFLA_NET_NS_FD, uint32_t(namespace_descriptor));
  request.close(peer);
  request.close(data);
  request.close(info);
  if (const int error = netlink.send(request))
    return refused("making the interface " + name, error);
  return ok();
}

Result<void> set_up(Netlink& netlink, unsigned index, const std::string& name) {
  Request request(RTM_SETLINK, 0);
  auto& header = request.body<ifinfomsg>();
  header.ifi_index = int(index);
  header.ifi_flags = header.ifi_change = IFF_UP;
  if (const int error = netlink.send(request)) return refused("setting " + name + " up", error);
  return ok();
}

Result<void> add_address(Netlink& netlink, unsigned index, Address address, int prefix) {
  Request request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE);
  auto& header = request.body<ifaddrmsg>();
  header.ifa_family = AF_INET;
  header.ifa_prefixlen = uint8_t(prefix);
  header.ifa_index = index;
  // A link-local address on lo has host scope.
  header.ifa_scope = RT_SCOPE_UNIVERSE;
  request.put_address(IFA_LOCAL, address);
  request.put_address(IFA_ADDRESS, address);
  if (const int error = netlink.send(request))
    return refused("adding the address " + to_text(address), error);
  return ok();
}

Result<void> add_default_route(Netlink& netlink, Address gateway) {
  Request request(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE);
  auto& header = request.body<rtmsg>();
  header.rtm_family = AF_INET;
  header.rtm_table = RT_TABLE_MAIN;
  header.rtm_protocol = RTPROT_BOOT;
  header.rtm_scope = RT_SCOPE_UNIVERSE;
  header.rtm_type = RTN_UNICAST;
  request.put_address(RTA_GATEWAY, gateway);
  if (const int error = netlink.send(request))
    return refused("routing through " + to_text(gateway), error);
  return ok();
}

// Makes a network namespace. Returns a descriptor of it, and a routing socket in it.
struct Namespace {
  os::File held;
  Netlink netlink;
};

// Requires: called on a separate thread, which it moves between namespaces.
Result<Namespace> make_namespace() {
  if (::unshare(CLONE_NEWNET) != 0) return from_errno("making a network namespace");
  // Disables IPv6, which would only search for absent neighbours, except on loopback.
  (void)os::write_file("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
  // Permits all ports and ping, because programs in it have no capabilities, and only the job uses
  // it.
  (void)os::write_file("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
  (void)os::write_file("/proc/sys/net/ipv4/ping_group_range", "0 2147483647");
  os::File held(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!held) return from_errno("opening a network namespace");
  auto netlink = TRY(Netlink::open());
  return Namespace{std::move(held), std::move(netlink)};
}

Result<void> keep_namespace(const Namespace& made, const std::string& path) {
  if (path.empty()) return ok();
  const os::File file(::open(path.c_str(), O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return from_errno("making " + path);
  const std::string source = "/proc/self/fd/" + std::to_string(made.held.descriptor());
  if (::mount(source.c_str(), path.c_str(), nullptr, MS_BIND, nullptr) != 0)
    return from_errno("keeping a network namespace at " + path);
  return ok();
}

Result<void> configure_namespace(Namespace& made, const PrivateNetwork& network,
                                 const PrivateHost& host) {
  constexpr unsigned kLoopback = 1;  // index of lo in every new namespace
  TRY(set_up(made.netlink, kLoopback, "lo"));
  for (const Address relay : network.relays) TRY(add_address(made.netlink, kLoopback, relay, 32));
  const std::string name = name_inside(network);
  const unsigned link = TRY(made.netlink.index_of(name));
  if (network.encrypted)
    TRY(add_address(made.netlink, link, host.under, network.subnet.prefix + 1));
  else
    TRY(add_address(made.netlink, link, host.address, network.subnet.prefix));
  TRY(set_up(made.netlink, link, name));
  if (!network.isolated) TRY(add_default_route(made.netlink, network.gateway));
  return ok();
}

Result<void> forward_packets() {
  constexpr const char* kSwitch = "/proc/sys/net/ipv4/ip_forward";
  const auto now = os::read_file(kSwitch, 16);
  if (now && trim(*now) == "1") return ok();
  auto written = os::write_file(kSwitch, "1");
  if (!written)
    return denied("enabling jobs' egress: net.ipv4.ip_forward=1 cannot be set: " +
                  written.error().message);
  return ok();
}

// Makes a pair of interfaces, of which the end here has the address of the gateway.
Result<void> make_direct_link(const PrivateNetwork& network, Namespace& made) {
  Netlink netlink = TRY(Netlink::open());
  const PrivateHost& host = network.hosts[0];
  TRY(keep_namespace(made, host.namespace_file));
  TRY(make_pair(netlink, host.link, name_inside(network), host.link, 0, made.held.descriptor()));
  (void)os::write_file("/proc/sys/net/ipv6/conf/" + host.link + "/disable_ipv6", "1");
  TRY(add_address(netlink, TRY(netlink.index_of(host.link)), network.gateway,
                  network.subnet.prefix));
  return configure_namespace(made, network, host).in("host " + to_text(host.address));
}

Result<void> link_hosts(Netlink& netlink, unsigned bridge, const PrivateNetwork& network,
                        std::vector<Namespace>& namespaces) {
  for (size_t i = 0; i < network.hosts.size(); i++) {
    const PrivateHost& host = network.hosts[i];
    TRY(keep_namespace(namespaces[i], host.namespace_file));
    TRY(make_pair(netlink, host.link, name_inside(network), network.bridge, bridge,
                  namespaces[i].held.descriptor()));
    (void)os::write_file("/proc/sys/net/ipv6/conf/" + host.link + "/disable_ipv6", "1");
    TRY(configure_namespace(namespaces[i], network, host).in("host " + to_text(host.address)));
  }
  return ok();
}

Result<void> make_links(const PrivateNetwork& network, std::vector<Namespace>& namespaces) {
  if (network.direct()) return make_direct_link(network, namespaces[0]);
  Netlink netlink = TRY(Netlink::open());
  TRY(make_bridge(netlink, network.bridge, network.comment));
  (void)os::write_file("/proc/sys/net/ipv6/conf/" + network.bridge + "/disable_ipv6", "1");
  const unsigned bridge = TRY(netlink.index_of(network.bridge));
  if (!network.isolated) TRY(add_address(netlink, bridge, network.gateway, network.subnet.prefix));
  TRY(set_up(netlink, bridge, network.bridge));
  return link_hosts(netlink, bridge, network, namespaces);
}

// Removes interfaces with the same names that a killed process may have left.
Result<void> remove_link(Netlink& netlink, const std::string& name) {
  Request request(RTM_DELLINK, 0);
  request.body<ifinfomsg>().ifi_family = AF_UNSPEC;
  request.put(IFLA_IFNAME, name);
  const int error = netlink.send(request);
  if (error == 0 || error == ENODEV) return ok();
  return from_errno("removing the interface " + name, error);
}

// Moves an interface to another group; a missing interface is not an error.
void regroup(Netlink& netlink, const std::string& name, uint32_t group) {
  Request request(RTM_SETLINK, 0);
  request.body<ifinfomsg>().ifi_family = AF_UNSPEC;
  request.put(IFLA_IFNAME, name);
  request.put_number(IFLA_GROUP, group);
  (void)netlink.send(request);
}

Result<void> remove_group(Netlink& netlink, uint32_t group) {
  Request request(RTM_DELLINK, 0);
  request.body<ifinfomsg>().ifi_family = AF_UNSPEC;
  request.put_number(IFLA_GROUP, group);
  const int error = netlink.send(request);
  if (error == 0 || error == ENODEV) return ok();
  return from_errno("removing a group of interfaces", error);
}

}  // namespace

std::string to_text(Address address) {
  return std::to_string(address >> 24) + "." + std::to_string(address >> 16 & 255) + "." +
         std::to_string(address >> 8 & 255) + "." + std::to_string(address & 255);
}

Result<Address> parse_address(std::string_view text) {
  in_addr address;
  if (::inet_pton(AF_INET, std::string(text).c_str(), &address) != 1)
    return invalid("invalid IPv4 address '" + shorten(text, 64) +
                   "': expected one like 10.201.0.1");
  return ntohl(address.s_addr);
}

std::string Subnet::text() const { return to_text(base) + "/" + std::to_string(prefix); }

Result<Subnet> parse_subnet(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos)
    return invalid("invalid network '" + shorten(text, 64) + "': expected the form 10.201.0.0/16");
  const Address base = TRY(parse_address(text.substr(0, slash)));
  const int64_t prefix = TRY(parse_int(text.substr(slash + 1)));
  if (prefix < 1 || prefix > 32 || (uint64_t(base) & ((uint64_t(1) << (32 - prefix)) - 1)) != 0)
    return invalid("invalid network '" + shorten(text, 64) +
                   "': expected a prefix from 1 to 32, and an address without bits beyond it, like "
                   "10.201.0.0/16");
  return Subnet{base, int(prefix)};
}

namespace {

// An address of an interface, with its network.
struct AddressInNetwork {
  Address address = 0;
  Subnet network;
};

// Requests only addresses: getifaddrs would fetch all properties of each interface.
Result<std::vector<AddressInNetwork>> networks_of_interfaces() {
  Netlink netlink = TRY(Netlink::open());
  Request request(RTM_GETADDR, NLM_F_DUMP);
  request.body<ifaddrmsg>().ifa_family = AF_INET;
  std::vector<AddressInNetwork> found;
  const int error = netlink.send(request, [&](const nlmsghdr& message) {
    if (message.nlmsg_type != RTM_NEWADDR) return;
    const auto* body = reinterpret_cast<const ifaddrmsg*>(NLMSG_DATA(&message));
    std::optional<Address> address, local;
    int left = int(IFA_PAYLOAD(&message));
    for (const auto* each = IFA_RTA(body); RTA_OK(each, left); each = RTA_NEXT(each, left)) {
      if (RTA_PAYLOAD(each) != sizeof(Address)) continue;
      Address value;
      std::memcpy(&value, RTA_DATA(each), sizeof value);
      if (each->rta_type == IFA_ADDRESS) address = ntohl(value);
      if (each->rta_type == IFA_LOCAL) local = ntohl(value);
    }
    if (!local) local = address;
    if (!local || body->ifa_prefixlen > 32) return;
    const Address mask = body->ifa_prefixlen == 0 ? 0 : ~Address(0) << (32 - body->ifa_prefixlen);
    found.push_back({*local, {*local & mask, body->ifa_prefixlen}});
  });
  if (error != 0) return from_errno("listing the interfaces' addresses", error);
  return found;
}

Result<void> remove_links_here(const std::vector<std::string>& names) {
  if (names.empty()) return ok();
  Netlink netlink = TRY(Netlink::open());
  std::optional<Error> first;
  for (const auto& name : names)
    if (auto removed = remove_link(netlink, name); !removed && !first)
      first = std::move(removed).error();
  if (first) return std::move(*first);
  return ok();
}

Result<void> remove_here(const std::vector<PrivateNetwork>& networks) {
  if (networks.empty()) return ok();
  std::optional<Error> first;
  const auto keep = [&](Result<void> result) {
    if (!result && !first) first = std::move(result).error();
  };
  Result<void> firewall;
  std::vector<std::string> tables;
  for (const auto& network : networks)
    if (!network.table.empty()) tables.push_back(network.table);
  std::thread firewall_thread;
  if (!tables.empty())
    firewall_thread = std::thread([&] { firewall = remove_firewall_tables_here(tables); });
  std::vector<std::string> names;
  for (const auto& network : networks) {
    for (const auto& host : network.hosts) {
      if (!host.namespace_file.empty()) keep(remove_namespace_file(host.namespace_file));
      names.push_back(host.link);
    }
    if (!network.direct()) names.push_back(network.bridge);
  }
  if (auto netlink = Netlink::open(); netlink && !names.empty()) {
    const uint32_t group = group_of(networks[0].direct() ? names[0] : networks[0].bridge);
    if (networks.size() > 1)
      for (const auto& name : names) regroup(*netlink, name, group);
    keep(remove_group(*netlink, group));
  }
  keep(remove_links_here(names));
  if (firewall_thread.joinable()) firewall_thread.join();
  keep(std::move(firewall));
  if (first) return std::move(*first);
  return ok();
}

// Runs on a separate thread, because make_namespace() moves it to another namespace.
Result<std::vector<Namespace>> make_namespaces(size_t count) {
  Result<std::vector<Namespace>> namespaces = std::vector<Namespace>();
  std::thread thread([&] {
    std::vector<Namespace> all;
    for (size_t i = 0; i < count; i++) {
      auto made = make_namespace();
      if (!made) {
        namespaces = std::move(made).error();
        return;
      }
      all.push_back(std::move(*made));
    }
    namespaces = std::move(all);
  });
  thread.join();
  return namespaces;
}

std::vector<os::File> held_of(std::vector<Namespace> namespaces) {
  std::vector<os::File> held;
  for (auto& each : namespaces) held.push_back(std::move(each.held));
  return held;
}

Result<std::vector<os::File>> replace_here(const PrivateNetwork& former,
                                           const PrivateNetwork& next) {
  std::vector<std::string> links;
  for (const auto& host : former.hosts) {
    if (!host.namespace_file.empty()) TRY(remove_namespace_file(host.namespace_file));
    links.push_back(host.link);
  }
  TRY(remove_links_here(links));
  auto namespaces = TRY(make_namespaces(next.hosts.size()));
  Netlink netlink = TRY(Netlink::open());
  TRY(link_hosts(netlink, TRY(netlink.index_of(next.bridge)), next, namespaces));
  return held_of(std::move(namespaces));
}

Result<std::vector<os::File>> make_here(const PrivateNetwork& network) {
  if (!network.isolated) TRY(forward_packets());
  // Sets up the firewall in parallel: it takes as long as all other steps, and needs no interface.
  Result<void> firewall;
  std::thread firewall_thread;
  if (!network.table.empty())
    firewall_thread =
        std::thread([&] { firewall = set_table(network.table, firewall_text(network)); });
  auto namespaces = make_namespaces(network.hosts.size());
  Result<void> links = ok();
  if (!namespaces)
    links = namespaces.error();
  else
    links = make_links(network, *namespaces);
  if (firewall_thread.joinable()) firewall_thread.join();
  if (links && firewall) return held_of(*std::move(namespaces));
  Error error = !links ? std::move(links).error() : std::move(firewall).error();
  (void)remove_here({network});
  return std::move(error).in("making the network " + network.subnet.text());
}

}  // namespace

Result<std::vector<os::File>> make_network(const PrivateNetwork& network) {
  if (containers::network_of_bridges().empty()) return make_here(network);
  PrivateNetwork whole = network;
  for (const auto& each : TRY(networks_of_interfaces()))
    if (each.address >> 24 != 127) whole.machine_addresses.push_back(each.address);
  return in_network_of_bridges<std::vector<os::File>>([&] { return make_here(whole); });
}

Result<std::vector<os::File>> replace_hosts(const PrivateNetwork& former,
                                            const PrivateNetwork& next) {
  return in_network_of_bridges<std::vector<os::File>>([&] { return replace_here(former, next); });
}

Result<void> remove_network(const PrivateNetwork& network) { return remove_networks({network}); }

Result<void> remove_networks(const std::vector<PrivateNetwork>& networks) {
  return in_network_of_bridges<void>([&] { return remove_here(networks); });
}

Result<std::vector<Subnet>> networks_in_use() {
  auto interfaces = TRY(networks_of_interfaces());
  if (!containers::network_of_bridges().empty())
    for (const auto& more :
         TRY(in_network_of_bridges<std::vector<AddressInNetwork>>(networks_of_interfaces)))
      interfaces.push_back(more);
  std::vector<Subnet> used;
  for (const auto& each : interfaces) used.push_back(each.network);
  return used;
}

std::vector<std::string> links_named(std::string_view prefix) {
  // Not read from /sys, which shows the namespace in which it was mounted.
  const auto found =
      in_network_of_bridges<std::vector<std::string>>([&]() -> Result<std::vector<std::string>> {
        std::vector<std::string> names;
        struct if_nameindex* const all = ::if_nameindex();
        for (auto* each = all; each && each->if_index != 0; each++)
          if (std::string_view(each->if_name).starts_with(prefix))
            names.emplace_back(each->if_name);
        if (all) ::if_freenameindex(all);
        std::sort(names.begin(), names.end());
        return names;
      });
  return found ? *found : std::vector<std::string>();
}

Result<void> remove_links(const std::vector<std::string>& names) {
  return in_network_of_bridges<void>([&] { return remove_links_here(names); });
}

Result<void> remove_namespace_file(const std::string& path) {
  while (::umount2(path.c_str(), MNT_DETACH) == 0) {
  }
  if (errno != EINVAL && errno != ENOENT) return from_errno("unmounting " + path);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return from_errno("removing " + path);
  return ok();
}

}  // namespace trainyard::networks
