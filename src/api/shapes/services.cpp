#include "shapes/services.hpp"

#include "shapes/batch.hpp"
#include "shapes/cloudtrail.hpp"
#include "shapes/cloudwatch.hpp"
#include "shapes/ec2.hpp"
#include "shapes/events.hpp"
#include "shapes/fsx.hpp"
#include "shapes/iam.hpp"
#include "shapes/logs.hpp"
#include "shapes/s3.hpp"
#include "shapes/sagemaker.hpp"
#include "shapes/service-quotas.hpp"
#include "shapes/sns.hpp"
#include "shapes/sts.hpp"
#include "shapes/trainyard.hpp"

namespace trainyard::api {

std::span<const shapes::Service* const> all_services() {
  static constexpr const shapes::Service* kAll[] = {
      &shapes::sagemaker::kService,  &shapes::logs::kService,
      &shapes::cloudwatch::kService, &shapes::sts::kService,
      &shapes::iam::kService,        &shapes::trainyard::kService,
      &shapes::batch::kService,      &shapes::service_quotas::kService,
      &shapes::cloudtrail::kService, &shapes::ec2::kService,
      &shapes::fsx::kService,        &shapes::sns::kService,
      &shapes::events::kService,     &shapes::s3::kService};
  return kAll;
}

}  // namespace trainyard::api
