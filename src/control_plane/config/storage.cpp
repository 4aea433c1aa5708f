#include "config/storage.hpp"

#include <algorithm>

#include "config/password_file.hpp"
#include "config/principals.hpp"
#include "contract/aws_texts.hpp"

namespace trainyard::config {
namespace {

constexpr int64_t kQuotaGibMax = 1 << 20;    // a pebibyte: a larger number is a mistake
constexpr int64_t kLogDaysMax = 36'525;      // a century, likewise
constexpr int64_t kReserveMibMax = 1 << 30;  // a pebibyte, likewise
constexpr int64_t kUploadDaysMax = 3'650;    // ten years, likewise
constexpr int64_t kAuditDaysMax = 36'500;    // a century, likewise
constexpr int64_t kMetricDaysMax = 3650;
constexpr int64_t kSeriesOfJobMax = 1'000'000;
constexpr double kLeaseSecondsMin = 1;    // less is lost whenever the machine is busy for a moment
constexpr double kLeaseSecondsMax = 300;  // longer outages need an operator in any case
constexpr size_t kWebhooksMax = 16;       // each has a thread and a queue of 16 MiB
constexpr size_t kWebhookNameMax = 64;    // characters; the name is the end of an ARN
constexpr size_t kStandsForMax = 100;     // ARNs of one webhook
constexpr size_t kLogSourcesMax = 1'000;
constexpr int64_t kDeliverySecondsMax = 86'400;
constexpr int64_t kAuditGibMax = 1 << 20;  // a pebibyte, likewise

Result<void> read_storage_quota(Table table, objects::StorageQuotas& quotas) {
  std::string bucket, user;
  double gib = 0;
  int64_t objects = 0;
  TRY(table.read("bucket", bucket));
  TRY(table.read("user", user));
  TRY(table.read("gib", gib));
  TRY(table.read("objects", objects));
  TRY(table.nothing_else());
  if (bucket.empty() == user.empty())
    return invalid(table.name("bucket") +
                   " or user must be given, and not both: a name, or \"*\" for each other");
  if (!user.empty() && user != "*" && !is_user(user))
    return invalid(table.name("user") + ": \"" + user + "\" cannot be the name of a user");
  if (!table.has("gib") && !table.has("objects"))
    return invalid(table.name("gib") + " or objects must be given");
  if (!(gib >= 0 && gib <= double(kQuotaGibMax)) || objects < 0)
    return invalid(table.name("gib") + " must be between 0 and " + std::to_string(kQuotaGibMax) +
                   ", objects 0 or more");
  objects::StorageQuota quota;
  if (table.has("gib")) quota.bytes = uint64_t(gib * (1 << 30));
  if (table.has("objects")) quota.objects = uint64_t(objects);
  auto& named = bucket.empty() ? quotas.users : quotas.buckets;
  if (!named.emplace(bucket.empty() ? user : bucket, quota).second)
    return invalid(table.name(bucket.empty() ? "user" : "bucket") +
                   ": duplicate quota for the same name, \"" + (bucket.empty() ? user : bucket) +
                   "\": keep one");
  return {};
}

Result<void> read_file_system(const std::string& id, Table table,
                              domain::FileSystems& file_systems) {
  domain::FileSystem file_system;
  TRY(table.read("directory", file_system.directory));
  TRY(table.read("type", file_system.type));
  TRY(table.read("mount_name", file_system.mount_name));
  TRY(table.read("read_only", file_system.read_only));
  TRY(read_sharing(table, file_system));
  TRY(table.nothing_else());
  if (!file_system.directory.starts_with('/') || file_system.directory == "/")
    return invalid(table.name("directory") +
                   " must be an absolute path, and not /: what jobs see of this machine");
  if (!file_system.type.empty() && file_system.type != "EFS" && file_system.type != "FSxLustre")
    return invalid(table.name("type") +
                   " must be \"EFS\" or \"FSxLustre\", or be left out, not \"" + file_system.type +
                   "\"");
  file_systems[id] = file_system;
  return {};
}

Result<void> read_fsx(Table table, Config& config) {
  TRY(table.read("directory", config.fsx_directory));
  TRY(table.nothing_else());
  if (!config.fsx_directory.starts_with('/') || config.fsx_directory == "/")
    return invalid(
        table.name("directory") +
        " must be an absolute path, and not /: where file systems of `aws fsx` are kept");
  return {};
}

// Reads a path that jobs of Batch may mount: a directory of the machines, or by default an empty
// one for each host.
Result<void> read_volume(const std::string& path, Table table, domain::FileSystems& volumes) {
  domain::FileSystem volume;
  TRY(table.read("directory", volume.directory));
  TRY(table.read("read_only", volume.read_only));
  TRY(read_sharing(table, volume));
  TRY(table.nothing_else());
  if (!path.starts_with('/') || path.ends_with('/') || path.find("/..") != std::string::npos)
    return invalid("volumes.\"" + path +
                   "\" must be named by an absolute path, as jobs name it: [volumes.\"/fsx\"]");
  if (!volume.directory.empty() && (!volume.directory.starts_with('/') || volume.directory == "/"))
    return invalid(table.name("directory") +
                   " must be an absolute path, and not /: what jobs see of this machine");
  if (volume.directory.empty() && volume.read_only)
    return invalid(table.name("read_only") +
                   " needs a directory: without one each host has its own, empty volume");
  volumes[path] = volume;
  return {};
}

// Reads [storage]: limits for the disk of the data directory.
Result<void> read_disk(Table table, Config& config) {
  int64_t reserve_mib = 0;
  TRY(table.read("disk_reserve_mib", reserve_mib));
  if (reserve_mib < 0 || reserve_mib > kReserveMibMax)
    return invalid(table.name("disk_reserve_mib") + " must be between 0 (none) and " +
                   std::to_string(kReserveMibMax) + ", not " + std::to_string(reserve_mib));
  if (table.has("disk_reserve_mib")) config.disk_reserve_bytes = uint64_t(reserve_mib) << 20;
  int64_t upload_days = config.upload_lifetime / 24h;
  TRY(table.read("upload_expiry_days", upload_days));
  if (upload_days < 1 || upload_days > kUploadDaysMax)
    return invalid(table.name("upload_expiry_days") + " must be between 1 and " +
                   std::to_string(kUploadDaysMax));
  config.upload_lifetime = upload_days * 24h;
  return table.nothing_else();
}

Result<void> read_audit(Table table, observe::AuditLimits& limits) {
  int64_t days = limits.retention / 24h;
  int64_t gib = int64_t(limits.total_bytes_max >> 30);
  TRY(table.read("retention_days", days));
  TRY(table.read("disk_gib", gib));
  TRY(table.nothing_else());
  if (days < 1 || days > kAuditDaysMax)
    return invalid(table.name("retention_days") + " must be between 1 and " +
                   std::to_string(kAuditDaysMax));
  if (gib < 1 || gib > kAuditGibMax)
    return invalid(table.name("disk_gib") + " must be between 1 and " +
                   std::to_string(kAuditGibMax));
  limits.retention = days * 24h;
  limits.total_bytes_max = uint64_t(gib) << 30;
  return {};
}

Result<void> read_objects(Table table, std::optional<ExternalObjects>& external) {
  ExternalObjects objects;
  TRY(table.read("endpoint", objects.endpoint));
  TRY(table.read("region", objects.region));
  TRY(table.read("access_key_id", objects.access_key_id));
  TRY(table.read("secret_access_key", objects.secret_access_key));
  TRY(table.read("ca_bundle", objects.ca_bundle));
  TRY(table.nothing_else());
  if (!objects.endpoint.starts_with("http://") && !objects.endpoint.starts_with("https://"))
    return invalid(table.name("endpoint") + " must be a URL, http:// or https://, not \"" +
                   objects.endpoint + "\"");
  external = objects;
  return {};
}

Result<void> read_log_webhook(const std::string& name, Table table, const std::string& directory,
                              Config& config) {
  LogWebhook webhook{.name = name};
  std::string authorization_file;
  TRY(table.read("url", webhook.url));
  TRY(table.read("authorization_file", authorization_file));
  TRY(table.read("ca_bundle", webhook.ca_bundle));
  TRY(table.read("stands_for", webhook.stands_for));
  TRY(table.nothing_else());
  if (webhook.stands_for.size() > kStandsForMax)
    return invalid(table.name("stands_for") + ": at most " + std::to_string(kStandsForMax) +
                   " ARNs are allowed");
  for (const std::string& arn : webhook.stands_for)
    if (!arn.starts_with("arn:") || arn.starts_with(contract::kLogsArnStart))
      return invalid(table.name("stands_for") + ": \"" + arn +
                     "\" must be the ARN of a stream or a function");
  const bool plain =
      !name.empty() && name.size() <= kWebhookNameMax && std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '_' || c == '.';
      });
  if (!plain)
    return invalid("[log_webhooks." + name +
                   "]: the name may have letters, digits, '-', '_' and '.'");
  if (!webhook.url.starts_with("http://") && !webhook.url.starts_with("https://"))
    return invalid(table.name("url") + " must begin with http:// or https://");
  if (!authorization_file.empty())
    webhook.authorization = TRY(read_password_file(table, directory, authorization_file));
  if (config.log_webhooks.size() >= kWebhooksMax)
    return invalid("[log_webhooks]: at most " + std::to_string(kWebhooksMax) + " are allowed");
  config.log_webhooks.push_back(std::move(webhook));
  return {};
}

