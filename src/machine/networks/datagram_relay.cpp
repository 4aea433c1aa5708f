#include "networks/datagram_relay.hpp"

#include <array>
#include <boost/asio.hpp>
#include <map>
#include <thread>
#include <utility>

#include "base/log.hpp"
#include "base/text.hpp"
#include "networks/network_namespace.hpp"
#include "os/files.hpp"

namespace trainyard::networks {
namespace {

namespace asio = boost::asio;
using asio::ip::udp;
using Failure = boost::system::error_code;

constexpr Address kPeerNetwork = 0x7f4d0000;  // 127.77.0.0
constexpr Address kLoopback = 0x7f000001;
constexpr size_t kDatagramBytesMax = 64 << 10;
// size of a socket's buffers, where bursts wait while the relay's thread does not run
constexpr int kSocketBufferBytes = 4 << 20;

udp::endpoint endpoint_of(Address address, uint16_t port) {
  return {asio::ip::address_v4(address), port};
}

// Sends a datagram. Full buffers are not an error, because the sender repeats a lost datagram.
auto noting(Failure& failure) { return asio::redirect_error(asio::use_awaitable, failure); }

Result<void> open_at(udp::socket& socket, Address address, uint16_t port) {
  Failure failure;
  const auto at = endpoint_of(address, port);
  socket.open(udp::v4(), failure);
  if (!failure) socket.bind(at, failure);
  if (failure)
    return from_errno("opening UDP port " + to_text(address) + ":" + std::to_string(port),
                      failure.value());
  Failure ignored;
  socket.set_option(asio::socket_base::receive_buffer_size(kSocketBufferBytes), ignored);
  socket.set_option(asio::socket_base::send_buffer_size(kSocketBufferBytes), ignored);
  socket.non_blocking(true, ignored);
  return {};
}

class NodeRelay final : public DatagramRelay {
 public:
  explicit NodeRelay(const DatagramRelaySpec& spec) : spec_(spec), outside_(context_) {}
  ~NodeRelay() override {
    context_.stop();
    if (thread_.joinable()) thread_.join();
  }

  Result<void> open() {
    const NodeEndpoint& own = spec_.endpoints[spec_.own];
    TRY(open_at(outside_, own.node, own.port));
    for (size_t index = 0; index < spec_.endpoints.size(); ++index) {
      if (index == spec_.own) continue;
      const NodeEndpoint& peer = spec_.endpoints[index];
      inside_.try_emplace({peer.node, peer.port}, context_);
    }
    TRY(in_network_namespace(spec_.network_namespace, [&]() -> Result<void> {
      for (size_t index = 0; index < spec_.endpoints.size(); ++index)
        if (index != spec_.own)
          TRY(open_at(socket_of(index), loopback_of_peer(index), spec_.peer_port));
      return {};
    }));
    for (size_t index = 0; index < spec_.endpoints.size(); ++index)
      if (index != spec_.own) asio::co_spawn(context_, carry_out(index), asio::detached);
    asio::co_spawn(context_, carry_in(), asio::detached);
    thread_ = std::thread([this] { context_.run(); });
    return {};
  }

 private:
  udp::socket& socket_of(size_t index) {
    const NodeEndpoint& peer = spec_.endpoints[index];
    return inside_.at({peer.node, peer.port});
  }

  // Relays datagrams from the tunnel to a peer.
  asio::awaitable<void> carry_out(size_t index) {
    udp::socket& inside = socket_of(index);
    const NodeEndpoint& peer = spec_.endpoints[index];
    const auto to = endpoint_of(peer.node, peer.port);
    std::vector<char> buffer(kDatagramBytesMax);
    for (;;) {
      Failure failure, ignored;
      udp::endpoint from;
      const size_t size =
          co_await inside.async_receive_from(asio::buffer(buffer), from, noting(failure));
      if (failure == asio::error::operation_aborted) co_return;
      // Drops datagrams of other programs of the job.
      if (!failure && from.port() == spec_.tunnel_port)
        outside_.send_to(asio::buffer(buffer.data(), size), to, 0, ignored);
    }
  }

  // Relays datagrams from any peer to the tunnel.
  asio::awaitable<void> carry_in() {
    const auto to = endpoint_of(kLoopback, spec_.tunnel_port);
    std::vector<char> buffer(kDatagramBytesMax);
    for (;;) {
      Failure failure, ignored;
      udp::endpoint from;
      const size_t size =
          co_await outside_.async_receive_from(asio::buffer(buffer), from, noting(failure));
      if (failure == asio::error::operation_aborted) co_return;
      if (failure) continue;
      const auto peer = inside_.find({from.address().to_v4().to_uint(), from.port()});
      if (peer != inside_.end())
        peer->second.send_to(asio::buffer(buffer.data(), size), to, 0, ignored);
    }
  }

  const DatagramRelaySpec spec_;
  // Confined to thread_ once it runs. Sockets are destroyed before their context.
  asio::io_context context_{1};
  udp::socket outside_;
  std::map<std::pair<Address, uint16_t>, udp::socket> inside_;  // by the peer's endpoint
  std::thread thread_;
};

}  // namespace

Address loopback_of_peer(size_t index) { return kPeerNetwork + Address(index); }

Result<std::unique_ptr<DatagramRelay>> relay_datagrams(const DatagramRelaySpec& spec) {
  if (spec.own >= spec.endpoints.size())
    return invalid("relaying datagrams: this host has no endpoint among " +
                   std::to_string(spec.endpoints.size()));
  auto relay = std::make_unique<NodeRelay>(spec);
  TRY(relay->open().in("relaying the datagrams of the encrypted network"));
  return std::unique_ptr<DatagramRelay>(std::move(relay));
}

Result<std::vector<NodeEndpoint>> parse_endpoints(std::string_view text) {
  std::vector<NodeEndpoint> endpoints;
  for (const auto each : split(text, ',')) {
    const size_t colon = std::min(each.rfind(':'), each.size());
    const auto address = parse_address(each.substr(0, colon));
    const auto port = parse_int(each.substr(std::min(colon + 1, each.size())));
    if (!address || !port || *port < 1 || *port > UINT16_MAX)
      return invalid("invalid endpoint '" + shorten(each, 60) + "': expected ADDRESS:PORT");
    endpoints.push_back({*address, uint16_t(*port)});
  }
  return endpoints;
}

}  // namespace trainyard::networks
