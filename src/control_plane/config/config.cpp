#include "config/config.hpp"

#include <algorithm>
#include <sstream>
#include <toml.hpp>

#include "config/capacity.hpp"
#include "config/images.hpp"
#include "config/jobs.hpp"
#include "config/kubernetes.hpp"
#include "config/network.hpp"
#include "config/notifications.hpp"
#include "config/principals.hpp"
#include "config/prometheus.hpp"
#include "config/slurm.hpp"
#include "config/storage.hpp"
#include "config/table.hpp"
#include "os/files.hpp"

namespace trainyard::config {
namespace {

constexpr size_t kFileBytesMax = 1 << 20;

Result<Config> from_value(const toml::value& file, const std::string& directory) {
  Config config;
  Table root(file, "");
  TRY(root.read("account_id", config.account_id));
  TRY(root.read("region", config.region));
  TRY(read_principals(root, directory, config));
  TRY(read_network(root, directory, config));
  TRY(read_storage(root, directory, config));
  TRY(read_notifications(root, directory, config.notifications));
  TRY(read_prometheus(root, directory, config.prometheus));
  TRY(read_jobs(root, config));
  TRY(read_capacity(root, config));
  TRY(read_slurm(root, config));
  TRY(read_kubernetes(root, config));
  TRY(read_images(root, directory, config));
  TRY(root.nothing_else());
  TRY(check_devices(config));
  config.egress.services = services_of(config);
  const bool twelve_digits = config.account_id.size() == 12 &&
                             std::all_of(config.account_id.begin(), config.account_id.end(),
                                         [](char c) { return c >= '0' && c <= '9'; });
  if (!config.account_id.empty() && !twelve_digits)
    return root.refused("account_id", "twelve digits");
  return config;
}

}  // namespace

Result<Config> parse_config(const std::string& text, const std::string& path) {
  std::istringstream stream(text);
  const auto slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  try {
    return from_value(toml::parse(stream, path), directory).in("reading the config " + path);
  } catch (const std::exception& fault) {
    return invalid("reading the config " + path + ": " + fault.what());
  }
}

Result<Config> read_config(const std::string& path) {
  return parse_config(TRY(os::read_file(path, kFileBytesMax).in("reading the config")), path);
}

}  // namespace trainyard::config
