#include "sagemaker/new_job.hpp"

#include <utility>
#include <vector>

#include "operations/job_role.hpp"
#include "operations/shared_directories.hpp"
#include "sagemaker/training_job.hpp"

namespace trainyard::api::sagemaker {
namespace {

constexpr size_t kTagValueBytesMax = 256;  // as on AWS

}  // namespace

Outcome<control::CreateJob> new_job_of(const shapes::sagemaker::CreateTrainingJobRequest& request,
                                       const Settings& settings, const Services& services,
                                       const Context& context) {
  if (const auto free_space = settings.check_disk_space(); !free_space)
    return resource_limit_exceeded(free_space.error().message);
  auto spec = TRY(job_spec_of(request, settings.find_image,
                              known_file_systems(settings, services, context.region)));
  auto role = job_role(settings, context.principal.account, spec.role_arn);
  if (!role) return validation_exception("RoleArn: " + role.error().message);
  spec.role_arn = *std::move(role);
  if (auto checked = check_shared_directories(settings, context.principal, spec); !checked)
    return validation_exception(checked.error().message);
  auto tags = TRY(tags_of(request.tags.value_or(std::vector<shapes::sagemaker::Tag>())));
  tags.push_back({std::string(kCreatedByTag), context.principal.arn.substr(0, kTagValueBytesMax)});
  spec.principal = context.principal.name;
  control::CreateJob job;
  job.key = {context.region, *request.training_job_name};
  job.spec = std::move(spec);
  job.tags = std::move(tags);
  return job;
}

Failure creation_failure(const Error& error, const std::string& arn) {
  if (error.kind == Kind::conflict)
    return resource_in_use(
        "Job name must be unique within an AWS account and region, and a training job with this "
        "name already exists (" +
        arn + ")");
  return failure_of(shapes::sagemaker::kService, error);
}

}  // namespace trainyard::api::sagemaker
