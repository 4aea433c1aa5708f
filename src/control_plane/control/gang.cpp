#include "control/gang.hpp"

#include <algorithm>

#include "batch/arn.hpp"
#include "batch/limits.hpp"
#include "batch/variables.hpp"
#include "contract/aws_texts.hpp"
#include "contract/plain_container.hpp"
#include "domain/tracing/trace_context.hpp"
#include "wire/codec.hpp"

namespace trainyard::control {
namespace {

using domain::AttemptId;
using domain::Job;

// Returns the run time of earlier attempts that counts for the job's limit.
Duration ran_before(const Job& job) {
  if (job.spec.queue) return {};
  return job.ran(job.attempt()->started) - job.attempt()->ran(job.attempt()->started);
}

// Replaces the spec's program by the program of the host's group, and removes other groups'
// programs.
Result<void> name_program(const Settings& settings, ImageResolver& images, const Job& job,
                          domain::HostIndex host, wire::Order& order) {
  const domain::InstanceGroup& group = job.spec.group(host);
  const domain::Program of_all{job.spec.image, job.spec.arguments, job.spec.environment};
  const domain::Program& program = group.program ? *group.program : of_all;
  order.spec.image = program.image;
  order.spec.arguments = program.arguments;
  order.spec.environment = program.environment;
  const auto resolved = images.resolve(order.spec.image);
  if (!resolved && job.spec.contract == domain::Contract::plain)
    return invalid(std::string(contract::kCannotPull) + resolved.error().message,
                   contract::StartFault::cannot_pull);
  order.image = TRY(resolved)->image;
  for (size_t i = 0; i < job.spec.groups.size(); ++i) {
    order.spec.groups[i].program.reset();
    const bool own = &job.spec.groups[i] == &group;
    order.spec.groups[i].container_options =
        own ? group.container_options : domain::ContainerOptions{};
  }
  for (const auto& volume : group.container_options.volumes) {
    if (volume.kind != domain::VolumeKind::shared) continue;
    const bool by_path = volume.name.starts_with('/');
    const auto& known = by_path ? settings.volumes : settings.file_systems;
    const auto found = known.find(volume.name);
    if (found == known.end() || found->second.directory.empty())
      return invalid(volume.name + ", which is mounted at " + volume.destination +
                     ", is no longer in the config's " +
                     (by_path ? "[volumes]" : "[file_systems]"));
    if (found->second.read_only && !volume.read_only)
      return invalid(volume.name + ", which is mounted at " + volume.destination +
                     ", is now read-only in the config");
    order.file_systems[volume.name] = found->second.directory;
  }
  return {};
}

// Adds the directories of the channels' file systems.
Result<void> name_file_systems(const Settings& settings, const Job& job, wire::Order& order) {
  std::optional<domain::FileSystems> created;
  for (const auto& channel : job.spec.channels) {
    if (!channel.file_system) continue;
    const domain::FileSystems* known = &settings.file_systems;
    if (!known->contains(channel.file_system->id)) {
      if (!created) created = settings.created_file_systems(job.key.region);
      known = &*created;
    }
    const auto found = known->find(channel.file_system->id);
    const std::string shown =
        "the file system " + channel.file_system->id + " of channel " + channel.name;
    if (found == known->end())
      return invalid(shown + " is no longer in the config, or was deleted");
    if (!found->second.not_available.empty())
      return invalid(shown + " is " + found->second.not_available);
    order.file_systems[found->first] = found->second.directory;
  }
  return {};
}

}  // namespace

Result<launch::Gang> gang_of(const Settings& settings, ImageResolver& images, const Job& job,
                             AttemptId id, Instant now, Duration clock_offset, bool reuse_host) {
  const domain::Attempt& attempt = *job.attempt();
  launch::Gang gang;
  gang.attempt = id;
  gang.token = attempt.token;
  gang.network_isolation = job.spec.network_isolation;
  gang.encrypt_traffic = job.spec.encrypt_traffic;
  gang.role_arn = job.spec.role_arn;
  if (job.spec.queue) gang.queue = job.spec.queue->name;
  gang.instance_type = job.spec.group(0).instance_type;
  gang.submitter = job.spec.principal;
  gang.of_array = job.parent != 0;
  wire::Order order;
  order.attempt = id;
  order.token = attempt.token;
  order.job = job.key;
  order.job_arn = job_arn(job);
  order.account = job.account;
  order.spec = job.spec;
  order.created = job.control_time(attempt.started) + clock_offset;
  order.issued = job.own_time(now);
  order.wire_address = settings.wire_address;
  order.api_address = settings.api_address;
  order.objects_endpoint = settings.objects_endpoint;
  order.authority = settings.authority;
  if (attempt.mutual_tls && settings.issue_certificate)
    order.identity = TRY(settings.issue_certificate(wire::agent_name(id))
                             .in("issuing the certificate of the attempt"));
  order.egress_settings = settings.egress_settings;
  TRY(name_file_systems(settings, job, order));
  order.runtime_left =
      std::max<Duration>(std::chrono::seconds(job.spec.max_runtime_seconds) - ran_before(job), 1ms);
  order.stop_grace = reconcile::stop_grace_of(job, settings.stop_grace);
  order.stalled_after_seconds =
      std::chrono::duration_cast<std::chrono::seconds>(settings.stalled_after).count();
  if (job.spec.max_runtime_seconds < batch::kRuntimeSecondsMax)
    gang.run_time_max = order.runtime_left + order.stop_grace;
  order.reuse_host = reuse_host;
  order.best_effort_isolation = settings.best_effort_isolation;
  order.copy_channels = settings.copy_channels;
  const auto posix_user = domain::posix_user_of(settings.posix_users, job.spec.principal);
  order.shared_user_id = posix_user.user_id;
  order.shared_group_id = posix_user.group_id;
  for (domain::HostIndex host = 0; host < attempt.hosts.size(); ++host) {
    order.host = host;
    TRY(name_program(settings, images, job, host, order));
    order.variables.clear();
    if (job.spec.contract == domain::Contract::plain)
      order.variables = batch::variables_of(job, attempt, host);
    if (!order.spec.environment.contains(domain::kTraceParentVariable))
      order.variables[domain::kTraceParentVariable] =
          domain::trace_parent_of(job, attempt.number, host);
    order.share = attempt.hosts[host].share;
    order.log_stream = reconcile::log_stream_of(job, attempt, host);
    gang.members.push_back({{attempt.hosts[host].machine, order.share}, wire::encode_order(order)});
  }
  return gang;
}

std::string job_arn(const std::string& account, const domain::JobKey& key) {
  return contract::training_job_arn(account, key.region, key.name);
}

std::string job_arn(const std::string& account, const domain::JobKey& key,
                    domain::Contract contract) {
  if (contract == domain::Contract::training) return job_arn(account, key);
  return batch::arn_of(account, key.region, batch::kJobArn, key.name);
}

std::string job_arn(const domain::Job& job) {
  return job_arn(job.account, job.key, job.spec.contract);
}

void complete_start(const Settings& settings, const domain::Job& job, ImageResolver& images,
                    reconcile::StartAttempt& start) {
  start.mutual_tls = settings.issue_certificate != nullptr;
  const auto resolved = images.resolve(job.spec.image);
  if (!resolved || (*resolved)->image.note.empty()) return;
  if (!start.note.empty()) start.note += start.note.ends_with('.') ? " " : ". ";
  start.note += (*resolved)->image.note;
}

}  // namespace trainyard::control
