#include "launch/slurm/rest_submission.hpp"

#include <algorithm>
#include <array>

#include "base/json.hpp"
#include "launch/slurm/answers.hpp"

namespace trainyard::launch {
namespace {

// To support another version, add a row: Slurm's OpenAPI document has the differences.
constexpr std::array kRestVersions = {
    RestVersion{"v0.0.38", "nodelist", false, false, "gres"},
};

}  // namespace

const RestVersion* find_rest_version(std::string_view name) {
  const auto found = std::ranges::find(kRestVersions, name, &RestVersion::name);
  return found == kRestVersions.end() ? nullptr : &*found;
}

std::string rest_version_names() {
  std::string names;
  for (const auto& version : kRestVersions)
    names += (names.empty() ? "" : ", ") + std::string(version.name);
  return names;
}

std::string rest_submission(const RestVersion& version, const SlurmJobRequest& request) {
  const SlurmPlacement& placement = request.placement;
  Json job = {{"name", request.name},
              {"comment", request.comment},
              {"nodes", request.nodes.size()},
              {"tasks", request.nodes.size() * request.tasks_per_node},
              {"tasks_per_node", request.tasks_per_node},
              {"cpus_per_task", request.cpus_per_task},
              {"memory_per_node", request.memory_mib_per_node},
              {"dependency", dependency_of(request)},
              {"requeue", false},
              {"current_working_directory", "/"},
              {"standard_input", "/dev/null"},
              {"standard_output", "/dev/null"},
              {"standard_error", "/dev/null"}};
  const std::string key(version.required_nodes);
  if (version.nodes_as_list)
    job[key] = request.nodes;
  else
    job[key] = join_names(request.nodes);
  constexpr const char* kPath = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";
  if (version.environment_as_list)
    job["environment"] = Json::array({std::string("PATH=") + kPath});
  else
    job["environment"] = {{"PATH", kPath}};
  if (request.gpus_per_node > 0)
    job[std::string(version.gres)] =
        "gpu:" + (placement.gpu_type.empty() ? "" : placement.gpu_type + ":") +
        std::to_string(request.gpus_per_node);
  if (request.time_limit_minutes > 0) job["time_limit"] = request.time_limit_minutes;
  for (const auto& [name, value] : {std::pair("partition", &placement.partition),
                                    {"account", &placement.account},
                                    {"qos", &placement.qos},
                                    {"constraints", &placement.constraint},
                                    {"reservation", &placement.reservation},
                                    {"licenses", &placement.licenses}})
    if (!value->empty()) job[name] = *value;
  if (placement.exclusive) job["exclusive"] = "exclusive";
  return dump({{"script", request.script}, {"job", job}});
}

}  // namespace trainyard::launch
