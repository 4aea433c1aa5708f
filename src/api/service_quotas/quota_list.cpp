#include "service_quotas/quota_list.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/sha256.hpp"
#include "base/text.hpp"
#include "batch/catalog.hpp"
#include "batch/limits.hpp"
#include "domain/job_options.hpp"

namespace trainyard::api::service_quotas {
namespace {

constexpr size_t kCodeLetters = 8;

struct Fixed {
  std::string_view service, name;
  double value;
  std::string_view unit;
};
constexpr std::string_view kNumber = "None", kSeconds = "Second";
constexpr std::string_view kBatch = "batch", kSageMaker = "sagemaker";

// The fixed limits on requests, which several modules check.
const Fixed kFixed[] = {
    {kBatch, "Compute environment limit", double(batch::kEnvironmentsMax), kNumber},
    {kBatch, "Job queue limit", double(batch::kQueuesMax), kNumber},
    {kBatch, "Compute environments per job queue limit", double(batch::kEnvironmentsOfQueueMax),
     kNumber},
    {kBatch, "Scheduling policy limit", double(batch::kPoliciesMax), kNumber},
    {kBatch, "Fair share identifiers per scheduling policy", double(batch::kWeightsMax), kNumber},
    {kBatch, "Consumable resource limit", double(batch::kConsumableResourcesMax), kNumber},
    {kBatch, "Consumable resources per job", double(batch::kConsumptionsMax), kNumber},
    {kBatch, "Service environment limit", double(batch::kServiceEnvironmentsMax), kNumber},
    {kBatch, "Quota shares per job queue", double(batch::kQuotaSharesOfQueueMax), kNumber},
    {kBatch, "Job dependencies limit", double(batch::kDependenciesMax), kNumber},
    {kBatch, "Job attempts limit", double(domain::kQueuedAttemptsMax), kNumber},
    {kBatch, "Retry strategy rules limit", double(batch::kRetryRulesMax), kNumber},
    {kSageMaker, "Longest run time for a training job", 28 * 86'400, kSeconds},
};

}  // namespace

std::string ServiceQuota::code() const {
  return "L-" + to_upper(to_hex(bytes_of(sha256(service + "/" + name))).substr(0, kCodeLetters));
}

const std::vector<QuotaService>& quota_services() {
  static const std::vector<QuotaService> kServices = {
      {std::string(kBatch), "AWS Batch"}, {std::string(kSageMaker), "Amazon SageMaker"}};
  return kServices;
}

std::vector<ServiceQuota> service_quotas(const std::vector<domain::InstanceQuota>& quotas,
                                         std::string_view who, std::string_view region) {
  std::vector<ServiceQuota> all;
  std::set<std::string> types;
  for (const domain::InstanceQuota& each : quotas) {
    const domain::InstanceQuota* counts = domain::quota_of(quotas, who, region, each.instance_type);
    if (counts && types.insert(each.instance_type).second)
      all.push_back(
          {std::string(kSageMaker), counts->name(), double(counts->count), std::string(kNumber)});
  }
  for (const Fixed& each : kFixed)
    all.push_back(
        {std::string(each.service), std::string(each.name), each.value, std::string(each.unit)});
  std::ranges::sort(all, {},
                    [](const ServiceQuota& each) { return std::tie(each.service, each.name); });
  return all;
}

}  // namespace trainyard::api::service_quotas
