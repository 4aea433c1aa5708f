// Converts a domain::Job to the responses of DescribeTrainingJob and ListTrainingJobs.
#include <chrono>

#include "base/json.hpp"
#include "base/text.hpp"
#include "control/control.hpp"
#include "domain/status_message.hpp"
#include "protocol/json.hpp"
#include "sagemaker/training_job.hpp"

namespace trainyard::api::sagemaker {
namespace {

namespace sagemaker = shapes::sagemaker;

template <class T>
T& set(std::optional<T>& member) {
  if (!member) member.emplace();
  return *member;
}

template <class T>
void set_default(std::optional<T>& member, T value) {
  if (!member) member = std::move(value);
}

// Rounds up to whole seconds, since started seconds are billed.
int64_t seconds_between(Instant from, Instant to) {
  return to <= from ? 0 : std::chrono::ceil<std::chrono::seconds>(to - from).count();
}

constexpr size_t kNamedHostsMax = 3;  // in a message; others are counted

// Returns the message of a transition. The current one, which already has the pending reason
// (control/live.hpp), also gets what a stop waits for and the job's note, since users read it
// first.
std::string message_of(const domain::Job& job, const domain::Transition& transition, bool present,
                       Instant now) {
  if (!present) return transition.message;
  return domain::with_note(domain::with_note(transition.message, describe_stop(job, now)),
                           job.note);
}

std::optional<sagemaker::WarmPoolStatus> warm_pool_of(const domain::Job& job, Instant now) {
  if (!job.warm_pool) return {};
  const domain::WarmPool& pool = *job.warm_pool;
  sagemaker::WarmPoolStatus out;
  out.status = std::string(domain::to_string(pool.state));
  if (pool.available) {
    const Instant end = pool.ended.value_or(std::min(now, pool.until()));
    out.resource_retained_billable_time_in_seconds = seconds_between(*pool.available, end);
  }
  if (!pool.reused_by.empty()) out.reused_by_job = pool.reused_by;
  return out;
}

}  // namespace

std::string_view status_of(domain::JobState state) {
  switch (state) {
    case domain::JobState::waiting:
    case domain::JobState::active:
      return "InProgress";
    case domain::JobState::stopping:
      return "Stopping";
    case domain::JobState::completed:
      return "Completed";
    case domain::JobState::failed:
      return "Failed";
    case domain::JobState::stopped:
      return "Stopped";
  }
  return "";
}

std::string describe_stop(const domain::Job& job, Instant now) {
  const domain::Attempt* attempt = job.attempt();
  const bool stops = job.state == domain::JobState::stopping;
  if (!attempt || (!stops && !(job.state == domain::JobState::active && attempt->interrupted)))
    return "";
  std::vector<std::string> names;
  for (domain::HostIndex host = 0; host < attempt->hosts.size(); ++host)
    if (attempt->hosts[host].state == domain::HostState::running)
      names.push_back(domain::host_name(host));
  if (names.empty()) return "";
  const size_t others = names.size() - std::min(names.size(), kNamedHostsMax);
  names.resize(names.size() - others);
  const std::string last =
      others > 0 ? std::to_string(others) + " other host" + (others > 1 ? "s" : "") : names.back();
  if (others == 0) names.pop_back();
  std::string text = join(names, ", ");
  text = "waiting for " + text + (text.empty() ? "" : " and ") + last + " to exit after ";
  const auto since = stops ? job.stop_requested : attempt->interrupted;
  const auto grace = stops ? job.stop_grace : std::optional(attempt->notice);
  if (!since || !grace) return text + "SIGTERM";
  const Instant until = *since + *grace;
  if (now >= until) return text + "SIGKILL";
  const size_t time_at = 11, time_size = 8;  // in "2026-11-24T12:03:10Z"
  return text + "SIGTERM, until " +
         to_iso8601(job.control_time(until), false).substr(time_at, time_size) + " UTC";
}

Result<sagemaker::DescribeTrainingJobResponse> echo_of(const domain::Job& job) {
  sagemaker::CreateTrainingJobRequest request;
  TRY(read_json(*sagemaker::CreateTrainingJob::shape().input, dump(job.spec.request), &request)
          .in("the request of " + job.key.name));
  sagemaker::DescribeTrainingJobResponse out;
  out.training_job_name = job.key.name;
  out.training_job_arn = control::job_arn(job.account, job.key);
  out.hyper_parameters = request.hyper_parameters.value_or(std::map<std::string, std::string>());
  out.algorithm_specification = std::move(request.algorithm_specification);
  set_default(set(out.algorithm_specification).enable_sage_maker_metrics_time_series, false);
  out.role_arn = std::move(request.role_arn);
  out.input_data_config = std::move(request.input_data_config);
  if (out.input_data_config) {
    for (auto& channel : *out.input_data_config) {
      set_default(channel.compression_type, std::string("None"));
      set_default(channel.record_wrapper_type, std::string("None"));
      if (channel.data_source && channel.data_source->s3_data_source)
        set_default(channel.data_source->s3_data_source->s3_data_distribution_type,
                    std::string("FullyReplicated"));
    }
  }
  // Clients read these members without checking that they exist.
  out.output_data_config = std::move(request.output_data_config);
  set_default(set(out.output_data_config).kms_key_id, std::string());
  set_default(set(out.output_data_config).compression_type, std::string("GZIP"));
  out.resource_config = std::move(request.resource_config);
  set_default(set(out.resource_config).volume_size_in_gb, kVolumeGibDefault);
  out.vpc_config = std::move(request.vpc_config);
  out.checkpoint_config = std::move(request.checkpoint_config);
  out.tensor_board_output_config = std::move(request.tensor_board_output_config);
  out.stopping_condition = request.stopping_condition;
  set_default(set(out.stopping_condition).max_runtime_in_seconds, kMaxRuntimeSecondsDefault);
  out.enable_network_isolation = request.enable_network_isolation.value_or(false);
  out.enable_inter_container_traffic_encryption =
      request.enable_inter_container_traffic_encryption.value_or(false);
  out.enable_managed_spot_training = request.enable_managed_spot_training.value_or(false);
  out.debug_hook_config = std::move(request.debug_hook_config);
  out.experiment_config = std::move(request.experiment_config);
  out.profiler_config = std::move(request.profiler_config);
  out.profiler_rule_configurations = std::move(request.profiler_rule_configurations);
  const bool profiled =
      out.profiler_config && !out.profiler_config->disable_profiler.value_or(false);
  out.profiling_status = profiled ? "Enabled" : "Disabled";
  out.environment = std::move(request.environment);
  out.retry_strategy = request.retry_strategy;
  out.infra_check_config = request.infra_check_config;
  out.creation_time = job.created;
  return out;
}

void describe(const domain::Job& job, Instant now, sagemaker::DescribeTrainingJobResponse& out) {
  out.training_job_status = status_of(job.state);
  out.secondary_status = domain::to_string(job.phase());
  out.last_modified_time = job.modified;
  if (!job.failure_reason.empty()) out.failure_reason = job.failure_reason;
  // The current or future location. Clients use it before the job has ended.
  set(out.model_artifacts).s3_model_artifacts =
      job.model_uri.empty() ? job.spec.output_uri + "/" + job.key.name + "/output/model" +
                                  (job.spec.compress_model ? ".tar.gz" : "/")
                            : job.model_uri;

  auto& transitions = set(out.secondary_status_transitions);
  transitions.clear();
  for (const auto& transition : job.transitions) {
    auto& shown = transitions.emplace_back();
    shown.status = domain::to_string(transition.phase);
    shown.start_time = transition.start;
    shown.end_time = transition.end;
    shown.status_message = message_of(job, transition, &transition == &job.transitions.back(), now);
  }
  out.training_start_time = job.training_start;
  out.training_end_time = job.training_end;
  if (job.training_start) {
    // The time between attempts counts as training time, as on AWS, but is not billed.
    const Instant end = job.training_end.value_or(now);
    out.training_time_in_seconds = seconds_between(*job.training_start, end);
    out.billable_time_in_seconds = std::chrono::ceil<std::chrono::seconds>(job.ran(end)).count();
  }
  if (job.selected && out.resource_config) {
    out.resource_config->selected_instance_type = job.spec.groups.front().instance_type;
    out.resource_config->selected_instance_count = job.spec.groups.front().count;
  }
  out.warm_pool_status = warm_pool_of(job, now);
  if (job.warm_pool && out.resource_config && out.resource_config->keep_alive_period_in_seconds)
    out.resource_config->keep_alive_period_in_seconds = job.warm_pool->keep_alive_seconds;
}

sagemaker::TrainingJobSummary summary_of(const domain::Job& job, Instant now) {
  sagemaker::TrainingJobSummary out;
  out.training_job_name = job.key.name;
  out.training_job_arn = control::job_arn(job.account, job.key);
  out.creation_time = job.created;
  out.training_end_time = job.training_end;
  out.last_modified_time = job.modified;
  out.training_job_status = status_of(job.state);
  out.secondary_status = domain::to_string(job.phase());
  out.warm_pool_status = warm_pool_of(job, now);
  return out;
}

}  // namespace trainyard::api::sagemaker
