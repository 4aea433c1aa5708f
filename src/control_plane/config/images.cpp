#include "config/images.hpp"

#include <filesystem>

#include "base/log.hpp"
#include "base/text.hpp"
#include "config/password_file.hpp"
#include "domain/deprecated_images.hpp"
#include "os/files.hpp"

namespace trainyard::config {
namespace {

constexpr std::string_view kUsualPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

// Returns the system on which a Python environment is based, or "" if that is unknown, or below
// /usr, which every runtime has. The key "home" of pyvenv.cfg is the system's bin directory.
std::string base_system(const std::filesystem::path& environment) {
  auto config = os::read_file((environment / "pyvenv.cfg").string(), 1 << 16);
  if (!config) return "";
  for (const auto line : split(*config, '\n')) {
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos || trim(line.substr(0, equals)) != "home") continue;
    const std::filesystem::path base =
        std::filesystem::path(trim(line.substr(equals + 1))).parent_path();
    std::error_code error;
    const auto real = std::filesystem::canonical(base, error);
    if (error || real == real.root_path() || *std::next(real.begin()) == "usr") return "";
    return base.string();
  }
  return "";
}

// Adds a Python environment of this machine to a runtime: mounts its directory at the same path,
// and the system that it is based on unless that is below /usr. Its programs come first on PATH.
Result<void> add_python(domain::Image& runtime, const std::string& environment) {
  const std::filesystem::path path(environment);
  if (!path.is_absolute() || !os::exists(environment + "/bin/python3"))
    return invalid(
        format_text(environment) +
        " must be the absolute path of a Python environment, a directory with bin/python3");
  runtime.mounts[environment] = environment;
  if (const std::string base = base_system(path); !base.empty()) runtime.mounts[base] = base;
  const auto [at, made] = runtime.environment.try_emplace("PATH", kUsualPath);
  at->second = environment + "/bin:" + at->second;
  runtime.environment.try_emplace("VIRTUAL_ENV", environment);
  return {};
}

Result<void> read_image(const std::string& name, Table table,
                        std::map<std::string, domain::Image>& images) {
  domain::Image image;
  std::string runtime, source, python;
  TRY(table.read("runtime", runtime));
  TRY(table.read("image", source));
  TRY(table.read("python", python));
  TRY(table.read("mounts", image.mounts));
  TRY(table.read("entrypoint", image.entrypoint));
  TRY(table.read_secret("environment", image.environment));
  TRY(table.nothing_else());
  if (runtime.empty() == source.empty())
    return invalid("images." + format_text(name) +
                   " needs either runtime = \"machine\" or image = \"oci:PATH:TAG\", "
                   "\"containers-storage:NAME\" or \"HOST/NAME:TAG\", and not both");
  if (!runtime.empty()) {
    if (runtime != "machine") return table.refused("runtime", "\"machine\"");
    if (!python.empty()) TRY(add_python(image, python).in(table.name("python")));
  } else {
    const auto named = TRY(domain::resolve_image({}, source).in(table.name("image")));
    image.kind = named.kind;
    image.source = named.source;
    for (const char* key : {"mounts", "python"})
      if (table.has(key))
        return invalid(table.name(key) +
                       " is for runtimes: remove it, since an image brings its own files");
  }
  const std::string present(domain::current_image_name(name));
  if (name != present)
    log(Level::warning, "config", "a deprecated image name", {{"image", name}, {"use", present}});
  if (!images.emplace(present, image).second)
    return invalid("images." + format_text(name) + " is given twice, also by its current name " +
                   format_text(present) + ": keep one");
  return {};
}

Result<void> read_image_policy(Table table, domain::ImagePolicy& policy) {
  std::vector<std::string> directories;
  TRY(table.read("oci_directories", directories));
  if (table.has("oci_directories")) {
    for (const auto& directory : directories)
      if (!directory.starts_with('/') || directory == "/" ||
          directory.find("/..") != std::string::npos)
        return table.refused_element("oci_directories", directory, "an absolute path, and not /");
    policy.oci_directories = std::move(directories);
  }
  TRY(table.each("allow", [&](Table one) -> Result<void> {
    domain::ImageRule rule;
    TRY(one.read("pattern", rule.pattern));
    TRY(one.read("roles", rule.roles));
    TRY(one.nothing_else());
    if (rule.pattern.empty())
      return one.refused("pattern", "an image's name, in which * stands for any text");
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
  TRY(table.read_secret("password", login.password));
  TRY(table.read("password_file", password_file));
  TRY(table.read("users", login.users));
  TRY(table.read("roles", login.roles));
  TRY(table.nothing_else());
  if (login.host.empty() || login.host.find('/') != std::string::npos)
    return table.refused("host", "a registry's name, as images name it: \"registry.lan:5000\"");
  if (login.username.empty() || login.username.find(':') != std::string::npos)
    return table.refused("username", "a name without a ':'");
  if (login.password.empty() == password_file.empty())
    return invalid(table.name("password") + " or password_file must be given, and not both");
  if (!password_file.empty())
    login.password = TRY(read_password_file(table, directory, password_file));
  logins.push_back(std::move(login));
  return {};
}

}  // namespace

Result<void> read_images(Table& root, const std::string& directory, Config& config) {
  TRY(root.each_named("images", [&](const std::string& name, Table table) {
    return read_image(name, table, config.images);
  }));
  TRY(root.each("image_policy",
                [&](Table table) { return read_image_policy(table, config.image_policy); }));
  return root.each("registry", [&](Table table) {
    return read_registry(table, directory, config.registry_logins);
  });
}

}  // namespace trainyard::config
