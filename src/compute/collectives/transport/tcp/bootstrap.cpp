#include "collectives/transport/tcp/bootstrap.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "collectives/transport/tcp/endpoint_text.hpp"

namespace trainyard::collectives {
namespace {

using SteadyClock = std::chrono::steady_clock;

// an address of 46 characters or a short name, and a port
constexpr size_t kEndpointBytes = 96;
constexpr Duration kFolderPollInterval = 20ms;  // the longest delay that polling adds to joining
constexpr Tag kRequestTag{~uint64_t{1}, 1};
constexpr Tag kReplyTag{~uint64_t{1}, 2};

// Returns the local address of a connection.
Result<std::string> own_address(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(socket.descriptor(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
    return from_errno("reading the local address of a connection");
  char text[NI_MAXHOST];
  if (::getnameinfo(reinterpret_cast<sockaddr*>(&address), length, text, sizeof text, nullptr, 0,
                    NI_NUMERICHOST) != 0)
    return unavailable("cannot format the local address of a connection");
  return std::string(text);
}

Result<void> finish(TcpTransport& transport) {
  for (;;) {
    TRY(transport.advance());
    if (transport.all_received() && transport.all_sent()) return ok();
    TRY(transport.wait());
  }
}

}  // namespace

Result<Bootstrap> bootstrap_at(const Endpoint& endpoint, int ranks, const TcpOptions& options) {
  TcpOptions star = options;
  star.endpoints.assign(size_t(ranks), Endpoint{});
  star.endpoints[0] = endpoint;
  // The prefix is part of the protocol: all ranks must use the same.
  star.shared_value =
      "meeting " + star.shared_value.substr(0, TcpOptions::kSharedValueBytesMax - 8);
  const auto transport = TRY(connect_star(std::move(star)));
  const bool first = options.rank == 0;
  const std::string host = first ? endpoint.host : TRY(own_address(transport->socket_to(0)));
  Bootstrap bootstrap;
  bootstrap.listener = TRY(listen_at({host, 0}, ranks));

  std::string all(size_t(ranks) * kEndpointBytes, '\0');
  const uint16_t port = TRY(port_of(bootstrap.listener));
  std::string mine = encode_endpoint({host, port});
  if (mine.size() >= kEndpointBytes)
    return invalid("the name '" + host + "' is too long for an address of the rendezvous");
  mine.resize(kEndpointBytes, '\0');
  auto bytes = std::as_writable_bytes(std::span(all));
  if (first) {
    std::vector<int> others;
    std::copy(mine.begin(), mine.end(), all.begin());
    for (int peer = 1; peer < ranks; ++peer) {
      others.push_back(peer);
      transport->receive_into(peer, kRequestTag,
                              bytes.subspan(size_t(peer) * kEndpointBytes, kEndpointBytes));
    }
    TRY(finish(*transport));
    transport->send(others, kReplyTag, bytes);
    TRY(finish(*transport));
  } else {
    const int root = 0;
    transport->receive_into(root, kReplyTag, bytes);
    transport->send(std::span(&root, 1), kRequestTag, std::as_bytes(std::span(mine)));
    TRY(finish(*transport));
  }
  for (int rank = 0; rank < ranks; ++rank)
    bootstrap.endpoints.push_back(
        TRY(decode_endpoint(all.substr(size_t(rank) * kEndpointBytes, kEndpointBytes).c_str())));
  return bootstrap;
}

Result<Bootstrap> bootstrap_in(const std::string& folder, int ranks, const TcpOptions& options) {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0)
    return from_errno("reading the name of this machine");
  Bootstrap bootstrap;
  bootstrap.listener = TRY(listen_at({name, 0}, ranks).in("listening at " + std::string(name)));
  const auto file_of = [&](int rank) { return folder + "/rank-" + std::to_string(rank); };
  const std::string draft = file_of(options.rank) + ".draft";
  const uint16_t port = TRY(port_of(bootstrap.listener));
  {
    std::ofstream file(draft);
    file << encode_endpoint({name, port}) << "\n";
    if (!file.flush()) return unavailable("writing " + draft);
  }
  if (std::rename(draft.c_str(), file_of(options.rank).c_str()) != 0)
    return from_errno(file_of(options.rank));

  const auto deadline = SteadyClock::now() + options.join_deadline;
  for (int rank = 0; rank < ranks; ++rank) {
    for (;;) {
      std::ifstream file(file_of(rank));
      std::string line;
      if (file && std::getline(file, line)) {
        bootstrap.endpoints.push_back(TRY(decode_endpoint(line).in(file_of(rank))));
        break;
      }
      if (options.cancelled && options.cancelled())
        return cancelled("cancelled while waiting for other ranks");
      if (SteadyClock::now() >= deadline) {
        return unavailable("rank " + std::to_string(rank) + " wrote no file in " + folder +
                           " within " + std::to_string(options.join_deadline.count()) + " ms");
      }
      (void)::poll(nullptr, 0, int(kFolderPollInterval.count()));
    }
  }
  return bootstrap;
}

}  // namespace trainyard::collectives
