#include "collectives/launch.hpp"

#include <algorithm>
#include <utility>

#include "base/fnv.hpp"
#include "base/log.hpp"
#include "base/ranks/variables.hpp"
#include "base/text.hpp"
#include "collectives/transport/tcp/bootstrap.hpp"

namespace trainyard::collectives {
namespace {

Result<int> number(const Variables& variables, std::string_view name) {
  const auto text = variables(name);
  if (!text) return invalid(std::string(name) + " is not set");
  const int64_t value = TRY(parse_int(*text).in(name));
  if (value < 0 || value > 1'000'000)
    return invalid("invalid " + std::string(name) + " " + *text + ": must be from 0 to 1000000");
  return int(value);
}

bool is_on(const Variables& variables, std::string_view name, bool unless_set = false) {
  const auto value = variables(name);
  if (!value) return unless_set;
  const std::string text = to_lower(*value);
  return !text.empty() && text != "0" && text != "false" && text != "no" && text != "off";
}

Result<Endpoint> endpoint_from(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos)
    return invalid("invalid address '" + std::string(text) +
                   "': use HOST:PORT of rank 0, or the absolute path of a folder");
  std::string_view host = text.substr(0, colon);
  // [::1]:7829
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const int64_t port = TRY(parse_int(text.substr(colon + 1)));
  if (port <= 0 || port > 65535)
    return invalid("'" + std::string(text) + "' has no port between 1 and 65535");
  return Endpoint{std::string(host), uint16_t(port)};
}

// Variables that differ between the runs on one machine, in the order of preference.
constexpr const char* kRunNames[] = {"TRAINING_JOB_ARN", "TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE",
                                     "PMI_JOBID", "OMPI_MCA_ess_base_jobid"};

constexpr const char* kRendezvous = "TRAINYARD_RENDEZVOUS";
// Deprecated names, which are accepted until the next version.
constexpr const char* kDeprecatedRendezvous = "TRAINYARD_MEETING";
constexpr const char* kInPlace = "TRAINYARD_IN_PLACE";
constexpr const char* kDeprecatedInPlace = "TRAINYARD_ADOPT";

// Derives a port of this machine from the name of a run. The port is below 32768, since Linux gives
// ports from there on to clients.
constexpr uint32_t kPortMin = 20000, kPorts = 12000;
uint16_t port_for(std::string_view run) { return uint16_t(kPortMin + fnv1a(run) % kPorts); }

Result<void> read_local(const Variables& variables, std::string_view rank, std::string_view ranks,
                        Launch& launch) {
  if (variables(rank)) launch.local_rank = TRY(number(variables, rank));
  if (variables(ranks)) launch.local_ranks = TRY(number(variables, ranks));
  return ok();
}

// Returns the name of the run, which replaces the secret in groups without one.
std::string run_name(const Variables& variables) {
  for (const char* name : kRunNames) {
    if (const auto value = variables(name); value && !value->empty())
      return value->substr(0, TcpOptions::kSharedValueBytesMax);
  }
  return "";
}

Result<void> read_horovodrun(const Variables& variables, Launch& launch) {
  launch.launcher = "horovodrun";
  launch.elastic = variables("HOROVOD_ELASTIC") == "1";
  const int port = TRY(number(variables, "HOROVOD_GLOO_RENDEZVOUS_PORT"));
  launch.service = Endpoint{*variables("HOROVOD_GLOO_RENDEZVOUS_ADDR"), uint16_t(port)};
  launch.host = variables("HOROVOD_HOSTNAME").value_or("localhost");
  launch.member = variables("TRAINYARD_MEMBER").value_or("");
  if (launch.member.empty())
    launch.member = launch.host + "/" + variables("HOROVOD_LOCAL_RANK").value_or("0");
  launch.rank = launch.elastic ? -1 : TRY(number(variables, "HOROVOD_RANK"));
  launch.ranks = launch.elastic ? 0 : TRY(number(variables, "HOROVOD_SIZE"));
  if (launch.elastic) return ok();
  launch.local_rank = TRY(number(variables, "HOROVOD_LOCAL_RANK"));
  launch.local_ranks = TRY(number(variables, "HOROVOD_LOCAL_SIZE"));
  return ok();
}

// Returns the launcher that gave this process a rank and the number of ranks; nullptr if none did.
const RankVariables* launcher_in(const Variables& variables) {
  for (const RankVariables& each : kRankVariables)
    if (!each.ranks.empty() && variables(each.rank) && (!each.needs_both || variables(each.ranks)))
      return &each;
  return nullptr;
}

Result<void> read_ranks(const Variables& variables, const std::optional<Hosts>& hosts,
                        Launch& launch) {
  if (const RankVariables* names = launcher_in(variables)) {
    launch.launcher = names->launcher;
    launch.rank = TRY(number(variables, names->rank));
    launch.ranks = TRY(number(variables, names->ranks));
    TRY(read_local(variables, names->local_rank, names->local_ranks, launch));
    if (launch.ranks >= 1 && launch.rank < launch.ranks) return ok();
    return invalid(launch.launcher + " sets rank " + std::to_string(launch.rank) + " of " +
                   std::to_string(launch.ranks));
  }
  launch.launcher = hosts ? "SageMaker" : "no launcher: a single rank";
  launch.local_rank = 0;
  launch.local_ranks = 1;
  if (!hosts) return ok();
  launch.rank = hosts->current;
  launch.ranks = int(hosts->names.size());
  return ok();
}

// Returns the value of a variable or, until the next version, of its former name; empty if none is
// set.
std::string variable_or_former(const Variables& variables, const char* name, const char* former) {
  if (!variables(name).value_or("").empty()) return name;
  if (variables(former).value_or("").empty()) return "";
  log(Level::warning, "collectives", "a deprecated variable",
      {{"variable", former}, {"use", name}});
  return former;
}

Result<void> read_rendezvous(const Variables& variables, const std::optional<Hosts>& hosts,
                             Ports ports, Launch& launch) {
  const std::string name = variable_or_former(variables, kRendezvous, kDeprecatedRendezvous);
  if (!name.empty()) {
    TRY(set_rendezvous(launch, *variables(name)).in(name));
  } else if (const auto master = variables("MASTER_ADDR")) {
    const bool has_port = variables("MASTER_PORT").has_value();
    const int port =
        has_port ? TRY(number(variables, "MASTER_PORT")) + ports.after_master_port : ports.hosts;
    if (port > 65535)
      return invalid("MASTER_PORT must leave ports after it, which are used too: " +
                     std::to_string(port) + " is above 65535");
    launch.rendezvous = Endpoint{*master, uint16_t(port)};
  } else if (hosts) {
    launch.rendezvous = Endpoint{hosts->names[0], ports.hosts};
  } else if (launch.local_ranks == launch.ranks) {
    launch.rendezvous = Endpoint{"127.0.0.1", port_for(launch.secret)};
  } else {
    return invalid(
        launch.launcher + " started " + std::to_string(launch.ranks) +
        " ranks, but the address of their rendezvous is unknown: set TRAINYARD_RENDEZVOUS "
        "to HOST:PORT of rank 0, or to a folder of this run that all ranks see");
  }
  return ok();
}

// Reads the activity table, and the rank that the launcher gave to this process. (Its rank in a
// group of some ranks may differ.)
ActivityFile read_activity_file(const Variables& variables) {
  const std::string path = variables(kActivityVariable).value_or("");
  if (const auto rank = number(variables, "HOROVOD_RANK")) return {path, *rank};
  if (const RankVariables* names = launcher_in(variables))
    if (const auto rank = number(variables, names->rank)) return {path, *rank};
  return {};
}

}  // namespace

