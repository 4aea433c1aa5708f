#include "s3/bucket_settings.hpp"

#include "base/enum_table.hpp"
#include "base/log.hpp"
#include "operations/commit_records.hpp"

namespace trainyard::api::s3 {
namespace {

// Retries of one change after commits by other writers of records.
constexpr int kConflictsMax = 10;

domain::RecordKey key_of(const std::string& bucket, Setting setting) {
  return {std::string(kSettingRecord), bucket + "/" + std::string(to_string(setting))};
}

bool is_put_by(const Json& document, const std::string& name) {
  const auto by = document.find(kPutBy);
  return by != document.end() && by->is_string() && by->get_ref<const std::string&>() == name;
}

// Checks that another setting does not exceed the limits. Replacing a setting does not.
Result<void> check_count(const domain::Records& records, const domain::RecordKey& key,
                         const Principal& principal) {
  const std::string kind(kSettingRecord);
  size_t all = 1, own = 1;
  for (auto each = records.all.lower_bound({kind, ""});
       each != records.all.end() && each->first.first == kind; ++each) {
    if (each->first == key) continue;
    ++all;
    if (is_put_by(each->second->document, principal.name)) ++own;
  }
  if (!principal.owner() && own > kSettingsOfPrincipalMax)
    return invalid(
        "'" + principal.name + "' has put " + std::to_string(kSettingsOfPrincipalMax) +
        " bucket settings, which is the limit: delete settings, or buckets with settings");
  if (all > kSettingsMax)
    return invalid(
        "the buckets of this server have " + std::to_string(kSettingsMax) +
        " settings in total, which is the limit: delete settings, or buckets with settings");
  return ok();
}

}  // namespace

size_t setting_bytes_max(Setting setting) {
  switch (setting) {
    case Setting::cors:
      return 64 * 1024;
    case Setting::lifecycle:
      return domain::kRecordBytesMax;
    default:
      return 20 * 1024;
  }
}

std::string_view to_string(Setting setting) {
  static constexpr EnumTable<Setting> kSettings{"bucket setting",
                                                {{Setting::acceleration, "acceleration"},
                                                 {Setting::cors, "cors"},
                                                 {Setting::encryption, "encryption"},
                                                 {Setting::lifecycle, "lifecycle"},
                                                 {Setting::logging, "logging"},
                                                 {Setting::notification, "notification"},
                                                 {Setting::ownership, "ownership"},
                                                 {Setting::payment, "payment"},
                                                 {Setting::public_access, "public_access"},
                                                 {Setting::website, "website"}}};
  return kSettings.text(setting);
}

bool BucketSettings::read(const std::string& bucket, Setting setting, const shapes::Shape& shape,
                          void* value) const {
  const auto record = find(bucket, setting);
  return record && read(*record, bucket, setting, shape, value);
}

bool BucketSettings::read(const domain::Record& record, const std::string& bucket, Setting setting,
                          const shapes::Shape& shape, void* value) {
  const auto filled = read_json(shape, dump(record.document), value);
  if (!filled)
    log(Level::error, "api", "a bucket setting cannot be read",
        {{"bucket", bucket},
         {"setting", std::string(to_string(setting))},
         {"why", filled.error().message}});
  return bool(filled);
}

std::shared_ptr<const domain::Record> BucketSettings::find(const std::string& bucket,
                                                           Setting setting) const {
  const auto records = control_.records();
  const auto found = records->all.find(key_of(bucket, setting));
  return found == records->all.end() ? nullptr : found->second;
}

std::vector<std::string> BucketSettings::buckets_with(Setting setting) const {
  const std::string kind(kSettingRecord), suffix = "/" + std::string(to_string(setting));
  const auto records = control_.records();
  std::vector<std::string> buckets;
  for (auto each = records->all.lower_bound({kind, ""});
       each != records->all.end() && each->first.first == kind; ++each)
    if (const std::string& name = each->first.second; name.ends_with(suffix))
      buckets.push_back(name.substr(0, name.size() - suffix.size()));
  return buckets;
}

Result<void> BucketSettings::put(const Principal& principal, const std::string& bucket,
                                 Setting setting, const shapes::Shape& shape, const void* value) {
  std::string text;
  write_json(shape, value, text);
  if (const size_t bytes_max = setting_bytes_max(setting); text.size() > bytes_max)
    return invalid("the " + std::string(to_string(setting)) + " configuration exceeds the " +
                   std::to_string(bytes_max / 1024) + " KiB that this server stores of it");
  Json document = TRY(parse_json(text));
  document[kPutBy] = principal.name;
  return write({key_of(bucket, setting)}, std::move(document), &principal);
}

Result<void> BucketSettings::remove(const std::string& bucket, Setting setting) {
  return write({key_of(bucket, setting)}, std::nullopt);
}

Result<void> BucketSettings::remove_all(const std::string& bucket) {
  const std::string kind(kSettingRecord), prefix = bucket + "/";
  const auto records = control_.records();
  std::vector<domain::RecordKey> keys;
  for (auto each = records->all.lower_bound({kind, prefix});
       each != records->all.end() && each->first.first == kind &&
       each->first.second.starts_with(prefix);
       ++each)
    keys.push_back(each->first);
  return write(keys, std::nullopt);
}

Result<void> BucketSettings::write(const std::vector<domain::RecordKey>& keys,
                                   const std::optional<Json>& document,
                                   const Principal* principal) {
  for (int conflicts = 0;; ++conflicts) {
    const auto records = control_.records();
    control::RecordsRequest request;
    request.expected = records->version;
    for (const auto& key : keys)
      if (document || records->all.contains(key)) request.writes.push_back({key, document});
    if (request.writes.empty()) return {};
    if (principal) TRY(check_count(*records, keys.front(), *principal));
    const auto committed = commit_records(control_, std::move(request));
    if (committed) return {};
    if (committed.error().kind != Kind::conflict) return committed.error();
    if (conflicts == kConflictsMax)
      return unavailable("records are being changed by others: try again");
  }
}

}  // namespace trainyard::api::s3