Result<void> read_log_source(const std::string& name, Table table, Config& config) {
  LogSource source;
  TRY(table.read("arn", source.arn));
  TRY(table.read("log_type", source.log_type));
  TRY(table.read("log_group", source.log_group));
  TRY(table.nothing_else());
  if (!source.arn.starts_with("arn:") || source.log_type.empty() || source.log_group.empty())
    return invalid("[log_sources." + name +
                   "]: arn, log_type and log_group must be given: a resource outside this server, "
                   "and the log group with its logs");
  if (config.log_sources.size() >= kLogSourcesMax)
    return invalid("[log_sources]: at most " + std::to_string(kLogSourcesMax) + " are allowed");
  if (std::ranges::find(config.log_sources, source.arn, &LogSource::arn) !=
      config.log_sources.end())
    return invalid(table.name("arn") + ": duplicate source " + source.arn);
  config.log_sources.push_back(std::move(source));
  return {};
}

Result<void> read_logs(Table table, Config& config) {
  int64_t retention_days = 0, delivery_seconds = config.log_delivery_interval / 1s;
  TRY(table.read("retention_days", retention_days));
  TRY(table.read("delivery_seconds", delivery_seconds));
  if (retention_days < 0 || retention_days > kLogDaysMax)
    return invalid(table.name("retention_days") + " must be between 0 (forever) and " +
                   std::to_string(kLogDaysMax));
  if (delivery_seconds < 0 || delivery_seconds > kDeliverySecondsMax)
    return invalid(table.name("delivery_seconds") + " must be between 0 (at once) and " +
                   std::to_string(kDeliverySecondsMax));
  if (retention_days > 0) config.log_retention = retention_days * 24h;
  config.log_delivery_interval = delivery_seconds * 1s;
  return table.nothing_else();
}

