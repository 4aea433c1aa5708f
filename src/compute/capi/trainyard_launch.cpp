#include "capi/trainyard_launch.h"
#include "capi/process_environment.hpp"

#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "capi/conversion.hpp"
#include "capi/launch.hpp"

using namespace trainyard;
using capi::report;

namespace {

// OwnedLaunch is the struct that the caller gets, and the texts to which it points.
struct OwnedLaunch {
  trainyard_launch seen{};  // first, for trainyard_launch_free()
  collectives::Launch launch;
  std::string rendezvous;
};

collectives::Variables variables_of(const char* const* variables) {
  if (!variables) return capi::variable_of_process;
  return [variables](std::string_view name) -> std::optional<std::string> {
    for (const char* const* each = variables; *each; ++each) {
      const std::string_view text = *each;
      if (text.starts_with(name) && text.substr(name.size()).starts_with('='))
        return std::string(text.substr(name.size() + 1));
    }
    return std::nullopt;
  };
}

Result<std::optional<collectives::Hosts>> hosts_of(const char* resourceconfig) {
  std::string text = capi::text_from(resourceconfig);
  if (!resourceconfig) {
    std::ostringstream content;
    if (std::ifstream file(collectives::kResourceconfigPath); file) content << file.rdbuf();
    text = content.str();
  }
  if (text.empty()) return std::optional<collectives::Hosts>();
  return std::optional(TRY(collectives::read_hosts(text)));
}

std::string rendezvous_of(const collectives::Launch& launch) {
  if (!launch.rendezvous) return launch.folder;
  return launch.rendezvous->host + ":" + std::to_string(launch.rendezvous->port);
}

}  // namespace

Result<collectives::Launch> capi::read_launch(const trainyard_launch_source& source) {
  const auto hosts = TRY(hosts_of(source.resourceconfig));
  return collectives::read_launch(variables_of(source.variables), hosts,
                                  source.program == TRAINYARD_PROGRAM_HOROVOD
                                      ? collectives::kHorovodPorts
                                      : collectives::kCollectivesPorts);
}

collectives::ActivityFile capi::activity_of_process() {
  auto connection = collectives::read_connection(capi::variable_of_process);
  return connection ? std::move(connection->activity) : collectives::ActivityFile{};
}

extern "C" {

trainyard_kind trainyard_launch_read(const trainyard_launch_source* source,
                                     trainyard_launch** launch, char* message) {
  if (!launch) return report(invalid("trainyard_launch_read: launch must not be null"), message);
  if (source) {
    if (const auto checked = capi::check_size(source, "trainyard_launch_source"); !checked)
      return report(checked, message);
  }
  auto read = capi::read_launch(source ? *source : trainyard_launch_source{});
  if (!read) return report(read.error(), message);
  auto owned = std::make_unique<OwnedLaunch>();
  owned->launch = *std::move(read);
  const auto& from = owned->launch;
  owned->rendezvous = rendezvous_of(from);
  trainyard_launch& to = owned->seen;
  to.size = sizeof to;
  to.rank = from.rank;
  to.ranks = from.ranks;
  to.local_rank = from.local_rank.value_or(-1);
  to.local_ranks = from.local_ranks.value_or(-1);
  to.launcher = from.launcher.c_str();
  to.rendezvous = owned->rendezvous.c_str();
  to.service_host = from.service ? from.service->host.c_str() : "";
  to.service_port = from.service ? from.service->port : 0;
  to.elastic = from.elastic ? 1 : 0;
  to.host = from.host.c_str();
  to.member = from.member.c_str();
  to.secret = from.secret.c_str();
  to.encrypt = from.encrypt ? 1 : 0;
  to.sockets_per_peer = from.sockets_per_peer.value_or(0);
  to.plans = from.plans.c_str();
  to.deterministic = from.deterministic ? 1 : 0;
  *launch = &owned.release()->seen;
  return TRAINYARD_OK;
}

void trainyard_launch_free(trainyard_launch* launch) {
  delete reinterpret_cast<OwnedLaunch*>(launch);  // `launch` is its first member, `seen`
}

}  // extern "C"
