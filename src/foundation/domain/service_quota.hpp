// The limits of this server, as Service Quotas names them: what AWS calls a quota and a person may look up.
//
// Threads: plain values; pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::domain {

struct ServiceQuota {
  std::string service;  // "batch", "sagemaker"
  std::string name;     // "Job queue limit"
  double value = 0;
  std::string unit;  // "None": a number; "Second"

  std::string code()
      const;  // "L-" and eight letters and digits: the same for the same service and name always
};

struct QuotaService {
  std::string code, name;  // "batch", "AWS Batch"
};
const std::vector<QuotaService>& quota_services();

// How many instances of a type training jobs may use at once. It counts for each user and each region by itself.
struct InstanceQuota {
  std::string who = {};     // a user's or a role's name; "": everybody who has no quota of his own
  std::string region = {};  // "": every region that has no quota of its own
  std::string instance_type;
  int64_t count = 0;

  std::string name() const;  // "ml.m5.xlarge for training job usage", as AWS calls it
};
// What counts for them; nullptr: as many as there are. One that names who goes before one that names the region.
const InstanceQuota* quota_of(const std::vector<InstanceQuota>& quotas, std::string_view who,
                              std::string_view region, std::string_view instance_type);

// By service and name; but for instances the same for everybody and in every region.
std::vector<ServiceQuota> service_quotas(const std::vector<InstanceQuota>& quotas, std::string_view who,
                                         std::string_view region);

}  // namespace trainyard::domain
