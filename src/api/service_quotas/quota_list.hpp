// Lists the limits of this server that are quotas on AWS.
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
  std::string unit;  // "None" for a plain number, "Second"

  std::string code() const;  // "L-" and eight letters and digits, derived from service and name
};

struct QuotaService {
  std::string code, name;  // "batch", "AWS Batch"
};
const std::vector<QuotaService>& quota_services();

// Returns all quotas, sorted by service and name. Only instance quotas depend on the user and the
// region.
std::vector<ServiceQuota> service_quotas(const std::vector<domain::InstanceQuota>& quotas,
                                         std::string_view who, std::string_view region);

}  // namespace trainyard::api::service_quotas
