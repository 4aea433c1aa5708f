// BucketSettings stores the settings of buckets. Each is one record of the ledger, named
// BUCKET/SETTING, with the configuration as JSON and the name of the principal that put it
// (kPutBy).
//
// Threads:  call from anywhere; put(), remove() and remove_all() wait for the commit, so they must
// not
//           run on the thread that commits.
// Errors:   of reads: none, an invalid record counts as absent and is logged. Of changes: those of
//           control; invalid: the configuration is too large, or the principal or all of them
//           have too many settings.
// Lifetime: control outlives it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "control/control.hpp"
#include "operations/context.hpp"
#include "protocol/json.hpp"
#include "shapes/shape.hpp"

namespace trainyard::api::s3 {

enum class Setting {
  acceleration,
  cors,
  encryption,
  lifecycle,
  logging,
  notification,
  ownership,
  payment,
  public_access,
  website
};
std::string_view to_string(Setting setting);

// The kind of these records; other records are ignored.
inline constexpr std::string_view kSettingRecord = "bucket_setting";

// The limit for all buckets together. Most of the ledger's records remain for users and policies.
inline constexpr size_t kSettingsMax = 10'000;
static_assert(kSettingsMax <= domain::kRecordsMax / 4);
// The limit for one principal other than the owner, so that no tenant can use up the settings of
// all. The number of buckets is not limited.
inline constexpr size_t kSettingsOfPrincipalMax = 1'000;

// The member of a record that names the principal. No configuration has it: AWS's members begin
// with a capital letter.
inline constexpr const char* kPutBy = "put_by";

// Returns the maximum size of a configuration as JSON: S3's for CORS, and a record's for lifecycle
// rules.
size_t setting_bytes_max(Setting setting);

class BucketSettings {
 public:
  explicit BucketSettings(control::Control& control) : control_(control) {}

  // Fills `value`, a structure of `shape`. Returns whether the bucket has the setting.
  bool read(const std::string& bucket, Setting setting, const shapes::Shape& shape,
            void* value) const;
  // Does the same for a record that find() returned.
  static bool read(const domain::Record& record, const std::string& bucket, Setting setting,
                   const shapes::Shape& shape, void* value);
  // Returns the record of a setting, which each change replaces; nullptr = not set.
  std::shared_ptr<const domain::Record> find(const std::string& bucket, Setting setting) const;
  // Returns the buckets with the setting, ordered by name.
  std::vector<std::string> buckets_with(Setting setting) const;

  // Stores `value`, a structure of `shape`, in place of the previous one.
  Result<void> put(const Principal& principal, const std::string& bucket, Setting setting,
                   const shapes::Shape& shape, const void* value);
  Result<void> remove(const std::string& bucket, Setting setting);
  // Removes all settings of a bucket: when it is deleted, and before a bucket of that name is
  // created.
  Result<void> remove_all(const std::string& bucket);

 private:
  // Writes one record, or removes some if `document` is empty.
  Result<void> write(const std::vector<domain::RecordKey>& keys,
                     const std::optional<Json>& document, const Principal* principal = nullptr);

  control::Control& control_;
};

}  // namespace trainyard::api::s3
