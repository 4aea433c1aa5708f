#include "networks/tunnel.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "base/sha256.hpp"
#include "base/text.hpp"
#include "networks/firewall.hpp"
#include "networks/network_namespace.hpp"
#include "os/files.hpp"
#include "os/process.hpp"
#include "os/process_identity.hpp"

namespace trainyard::networks {
namespace {

constexpr const char* kProgram = "wireguard-go";
constexpr const char* kInterface = "eth0";
constexpr const char* kTable = "trainyard_tunnel";  // the firewall in the host's network namespace
// The directory of its configuration socket. In images, /var/run is not always a link to /run.
constexpr const char* kRunDirectory = "/var/run";
constexpr const char* kDirectory = "/var/run/wireguard";
constexpr const char* kSocket = "/var/run/wireguard/eth0.sock";
constexpr size_t kKeyBytes = 32;
// limit of the start of wireguard-go, which takes a few milliseconds; on a machine that is busier,
// jobs could not run either
constexpr Duration kReadyMax = 30s;
constexpr auto kReadyPause = std::chrono::milliseconds(5);
constexpr int kAnswerSecondsMax = 10;
constexpr size_t kAnswerBytesMax = 4096;
constexpr Duration kEndMax = 10s;
constexpr int kMtuMax = 1420;     // wireguard-go's own, for an underlay of 1500
constexpr int kHeaderBytes = 60;  // IPv4, UDP and WireGuard

std::string private_key(const std::string& secret, size_t member) {
  return bytes_of(hmac_sha256(secret, "trainyard tunnel 1, member " + std::to_string(member)));
}

Result<std::string> public_key(const std::string& of) {
  const auto bytes = reinterpret_cast<const unsigned char*>(of.data());
  EVP_PKEY* const key = EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr, bytes, of.size());
  std::string made(kKeyBytes, '\0');
  size_t size = made.size();
  const bool done = key && EVP_PKEY_get_raw_public_key(
                               key, reinterpret_cast<unsigned char*>(made.data()), &size) == 1;
  EVP_PKEY_free(key);
  if (!done || size != kKeyBytes) return internal("making an X25519 key: OpenSSL failed");
  return made;
}

Result<void> have_own_run_directory() {
  // The socket has the name of the interface, which is eth0 in every namespace.
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0 ||
      ::mount("tmpfs", kRunDirectory, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=0700") != 0)
    return from_errno(std::string("making a ") + kRunDirectory + " for the tunnel");
  return os::make_directories(kDirectory, 0700);
}

Result<os::File> connect_to_it(const os::ProcessIdentity& process, const std::string& log_file) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::strncpy(name.sun_path, kSocket, sizeof name.sun_path - 1);
  const auto until = std::chrono::steady_clock::now() + kReadyMax;
  for (;;) {
    os::File socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket) return from_errno("opening a socket");
    if (::connect(socket.descriptor(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0)
      return socket;
    if (!os::is_alive(process) || std::chrono::steady_clock::now() > until) break;
    std::this_thread::sleep_for(kReadyPause);
  }
  // The first lines recommend the kernel's module, whatever the fault is.
  const auto said = os::read_file(log_file);
  const auto text = said ? trim(*said) : std::string_view();
  const auto last = text.substr(text.find_last_of('\n') + 1);
  return unavailable(std::string(kProgram) + " did not start: " +
                     (last.empty() ? "no output" : to_utf8(shorten(last, 300))));
}

Result<void> configure(const os::File& socket, const std::string& text) {
  const timeval limit{kAnswerSecondsMax, 0};
  ::setsockopt(socket.descriptor(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  for (std::string_view left = text; !left.empty();) {
    const ssize_t sent = ::send(socket.descriptor(), left.data(), left.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) return from_errno("configuring the tunnel");
    if (sent > 0) left.remove_prefix(size_t(sent));
  }
  std::string answer;
  while (!answer.ends_with("\n\n") && answer.size() < kAnswerBytesMax) {
    char part[256];
    const ssize_t got = ::read(socket.descriptor(), part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    answer.append(part, size_t(got));
  }
  if (answer != "errno=0\n\n")
    return internal("configuring the tunnel: wireguard-go answered '" +
                    to_utf8(shorten(trim(answer), 100)) + "'");
  return ok();
}

sockaddr in_request(Address address) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(address);
  sockaddr whole{};
  std::memcpy(&whole, &name, sizeof name);
  return whole;
}

// Sets the MTU so that a packet with the tunnel's headers fits into the underlay's.
Result<void> set_mtu(const os::File& socket) {
  ifreq request{};
  std::strncpy(request.ifr_name, std::string(kUnderlay).c_str(), sizeof request.ifr_name - 1);
  if (::ioctl(socket.descriptor(), SIOCGIFMTU, &request) != 0)
    return from_errno("reading the MTU of " + std::string(kUnderlay));
  const int mtu = std::min(kMtuMax, request.ifr_mtu - kHeaderBytes);
  request = {};
  std::strncpy(request.ifr_name, kInterface, sizeof request.ifr_name - 1);
  request.ifr_mtu = mtu;
  if (::ioctl(socket.descriptor(), SIOCSIFMTU, &request) != 0)
    return from_errno("setting the MTU of " + std::string(kInterface) + " to " +
                      std::to_string(mtu));
  return ok();
}

Result<void> give_address(Address address, int prefix) {
  const std::string doing = std::string("setting ") + kInterface + " up";
  const os::File socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return from_errno(doing);
  TRY(set_mtu(socket));
  ifreq request{};
  std::strncpy(request.ifr_name, kInterface, sizeof request.ifr_name - 1);
  request.ifr_addr = in_request(address);
  if (::ioctl(socket.descriptor(), SIOCSIFADDR, &request) != 0) return from_errno(doing);
  request.ifr_netmask = in_request(prefix == 0 ? 0 : ~Address(0) << (32 - prefix));
  if (::ioctl(socket.descriptor(), SIOCSIFNETMASK, &request) != 0) return from_errno(doing);
  if (::ioctl(socket.descriptor(), SIOCGIFFLAGS, &request) != 0) return from_errno(doing);
  request.ifr_flags = short(request.ifr_flags | IFF_UP);
  if (::ioctl(socket.descriptor(), SIOCSIFFLAGS, &request) != 0) return from_errno(doing);
  return ok();
}

class RunningTunnel final : public Tunnel {
 public:
  RunningTunnel(os::ProcessIdentity process, std::unique_ptr<DatagramRelay> relay)
      : process_(process), relay_(std::move(relay)) {}
  ~RunningTunnel() override { (void)os::kill_and_wait(process_, kEndMax); }
  const os::ProcessIdentity& process() const { return process_; }

 private:
  const os::ProcessIdentity process_;
  const std::unique_ptr<DatagramRelay> relay_;  // nullptr: not needed
};

}  // namespace

std::string why_no_tunnel() {
  if (!os::on_path(kProgram))
    return "wireguard-go is not on PATH: install the package wireguard-go";
  const os::File device(::open("/dev/net/tun", O_RDWR | O_CLOEXEC));
  if (!device)
    return "/dev/net/tun cannot be opened (" + std::string(std::strerror(errno)) +
           "): it must be readable and writable for this user";
  return "";
}

Result<TunnelKeys> tunnel_keys(const std::string& secret, size_t members, size_t own) {
  TunnelKeys keys;
  keys.own = private_key(secret, own);
  for (size_t member = 0; member < members; ++member)
    keys.publics.push_back(TRY(public_key(private_key(secret, member))));
  return keys;
}

std::string tunnel_configuration(const TunnelSpec& spec, const TunnelKeys& keys) {
  std::string text = "set=1\nprivate_key=" + to_hex(keys.own) +
                     "\nlisten_port=" + std::to_string(kTunnelPort) + "\nreplace_peers=true\n";
  for (size_t member = 0; member < spec.members.size(); ++member) {
    if (member == spec.own) continue;
    const bool relayed = !spec.endpoints.empty();
    text +=
        "public_key=" + to_hex(keys.publics[member]) +
        "\nendpoint=" + to_text(relayed ? loopback_of_peer(member) : spec.members[member].under) +
        ":" + std::to_string(relayed ? kPeerPort : kTunnelPort) +
        "\nreplace_allowed_ips=true\nallowed_ip=" + to_text(spec.members[member].address) + "/32\n";
  }
  return text + "\n";
}

std::string tunnel_firewall(const TunnelSpec& spec) {
  const std::string port = std::to_string(kTunnelPort);
  const Subnet under{spec.members[spec.own].under & (~Address(0) << (32 - spec.prefix)),
                     spec.prefix};
  const auto chain = [&](const std::string& name, const std::string& interface,
                         const std::string& end) {
    return "  chain " + name + " {\n    type filter hook " + name +
           " priority filter; policy accept;\n    " + interface + " != \"" +
           std::string(kUnderlay) + "\" accept\n    ip " + end + " " + to_text(spec.gateway) +
           " accept\n    ip " + end + " " + under.text() + " udp sport " + port + " udp dport " +
           port + " accept\n    ip " + end + " { " + under.text() +
           ", 224.0.0.0/4, 255.255.255.255 } drop\n  }\n";
  };
  return "table inet " + std::string(kTable) + " {\n" + chain("output", "oifname", "daddr") +
         chain("input", "iifname", "saddr") + "}\n";
}

Result<std::unique_ptr<Tunnel>> open_tunnel(const TunnelSpec& spec) {
  if (const std::string why = why_no_tunnel(); !why.empty())
    return denied("opening an encrypted network: " + why);
  const TunnelKeys keys = TRY(tunnel_keys(spec.secret, spec.members.size(), spec.own));
  std::unique_ptr<DatagramRelay> relay;
  if (!spec.endpoints.empty())
    relay = TRY(relay_datagrams(
        {spec.network_namespace, spec.endpoints, spec.own, kTunnelPort, kPeerPort}));
  std::unique_ptr<RunningTunnel> tunnel;
  // Runs on a thread that has its own /run, and then ends.
  TRY(in_network_namespace(spec.network_namespace, [&]() -> Result<void> {
        TRY(set_table(kTable, tunnel_firewall(spec)));
        TRY(have_own_run_directory());
        const pid_t process = TRY(os::start_detached({kProgram, "-f", kInterface},
                                                     {{"LOG_LEVEL", "error"}}, spec.log_file));
        const auto identity = os::identify(process);
        if (!identity) return unavailable(std::string(kProgram) + " ended at once");
        tunnel = std::make_unique<RunningTunnel>(*identity, std::move(relay));
        const os::File socket = TRY(connect_to_it(*identity, spec.log_file));
        TRY(configure(socket, tunnel_configuration(spec, keys)));
        return give_address(spec.members[spec.own].address, spec.prefix);
      }).in("making the encrypted network"));
  return std::unique_ptr<Tunnel>(std::move(tunnel));
}

}  // namespace trainyard::networks
