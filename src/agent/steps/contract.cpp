// The files that a training container finds, and its /etc.
#include "contract/contract.hpp"

#include "agent/job_config.hpp"
#include "agent/steps.hpp"
#include "domain/batch.hpp"
#include "host/files.hpp"

namespace trainyard::agent {
namespace {

Result<void> write_training_files(Site& site) {
  const auto config = host_config(site.order);
  // Writable for any user that an image may run as: SageMaker's own toolkit writes below /opt/ml/input.
  for (const auto& directory : contract::directories(config)) {
    TRY(site.ml_tree->make(directory));
    TRY(site.ml_tree->set_mode(directory, 0777));
  }
  for (const auto& [name, content] : contract::input_files(config)) TRY(site.ml_tree->write(name, content));
  return {};
}

Result<void> write_all_files(Site& site) {
  if (!site.order.spec.plain()) TRY(write_training_files(site));
  const std::string table = site.place.host_table.empty() ? "" : TRY(host::read_file(site.place.host_table));
  TRY(host::write_file(site.path("etc/hosts"), hosts_file(table)));
  if (const auto main = site.order.spec.main_host(); main && *main != site.order.host)
    site.variables[std::string(domain::kMainAddressVariable)] = address_in(table, domain::host_name(*main));
  const auto of_machine = host::read_file("/etc/resolv.conf");
  const std::string resolver =
      site.order.spec.network_isolation
          ? ""
          : resolver_file(site.order.outward, of_machine ? *of_machine : "", site.world.way_out.name_server);
  return host::write_file(site.path("etc/resolv.conf"), resolver);
}

}  // namespace

std::optional<Failure> write_contract(Site& site) {
  auto written = write_all_files(site);
  if (!written) return failure_of(written.error(), "writing the job's files");
  return {};
}

}  // namespace trainyard::agent