Result<void> set_rendezvous(Launch& launch, std::string_view rendezvous) {
  if (rendezvous.starts_with('/')) {
    launch.folder = rendezvous;
  } else {
    launch.rendezvous = TRY(endpoint_from(rendezvous));
  }
  return ok();
}

Result<Launch> read_connection(const Variables& variables) {
  Launch launch;
  launch.secret =
      variables("TRAINYARD_SECRET").value_or("").substr(0, TcpOptions::kSharedValueBytesMax);
  launch.encrypt = is_on(variables, "TRAINYARD_ENCRYPT");
  if (launch.encrypt && launch.secret.empty())
    return invalid(
        "TRAINYARD_ENCRYPT needs TRAINYARD_SECRET: the other identifiers of a run are not secret");
  if (!variables("TRAINYARD_SOCKETS").value_or("").empty())
    launch.sockets_per_peer = TRY(number(variables, "TRAINYARD_SOCKETS"));
  launch.plans = variables("TRAINYARD_PLANS").value_or("");
  launch.deterministic = is_on(variables, "TRAINYARD_DETERMINISTIC");
  launch.address = variables("TRAINYARD_ADDRESS").value_or("");
  launch.register_in_place =
      is_on(variables, variable_or_former(variables, kInPlace, kDeprecatedInPlace), true);
  launch.activity = read_activity_file(variables);
  return launch;
}

