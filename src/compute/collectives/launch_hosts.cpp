#include <algorithm>
#include <string>

#include "base/json.hpp"
#include "collectives/launch.hpp"

namespace trainyard::collectives {

// A file of its own: the wheels are compiled without a JSON library, and Python reads the file
// itself.
Result<Hosts> read_hosts(std::string_view resourceconfig_json) {
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
  const auto current =
      std::find(hosts.names.begin(), hosts.names.end(), config["current_host"].get<std::string>());
  if (current == hosts.names.end())
    return invalid("resourceconfig.json: current_host is not in hosts");
  hosts.current = int(current - hosts.names.begin());
  return hosts;
}

}  // namespace trainyard::collectives
