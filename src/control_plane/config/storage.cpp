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
constexpr std::string_view kSharedAccepted =
    "an absolute path, and not /: what jobs see of this machine";

Result<void> read_storage_quota(Table table, objects::StorageQuotas& quotas) {
  std::string bucket, user;
  double gib = 0;
  int64_t objects = 0;
  TRY(table.read("bucket", bucket));
  TRY(table.read("user", user));
  TRY(table.read("gib", gib, {0, double(kQuotaGibMax)}));
  TRY(table.read("objects", objects));
  TRY(table.nothing_else());
  if (bucket.empty() == user.empty())
    return invalid(table.name("bucket") +
                   " or user must be given, and not both: a name, or \"*\" for each other");
  if (!user.empty() && user != "*" && !is_user(user))
    return table.refused("user", "\"*\", or the name of a user: " + std::string(kUserAccepted));
  if (!table.has("gib") && !table.has("objects"))
    return invalid(table.name("gib") + " or objects must be given");
  if (objects < 0) return table.refused("objects", "0 or more");
  objects::StorageQuota quota;
  if (table.has("gib")) quota.bytes = uint64_t(gib * (1 << 30));
  if (table.has("objects")) quota.objects = uint64_t(objects);
  auto& named = bucket.empty() ? quotas.users : quotas.buckets;
  if (!named.emplace(bucket.empty() ? user : bucket, quota).second)
    return invalid(table.name(bucket.empty() ? "user" : "bucket") +
                   ": duplicate quota for the same name, " +
                   format_text(bucket.empty() ? user : bucket) + ": keep one");
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
    return table.refused("directory", kSharedAccepted);
  if (!file_system.type.empty() && file_system.type != "EFS" && file_system.type != "FSxLustre")
    return table.refused("type", "\"EFS\" or \"FSxLustre\", or left out");
  file_systems[id] = file_system;
  return {};
}

Result<void> read_fsx(Table table, Config& config) {
  TRY(table.read("directory", config.fsx_directory));
  TRY(table.nothing_else());
  if (!config.fsx_directory.starts_with('/') || config.fsx_directory == "/")
    return table.refused("directory",
                         "an absolute path, and not /: where file systems of `aws fsx` are kept");
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
    return invalid("volumes." + format_text(path) +
                   " must be named by an absolute path, as jobs name it: [volumes.\"/fsx\"]");
  if (!volume.directory.empty() && (!volume.directory.starts_with('/') || volume.directory == "/"))
    return table.refused("directory", kSharedAccepted);
  if (volume.directory.empty() && volume.read_only)
    return invalid(table.name("read_only") +
                   " needs a directory: without one each host has its own, empty volume");
  volumes[path] = volume;
  return {};
}

// Reads [storage]: limits for the disk of the data directory.
Result<void> read_disk(Table table, Config& config) {
  int64_t reserve_mib = 0;
  TRY(table.read("disk_reserve_mib", reserve_mib, {0, kReserveMibMax, "none"}));
  if (table.has("disk_reserve_mib")) config.disk_reserve_bytes = uint64_t(reserve_mib) << 20;
  TRY(table.read_duration("upload_expiry_days", config.upload_lifetime, 24h, {1, kUploadDaysMax}));
  return table.nothing_else();
}

Result<void> read_audit(Table table, observe::AuditLimits& limits) {
  int64_t gib = int64_t(limits.total_bytes_max >> 30);
  TRY(table.read_duration("retention_days", limits.retention, 24h, {1, kAuditDaysMax}));
  TRY(table.read("disk_gib", gib, {1, kAuditGibMax}));
  TRY(table.nothing_else());
  limits.total_bytes_max = uint64_t(gib) << 30;
  return {};
}

