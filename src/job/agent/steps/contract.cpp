// Writes the files of the training contract and the container's files below /etc.
#include "contract/contract.hpp"

#include "agent/job_config.hpp"
#include "agent/steps.hpp"
#include "contract/plain_container.hpp"
#include "os/files.hpp"

namespace trainyard::agent {
namespace {

Result<void> write_training_files(StepContext& context) {
  const auto config = host_config(context.order);
  // Writable for any user of the image: SageMaker's own toolkit writes below /opt/ml/input.
  for (const auto& directory : contract::directories(config)) {
    TRY(context.ml_tree->make(directory));
    TRY(context.ml_tree->set_mode(directory, 0777));
  }
  for (const auto& [name, content] : contract::input_files(config))
    TRY(context.ml_tree->write(name, content));
  return {};
}

Result<void> write_all_files(StepContext& context) {
  if (context.order.spec.contract == domain::Contract::training) TRY(write_training_files(context));
  const std::string table =
      context.place.host_table.empty() ? "" : TRY(os::read_file(context.place.host_table));
  TRY(os::make_directories(context.writable_path("etc")));
  TRY(os::write_file(context.writable_path("etc/hosts"), hosts_file(table)));
  if (const auto main = context.order.spec.main_host(); main && *main != context.order.host)
    context.variables[std::string(contract::kMainAddressVariable)] =
        address_in(table, domain::host_name(*main));
  const auto of_machine = os::read_file("/etc/resolv.conf");
  const std::string resolver =
      context.order.spec.network_isolation
          ? ""
          : resolver_file(context.order.egress_settings, of_machine ? *of_machine : "",
                          context.world.egress.name_server);
  return os::write_file(context.writable_path("etc/resolv.conf"), resolver);
}

}  // namespace

std::optional<Failure> write_contract(StepContext& context) {
  auto written = write_all_files(context);
  if (!written) return failure_of(written.error(), "writing the job's files");
  return {};
}

}  // namespace trainyard::agent
