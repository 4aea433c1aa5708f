#include "operations/fsx_tags.hpp"

#include "base/text.hpp"

namespace trainyard::api {
namespace {

template <class T>
auto* tags_in(T& all, std::string_view region, std::string_view id) {
  const auto found = all.find(file_systems::key_of(region, id));
  return found == all.end() ? nullptr : &found->second.tags;
}

// `Snapshot` is const or not, and so are the tags.
template <class Snapshot>
auto find_tags(Snapshot& snapshot, const std::string& account, const std::string& arn)
    -> decltype(&snapshot.file_systems.begin()->second.tags) {
  const auto parts = split(arn, ':');
  if (parts.size() != 6 || parts[0] != "arn" || parts[2] != "fsx" || parts[4] != account)
    return nullptr;
  const auto names = split(parts[5], '/');
  if (names.size() == 2 && names[0] == "file-system")
    return tags_in(snapshot.file_systems, parts[3], names[1]);
  if (names.size() == 2 && names[0] == "task") return tags_in(snapshot.tasks, parts[3], names[1]);
  if (names.size() != 3 || names[0] != "association") return nullptr;
  const auto found = snapshot.associations.find(file_systems::key_of(parts[3], names[2]));
  if (found == snapshot.associations.end()) return nullptr;
  // Policies may name any file system of an association by "*".
  const bool owned = names[1] == "*" || found->second.file_system == names[1];
  return owned ? &found->second.tags : nullptr;
}

}  // namespace

std::string fsx_arn(const std::string& region, const std::string& account,
                    const std::string& resource) {
  return "arn:aws:fsx:" + region + ":" + account + ":" + resource;
}

const file_systems::Tags* fsx_tags(const file_systems::Snapshot& snapshot,
                                   const std::string& account, const std::string& arn) {
  return find_tags(snapshot, account, arn);
}
file_systems::Tags* fsx_tags(file_systems::Snapshot& snapshot, const std::string& account,
                             const std::string& arn) {
  return find_tags(snapshot, account, arn);
}

}  // namespace trainyard::api
