#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>

#include "base/activity_table.hpp"
#include "collectives/transport/tcp/tcp_transport.hpp"

namespace trainyard::collectives {
namespace {

// Often enough to see the highest rate of a link that is used in bursts. A call takes about a
// microsecond.
constexpr auto kMeasureEvery = std::chrono::milliseconds(100);
constexpr uint64_t kLoadBytesMin = 1 << 20;  // fewer bytes do not show the rate of a link

// Returns what the kernel has counted for a connection. Kernels before 4.10, and sandboxes, count
// no busy time.
std::optional<LinkCounters> counters_of(int descriptor) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
      size < offsetof(tcp_info, tcpi_sndbuf_limited))
    return std::nullopt;
  const uint64_t us = info.tcpi_busy_time - std::min(info.tcpi_rwnd_limited, info.tcpi_busy_time);
  return LinkCounters{std::chrono::microseconds(us), info.tcpi_bytes_acked,
                      info.tcpi_delivery_rate};
}

}  // namespace

// The first stream represents all streams of a link.
std::span<const LinkLoad> TcpTransport::link_loads(std::chrono::steady_clock::time_point now) {
  if (loads_measured_ && now - *loads_measured_ < kMeasureEvery) return loads_;
  loads_measured_ = now;
  for (int peer = 0; peer < size(); ++peer) {
    auto meter =
        std::ranges::find(meters_, peer, [](const LinkMeter& one) { return one.load().peer; });
    if (!is_linked(peer) || (meter == meters_.end() && meters_.size() >= kCallLinks)) continue;
    const auto counters = counters_of(socket_to(peer).descriptor());
    if (!counters || counters->bytes < kLoadBytesMin) continue;
    if (meter == meters_.end()) meter = meters_.insert(meter, LinkMeter(peer));
    meter->add(*counters, now);
  }
  loads_.clear();
  for (const LinkMeter& meter : meters_) loads_.push_back(meter.load());
  return loads_;
}

}  // namespace trainyard::collectives
