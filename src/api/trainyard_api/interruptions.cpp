// Implements the operations that interrupt jobs or kill them, which AWS does not have.
#include "base/text.hpp"
#include "domain/limits.hpp"
#include "shapes/trainyard.hpp"
#include "trainyard_api/operations.hpp"

namespace trainyard::api::trainyard_api {
namespace {

namespace own = shapes::trainyard;

constexpr size_t kHostPrefixBytes = 5;  // "algo-"

void interrupt_training_job(const Services& services, const Context& context,
                            const own::InterruptTrainingJobRequest& request,
                            Answer<own::InterruptTrainingJobResponse> answer) {
  const domain::JobKey key{context.region, *request.training_job_name};
  control::Interruption interruption;
  interruption.reason = request.reason.value_or("requested by " + context.principal.name);
  if (request.notice_in_seconds)
    interruption.notice = std::chrono::seconds(*request.notice_in_seconds);
  if (request.host_name) {
    const auto number = parse_int(request.host_name->substr(kHostPrefixBytes));
    const bool possible = number && *number >= 1 && *number <= domain::kGangHostsMax;
    interruption.host = possible ? domain::HostIndex(*number - 1) : domain::HostIndex(-1);
  }
  services.control.interrupt_job(
      key, std::move(interruption), [answer = std::move(answer), key](Result<domain::Job> job) {
        if (!job && job.error().kind == Kind::not_found)
          return answer(validation_exception("Requested resource not found."));
        if (!job && (job.error().kind == Kind::conflict || job.error().kind == Kind::invalid))
          return answer(validation_exception("The training job " + key.name +
                                             " cannot be interrupted: " + job.error().message));
        if (!job) return answer(std::move(job).error());
        own::InterruptTrainingJobResponse out;
        out.training_job_arn = control::job_arn(job->account, job->key);
        out.attempt_number = job->attempts.empty() ? 1 : job->attempts.back().number;
        out.status_message = job->transitions.back().message;
        answer(std::move(out));
      });
}

// Returns the reason that AWS Batch's operations show for a killed job.
std::string reason_of(const Context& context) {
  return "killed by " + context.principal.arn.substr(context.principal.arn.rfind(':') + 1);
}

void kill_job(const Services& services, const Context& context, const own::KillJobRequest& request,
              Answer<own::KillJobResponse> answer) {
  const domain::JobKey key{context.region, *request.job_name};
  services.control.kill_job(
      key, reason_of(context), [answer = std::move(answer), key](Result<domain::Job> job) {
        if (!job && job.error().kind == Kind::not_found)
          return answer(validation_exception("Requested resource not found."));
        if (!job && job.error().kind == Kind::conflict)
          return answer(validation_exception("The request was rejected because the job " +
                                             key.name + " has ended."));
        if (!job) return answer(std::move(job).error());
        own::KillJobResponse out;
        out.job_arn = control::job_arn(*job);
        answer(std::move(out));
      });
}

}  // namespace

void add_interruptions(OperationTable& table, const Settings&, const Services& services) {
  table.add_later<own::InterruptTrainingJob>(
      [&](const Context& context, own::InterruptTrainingJobRequest request, auto answer) {
        interrupt_training_job(services, context, request, std::move(answer));
      });
  table.add_later<own::KillJob>(
      [&](const Context& context, own::KillJobRequest request, auto answer) {
        kill_job(services, context, request, std::move(answer));
      });
}

}  // namespace trainyard::api::trainyard_api
