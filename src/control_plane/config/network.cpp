#include "config/network.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace trainyard::config {
namespace {

constexpr int64_t kLogBytesMin = 64 << 10;  // some hundred lines: smaller files rotate too often
constexpr int64_t kLogBytesMax = int64_t{1} << 40;  // a tebibyte: a larger number is a mistake
constexpr int64_t kLogFilesMax = 1'000;             // each is renamed at each rotation
constexpr int64_t kConnectionsPerJobMax = 1 << 20;  // more than a machine's connection table holds

// Reads the lists of networks. `deny` is read before `allow`, since the first of two equal networks
// applies.
Result<void> read_egress(Table& table, std::vector<networks::EgressRule>& rules) {
  for (const bool allowed : {false, true}) {
    const char* key = allowed ? "allow" : "deny";
    std::vector<std::string> texts;
    TRY(table.read(key, texts));
    for (const auto& text : texts)
      rules.push_back({TRY(networks::parse_subnet_or_address(text).in(table.name(key))), allowed});
  }
  return {};
}

// Reads [regions.NAME]: a partition of this server, or with an endpoint, another server.
Result<void> read_region(const std::string& name, Table table, Config& config) {
  constexpr size_t kNameBytesMax = 64;
  const bool of_region = std::ranges::all_of(
      name, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
  if (name.empty() || name.size() > kNameBytesMax || !of_region)
    return invalid("regions." + format_text(name) +
                   " must be named by small letters, digits and -, like eu-west-1");
  client::Remote remote;
  TRY(table.read("endpoint", remote.endpoint));
  TRY(table.read("access_key_id", remote.keys.access_key_id));
  TRY(table.read_secret("secret_access_key", remote.keys.secret_access_key));
  TRY(table.read("ca_bundle", remote.ca_bundle));
  TRY(table.nothing_else());
  if (remote.endpoint.empty()) {
    config.regions.push_back(name);
    return {};
  }
  if (!remote.endpoint.starts_with("http://") && !remote.endpoint.starts_with("https://"))
    return table.refused("endpoint", "a URL, http:// or https://");
  if (remote.keys.access_key_id.empty() || remote.keys.secret_access_key.empty())
    return invalid(table.name("access_key_id") +
                   " and secret_access_key must be given: requests for " + name +
                   " are signed with them");
  config.remote_regions[name] = remote;
  return {};
}

// Reads the server's log file: a path next to the configuration file, or an absolute one.
Result<void> read_log(Table& table, const std::string& directory, os::LogFileSettings& log) {
  int64_t bytes_max = int64_t(log.bytes_max);
  TRY(table.read("log_file", log.path));
  TRY(table.read("log_bytes_max", bytes_max, {kLogBytesMin, kLogBytesMax}));
  TRY(table.read("log_files", log.files_max, {1, kLogFilesMax}));
  log.bytes_max = uint64_t(bytes_max);
  if (!log.path.empty() && !log.path.starts_with('/')) log.path.insert(0, directory);
  return {};
}

Result<void> read_server(Table table, const std::string& directory, Config& config) {
  TRY(table.read("listen", config.listen));
  if (table.has("listen")) TRY(check_listen(config.listen).in(table.name("listen")));
  TRY(table.read("allow_plain_http_from_other_machines",
                 config.allow_plain_http_from_other_machines));
  TRY(table.read("certificate_names", config.certificate_names));
  TRY(table.read("metrics_listen", config.metrics_listen));
  if (!config.metrics_listen.empty())
    TRY(check_listen(config.metrics_listen).in(table.name("metrics_listen")));
  TRY(read_log(table, directory, config.log));
  return table.nothing_else();
}

Result<void> read_jobs_network(Table table, Config& config) {
  TRY(table.read("pool", config.network_pool));
  TRY(table.read("name_servers", config.egress_settings.name_servers));
  TRY(table.read_secret("http_proxy", config.egress_settings.http_proxy));
  TRY(table.read_secret("https_proxy", config.egress_settings.https_proxy));
  TRY(table.read("no_proxy", config.egress_settings.no_proxy));
  TRY(table.read("ca_bundle", config.egress_settings.ca_bundle));
  TRY(table.read_secret("package_index", config.egress_settings.package_index));
  TRY(read_egress(table, config.egress.rules));
  int64_t connections_max = config.egress.connections_max;
  TRY(table.read("connections_per_job_max", connections_max, {1, kConnectionsPerJobMax}));
  config.egress.connections_max = uint32_t(connections_max);
  TRY(table.each_named("roles", [&](const std::string& role, Table of_role) -> Result<void> {
    TRY(read_egress(of_role, config.egress_of_roles[role]));
    return of_role.nothing_else();
  }));
  return table.nothing_else();
}

}  // namespace

Result<void> read_network(Table& root, const std::string& directory, Config& config) {
  TRY(root.each("server", [&](Table table) { return read_server(table, directory, config); }));
  TRY(root.each("network", [&](Table table) { return read_jobs_network(table, config); }));
  TRY(root.each_named("regions", [&](const std::string& name, Table table) {
    return read_region(name, table, config);
  }));
  if (config.remote_regions.count(config.region))
    return invalid("regions.\"" + config.region +
                   "\" is this server's own region: it cannot be another server");
  return {};
}

Result<void> check_listen(const std::string& text) {
  constexpr int64_t kPortMax = 65'535;
  const size_t colon = text.rfind(':');
  const std::string address = text.substr(0, colon);
  const bool bracketed = address.starts_with('[') && address.ends_with(']');
  const bool possible = !address.empty() && (bracketed || address.find(':') == address.npos);
  const auto port = parse_int(colon == text.npos ? "" : text.substr(colon + 1));
  if (colon != text.npos && possible && port && *port >= 0 && *port <= kPortMax) return ok();
  return invalid("invalid address '" + shorten(to_utf8(text), 100) +
                 "': it must be ADDRESS:PORT, like 127.0.0.1:4566");
}

std::vector<networks::EgressService> services_of(const Config& config) {
  std::string resolvers;
  for (const auto& server : config.egress_settings.name_servers)
    resolvers += "nameserver " + server + "\n";
  auto services = networks::name_servers_of(resolvers);
  std::vector<std::string> urls = {config.egress_settings.http_proxy,
                                   config.egress_settings.https_proxy,
                                   config.egress_settings.package_index};
  if (config.objects) urls.push_back(config.objects->endpoint);
  for (const auto& url : urls)
    if (const auto service = networks::service_of_url(url)) services.push_back(*service);
  return services;
}

}  // namespace trainyard::config
