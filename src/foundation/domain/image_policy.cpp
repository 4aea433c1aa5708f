#include "domain/image_policy.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "domain/role.hpp"

namespace trainyard::domain {
namespace {

constexpr size_t kShownMax = 10;  // limit of patterns or directories in an error

bool is_for(const ImageRule& rule, const std::string& role_arn) {
  return rule.roles.empty() || any_names_role(rule.roles, role_arn);
}

// Returns true if a path or repository has a part "." or "..", so it may lead out of a directory
// that is a prefix of its text. Ignores a tag.
bool leads_upwards(std::string_view path) {
  return std::ranges::any_of(split(path, '/'), [](std::string_view part) {
    const std::string_view name = part.substr(0, part.find(':'));
    return name == ".." || name == ".";
  });
}

// Returns the names with which patterns are compared: with and without tag or digest.
std::vector<std::string> texts_of(const Image& image) {
  if (image.kind != Image::Kind::registry) return {transport_of(image)};
  const ImageName name = split_image_name(image.source);
  return {image.source, name.registry + "/" + name.repository};
}

std::string listed(const std::vector<std::string>& all) {
  std::string text;
  for (size_t i = 0; i < all.size() && i < kShownMax; ++i) text += (i == 0 ? "" : ", ") + all[i];
  if (all.size() > kShownMax) text += ", ..";
  return text.empty() ? "none" : text;
}

Result<void> check_directory(const std::vector<std::string>& directories, const Image& image) {
  const bool below =
      !leads_upwards(image.source) &&
      std::ranges::any_of(directories, [&](const std::string& directory) {
        return image.source.starts_with(directory.ends_with('/') ? directory : directory + "/");
      });
  if (below) return ok();
  return denied("image 'oci:" + shorten(image.source, 200) +
                "' is not allowed: OCI layouts must be below " + listed(directories));
}

}  // namespace

bool matches_pattern(std::string_view pattern, std::string_view text) {
  size_t at = 0, in = 0, star = pattern.npos, retry = 0;
  while (in < text.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      retry = in;
    } else if (at < pattern.size() && pattern[at] == text[in]) {
      ++at, ++in;
    } else if (star != pattern.npos) {
      at = star + 1;
      in = ++retry;
    } else {
      return false;
    }
  }
  while (at < pattern.size() && pattern[at] == '*') ++at;
  return at == pattern.size();
}

Result<void> check_image(const ImagePolicy& policy, const Image& image, const std::string& name,
                         const std::string& role_arn) {
  if (image.kind == Image::Kind::oci && policy.oci_directories)
    TRY(check_directory(*policy.oci_directories, image));
  if (!policy.allow) return ok();
  const auto texts = texts_of(image);
  std::vector<std::string> allowed;
  for (const ImageRule& rule : *policy.allow) {
    if (!is_for(rule, role_arn)) continue;
    allowed.push_back(rule.pattern);
    const bool about = std::ranges::any_of(
        texts, [&](const std::string& text) { return matches_pattern(rule.pattern, text); });
    if (about && !leads_upwards(image.source)) return ok();
  }
  return denied("image '" + shorten(name, 200) + "' is not allowed for the role '" +
                shorten(role_arn, 200) + "': the server's config allows it " + listed(allowed));
}

}  // namespace trainyard::domain
