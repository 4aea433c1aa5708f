#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>

#include "base/activity_table.hpp"
#include "collectives/transport/tcp/tcp_transport.hpp"

namespace trainyard::collectives {
namespace {

// Each report of an agent, every two seconds, has a new measurement, and a call of microseconds
// costs no more.
constexpr auto kMeasureEvery = std::chrono::milliseconds(500);
constexpr uint64_t kLoadBytesMin = 1 << 20;  // less tells nothing of the rate of a link

// Returns what the kernel has counted for a connection. Kernels before 4.10, and sandboxes, count
// no busy time.
std::optional<LinkLoad> load_of(int descriptor, int peer) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
      size < offsetof(tcp_info, tcpi_sndbuf_limited))
    return std::nullopt;
  const uint64_t us = info.tcpi_busy_time - std::min(info.tcpi_rwnd_limited, info.tcpi_busy_time);
  return LinkLoad{peer, std::chrono::microseconds(us), info.tcpi_bytes_acked};
}

}  // namespace

// The first stream of a link stands for all of them.
std::span<const LinkLoad> TcpTransport::link_loads(std::chrono::steady_clock::time_point now) {
  if (loads_measured_ && now - *loads_measured_ < kMeasureEvery) return loads_;
  loads_measured_ = now;
  for (int peer = 0; peer < size(); ++peer) {
    const auto known = std::ranges::find(loads_, peer, &LinkLoad::peer);
    if (!is_linked(peer) || (known == loads_.end() && loads_.size() >= kCallLinks)) continue;
    const auto load = load_of(socket_to(peer).descriptor(), peer);
    if (!load || load->bytes < kLoadBytesMin) continue;
    if (known == loads_.end())
      loads_.push_back(*load);
    else
      *known = *load;
  }
  return loads_;
}

}  // namespace trainyard::collectives
