#include "cli/submission_check.hpp"

#include <algorithm>

#include "base/nearest.hpp"
#include "base/text.hpp"
#include "domain/instance_type.hpp"

namespace trainyard::cli {
namespace {

Result<void> check_type(const Json& at) {
  if (!at.is_object() || !at.contains("InstanceType") || !at["InstanceType"].is_string()) return {};
  const auto type = at["InstanceType"].get<std::string>();
  if (domain::find_instance_type(type)) return {};
  std::vector<std::string_view> names;
  for (const auto& each : domain::instance_types()) names.push_back(each.name);
  const std::string near = nearest(shorten(type, 64), names);
  return invalid("unknown instance type '" + shorten(type, 64) + "'" +
                 (near.empty() ? "" : "; did you mean " + near + "?"));
}

}  // namespace

Result<void> check_instance_types(const Json& request) {
  if (!request.contains("ResourceConfig")) return {};
  const Json& resources = request["ResourceConfig"];
  TRY(check_type(resources));
  if (!resources.is_object()) return {};
  for (const char* list : {"InstanceGroups", "InstancePreferences"})
    if (resources.contains(list) && resources[list].is_array())
      for (const Json& group : resources[list]) TRY(check_type(group));
  return {};
}

Result<void> check_program(const Json& request, const Upload& upload,
                           const std::vector<std::string>& keys) {
  const std::string place = "/opt/ml/input/data/" + upload.channel + "/";
  const auto algorithm = request.find("AlgorithmSpecification");
  if (algorithm == request.end() || !algorithm->is_object()) return {};
  const auto words = algorithm->find("ContainerEntrypoint");
  if (words == algorithm->end() || !words->is_array()) return {};
  for (const Json& word : *words) {
    if (!word.is_string() || !word.get_ref<const std::string&>().starts_with(place)) continue;
    const std::string file = word.get<std::string>().substr(place.size());
    if (std::ranges::find(keys, file) == keys.end())
      return invalid("the program '" + shorten(file, 200) + "' was not found in " + upload.path);
  }
  return {};
}

}  // namespace trainyard::cli
