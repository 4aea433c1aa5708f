#include "batch_api/instance_types.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "base/nearest.hpp"
#include "base/text.hpp"
#include "protocol/errors.hpp"
#include "shapes/instance_types.hpp"

namespace trainyard::api::batch_api {
namespace {

constexpr std::string_view kBundles[] = {"optimal", "default_x86_64", "default_arm64"};
constexpr size_t kTypeBytesMax = 64;  // an error shows no more of an unknown type

std::string_view family_of(std::string_view type) { return type.substr(0, type.find('.')); }

bool is_known(std::string_view name) {
  const auto types = shapes::ec2::instance_type_values();
  return std::ranges::find(kBundles, name) != std::end(kBundles) ||
         std::ranges::any_of(
             types, [&](std::string_view type) { return type == name || family_of(type) == name; });
}

std::string nearest_name(std::string_view typed) {
  std::vector<std::string_view> names(std::begin(kBundles), std::end(kBundles));
  for (const std::string_view type : shapes::ec2::instance_type_values()) {
    names.push_back(type);
    names.push_back(family_of(type));
  }
  return nearest(typed, names);
}

}  // namespace

Outcome<Done> check_instance_types(const Json& resources) {
  for (const Json& each : resources.value("instanceTypes", Json::array())) {
    const auto name = each.get<std::string>();
    if (is_known(name)) continue;
    const std::string near = nearest_name(shorten(name, kTypeBytesMax));
    return client_exception(
        "Error executing request, Exception : Instance type can only be one of [optimal, "
        "default_x86_64, default_arm64, a family such as m5, a type such as m5.large], not '" +
        shorten(name, kTypeBytesMax) + "'" + (near.empty() ? "" : ". Did you mean " + near + "?"));
  }
  return Done{};
}

}  // namespace trainyard::api::batch_api
