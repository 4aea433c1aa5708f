#include "domain/file_system.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "domain/role.hpp"

namespace trainyard::domain {
namespace {

std::string names_of(const FileSystems& file_systems) {
  if (file_systems.empty())
    return "the server's configuration has none; add a table [file_systems.\"ID\"], or create one "
           "(aws fsx create-file-system)";
  std::string names;
  for (const auto& [id, each] : file_systems) names += (names.empty() ? "use one of " : ", ") + id;
  return names;
}

}  // namespace

Result<FileSystemSource> resolve_source(const FileSystems& file_systems,
                                        FileSystemSource requested) {
  const auto found = file_systems.find(requested.id);
  if (found == file_systems.end())
    return not_found("unknown file system " + shorten(requested.id, 60) + ": " +
                     names_of(file_systems));
  const FileSystem& file_system = found->second;
  if (!file_system.not_available.empty())
    return invalid("file system " + requested.id + " is " + file_system.not_available +
                   ": a job can use it once it is available");
  if (!file_system.type.empty() && file_system.type != requested.type)
    return invalid(requested.id + " is of type " + file_system.type + ", not " + requested.type);
  if (requested.writable && file_system.read_only)
    return invalid(requested.id + " is read-only here: use FileSystemAccessMode ro");
  if (!requested.path.starts_with('/'))
    return invalid("DirectoryPath '" + shorten(requested.path, 200) + "' must start with /");
  std::string path;
  bool first = true;
  for (const auto part : split(requested.path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == ".." || part.find('\0') != std::string_view::npos)
      return invalid("DirectoryPath '" + shorten(requested.path, 200) +
                     "' must not contain '..' or a zero byte");
    const bool is_mount_name = first && part == file_system.mount_name;
    first = false;
    if (is_mount_name) continue;
    if (!path.empty()) path += '/';
    path += part;
  }
  requested.path = std::move(path);
  return requested;
}

bool may_use(const FileSystem& file_system, const Requester& requester) {
  if (file_system.users.empty() && file_system.roles.empty()) return true;
  const auto& users = file_system.users;
  if (!requester.user.empty() &&
      std::find(users.begin(), users.end(), requester.user) != users.end())
    return true;
  return std::any_of(requester.roles.begin(), requester.roles.end(), [&](const std::string& arn) {
    return any_names_role(file_system.roles, arn);
  });
}

Result<void> check_shared_directories(const FileSystems& file_systems, const FileSystems& volumes,
                                      const JobSpec& spec, const Requester& requester) {
  const auto check = [&](const FileSystems& known, const std::string& name) -> Result<void> {
    const auto found = known.find(name);
    if (found == known.end() || may_use(found->second, requester)) return {};
    const std::string user = requester.user.empty() ? "this role" : "user " + requester.user;
    return denied(user + " may not use " + name +
                  ": its table in the config lists neither this user nor the job's role");
  };
  for (const auto& channel : spec.channels)
    if (channel.file_system) TRY(check(file_systems, channel.file_system->id));
  for (const auto& group : spec.groups)
    for (const auto& volume : group.container_options.volumes) {
      if (volume.kind == VolumeKind::shared)
        TRY(check(volume.name.starts_with('/') ? volumes : file_systems, volume.name));
    }
  return {};
}

Result<PosixUser> parse_posix_user(std::string_view text) {
  const size_t colon = text.find(':');
  const auto number = [](std::string_view digits) -> Result<uint32_t> {
    const int64_t value = TRY(parse_int(digits));
    if (value < 1 || value >= int64_t(UINT32_MAX))
      return invalid("invalid user or group '" + shorten(digits, 40) +
                     "': must be from 1 to 4294967294");
    return uint32_t(value);
  };
  if (colon != std::string_view::npos) {
    const auto user = number(text.substr(0, colon)), group = number(text.substr(colon + 1));
    if (user && group) return PosixUser{*user, *group};
  }
  return invalid(
      "'" + shorten(text, 60) +
      "' must be \"UID:GID\", both above 0: jobs never access shared directories as root");
}

PosixUser posix_user_of(const PosixUsers& users, const std::string& name) {
  auto found = users.find(name);
  if (found == users.end()) found = users.find("*");
  return found == users.end() ? PosixUser{} : found->second;
}

}  // namespace trainyard::domain
