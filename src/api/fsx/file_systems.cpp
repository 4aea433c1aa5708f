// Implements the operations on file systems.
#include <algorithm>

#include "fsx/common.hpp"
#include "operations/fsx_tags.hpp"

namespace trainyard::api::fsx {
namespace {

using file_systems::Deployment;
using file_systems::Lifecycle;
using file_systems::LustreFileSystem;

constexpr size_t kIdBytes = 8;  // random, after the "0" with which AWS's ids begin
constexpr const char* kDefaultMaintenance = "1:05:00";

// -- descriptions

// Describes the progress of the first import, for which AWS has no member.
std::vector<aws::AdministrativeAction> shown_actions(const LustreFileSystem& each,
                                                     const file_systems::Progress& progress) {
  aws::AdministrativeAction action;
  action.administrative_action_type = "DOWNLOAD_DATA_FROM_BACKUP";
  action.request_time = each.created;
  action.status = "IN_PROGRESS";
  const uint64_t total = progress.bytes, done = std::min<uint64_t>(progress.bytes_done, total);
  action.progress_percent = total == 0 ? 0 : int64_t(double(done) / double(total) * 100);
  action.total_transfer_bytes = int64_t(std::min<uint64_t>(total, INT64_MAX));
  action.remaining_transfer_bytes = int64_t(std::min<uint64_t>(total - done, INT64_MAX));
  action.message = "importing objects: " + std::to_string(progress.files_done) + " of " +
                   std::to_string(progress.files) + " files";
  return {action};
}

aws::DataRepositoryConfiguration shown_repository(const LustreFileSystem& each) {
  aws::DataRepositoryConfiguration out;
  out.lifecycle = lifecycle_text(each.lifecycle);
  out.import_path = each.import_path;
  if (!each.export_path.empty()) out.export_path = each.export_path;
  out.imported_file_chunk_size = each.chunk_mib;
  out.auto_import_policy = text_of(each.auto_import);
  // Describes the objects that the import of an available file system left out.
  if (!each.failure.empty()) out.failure_details = {.message = each.failure};
  return out;
}

aws::FileSystem to_shape(const Services& services, const std::string& key,
                         const LustreFileSystem& each) {
  const std::string region = file_systems::region_of(key);
  aws::FileSystem out;
  out.owner_id = each.account;
  out.creation_time = each.created;
  out.file_system_id = each.id;
  out.file_system_type = "LUSTRE";
  out.lifecycle = lifecycle_text(each.lifecycle);
  if (each.lifecycle == Lifecycle::failed) out.failure_details = {.message = each.failure};
  out.storage_capacity = each.capacity_gib;
  out.storage_type = each.storage_type;
  out.subnet_ids = each.subnets;
  out.network_interface_ids.emplace();
  out.dns_name = each.id + ".fsx." + region + ".amazonaws.com";
  out.resource_arn = fsx_arn(region, each.account, "file-system/" + each.id);
  out.tags = shown_tags<aws::Tag>(each.tags);
  if (!each.type_version.empty()) out.file_system_type_version = each.type_version;
  aws::LustreFileSystemConfiguration& lustre = out.lustre_configuration.emplace();
  lustre.weekly_maintenance_start_time = each.maintenance_time;
  lustre.deployment_type = file_systems::kDeployments.text(each.deployment);
  if (each.throughput_per_tib > 0) lustre.per_unit_storage_throughput = each.throughput_per_tib;
  lustre.mount_name = each.mount_name;
  lustre.copy_tags_to_backups = false;
  if (!each.drive_cache.empty()) lustre.drive_cache_type = each.drive_cache;
  lustre.data_compression_type = each.compression;
  if (!each.import_path.empty()) lustre.data_repository_configuration = shown_repository(each);
  if (each.lifecycle == Lifecycle::creating)
    if (const auto progress = services.file_systems->progress(key); progress)
      out.administrative_actions = shown_actions(each, *progress);
  return out;
}

// -- creating

Outcome<Done> check_lustre_offered(const aws::CreateFileSystemLustreConfiguration& lustre) {
  if (lustre.automatic_backup_retention_days.value_or(0) > 0 ||
      lustre.daily_automatic_backup_start_time || lustre.copy_tags_to_backups.value_or(false))
    return unsupported_member("A backup", "export files to S3 instead");
  if (lustre.efa_enabled.value_or(false)) return unsupported_member("EfaEnabled");
  if (lustre.log_configuration && lustre.log_configuration->level.value_or("") != "DISABLED")
    return unsupported_member("LogConfiguration");
  if (lustre.root_squash_configuration)
    return unsupported_member("RootSquashConfiguration",
                              "jobs are never root here; [posix_users] of the config maps them");
  if (lustre.metadata_configuration) return unsupported_member("MetadataConfiguration");
  if (lustre.throughput_capacity) return unsupported_member("ThroughputCapacity");
  if (lustre.data_read_cache_configuration) return unsupported_member("DataReadCacheConfiguration");
  return Done{};
}

Outcome<Done> check_offered(const aws::CreateFileSystemRequest& in) {
  if (*in.file_system_type != "LUSTRE")
    return unsupported_member("FileSystemType " + *in.file_system_type, "use LUSTRE");
  if (in.windows_configuration || in.ontap_configuration || in.open_zfs_configuration)
    return fsx_failure("IncompatibleParameterError",
                       "A LUSTRE file system has a LustreConfiguration only");
  if (in.kms_key_id) return unsupported_member("KmsKeyId", "encrypt the disk of the server");
  if (in.network_type.value_or("IPV4") != "IPV4") return unsupported_member("NetworkType DUAL");
  if (in.subnet_ids->size() != 1)
    return bad_request("A LUSTRE file system is in exactly one subnet");
  if (!in.storage_capacity) return bad_request("StorageCapacity is required");
  if (in.lustre_configuration) TRY(check_lustre_offered(*in.lustre_configuration));
  return Done{};
}

Outcome<LustreFileSystem> file_system_of(const Services& services, const Context& context,
                                         const aws::CreateFileSystemRequest& in) {
  TRY(check_offered(in));
  const auto lustre = in.lustre_configuration.value_or(aws::CreateFileSystemLustreConfiguration());
  LustreFileSystem out;
  out.id = "fs-0" + services.random.hex(kIdBytes);
  out.account = context.principal.account;
  out.creator = context.principal.name;
  out.mark = mark_of<aws::CreateFileSystem>(in);
  out.created = context.now;
  out.capacity_gib = *in.storage_capacity;
  out.storage_type = in.storage_type.value_or("SSD");
  out.type_version = in.file_system_type_version.value_or("");
  out.deployment = TRY(file_systems::kDeployments.parse(lustre.deployment_type.value_or(
      std::string(file_systems::kDeployments.text(Deployment::scratch_1)))));
  out.throughput_per_tib = lustre.per_unit_storage_throughput.value_or(0);
  out.mount_name = out.deployment == Deployment::scratch_1 ? "fsx" : services.random.hex(4);
  out.import_path = lustre.import_path.value_or("");
  out.export_path = lustre.export_path.value_or("");
  if (lustre.imported_file_chunk_size && out.import_path.empty())
    return fsx_failure("IncompatibleParameterError",
                       "ImportedFileChunkSize requires an ImportPath");
  out.chunk_mib = lustre.imported_file_chunk_size.value_or(out.chunk_mib);
  out.auto_import = TRY(auto_import_of(lustre.auto_import_policy.value_or("NONE")));
  out.compression = lustre.data_compression_type.value_or("NONE");
  out.drive_cache = lustre.drive_cache_type.value_or("");
  out.maintenance_time = lustre.weekly_maintenance_start_time.value_or(kDefaultMaintenance);
  out.subnets = *in.subnet_ids;
  out.security_groups = in.security_group_ids.value_or(std::vector<std::string>());
  out.tags = TRY(tags_of(in.tags));
  TRY(with_fsx_failure(file_systems::check_size(out)));
  out.export_path = TRY(with_fsx_failure(file_systems::check_paths(out)));
  return out;
}

Outcome<aws::CreateFileSystemResponse> create(const Settings& settings, const Services& services,
                                              const Context& context,
                                              const aws::CreateFileSystemRequest& in) {
  auto* all = TRY(file_systems_of(services));
  if (const auto space = settings.check_disk_space(); !space)
    return fsx_failure("ServiceLimitExceeded", space.error().message);
  const LustreFileSystem requested = TRY(file_system_of(services, context, in));
  if (!requested.import_path.empty())
    TRY(check_bucket(services, requested.import_path, "InvalidImportPath",
                     "The path provided for data repository import isn't valid"));
  std::string key = file_systems::key_of(context.region, requested.id);
  std::optional<Failure> failure;
  TRY(all->change([&](Snapshot& next) -> Result<void> {
    failure.reset();
    auto before = find_earlier_request(next.file_systems, context.region, requested.mark);
    if (!before) {
      failure = before.failure(aws::kService);
      return {};
    }
    if (!before->empty()) {
      key = *before;
      return {};
    }
    const auto count = std::ranges::count_if(next.file_systems, [&](const auto& each) {
      return file_systems::region_of(each.first) == context.region;
    });
    if (size_t(count) >= file_systems::kFileSystemsMax)
      failure =
          fsx_failure("ServiceLimitExceeded", "You have reached the limit of " +
                                                  std::to_string(file_systems::kFileSystemsMax) +
                                                  " file systems in a Region");
    else
      next.file_systems[key] = requested;
    return {};
  }));
  if (failure) return *failure;
  const auto present = all->snapshot();
  const auto made = present->file_systems.find(key);
  aws::CreateFileSystemResponse out;
  out.file_system =
      to_shape(services, key, made == present->file_systems.end() ? requested : made->second);
  return out;
}

// -- other operations

Outcome<aws::DescribeFileSystemsResponse> describe(const Services& services, const Context& context,
                                                   const aws::DescribeFileSystemsRequest& in) {
  const auto* all = TRY(file_systems_of(services));
  const auto present = all->snapshot();
  const auto ids = in.file_system_ids.value_or(std::vector<std::string>());
  for (const std::string& id : ids)
    TRY(with_fsx_failure(file_systems::find_file_system(*present, context.region, id)));
  aws::DescribeFileSystemsResponse out;
  out.file_systems = TRY(page_of(
      present->file_systems, context.region, in.max_results, in.next_token, out.next_token,
      [&](const LustreFileSystem& each) {
        return ids.empty() || std::ranges::find(ids, each.id) != ids.end();
      },
      [&](const std::string& key, const LustreFileSystem& each) {
        return to_shape(services, key, each);
      }));
  return out;
}

Outcome<Done> check_update_offered(const aws::UpdateFileSystemRequest& in) {
  if (in.windows_configuration || in.ontap_configuration || in.open_zfs_configuration)
    return fsx_failure("IncompatibleParameterError",
                       "A LUSTRE file system has a LustreConfiguration only");
  if (in.storage_type) return unsupported_member("An update of StorageType");
  if (in.file_system_type_version) return unsupported_member("An update of FileSystemTypeVersion");
  if (in.network_type) return unsupported_member("An update of NetworkType");
  if (!in.lustre_configuration) return Done{};
  const auto& lustre = *in.lustre_configuration;
  if (lustre.automatic_backup_retention_days.value_or(0) > 0 ||
      lustre.daily_automatic_backup_start_time)
    return unsupported_member("A backup", "export files to S3 instead");
  if (lustre.log_configuration) return unsupported_member("LogConfiguration");
  if (lustre.root_squash_configuration) return unsupported_member("RootSquashConfiguration");
  if (lustre.metadata_configuration) return unsupported_member("MetadataConfiguration");
  if (lustre.throughput_capacity) return unsupported_member("ThroughputCapacity");
  if (lustre.data_read_cache_configuration) return unsupported_member("DataReadCacheConfiguration");
  return Done{};
}

Outcome<LustreFileSystem> updated(LustreFileSystem each, const aws::UpdateFileSystemRequest& in) {
  if (each.lifecycle != Lifecycle::available)
    return bad_request("File system " + each.id + " is not in the AVAILABLE lifecycle state");
  if (in.storage_capacity) {
    TRY(with_fsx_failure(file_systems::check_growth(each, *in.storage_capacity)));
    each.capacity_gib = *in.storage_capacity;
  }
  if (!in.lustre_configuration) return each;
  const auto& lustre = *in.lustre_configuration;
  if (lustre.weekly_maintenance_start_time)
    each.maintenance_time = *lustre.weekly_maintenance_start_time;
  if (lustre.data_compression_type) each.compression = *lustre.data_compression_type;
  if (lustre.per_unit_storage_throughput) {
    each.throughput_per_tib = *lustre.per_unit_storage_throughput;
    TRY(with_fsx_failure(file_systems::check_size(each)));
  }
  if (lustre.auto_import_policy) {
    each.auto_import = TRY(auto_import_of(*lustre.auto_import_policy));
    TRY(with_fsx_failure(file_systems::check_paths(each)));
  }
  return each;
}

Outcome<aws::UpdateFileSystemResponse> update(const Services& services, const Context& context,
                                              const aws::UpdateFileSystemRequest& in) {
  auto* all = TRY(file_systems_of(services));
  TRY(check_update_offered(in));
  const std::string key = file_systems::key_of(context.region, *in.file_system_id);
  std::optional<Failure> failure;
  LustreFileSystem after;
  TRY(with_fsx_failure(all->change([&](Snapshot& next) -> Result<void> {
    failure.reset();
    TRY(file_systems::find_file_system(next, context.region, *in.file_system_id));
    auto changed = updated(next.file_systems[key], in);
    if (!changed) {
      failure = changed.failure(aws::kService);
      return {};
    }
    next.file_systems[key] = after = *std::move(changed);
    return {};
  })));
  if (failure) return *failure;
  aws::UpdateFileSystemResponse out;
  out.file_system = to_shape(services, key, after);
  return out;
}

Outcome<aws::DeleteFileSystemResponse> remove(const Services& services, const Context& context,
                                              const aws::DeleteFileSystemRequest& in) {
  auto* all = TRY(file_systems_of(services));
  if (in.windows_configuration || in.open_zfs_configuration)
    return fsx_failure("IncompatibleParameterError",
                       "A LUSTRE file system has a LustreConfiguration only");
  if (in.lustre_configuration && (!in.lustre_configuration->skip_final_backup.value_or(true) ||
                                  in.lustre_configuration->final_backup_tags))
    return unsupported_member("A final backup",
                              "export files to S3 first, and use SkipFinalBackup");
  const std::string key = file_systems::key_of(context.region, *in.file_system_id);
  TRY(with_fsx_failure(all->change([&](Snapshot& next) -> Result<void> {
    // Counted again by each attempt to commit, since a job may be created meanwhile.
    const size_t jobs = all->jobs_on(key).unfinished;
    TRY(file_systems::check_deletion(next, context.region, *in.file_system_id, jobs));
    next.file_systems[key].lifecycle = Lifecycle::deleting;
    return {};
  })));
  aws::DeleteFileSystemResponse out;
  out.file_system_id = *in.file_system_id;
  out.lifecycle = lifecycle_text(Lifecycle::deleting);
  return out;
}

}  // namespace

void add_file_systems(OperationTable& table, const Settings& settings, const Services& services) {
  table.add<aws::CreateFileSystem>(
      [&](const Context& context, const aws::CreateFileSystemRequest& in) {
        return create(settings, services, context, in);
      });
  table.add<aws::DescribeFileSystems>(
      [&](const Context& context, const aws::DescribeFileSystemsRequest& in) {
        return describe(services, context, in);
      });
  table.add<aws::UpdateFileSystem>(
      [&](const Context& context, const aws::UpdateFileSystemRequest& in) {
        return update(services, context, in);
      });
  table.add<aws::DeleteFileSystem>(
      [&](const Context& context, const aws::DeleteFileSystemRequest& in) {
        return remove(services, context, in);
      });
}

}  // namespace trainyard::api::fsx
