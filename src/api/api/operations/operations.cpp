#include "api/operations/operations.hpp"

#include "api/operations/service_quotas.hpp"
#include "api/shapes/batch.hpp"
#include "api/shapes/cloudtrail.hpp"
#include "api/shapes/cloudwatch.hpp"
#include "api/shapes/iam.hpp"
#include "api/shapes/logs.hpp"
#include "api/shapes/s3.hpp"
#include "api/shapes/sagemaker.hpp"
#include "api/shapes/service-quotas.hpp"
#include "api/shapes/sts.hpp"
#include "api/shapes/trainyard.hpp"
#include "base/check.hpp"

namespace trainyard::api {

OperationTable all_operations(const Settings& settings, const Services& services) {
  OperationTable table;
  add_sagemaker(table, settings, services);
  add_sts(table, settings, services);
  add_iam(table, settings, services);
  add_logs(table, settings, services);
  add_cloudwatch(table, settings, services);
  add_batch_catalog(table, settings, services);
  add_batch_jobs(table, settings, services);
  add_batch_policies(table, settings, services);
  add_batch_consumables(table, settings, services);
  add_batch_service(table, settings, services);
  add_batch_snapshot(table, settings, services);
  add_service_quotas(table, settings);
  add_job_reports(table, settings, services);
  add_interruptions(table, settings, services);
  add_campaigns(table, settings, services);
  add_s3(table, settings, services);
  return table;
}

std::span<const shapes::Service* const> all_services() {
  static constexpr const shapes::Service* kAll[] = {
      &shapes::sagemaker::kService,  &shapes::logs::kService,
      &shapes::cloudwatch::kService, &shapes::sts::kService,
      &shapes::iam::kService,        &shapes::trainyard::kService,
      &shapes::batch::kService,      &shapes::service_quotas::kService,
      &shapes::cloudtrail::kService, &shapes::s3::kService};
  return kAll;
}

const Entry* OperationTable::find(const shapes::OperationShape& shape) const {
  const auto found = entries_.find(&shape);
  return found == entries_.end() ? nullptr : &found->second;
}

Entry& OperationTable::entry_of(const shapes::OperationShape& shape, Runs runs) {
  const auto [at, made] = entries_.try_emplace(&shape);
  CHECK(made, "an operation is added once");
  at->second.shape = &shape;
  at->second.runs = runs;
  return at->second;
}

}  // namespace trainyard::api
