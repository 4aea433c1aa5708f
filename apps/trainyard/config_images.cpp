#include "trainyard/config_images.hpp"

#include "base/text.hpp"
#include "os/files.hpp"
#include "trainyard/images.hpp"

namespace trainyard::apps {
namespace {

constexpr size_t kPasswordBytesMax = 64 << 10;  // tokens of some registries have several KiB

}  // namespace

Result<void> read_image(const std::string& name, Table table, std::map<std::string, domain::Image>& images) {
  domain::Image image;
  std::string runtime, source, python;
  TRY(table.read("runtime", runtime));
  TRY(table.read("image", source));
  TRY(table.read("python", python));
  TRY(table.read("mounts", image.mounts));
  TRY(table.read("entrypoint", image.entrypoint));
  TRY(table.read("environment", image.environment));
  TRY(table.nothing_else());
  if (runtime.empty() == source.empty())
    return invalid(
        "images.\"" + name +
        "\" needs either runtime = \"machine\" or image = \"oci:PATH:TAG\", \"containers-storage:NAME\" or "
        "\"HOST/NAME:TAG\"");
  if (!runtime.empty()) {
    if (runtime != "machine")
      return invalid(table.name("runtime") + " must be \"machine\", not \"" + runtime + "\"");
    if (!python.empty()) TRY(add_python(image, python).in(table.name("python")));
  } else {
    const auto named = TRY(domain::resolve_image({}, source).in(table.name("image")));
    image.kind = named.kind;
    image.source = named.source;
    for (const char* key : {"mounts", "python"})
      if (table.has(key)) return invalid(table.name(key) + " is for runtimes; an image brings its own files");
  }
  images[name] = image;
  return {};
}

Result<void> read_image_policy(Table table, domain::ImagePolicy& policy) {
  if (table.has("oci_directories")) {
    auto& directories = policy.oci_directories.emplace();
    TRY(table.read("oci_directories", directories));
    for (const auto& directory : directories)
      if (!directory.starts_with('/') || directory == "/" || directory.find("/..") != std::string::npos)
        return invalid(table.name("oci_directories") + ": \"" + directory +
                       "\" must be an absolute path, and not /");
  }
  TRY(table.each("allow", [&](Table one) -> Result<void> {
    domain::ImageRule rule;
    TRY(one.read("pattern", rule.pattern));
    TRY(one.read("roles", rule.roles));
    TRY(one.nothing_else());
    if (rule.pattern.empty())
      return invalid(one.name("pattern") + " is missing: an image's name, in which * stands for any text");
    if (!policy.allow) policy.allow.emplace();
    policy.allow->push_back(std::move(rule));
    return {};
  }));
  return table.nothing_else();
}

Result<void> read_registry(Table table, const std::string& directory,
                           std::vector<domain::RegistryLogin>& logins) {
  domain::RegistryLogin login;
  std::string password_file;
  TRY(table.read("host", login.host));
  TRY(table.read("username", login.username));
  TRY(table.read("password", login.password));
  TRY(table.read("password_file", password_file));
  TRY(table.read("users", login.users));
  TRY(table.read("roles", login.roles));
  TRY(table.nothing_else());
  if (login.host.empty() || login.host.find('/') != std::string::npos)
    return invalid(table.name("host") +
                   " must be a registry's name, as images name it: \"registry.lan:5000\"");
  if (login.username.empty() || login.username.find(':') != std::string::npos)
    return invalid(table.name("username") + " must be given, without a ':'");
  if (login.password.empty() == password_file.empty())
    return invalid(table.name("password") + " or password_file must be given, and not both");
  if (!password_file.empty()) {
    const std::string path = password_file.starts_with('/') ? password_file : directory + password_file;
    login.password = trim(TRY(os::read_file(path, kPasswordBytesMax).in(table.name("password_file"))));
    if (login.password.empty()) return invalid(table.name("password_file") + ": " + path + " is empty");
  }
  logins.push_back(std::move(login));
  return {};
}

}  // namespace trainyard::apps
