#include <algorithm>

#include "base/activity_table.hpp"
#include "collectives/transport/tcp/tcp_transport.hpp"

namespace trainyard::collectives {

void TcpTransport::begin_delay(Stream& stream) {
  if (stream.delayed_since || !stream.owes()) return;
  stream.delayed_since = std::chrono::steady_clock::now();
  stream.delayed_bytes = 0;
}

// The first stream of a link stands for all of them.
void TcpTransport::end_delay(int peer, Stream& stream) {
  if (!stream.delayed_since || stream.owes()) return;
  const auto blocked = std::chrono::steady_clock::now() - *stream.delayed_since;
  stream.delayed_since.reset();
  if (&stream != &links_[size_t(peer)].streams[0]) return;
  auto found = std::ranges::find(delays_, peer, &SendDelay::peer);
  if (found == delays_.end()) {
    if (delays_.size() >= kCallLinks) return;
    found = delays_.insert(found, SendDelay{peer});
  }
  found->blocked += blocked;
  found->bytes += stream.delayed_bytes;
}

}  // namespace trainyard::collectives
