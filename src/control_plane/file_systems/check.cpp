#include "file_systems/check.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace trainyard::file_systems {
namespace {

// The valid capacities of a deployment: a few small ones, and then multiples of `step`.
struct Sizes {
  std::vector<int64_t> small;
  int64_t step;
};

Sizes sizes_of(const LustreFileSystem& requested) {
  if (requested.storage_type == "HDD")
    return requested.throughput_per_tib == 12 ? Sizes{{}, 6000} : Sizes{{}, 1800};
  if (requested.deployment == Deployment::scratch_1) return {{1200, 2400}, 3600};
  return {{1200}, 2400};
}

std::string text_of(const Sizes& sizes) {
  std::string text;
  for (const int64_t each : sizes.small) text += std::to_string(each) + " or ";
  return text + "a multiple of " + std::to_string(sizes.step);
}

bool is_persistent(Deployment deployment) {
  return deployment == Deployment::persistent_1 || deployment == Deployment::persistent_2;
}

Result<void> check_throughput(const LustreFileSystem& requested) {
  const int64_t rate = requested.throughput_per_tib;
  if (!is_persistent(requested.deployment)) {
    if (rate == 0) return {};
    return invalid(
        "PerUnitStorageThroughput is only supported for the PERSISTENT_1 and PERSISTENT_2 "
        "deployment types",
        Fault::incompatible_parameter);
  }
  std::vector<int64_t> allowed{50, 100, 200};
  if (requested.deployment == Deployment::persistent_2) allowed = {125, 250, 500, 1000};
  if (requested.storage_type == "HDD") allowed = {12, 40};
  if (std::ranges::find(allowed, rate) != allowed.end()) return {};
  std::string texts;
  for (const int64_t each : allowed) texts += (texts.empty() ? "" : ", ") + std::to_string(each);
  return invalid("Invalid PerUnitStorageThroughput " + std::to_string(rate) + " for " +
                     std::string(kDeployments.text(requested.deployment)) + " file systems with " +
                     requested.storage_type + " storage. Valid values are " + texts + ".",
                 Fault::invalid_throughput);
}

Error missing(const std::string& what, const std::string& id, Fault fault) {
  return not_found(what + " '" + shorten(id, 60) + "' does not exist.", fault);
}

}  // namespace

Result<void> check_size(const LustreFileSystem& requested) {
  const bool hdd = requested.storage_type == "HDD";
  if (requested.storage_type != "SSD" && !hdd)
    return invalid("StorageType " + requested.storage_type + " is not offered by this server",
                   Fault::unsupported);
  if (hdd && requested.deployment != Deployment::persistent_1)
    return invalid("StorageType HDD is only supported for the PERSISTENT_1 deployment type",
                   Fault::incompatible_parameter);
  if (hdd == requested.drive_cache.empty())
    return invalid(hdd ? "DriveCacheType is required when StorageType is HDD"
                       : "DriveCacheType is only supported when StorageType is HDD",
                   Fault::incompatible_parameter);
  TRY(check_throughput(requested));
  const Sizes sizes = sizes_of(requested);
  const int64_t gib = requested.capacity_gib;
  const bool fits =
      gib > 0 && gib <= kCapacityGibMax &&
      (gib % sizes.step == 0 || std::ranges::find(sizes.small, gib) != sizes.small.end());
  if (fits) return {};
  return invalid("Invalid Lustre FS storage capacity: " + std::to_string(gib) + ". Must be " +
                     text_of(sizes) + ".",
                 Fault::bad_request);
}

Result<std::string> check_paths(const LustreFileSystem& requested) {
  if (requested.import_path.empty()) {
    if (!requested.export_path.empty())
      return invalid("ExportPath requires an ImportPath", Fault::incompatible_parameter);
    if (requested.auto_import != AutoImport::none)
      return invalid("AutoImportPolicy requires an ImportPath", Fault::incompatible_parameter);
    return std::string();
  }
  if (requested.deployment == Deployment::persistent_2)
    return invalid(
        "ImportPath is not supported for PERSISTENT_2 file systems: create a data repository "
        "association instead",
        Fault::incompatible_parameter);
  const auto from = parse_repository(requested.import_path);
  if (!from)
    return invalid(
        "The path provided for data repository import isn't valid: " + from.error().message,
        Fault::invalid_import_path);
  if (requested.export_path.empty())
    return "s3://" + from->bucket + "/FSxLustre" + to_basic_iso8601(requested.created);
  const auto to = parse_repository(requested.export_path);
  if (!to || to->bucket != from->bucket)
    return invalid("The path provided for data repository export isn't valid: " +
                       (to ? "it must be in the bucket of ImportPath" : to.error().message),
                   Fault::invalid_export_path);
  return requested.export_path;
}

