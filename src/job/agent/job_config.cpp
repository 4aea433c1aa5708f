#include "agent/job_config.hpp"

#include <algorithm>
#include <cmath>

#include "agent/endpoints.hpp"
#include "agent/output/metric_files.hpp"
#include "base/text.hpp"
#include "domain/channel_names.hpp"
#include "domain/instance_type.hpp"

namespace trainyard::agent {

contract::HostConfig host_config(const wire::Order& order) {
  const auto& spec = order.spec;
  contract::HostConfig config;
  config.job_name = order.job.name;
  config.job_arn = order.job_arn;
  config.region = order.job.region;
  config.current_host = domain::host_name(order.host);
  config.hyperparameters = spec.hyperparameters;
  config.environment = spec.environment;
  config.request = spec.request;
  domain::HostIndex next = 0;
  for (const auto& group : spec.groups) {
    contract::GroupConfig entry{group.name, group.instance_type, {}};
    for (uint32_t i = 0; i < group.count; ++i, ++next) {
      if (next == order.host) {
        config.current_group = group.name;
        config.current_instance_type = group.instance_type;
      }
      entry.hosts.push_back(domain::host_name(next));
      config.hosts.push_back(domain::host_name(next));
    }
    config.groups.push_back(std::move(entry));
  }
  for (const auto& channel : spec.channels) {
    if (!channel.is_of(config.current_group)) continue;
    contract::ChannelConfig entry;
    entry.name = channel.name;
    entry.content_type = channel.content_type;
    entry.input_mode = domain::kInputModes.text(channel.input_mode);
    entry.distribution = domain::kDistributions.text(channel.distribution);
    entry.record_wrapper = channel.record_wrapper;
    entry.compression = channel.compression;
    entry.s3_data_type = channel.s3_data_type;
    entry.s3_uri = channel.s3_uri;
    entry.attribute_names = channel.attribute_names;
    entry.shuffle_seed = channel.shuffle_seed;
    if (channel.file_system) {
      entry.file_system = {{"fileSystemId", channel.file_system->id},
                           {"fileSystemType", channel.file_system->type},
                           {"directoryPath", channel.file_system->path},
                           {"fileSystemAccessMode", channel.file_system->writable ? "rw" : "ro"}};
    }
    config.channels.push_back(std::move(entry));
  }
  if (spec.checkpoint) config.checkpoint_path = spec.checkpoint->path;
  if (spec.tensorboard) config.tensorboard_path = spec.tensorboard->path;
  for (const auto& metric : spec.metrics) {
    config.metric_definitions.push_back({{"Name", metric.name}, {"Regex", metric.regex}});
  }
  return config;
}

std::map<std::string, std::string> container_environment(
    const wire::Order& order, const contract::EndpointConfig& endpoint,
    const std::map<std::string, std::string>& image_environment,
    const std::map<std::string, std::string>& own) {
  const auto config = host_config(order);
  auto variables = order.spec.contract == domain::Contract::plain
                       ? contract::plain_environment(config, endpoint)
                       : contract::environment(config, endpoint);
  const auto unless_requested = [&](const std::string& name, const std::string& value) {
    if (!value.empty() && !config.environment.contains(name)) variables[name] = value;
  };
  for (const auto& [name, value] : image_environment) unless_requested(name, value);
  for (const auto* given : {&order.variables, &own})
    for (const auto& [name, value] : *given) variables[name] = value;
  const auto& egress_settings = order.egress_settings;
  // curl reads only the lower-case names, others only the upper-case ones.
  unless_requested("http_proxy", egress_settings.http_proxy);
  unless_requested("HTTP_PROXY", egress_settings.http_proxy);
  unless_requested("https_proxy", egress_settings.https_proxy);
  unless_requested("HTTPS_PROXY", egress_settings.https_proxy);
  if (!egress_settings.http_proxy.empty() || !egress_settings.https_proxy.empty()) {
    std::string direct = std::string("localhost,127.0.0.1,") + kLinkLocalAddress;
    for (const auto& host : config.hosts) direct += "," + host;
    if (!egress_settings.no_proxy.empty()) direct += "," + egress_settings.no_proxy;
    unless_requested("no_proxy", direct);
    unless_requested("NO_PROXY", direct);
  }
  unless_requested("PIP_INDEX_URL", egress_settings.package_index);
  unless_requested(kMetricFilesVariable,
                   std::string(contract::kBase) + "/" + kMetricFilesDirectory);
  if (!endpoint.ca_bundle.empty()) {
    for (const char* name : {"REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE", "PIP_CERT"}) {
      unless_requested(name, endpoint.ca_bundle);
    }
  }
  return variables;
}

std::string memory_limit_text(const wire::Order& order) {
  const auto bytes = order.share.memory_bytes;
  const std::string text = human_bytes(static_cast<uint64_t>(bytes)) + " memory limit (";
  const auto& name = order.spec.instance_type(order.host);
  const auto type = domain::find_instance_type(name);
  if (!type) return text + "the share of " + name + ")";
  const double promised = type->memory_gib * 1024 * 1024 * 1024;
  const double part = promised / static_cast<double>(bytes);
  if (part < 1.01) return text + "all of " + name + ")";
  const double whole = std::round(part);
  if (std::abs(part - whole) < 0.02)
    return text + "1/" + std::to_string(static_cast<int>(whole)) + " of " + name + ")";
  return text + "of the " + human_bytes(static_cast<uint64_t>(promised)) + " of " + name + ")";
}

std::string hosts_file(std::string_view host_table) {
  std::string text;
  if (host_table.find("localhost") == std::string_view::npos) text = "127.0.0.1 localhost\n";
  text += host_table;
  if (!text.ends_with('\n')) text += '\n';
  return text;
}

std::string address_in(std::string_view host_table, std::string_view name) {
  for (const auto line : split(host_table, '\n')) {
    const auto words = split(line, ' ');
    if (words.size() > 1 && std::find(words.begin() + 1, words.end(), name) != words.end())
      return std::string(words[0]);
  }
  return "";
}

std::string resolver_file(const domain::EgressSettings& egress_settings,
                          std::string_view of_machine, std::string_view through) {
  std::string text;
  for (const auto& server : egress_settings.name_servers) text += "nameserver " + server + "\n";
  if (!text.empty()) return text;
  if (!through.empty()) text = "nameserver " + std::string(through) + "\n";
  for (const auto line : split(of_machine, '\n')) {
    const auto trimmed = trim(line);
    if (trimmed.starts_with('#') || trimmed.starts_with(';')) continue;
    // A resolver on the machine's own loopback is unreachable from the host's namespace.
    if (trimmed.starts_with("nameserver") &&
        (!through.empty() || trimmed.find("127.") != std::string_view::npos ||
         trimmed.find("::1") != std::string_view::npos))
      continue;
    if (!trimmed.empty()) text += std::string(trimmed) + "\n";
  }
  return text;
}

}  // namespace trainyard::agent
