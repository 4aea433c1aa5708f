#include "domain/image_sources.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "domain/image_policy.hpp"

namespace trainyard::domain {
namespace {

bool lists(const std::vector<std::string>& patterns, std::string_view name) {
  return !name.empty() &&
         std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches_pattern(pattern, name); });
}

bool is_for(const RegistryLogin& login, std::string_view user, std::string_view role_arn) {
  if (login.users.empty() && login.roles.empty()) return true;
  return lists(login.users, user) || lists(login.roles, role_arn) ||
         lists(login.roles, role_arn.substr(role_arn.rfind('/') + 1));
}

}  // namespace

Json to_json(const ImageSources& sources) {
  Json logins = Json::array();
  for (const auto& login : sources.logins)
    logins.push_back({{"host", login.host},
                      {"username", login.username},
                      {"password", login.password},
                      {"users", login.users},
                      {"roles", login.roles}});
  return {{"logins", std::move(logins)}, {"oci_directories", sources.oci_directories}};
}

Result<ImageSources> image_sources_from_json(const Json& json) {
  ImageSources sources;
  try {
    for (const auto& login : json.at("logins"))
      sources.logins.push_back({login.at("host").get<std::string>(),
                                login.at("username").get<std::string>(),
                                login.at("password").get<std::string>(),
                                login.at("users").get<std::vector<std::string>>(),
                                login.at("roles").get<std::vector<std::string>>()});
    sources.oci_directories = json.at("oci_directories").get<std::vector<std::string>>();
  } catch (const Json::exception&) {
    // the text is left out, since it holds secrets
    return corrupt("not a description of image sources");
  }
  return sources;
}

Result<const RegistryLogin*> find_login(const ImageSources& sources, const Image& image,
                                        std::string_view user, std::string_view role_arn) {
  if (image.kind != Image::Kind::registry) return nullptr;
  const std::string host = split_image_name(image.source).registry;
  bool known = false;
  for (const auto& login : sources.logins) {
    if (login.host != host) continue;
    known = true;
    if (is_for(login, user, role_arn)) return &login;
  }
  if (!known) return nullptr;
  return denied("the configuration has no login of the registry " + host + " for the user '" +
                shorten(user, 100) + "' and the role '" + shorten(role_arn, 200) + "'");
}

}  // namespace trainyard::domain