Result<void> read_metrics(Table table, observe::MetricSettings& metrics) {
  int64_t fine = metrics.raw_time / 24h, medium = metrics.five_minutes_time / 24h,
          coarse = metrics.hours_time / 24h;
  TRY(table.read("all_points_days", fine));
  TRY(table.read("five_minute_days", medium));
  TRY(table.read("hour_days", coarse));
  TRY(table.read("series_of_job_max", metrics.group_series_max));
  TRY(table.nothing_else());
  if (fine < 1 || medium < fine || coarse < medium || coarse > kMetricDaysMax)
    return invalid(table.name("all_points_days") + ", five_minute_days and hour_days must be in " +
                   "ascending order, between 1 and " + std::to_string(kMetricDaysMax) + ", not " +
                   std::to_string(fine) + ", " + std::to_string(medium) + " and " +
                   std::to_string(coarse));
  if (metrics.group_series_max < 1 || metrics.group_series_max > kSeriesOfJobMax)
    return invalid(table.name("series_of_job_max") + " must be between 1 and " +
                   std::to_string(kSeriesOfJobMax));
  metrics.raw_time = fine * 24h;
  metrics.five_minutes_time = medium * 24h;
  metrics.hours_time = coarse * 24h;
  return {};
}

Result<void> read_catalogue(Table table, Config& config) {
  TRY(table.read("url", config.catalogue_url));
  TRY(table.read("query_url", config.catalogue_query_url));
  return table.nothing_else();
}

Result<void> read_ledger(Table table, const std::string& directory,
                         std::optional<LedgerDatabase>& into) {
  LedgerDatabase ledger;
  std::string password_file;
  double lease_seconds = double(ledger.lease / 1s);
  TRY(table.read("url", ledger.url));
  TRY(table.read("password_file", password_file));
  TRY(table.read("lease_seconds", lease_seconds));
  TRY(table.nothing_else());
  if (ledger.url.empty())
    return invalid(table.name("url") +
                   " must be given, like \"postgresql://ledger@db.lan/ledger\"; without the table "
                   "[ledger] it is a file of the data directory");
  if (!(lease_seconds >= kLeaseSecondsMin && lease_seconds <= kLeaseSecondsMax))
    return invalid(table.name("lease_seconds") + " must be between 1 and 300");
  ledger.lease = Duration(int64_t(lease_seconds * 1000));
  if (!password_file.empty())
    ledger.password = TRY(read_password_file(table, directory, password_file));
  into = std::move(ledger);
  return {};
}

}  // namespace

Result<void> read_storage(Table& root, const std::string& directory, Config& config) {
  TRY(root.each("ledger",
                [&](Table table) { return read_ledger(table, directory, config.ledger); }));
  TRY(root.each("storage", [&](Table table) { return read_disk(table, config); }));
  TRY(root.each("objects", [&](Table table) { return read_objects(table, config.objects); }));
  TRY(root.each("storage_quota",
                [&](Table table) { return read_storage_quota(table, config.storage_quotas); }));
  TRY(root.each("logs", [&](Table table) { return read_logs(table, config); }));
  TRY(root.each_named("log_webhooks", [&](const std::string& name, Table table) {
    return read_log_webhook(name, table, directory, config);
  }));
  TRY(root.each_named("log_sources", [&](const std::string& name, Table table) {
    return read_log_source(name, table, config);
  }));
  TRY(root.each("metrics", [&](Table table) { return read_metrics(table, config.metrics); }));
  TRY(root.each("audit", [&](Table table) { return read_audit(table, config.audit); }));
  TRY(root.each("catalogue", [&](Table table) { return read_catalogue(table, config); }));
  TRY(root.each_named("file_systems", [&](const std::string& id, Table table) {
    return read_file_system(id, table, config.file_systems);
  }));
  TRY(root.each("fsx", [&](Table table) { return read_fsx(table, config); }));
  return root.each_named("volumes", [&](const std::string& path, Table table) {
    return read_volume(path, table, config.volumes);
  });
}

}  // namespace trainyard::config
