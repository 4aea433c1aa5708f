#include "file_systems/record.hpp"

#include "base/complete_record.hpp"

namespace trainyard::file_systems {
namespace {

constexpr auto kMark =
    complete(json_record<RequestMark>("request mark", [](auto& side, auto& mark) {
      side("token", mark.token);
      side("digest", mark.digest);
    }));

Result<void> check_file_system(const LustreFileSystem& each) {
  if (each.capacity_gib <= 0)
    return invalid("invalid capacity_gib " + std::to_string(each.capacity_gib) +
                   ": must be above 0");
  if (each.mount_name.empty()) return invalid("mount_name must not be empty");
  return {};
}

constexpr auto kDescribeFileSystem = [](auto& side, auto& each) {
  side("account", each.account);
  side("creator", each.creator);
  side("mark", each.mark, kMark);
  side("created", each.created);
  side("lifecycle", each.lifecycle, kLifecycles);
  side.if_set("failure", each.failure);
  side("capacity_gib", each.capacity_gib);
  side("deployment", each.deployment, kDeployments);
  side("storage_type", each.storage_type);
  side("mount_name", each.mount_name);
  side.if_set("type_version", each.type_version);
  side.if_set("throughput_per_tib", each.throughput_per_tib);
  side.if_set("import_path", each.import_path);
  side.if_set("export_path", each.export_path);
  side("chunk_mib", each.chunk_mib);
  side("auto_import", each.auto_import, kAutoImports);
  side("compression", each.compression);
  side.if_set("drive_cache", each.drive_cache);
  side.if_set("maintenance_time", each.maintenance_time);
  side("subnets", each.subnets);
  side.if_set("security_groups", each.security_groups);
  side.if_set("tags", each.tags);
};
constexpr auto kFileSystem =
    complete(json_record<LustreFileSystem>("file system", kDescribeFileSystem, check_file_system));

constexpr auto kAssociation =
    complete(json_record<Association>("association", [](auto& side, auto& each) {
      side("file_system", each.file_system);
      side("mark", each.mark, kMark);
      side("created", each.created);
      side("lifecycle", each.lifecycle, kLifecycles);
      side.if_set("failure", each.failure);
      side("path", each.path);
      side("repository", each.repository);
      side.if_set("import_on_create", each.import_on_create);
      side("chunk_mib", each.chunk_mib);
      side("auto_import", each.auto_import, kAutoImports);
      side.if_set("delete_files", each.delete_files);
      side.if_set("tags", each.tags);
    }));

constexpr auto kTask = complete(json_record<RepositoryTask>("task", [](auto& side, auto& each) {
  side("file_system", each.file_system);
  side("mark", each.mark, kMark);
  side("kind", each.kind, kTaskKinds);
  side("state", each.state, kTaskStates);
  side("created", each.created);
  side("updated", each.updated);
  side("started", each.started);
  side("ended", each.ended);
  side("paths", each.paths);
  side.if_set("report", each.report);
  side.if_set("failure", each.failure);
  side("total", each.total);
  side("succeeded", each.succeeded);
  side("failed", each.failed);
  side.if_set("tags", each.tags);
}));

template <class T, class Record>
Result<void> read_into(std::map<std::string, T>& all, const std::string& name, const Record& record,
                       const Json& document) {
  const size_t slash = name.find('/');
  if (slash == std::string::npos) return invalid("the name is not REGION/ID");
  T each = TRY(record.read(document));
  each.id = name.substr(slash + 1);
  all[name] = std::move(each);
  return {};
}

template <class T, class Record>
void compare(std::string_view kind, const std::map<std::string, T>& before,
             const std::map<std::string, T>& after, const Record& record,
             std::vector<domain::RecordWrite>& writes) {
  for (const auto& [name, each] : before)
    if (!after.contains(name)) writes.push_back({{std::string(kind), name}, std::nullopt});
  for (const auto& [name, each] : after) {
    const auto found = before.find(name);
    if (found == before.end() || found->second != each)
      writes.push_back({{std::string(kind), name}, record.write(each)});
  }
}

}  // namespace

std::string key_of(std::string_view region, std::string_view id) {
  return std::string(region).append("/").append(id);
}
std::string region_of(std::string_view key) { return std::string(key.substr(0, key.find('/'))); }

Result<void> add_record(Snapshot& snapshot, const domain::RecordKey& key, const Json& document) {
  const auto& [kind, name] = key;
  if (kind == kFileSystemRecord)
    return read_into(snapshot.file_systems, name, kFileSystem, document);
  if (kind == kAssociationRecord)
    return read_into(snapshot.associations, name, kAssociation, document);
  if (kind == kTaskRecord) return read_into(snapshot.tasks, name, kTask, document);
  return {};
}

std::vector<domain::RecordWrite> difference(const Snapshot& before, const Snapshot& after) {
  std::vector<domain::RecordWrite> writes;
  compare(kFileSystemRecord, before.file_systems, after.file_systems, kFileSystem, writes);
  compare(kAssociationRecord, before.associations, after.associations, kAssociation, writes);
  compare(kTaskRecord, before.tasks, after.tasks, kTask, writes);
  return writes;
}

}  // namespace trainyard::file_systems
