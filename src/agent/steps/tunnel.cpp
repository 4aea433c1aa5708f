// The encrypted network between the hosts of a job that asked for one.
#include "agent/steps.hpp"
#include "base/text.hpp"
#include "host/files.hpp"

namespace trainyard::agent {
namespace {

// Every line of the table but the machine's own names a host of the gang, in their order.
Result<std::vector<host::Address>> addresses_in(const std::string& table) {
  std::vector<host::Address> addresses;
  for (const auto line : split(table, '\n')) {
    if (line.empty() || line.starts_with("127.")) continue;
    addresses.push_back(TRY(host::parse_address(line.substr(0, line.find(' ')))));
  }
  return addresses;
}

Result<std::unique_ptr<host::Tunnel>> open_it(Site& site) {
  const Place& place = site.place;
  host::TunnelSpec spec;
  spec.network_namespace = place.network_namespace;
  spec.secret = site.order.token;
  const size_t slash = std::min(place.underlay.find('/'), place.underlay.size());
  spec.gateway = TRY(host::parse_address(place.underlay.substr(0, slash)));
  spec.prefix = int(
      TRY(parse_int(std::string_view(place.underlay).substr(std::min(slash + 1, place.underlay.size())))));
  if (spec.prefix < 1 || spec.prefix > 32) return invalid("--underlay " + place.underlay + " is no network");
  const auto half = host::Address(uint64_t(1) << (32 - spec.prefix));
  for (const host::Address address : TRY(addresses_in(TRY(host::read_file(place.host_table)))))
    spec.members.push_back({address, address - half});
  spec.own = site.order.host;
  if (spec.own >= spec.members.size()) return invalid(place.host_table + " lacks this host");
  spec.log_file = site.path("tunnel.log");
  return site.world.open_tunnel(spec);
}

}  // namespace

std::optional<Failure> open_job_tunnel(Site& site) {
  if (site.place.underlay.empty()) return {};
  auto opened = open_it(site);
  if (!opened) return failure_of(opened.error(), "encrypting the traffic between the job's hosts");
  site.tunnel = std::move(*opened);
  return {};
}

void close_job_tunnel(Site& site) { site.tunnel.reset(); }

}  // namespace trainyard::agent
