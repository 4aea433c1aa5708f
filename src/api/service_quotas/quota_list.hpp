// Lists the limits of this server as Service Quotas names them: what AWS calls a quota and a person may look up.
//
// Threads: plain values; pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "domain/instance_quota.hpp"

namespace trainyard::api::service_quotas {

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

// By service and name; but for instances the same for everybody and in every region.
std::vector<ServiceQuota> service_quotas(const std::vector<domain::InstanceQuota>& quotas,
                                         std::string_view who, std::string_view region);

}  // namespace trainyard::api::service_quotas
