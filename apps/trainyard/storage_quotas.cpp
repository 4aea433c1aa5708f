#include "trainyard/storage_quotas.hpp"

namespace trainyard::apps {
namespace {

constexpr int64_t kGibMax = 1 << 20;  // a pebibyte: more is a mistake in writing

}  // namespace

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
  if (!table.has("gib") && !table.has("objects"))
    return invalid(table.name("gib") + " or objects must be given");
  if (!(gib >= 0 && gib <= double(kGibMax)) || objects < 0)
    return invalid(table.name("gib") + " must be between 0.0 and " + std::to_string(kGibMax) +
                   ", objects 0 or more");
  objects::StorageQuota quota;
  if (table.has("gib")) quota.bytes = uint64_t(gib * (1 << 30));
  if (table.has("objects")) quota.objects = uint64_t(objects);
  auto& named = bucket.empty() ? quotas.users : quotas.buckets;
  if (!named.emplace(bucket.empty() ? user : bucket, quota).second)
    return invalid(table.name(bucket.empty() ? "user" : "bucket") + ": two quotas are for the same name");
  return {};
}

}  // namespace trainyard::apps
