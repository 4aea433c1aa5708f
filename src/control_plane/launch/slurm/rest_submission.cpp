#include "launch/slurm/rest_submission.hpp"

#include <algorithm>
#include <array>

#include "base/json.hpp"
#include "launch/slurm/answers.hpp"
#include "launch/slurm/components.hpp"

namespace trainyard::launch {
namespace {

// To support another version, add a row: slurmrestd's /openapi/v3 has the differences.
constexpr std::array kRestVersions = {
    RestVersion{"v0.0.38", "nodelist", "gres", "gpu:", false},
    RestVersion{"v0.0.40", "required_nodes", "tres_per_node", "gres/gpu:", true, true},
    RestVersion{"v0.0.41", "required_nodes", "tres_per_node", "gres/gpu:", true, true},
    RestVersion{"v0.0.42", "required_nodes", "tres_per_node", "gres/gpu:", true, true},
};

Json number(const RestVersion& version, uint64_t value) {
  if (version.data_parser) return {{"set", true}, {"number", value}};
  return value;
}

// The description of one component.
Json component_json(const RestVersion& version, const SlurmJobRequest& request, size_t index) {
  const SlurmPlacement& placement = request.placement;
  const SlurmComponent& component = *components_of(request)[index];
  Json job = {{"name", component_name(request.name, index)},
              {"comment", request.comment},
              {"tasks", component.nodes.size()},
              {"tasks_per_node", 1},
              {"cpus_per_task", component.per_node.cpus},
              {"memory_per_node", number(version, uint64_t(component.per_node.memory_mib))},
              {"dependency", dependency_of(request)},
              {"requeue", false},
              {"current_working_directory", "/"},
              {"standard_input", "/dev/null"},
              {"standard_output", "/dev/null"},
              {"standard_error", "/dev/null"}};
  constexpr const char* kPath = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";
  const std::string required_nodes(version.required_nodes);
  if (version.data_parser) {
    job["nodes"] = std::to_string(component.nodes.size());
    job[required_nodes] = component.nodes;
    job["environment"] = Json::array({std::string("PATH=") + kPath});
  } else {
    job["nodes"] = component.nodes.size();
    job[required_nodes] = join_names(component.nodes);
    job["environment"] = {{"PATH", kPath}};
  }
  if (component.per_node.gpus > 0)
    job[std::string(version.gres)] = std::string(version.gres_prefix) +
                                     (placement.gpu_type.empty() ? "" : placement.gpu_type + ":") +
                                     std::to_string(component.per_node.gpus);
  if (request.time_limit_minutes > 0)
    job["time_limit"] = number(version, uint64_t(request.time_limit_minutes));
  for (const auto& [name, value] : {std::pair("partition", &placement.partition),
                                    {"account", &placement.account},
                                    {"qos", &placement.qos},
                                    {"constraints", &placement.constraint},
                                    {"reservation", &placement.reservation}})
    if (!value->empty()) job[name] = *value;
  // The job holds them once.
  if (!placement.licenses.empty() && index == 0) job["licenses"] = placement.licenses;
  if (placement.exclusive && version.data_parser) job["shared"] = Json::array({"none"});
  if (placement.exclusive && !version.data_parser) job["exclusive"] = "exclusive";
  return job;
}

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
  if (request.others.empty())
    return dump({{"script", request.script}, {"job", component_json(version, request, 0)}});
  Json jobs = Json::array();
  for (size_t index = 0; index <= request.others.size(); ++index)
    jobs.push_back(component_json(version, request, index));
  return dump({{"script", request.script}, {"jobs", std::move(jobs)}});
}

}  // namespace trainyard::launch
