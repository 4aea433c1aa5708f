#include "dispatch/all_operations.hpp"

#include "batch_api/operations.hpp"
#include "cloudwatch/operations.hpp"
#include "ec2/operations.hpp"
#include "events/operations.hpp"
#include "fsx/operations.hpp"
#include "iam/operations.hpp"
#include "logs/operations.hpp"
#include "s3/operations.hpp"
#include "sagemaker/operations.hpp"
#include "service_quotas/operations.hpp"
#include "sns/operations.hpp"
#include "trainyard_api/operations.hpp"

namespace trainyard::api {

OperationTable all_operations(const Settings& settings, const Services& services) {
  OperationTable table;
  sagemaker::add_operations(table, settings, services);
  iam::add_operations(table, settings, services);
  logs::add_operations(table, settings, services);
  cloudwatch::add_operations(table, settings, services);
  batch_api::add_operations(table, settings, services);
  ec2::add_operations(table, settings, services);
  fsx::add_operations(table, settings, services);
  sns::add_operations(table, settings, services);
  events::add_operations(table, settings, services);
  service_quotas::add_operations(table, settings, services);
  trainyard_api::add_operations(table, settings, services);
  s3::add_operations(table, settings, services);
  return table;
}

}  // namespace trainyard::api
