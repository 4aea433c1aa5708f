#include "domain/image_sources.hpp"

#include <algorithm>

#include "base/complete_record.hpp"
#include "base/text.hpp"
#include "domain/image_policy.hpp"
#include "domain/role.hpp"

namespace trainyard::domain {
namespace {

bool lists(const std::vector<std::string>& patterns, std::string_view name) {
  return !name.empty() &&
         std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches_pattern(pattern, name); });
}

bool is_for(const RegistryLogin& login, std::string_view user, std::string_view role_arn) {
  if (login.users.empty() && login.roles.empty()) return true;
  return lists(login.users, user) || any_names_role(login.roles, role_arn);
}

// Complete, because a missing list of users or roles must not allow all users.
constexpr auto kLogin = complete(json_record<RegistryLogin>("login", [](auto& side, auto& login) {
  side("host", login.host);
  side("username", login.username);
  side("password", login.password);
  side("users", login.users);
  side("roles", login.roles);
}));

constexpr auto kSources =
    complete(json_record<ImageSources>("image sources", [](auto& side, auto& sources) {
      side("logins", sources.logins, kLogin);
      side("oci_directories", sources.oci_directories);
    }));

}  // namespace

Json to_json(const ImageSources& sources) { return kSources.write(sources); }

Result<ImageSources> image_sources_from_json(const Json& json) {
  auto sources = kSources.read(json);
  // The error of the reader is omitted, because it may contain secrets.
  if (!sources) return corrupt("not a description of image sources");
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
