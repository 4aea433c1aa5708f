#include "trainyard/announcement.hpp"

#include <vector>

#include "trainyard/terminal.hpp"

namespace trainyard::apps {
namespace {

// Returns the names by which other machines may reach the server, the config's first.
std::vector<std::string> outside_names(const Listening& listening) {
  std::vector<std::string> names;
  for (auto name = listening.names.rbegin(); name != listening.names.rend(); ++name)
    if (*name != "localhost" && !name->starts_with("127.") && !name->starts_with("169.254."))
      names.push_back(*name);
  return names;
}

// Describes where jobs run.
std::string mode_of(const config::Config& config) {
  if (config.slurm) return "nodes of a Slurm cluster";
  if (config.kubernetes) return "pods of a Kubernetes cluster";
  const size_t count = config.machines.size();
  if (count == 0) return "dev: this machine as it is; larger gangs are scaled down";
  return std::to_string(count) + (count == 1 ? " machine" : " machines") + " of the config";
}

std::string line(const std::string& title, const std::string& text) {
  return "  " + title + std::string(title.size() < 8 ? 8 - title.size() : 1, ' ') + text + "\n";
}

}  // namespace

std::string announcement(const ServerRecord& record, const Listening& listening,
                         const std::string& data_directory, const config::Config& config) {
  const std::string port = record.host_and_port.substr(record.host_and_port.rfind(':'));
  const auto names =
      listening.all_addresses ? outside_names(listening) : std::vector<std::string>();
  std::string text = paint(Paint::bold, "trainyard") + " listens on " +
                     paint(Paint::green, names.empty() ? record.endpoint : listening.host + port) +
                     "\n";
  if (!names.empty()) {
    std::string all;
    for (const std::string& name : names) all += "https://" + name + port + ", ";
    text += line("names", all + "and " + record.endpoint + " on this machine");
  }
  text += line("data", data_directory);
  if (!config.log.path.empty()) text += line("log", config.log.path);
  text += line("mode", mode_of(config));
  const std::string command = "trainyard env --data " + data_directory;
  text += line("clients", "eval \"$(" + command + ")\"");
  if (!names.empty())
    text += line("others", command + " --user NAME --endpoint https://" + names.front() + port +
                               " prints what other users and machines need");
  return text;
}

}  // namespace trainyard::apps