Result<void> read_objects(Table table, std::optional<ExternalObjects>& external) {
  ExternalObjects objects;
  TRY(table.read("endpoint", objects.endpoint));
  TRY(table.read("region", objects.region));
  TRY(table.read("access_key_id", objects.access_key_id));
  TRY(table.read_secret("secret_access_key", objects.secret_access_key));
  TRY(table.read("ca_bundle", objects.ca_bundle));
  TRY(table.nothing_else());
  if (!objects.endpoint.starts_with("http://") && !objects.endpoint.starts_with("https://"))
    return table.refused("endpoint", "a URL, http:// or https://");
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
    return table.refused("stands_for", "at most " + std::to_string(kStandsForMax) + " ARNs");
  for (const std::string& arn : webhook.stands_for)
    if (!arn.starts_with("arn:") || arn.starts_with(contract::kLogsArnStart))
      return table.refused_element("stands_for", arn, "the ARN of a stream or a function");
  const bool plain =
      !name.empty() && name.size() <= kWebhookNameMax && std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '_' || c == '.';
      });
  if (!plain)
    return invalid("log_webhooks." + format_text(name) + " must be named by 1 to " +
                   std::to_string(kWebhookNameMax) + " letters, digits, '-', '_' and '.'");
  if (!webhook.url.starts_with("http://") && !webhook.url.starts_with("https://"))
    return table.refused("url", "a URL, http:// or https://");
  if (!authorization_file.empty())
    webhook.authorization = TRY(read_password_file(table, directory, authorization_file));
  if (config.log_webhooks.size() >= kWebhooksMax)
    return invalid("log_webhooks: at most " + std::to_string(kWebhooksMax) +
                   " are allowed: remove some");
  config.log_webhooks.push_back(std::move(webhook));
  return {};
}

Result<void> read_log_source(Table table, Config& config) {
  LogSource source;
  TRY(table.read("arn", source.arn));
  TRY(table.read("log_type", source.log_type));
  TRY(table.read("log_group", source.log_group));
  TRY(table.nothing_else());
  if (!source.arn.starts_with("arn:"))
    return table.refused("arn", "the ARN of a resource outside this server");
  if (source.log_type.empty())
    return table.refused("log_type", "the type of its logs, like ACCESS_LOGS");
  if (source.log_group.empty()) return table.refused("log_group", "the log group with its logs");
  if (config.log_sources.size() >= kLogSourcesMax)
    return invalid("log_sources: at most " + std::to_string(kLogSourcesMax) +
                   " are allowed: remove some");
  if (std::ranges::find(config.log_sources, source.arn, &LogSource::arn) !=
      config.log_sources.end())
    return invalid(table.name("arn") + ": duplicate source " + format_text(source.arn) +
                   ": keep one");
  config.log_sources.push_back(std::move(source));
  return {};
}

Result<void> read_logs(Table table, Config& config) {
  Duration retention{0};
  TRY(table.read_duration("retention_days", retention, 24h, {0, kLogDaysMax, "forever"}));
  TRY(table.read_duration("delivery_seconds", config.log_delivery_interval, 1s,
                          {0, kDeliverySecondsMax, "at once"}));
  if (retention > 0s) config.log_retention = retention;
  return table.nothing_else();
}

Result<void> read_metrics(Table table, observe::MetricSettings& metrics) {
  const Range<int64_t> days{1, kMetricDaysMax};
  TRY(table.read_duration("all_points_days", metrics.raw_time, 24h, days));
  TRY(table.read_duration("five_minute_days", metrics.five_minutes_time, 24h, days));
  TRY(table.read_duration("hour_days", metrics.hours_time, 24h, days));
  TRY(table.read("series_of_job_max", metrics.group_series_max, {1, kSeriesOfJobMax}));
  TRY(table.nothing_else());
  if (metrics.raw_time <= metrics.five_minutes_time &&
      metrics.five_minutes_time <= metrics.hours_time)
    return {};
  return invalid(table.name("all_points_days") +
                 ", five_minute_days and hour_days must be in ascending order, not " +
                 std::to_string(metrics.raw_time / 24h) + ", " +
                 std::to_string(metrics.five_minutes_time / 24h) + " and " +
                 std::to_string(metrics.hours_time / 24h));
}

Result<void> read_catalogue(Table table, Config& config) {
  TRY(table.read_secret("url", config.catalogue_url));
  TRY(table.read_secret("query_url", config.catalogue_query_url));
  return table.nothing_else();
}

Result<void> read_ledger(Table table, const std::string& directory,
                         std::optional<LedgerDatabase>& into) {
  LedgerDatabase ledger;
  std::string password_file;
  double lease_seconds = double(ledger.lease / 1s);
  TRY(table.read_secret("url", ledger.url));
  TRY(table.read("password_file", password_file));
  TRY(table.read("lease_seconds", lease_seconds, {kLeaseSecondsMin, kLeaseSecondsMax}));
  TRY(table.nothing_else());
  if (ledger.url.empty())
    return invalid(table.name("url") +
                   " must be given, like \"postgresql://ledger@db.lan/ledger\"; without the table "
                   "[ledger] it is a file of the data directory");
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
  TRY(root.each_named("log_sources", [&](const std::string&, Table table) {
    return read_log_source(table, config);
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
