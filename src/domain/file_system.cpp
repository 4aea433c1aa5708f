#include "domain/file_system.hpp"

#include "base/text.hpp"

namespace trainyard::domain {
namespace {

std::string names_of(const FileSystems& file_systems) {
  if (file_systems.empty()) return "this server's config names none; add [file_systems.\"ID\"]";
  std::string names;
  for (const auto& [id, each] : file_systems) names += (names.empty() ? "there is " : ", ") + id;
  return names;
}

}  // namespace

Result<FileSystemSource> resolve_source(const FileSystems& file_systems, FileSystemSource asked) {
  const auto found = file_systems.find(asked.id);
  if (found == file_systems.end())
    return not_found("there is no file system " + shorten(asked.id, 60) + ": " + names_of(file_systems));
  const FileSystem& file_system = found->second;
  if (!file_system.type.empty() && file_system.type != asked.type)
    return invalid(asked.id + " is of type " + file_system.type + ", not " + asked.type);
  if (asked.writable && file_system.read_only)
    return invalid(asked.id + " is read-only here: use FileSystemAccessMode ro");
  if (!asked.path.starts_with('/'))
    return invalid("DirectoryPath '" + shorten(asked.path, 200) + "' must begin with /");
  std::string path;
  bool first = true;
  for (const auto part : split(asked.path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == ".." || part.find('\0') != std::string_view::npos)
      return invalid("DirectoryPath '" + shorten(asked.path, 200) + "' must not leave the file system");
    const bool is_mount_name = first && part == file_system.mount_name;
    first = false;
    if (is_mount_name) continue;
    if (!path.empty()) path += '/';
    path += part;
  }
  asked.path = std::move(path);
  return asked;
}

}  // namespace trainyard::domain
