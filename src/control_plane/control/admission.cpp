#include "control/admission.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "domain/deprecated_images.hpp"
#include "domain/image_policy.hpp"
#include "domain/job_check.hpp"
#include "schedule/plan.hpp"

namespace trainyard::control {
namespace {

// Returns the number of hosts of the job, or of its largest preference.
int64_t most_hosts(const domain::JobSpec& spec) {
  int64_t hosts = spec.hosts();
  for (const domain::InstanceGroup& each : spec.preferences)
    hosts = std::max<int64_t>(hosts, each.count);
  return hosts;
}

}  // namespace

Result<void> Admission::check(const domain::JobSpec& spec) {
  TRY(domain::check_limits(spec));
  TRY(check_hosts(spec));
  for (const domain::InstanceGroup& group : spec.groups)
    if (group.program) TRY(check_image(group.program->image, spec.role_arn));
  TRY(check_image(spec.image, spec.role_arn));
  for (const std::string_view name : domain::deprecated_images(spec))
    if (!deprecated_image_logged_.exchange(true))
      log(Level::warning, "control", "jobs use a deprecated image name",
          {{"image", std::string(name)}, {"use", std::string(domain::current_image_name(name))}});
  if (spec.encrypt_traffic && most_hosts(spec) > 1 && !settings_.no_encryption.empty())
    return invalid("EnableInterContainerTrafficEncryption is not available here: " +
                   settings_.no_encryption);
  return {};
}

Result<void> Admission::check_hosts(const domain::JobSpec& spec) const {
  const int64_t hosts = most_hosts(spec);
  const int64_t most =
      spec.encrypt_traffic ? settings_.encrypted_gang_hosts_max : settings_.gang_hosts_max;
  if (hosts > most)
    return invalid("the job requests " + std::to_string(hosts) +
                   " hosts, and the network pool of this server holds gangs of at most " +
                   std::to_string(most) +
                   ": request fewer instances, or set a larger network.pool in its config");
  for (const domain::InstanceGroup& group : spec.groups) TRY(schedule::host_request_of(group));
  for (const domain::InstanceGroup& group : spec.preferences) TRY(schedule::host_request_of(group));
  return {};
}

Result<void> Admission::check_image(const std::string& name, const std::string& role_arn) {
  const auto resolved = TRY(images_.resolve(name));
  if (resolved->configured) return {};
  return domain::check_image(settings_.image_policy, resolved->image, name, role_arn);
}

}  // namespace trainyard::control