Result<void> check_growth(const LustreFileSystem& present, int64_t gib) {
  if (present.deployment == Deployment::scratch_1)
    return invalid("StorageCapacity cannot be updated for SCRATCH_1 file systems",
                   Fault::unsupported);
  if (gib <= present.capacity_gib)
    return invalid("StorageCapacity must be greater than the current capacity of " +
                       std::to_string(present.capacity_gib) + " GiB",
                   Fault::bad_request);
  LustreFileSystem requested = present;
  requested.capacity_gib = gib;
  return check_size(requested);
}

Result<objects::Location> parse_repository(std::string_view path) {
  if (!path.starts_with("s3://")) return invalid("it must begin with s3://", Fault::bad_request);
  std::string_view rest = path.substr(5);
  objects::Location location;
  location.bucket = std::string(rest.substr(0, rest.find('/')));
  if (location.bucket.empty()) return invalid("the bucket is missing", Fault::bad_request);
  rest.remove_prefix(std::min(rest.size(), location.bucket.size() + 1));
  location.key = std::string(rest);
  if (location.key.size() > objects::kKeyBytesMax || location.key.find('\0') != std::string::npos)
    return invalid("its prefix is not a valid key of S3", Fault::bad_request);
  if (!location.key.empty() && !location.key.ends_with('/')) location.key += '/';
  return location;
}

Result<std::string> parse_directory(std::string_view path) {
  std::string directory;
  for (const auto part : split(path, '/')) {
    if (part.empty()) continue;
    if (part == "." || part == ".." || part.find('\0') != std::string_view::npos)
      return invalid("The path '" + shorten(path, 200) + "' is not valid: it must not contain '" +
                         (part.find('\0') != part.npos ? std::string("\\0") : std::string(part)) +
                         "'",
                     Fault::bad_request);
    if (!directory.empty()) directory += '/';
    directory += part;
  }
  return directory;
}

bool contains(std::string_view directory, std::string_view path) {
  return directory.empty() || path == directory ||
         (path.starts_with(directory) && path.substr(directory.size()).starts_with('/'));
}
bool overlap(std::string_view a, std::string_view b) { return contains(a, b) || contains(b, a); }

Result<const LustreFileSystem*> find_file_system(const Snapshot& snapshot,
                                                 const std::string& region, const std::string& id) {
  const auto found = snapshot.file_systems.find(key_of(region, id));
  if (found == snapshot.file_systems.end())
    return missing("File system", id, Fault::file_system_missing);
  return &found->second;
}

Result<void> check_association(const Snapshot& snapshot, const std::string& region,
                               const Association& requested) {
  const auto* owner = TRY(find_file_system(snapshot, region, requested.file_system));
  if (owner->lifecycle != Lifecycle::available)
    return invalid("File system " + owner->id + " is not in the AVAILABLE lifecycle state",
                   Fault::bad_request);
  if (owner->deployment == Deployment::scratch_1)
    return invalid("Data repository associations are not supported for SCRATCH_1 file systems",
                   Fault::unsupported);
  if (!owner->import_path.empty())
    return invalid(
        "Data repository associations are not supported for file systems that were created with "
        "an ImportPath",
        Fault::unsupported);
  size_t count = 0;
  const auto repository = TRY(parse_repository(requested.repository));
  for (const auto& [key, each] : snapshot.associations) {
    if (each.file_system != owner->id || region_of(key) != region) continue;
    ++count;
    if (overlap(each.path, requested.path))
      return invalid(
          "FileSystemPath /" + requested.path + " overlaps with the FileSystemPath of " + each.id,
          Fault::bad_request);
    const auto other = parse_repository(each.repository);
    if (other && other->bucket == repository.bucket &&
        (other->key.starts_with(repository.key) || repository.key.starts_with(other->key)))
      return invalid("DataRepositoryPath " + requested.repository +
                         " overlaps with the DataRepositoryPath of " + each.id,
                     Fault::bad_request);
  }
  if (count < kAssociationsOfFileSystemMax) return {};
  return exhausted("A file system can have at most 8 data repository associations",
                   Fault::limit_exceeded);
}