Result<Launch> read_launch(const Variables& variables, const std::optional<Hosts>& hosts_of_file,
                           Ports ports) {
  Launch launch = TRY(read_connection(variables));
  if (variables("HOROVOD_GLOO_RENDEZVOUS_ADDR")) {
    TRY(read_horovodrun(variables, launch));
    return launch;
  }
  if (launch.secret.empty()) launch.secret = run_name(variables);
  std::optional<Hosts> hosts = hosts_of_file;
  const auto names = variables("SM_HOSTS");
  const auto current = variables("SM_CURRENT_HOST");
  if (!hosts && names && current)
    hosts = TRY(read_hosts(*names, *current).in("SM_HOSTS and SM_CURRENT_HOST"));
  TRY(read_ranks(variables, hosts, launch));
  launch.activity = {variables(kActivityVariable).value_or(""), launch.rank};
  if (launch.ranks == 1) {
    launch.local_rank = 0;
    launch.local_ranks = 1;
    return launch;
  }
  TRY(read_rendezvous(variables, hosts, ports, launch));
  return launch;
}

Result<std::unique_ptr<Group>> join(const Launch& launch, TcpOptions options) {
  if (launch.service && launch.ranks != 1)
    return invalid(
        "horovodrun assigns ranks to programs of horovod only: set TRAINYARD_RANK, TRAINYARD_RANKS "
        "and TRAINYARD_RENDEZVOUS, and unset HOROVOD_GLOO_RENDEZVOUS_ADDR");
  options.rank = launch.rank;
  if (options.shared_value.empty()) options.shared_value = launch.secret;
  options.encrypt = options.encrypt || launch.encrypt;
  options.group.deterministic = options.group.deterministic || launch.deterministic;
  if (options.group.plans.empty()) options.group.plans = launch.plans;
  if (options.group.activity.path.empty()) options.group.activity = launch.activity;
  options.sockets_per_peer = launch.sockets_per_peer.value_or(options.sockets_per_peer);
  if (launch.ranks == 1) {
    options.endpoints = {Endpoint{"127.0.0.1", 0}};
    return join_over_tcp(std::move(options));
  }
  Bootstrap bootstrap = launch.rendezvous
                            ? TRY(bootstrap_at(*launch.rendezvous, launch.ranks, options)
                                      .in("rendezvous with the other ranks"))
                            : TRY(bootstrap_in(launch.folder, launch.ranks, options)
                                      .in("rendezvous with the other ranks"));
  options.endpoints = std::move(bootstrap.endpoints);
  return join_bootstrapped(std::move(options), std::move(bootstrap.listener));
}

}  // namespace trainyard::collectives
