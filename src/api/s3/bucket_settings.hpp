// Keeps the settings of buckets: each is one record of the ledger, named BUCKET/SETTING, with the
// configuration as JSON, and with the name of the principal that put it (kPutBy).
//
// Threads:  call from anywhere; put(), remove() and forget() wait for the commit, so they must not
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

// Records of this kind and no others are read and written.
inline constexpr std::string_view kSettingRecord = "bucket_setting";

// The limit for all buckets together. Most of the ledger's records remain for users and policies.
inline constexpr size_t kSettingsMax = 10'000;
static_assert(kSettingsMax <= domain::kRecordsMax / 4);
// The limit for one principal, other than the owner of the server: buckets are not limited, and no
// tenant may use up the settings of all.
inline constexpr size_t kSettingsOfPrincipalMax = 1'000;

// The member of a record that names the principal. No configuration has it: AWS's members begin
// with a capital letter.
inline constexpr const char* kPutBy = "put_by";

// The largest configuration as JSON: as S3 for CORS, for lifecycle rules what a record holds.
size_t setting_bytes_max(Setting setting);

class BucketSettings {
 public:
  explicit BucketSettings(control::Control& control) : control_(control) {}

  // Fills `value`, a structure of `shape`, and returns whether the setting is there.
  bool read(const std::string& bucket, Setting setting, const shapes::Shape& shape,
            void* value) const;
  // The same for a record that find() returned.
  static bool read(const domain::Record& record, const std::string& bucket, Setting setting,
                   const shapes::Shape& shape, void* value);
  // The record of a setting, which each change replaces; nullptr: not set.
  std::shared_ptr<const domain::Record> find(const std::string& bucket, Setting setting) const;
  // The buckets that have the setting, in order.
  std::vector<std::string> buckets_with(Setting setting) const;

  // Stores `value`, a structure of `shape`, in place of the previous one.
  Result<void> put(const Principal& principal, const std::string& bucket, Setting setting,
                   const shapes::Shape& shape, const void* value);
  Result<void> remove(const std::string& bucket, Setting setting);
  // Removes all settings of a bucket: when it is deleted, and before one of that name is created.
  Result<void> remove_all(const std::string& bucket);

 private:
  // Writes one record, or removes some if `document` is empty.
  Result<void> write(const std::vector<domain::RecordKey>& keys,
                     const std::optional<Json>& document, const Principal* principal = nullptr);

  control::Control& control_;
};

}  // namespace trainyard::api::s3