Result<void> check_task(const Snapshot& snapshot, const std::string& region,
                        const RepositoryTask& requested) {
  const auto* owner = TRY(find_file_system(snapshot, region, requested.file_system));
  if (owner->lifecycle != Lifecycle::available)
    return invalid("File system " + owner->id + " is not in the AVAILABLE lifecycle state",
                   Fault::bad_request);
  const auto links = links_of(snapshot, key_of(region, owner->id), requested.kind);
  if (links.empty())
    return invalid("File system " + owner->id + " is not linked to a data repository",
                   Fault::bad_request);
  for (const auto& path : requested.paths)
    if (std::ranges::none_of(links, [&](const Link& link) { return overlap(link.path, path); }))
      return invalid("The path /" + shorten(path, 200) + " is not linked to a data repository",
                     Fault::bad_request);
  if (requested.paths.size() > kTaskPathsMax)
    return invalid("A task has at most " + std::to_string(kTaskPathsMax) + " paths",
                   Fault::bad_request);
  if (!requested.report.empty()) TRY(parse_repository(requested.report));
  for (const auto& [key, each] : snapshot.tasks)
    if (each.file_system == owner->id && region_of(key) == region && !is_over(each.state))
      return conflict(
          "An existing data repository task is currently executing on the file system. Wait until "
          "the existing task has completed, then create the new task.",
          Fault::task_executing);
  return {};
}

Result<void> check_deletion(const Snapshot& snapshot, const std::string& region,
                            const std::string& id, size_t jobs) {
  const auto* present = TRY(find_file_system(snapshot, region, id));
  if (present->lifecycle == Lifecycle::deleting) return {};
  for (const auto& [key, each] : snapshot.tasks)
    if (each.file_system == id && region_of(key) == region && !is_over(each.state))
      return conflict("The file system cannot be deleted while its data repository task " +
                          each.id + " is not over: cancel the task first",
                      Fault::bad_request);
  if (jobs == 0) return {};
  return conflict("The file system is in use by " + std::to_string(jobs) +
                      (jobs == 1 ? " job that waits or runs" : " jobs that wait or run") +
                      ": stop them first, or delete it after they have ended",
                  Fault::bad_request);
}

void drop_old_tasks(Snapshot& snapshot, const std::string& region) {
  std::vector<std::pair<Instant, std::string>> over;
  size_t count = 0;
  for (const auto& [key, each] : snapshot.tasks) {
    if (region_of(key) != region) continue;
    ++count;
    if (is_over(each.state)) over.emplace_back(each.created, key);
  }
  std::ranges::sort(over);
  for (size_t i = 0; i < over.size() && count > kTasksKeptMax; ++i, --count)
    snapshot.tasks.erase(over[i].second);
}

std::vector<Link> links_of(const Snapshot& snapshot, const std::string& file_system_key,
                           TaskKind kind) {
  std::vector<Link> links;
  const auto owner = snapshot.file_systems.find(file_system_key);
  if (owner == snapshot.file_systems.end()) return links;
  const LustreFileSystem& each = owner->second;
  const std::string& own = kind == TaskKind::import_files ? each.import_path : each.export_path;
  if (!own.empty())
    if (auto location = parse_repository(own)) links.push_back({"", *std::move(location)});
  for (const auto& [key, association] : snapshot.associations) {
    if (association.file_system != each.id || region_of(key) != region_of(file_system_key) ||
        association.lifecycle != Lifecycle::available)
      continue;
    if (auto location = parse_repository(association.repository))
      links.push_back({association.path, *std::move(location)});
  }
  std::ranges::sort(links, [](const Link& a, const Link& b) {
    return std::pair(b.path.size(), a.path) < std::pair(a.path.size(), b.path);
  });
  return links;
}

}  // namespace trainyard::file_systems
