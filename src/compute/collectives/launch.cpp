#include "collectives/launch.hpp"

#include <algorithm>
#include <utility>

#include "base/fnv.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "collectives/transport/tcp/meeting.hpp"

namespace trainyard::collectives {
namespace {

Result<int> number(const Variables& variables, std::string_view name) {
  const auto text = variables(name);
  if (!text) return invalid(std::string(name) + " is not set");
  const int64_t value = TRY(parse_int(*text).in(name));
  if (value < 0 || value > 1'000'000) return invalid(std::string(name) + " is " + *text);
  return int(value);
}

// Accepts the same values as trainyard/torch and horovod/common/basics.py of sdk/python.
bool is_on(const Variables& variables, std::string_view name) {
  const auto value = variables(name);
  if (!value) return false;
  const std::string text = to_lower(*value);
  return text != "" && text != "0" && text != "false" && text != "no" && text != "off";
}

Result<Endpoint> endpoint_from(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return invalid("'" + std::string(text) + "' is not HOST:PORT");
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);  // [::1]:7829
  const int64_t port = TRY(parse_int(text.substr(colon + 1)));
  if (port <= 0 || port > 65535)
    return invalid("'" + std::string(text) + "' has no port between 1 and 65535");
  return Endpoint{std::string(host), uint16_t(port)};
}

struct Hosts {
  std::vector<std::string> names;
  int current = 0;
};

Result<Hosts> hosts_from(std::string_view resourceconfig_json) {
  const Json config = TRY(parse_json(resourceconfig_json).in("resourceconfig.json"));
  if (!config.is_object() || !config.contains("hosts") || !config["hosts"].is_array() ||
      !config.contains("current_host") || !config["current_host"].is_string()) {
    return invalid("resourceconfig.json: hosts or current_host is missing");
  }
  Hosts hosts;
  for (const Json& host : config["hosts"]) {
    if (!host.is_string()) return invalid("resourceconfig.json: hosts must be a list of strings");
    hosts.names.push_back(host.get<std::string>());
  }
  const auto place =
      std::find(hosts.names.begin(), hosts.names.end(), config["current_host"].get<std::string>());
  if (place == hosts.names.end()) return invalid("resourceconfig.json: current_host is not in hosts");
  hosts.current = int(place - hosts.names.begin());
  return hosts;
}

// Derives a port of this machine from the name of a run.
uint16_t port_for(std::string_view run) { return uint16_t(20000 + fnv1a(run) % 20000); }

}  // namespace

Result<Launch> read_launch(const Variables& variables, std::string_view resourceconfig_json) {
  Launch launch;
  for (const std::string_view name :
       {"TRAINYARD_SECRET", "TRAINING_JOB_ARN", "TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE", "PMI_JOBID"}) {
    if (const auto value = variables(name); value && launch.secret.empty()) launch.secret = *value;
  }
  launch.secret = launch.secret.substr(0, TcpOptions::shared_value_bytes_max);
  launch.encrypt = is_on(variables, "TRAINYARD_ENCRYPT");
  if (launch.encrypt && variables("TRAINYARD_SECRET").value_or("").empty())
    return invalid("TRAINYARD_ENCRYPT needs TRAINYARD_SECRET: the other identifiers of a run are not secret");
  if (variables("TRAINYARD_SOCKETS")) launch.sockets_per_peer = TRY(number(variables, "TRAINYARD_SOCKETS"));

  std::optional<Hosts> hosts;
  if (!resourceconfig_json.empty()) hosts = TRY(hosts_from(resourceconfig_json));

  bool local = false;  // all ranks are on this machine
  if (variables("TRAINYARD_RANK")) {
    launch.told_by = "TRAINYARD_RANK";
    launch.rank = TRY(number(variables, "TRAINYARD_RANK"));
    launch.ranks = TRY(number(variables, "TRAINYARD_RANKS"));
  } else if (variables("OMPI_COMM_WORLD_RANK")) {
    launch.told_by = "Open MPI";
    launch.rank = TRY(number(variables, "OMPI_COMM_WORLD_RANK"));
    launch.ranks = TRY(number(variables, "OMPI_COMM_WORLD_SIZE"));
    local = variables("OMPI_COMM_WORLD_LOCAL_SIZE") == variables("OMPI_COMM_WORLD_SIZE");
  } else if (variables("PMI_RANK")) {
    launch.told_by = "MPICH";
    launch.rank = TRY(number(variables, "PMI_RANK"));
    launch.ranks = TRY(number(variables, "PMI_SIZE"));
    local = variables("MPI_LOCALNRANKS") == variables("PMI_SIZE");
  } else if (variables("RANK") && variables("WORLD_SIZE")) {
    launch.told_by = "torchrun";
    launch.rank = TRY(number(variables, "RANK"));
    launch.ranks = TRY(number(variables, "WORLD_SIZE"));
  } else if (hosts) {
    launch.told_by = "resourceconfig.json";
    launch.rank = hosts->current;
    launch.ranks = int(hosts->names.size());
  } else {
    launch.told_by = "no launcher: a single rank";
    return launch;
  }
  if (launch.ranks < 1 || launch.rank >= launch.ranks) {
    return invalid(launch.told_by + " sets rank " + std::to_string(launch.rank) + " of " +
                   std::to_string(launch.ranks));
  }
  if (launch.ranks == 1) return launch;

  if (const auto meeting = variables("TRAINYARD_MEETING")) {
    if (meeting->starts_with('/')) {
      launch.folder = *meeting;
    } else {
      launch.meeting = TRY(endpoint_from(*meeting).in("TRAINYARD_MEETING"));
    }
  } else if (const auto master = variables("MASTER_ADDR")) {
    const int port = variables("MASTER_PORT") ? TRY(number(variables, "MASTER_PORT")) : int(meeting_port) - 1;
    if (port >= 65535) return invalid("MASTER_PORT must be below 65535: the port after it is used too");
    launch.meeting = Endpoint{*master, uint16_t(port + 1)};
  } else if (hosts) {
    launch.meeting = Endpoint{hosts->names[0], meeting_port};
  } else if (local) {
    launch.meeting = Endpoint{"127.0.0.1", port_for(launch.secret)};
  } else {
    return invalid(launch.told_by + " started " + std::to_string(launch.ranks) +
                   " ranks, but the address of their rendezvous is unknown: set TRAINYARD_MEETING to "
                   "HOST:PORT of rank 0");
  }
  return launch;
}

Result<std::unique_ptr<Group>> join(const Launch& launch, TcpOptions options) {
  options.rank = launch.rank;
  if (options.shared_value.empty()) options.shared_value = launch.secret;
  options.encrypt = options.encrypt || launch.encrypt;
  options.sockets_per_peer = launch.sockets_per_peer.value_or(options.sockets_per_peer);
  if (launch.ranks == 1) {
    options.endpoints = {Endpoint{"127.0.0.1", 0}};
    return join_over_tcp(std::move(options));
  }
  Met met = launch.meeting
                ? TRY(meet_at(*launch.meeting, launch.ranks, options).in("rendezvous with the other ranks"))
                : TRY(meet_in(launch.folder, launch.ranks, options).in("rendezvous with the other ranks"));
  options.endpoints = std::move(met.endpoints);
  return join_met(std::move(options), std::move(met.listener));
}

}  // namespace trainyard::collectives
