// Opens the encrypted network between the hosts of a job that requests encryption.
#include "agent/steps.hpp"
#include "base/text.hpp"
#include "os/files.hpp"

namespace trainyard::agent {
namespace {

// Reads the hosts of the gang, in their order: all lines of the table except the machine's own.
Result<std::vector<networks::Address>> addresses_in(const std::string& table) {
  std::vector<networks::Address> addresses;
  for (const auto line : split(table, '\n')) {
    if (line.empty() || line.starts_with("127.")) continue;
    addresses.push_back(TRY(networks::parse_address(line.substr(0, line.find(' ')))));
  }
  return addresses;
}

Result<std::unique_ptr<networks::Tunnel>> open_it(StepContext& context) {
  const HostLayout& place = context.place;
  networks::TunnelSpec spec;
  spec.network_namespace = place.network_namespace;
  spec.secret = context.order.token;
  const size_t slash = std::min(place.underlay.find('/'), place.underlay.size());
  spec.gateway = TRY(networks::parse_address(place.underlay.substr(0, slash)));
  spec.prefix = int(TRY(parse_int(
      std::string_view(place.underlay).substr(std::min(slash + 1, place.underlay.size())))));
  if (spec.prefix < 1 || spec.prefix > 32)
    return invalid("invalid --underlay " + place.underlay + ": expected GATEWAY/PREFIX");
  const auto half = networks::Address(uint64_t(1) << (32 - spec.prefix));
  for (const networks::Address address : TRY(addresses_in(TRY(os::read_file(place.host_table)))))
    spec.members.push_back({address, address - half});
  spec.own = context.order.host;
  if (spec.own >= spec.members.size()) return invalid("this host not found in " + place.host_table);
  if (!place.endpoints.empty()) {
    spec.endpoints = TRY(networks::parse_endpoints(place.endpoints).in("--endpoints"));
    if (spec.endpoints.size() != spec.members.size())
      return invalid("--endpoints names " + std::to_string(spec.endpoints.size()) + " of " +
                     std::to_string(spec.members.size()) + " hosts");
  }
  spec.log_file = context.path("tunnel.log");
  return context.world.open_tunnel(spec);
}

}  // namespace

std::optional<Failure> open_job_tunnel(StepContext& context) {
  if (context.place.underlay.empty()) return {};
  auto opened = open_it(context);
  if (!opened) return failure_of(opened.error(), "encrypting the traffic between the job's hosts");
  context.tunnel = std::move(*opened);
  return {};
}

void close_job_tunnel(StepContext& context) { context.tunnel.reset(); }

}  // namespace trainyard::agent
