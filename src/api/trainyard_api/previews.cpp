// Predicts when a training job would start and what it would cost, before it is created.
#include <memory>
#include <utility>

#include "protocol/constraints.hpp"
#include "protocol/json.hpp"
#include "sagemaker/new_job.hpp"
#include "shapes/sagemaker.hpp"
#include "shapes/trainyard.hpp"
#include "trainyard_api/cost_view.hpp"
#include "trainyard_api/explanation_view.hpp"
#include "trainyard_api/operations.hpp"

namespace trainyard::api::trainyard_api {
namespace {

namespace own = shapes::trainyard;
namespace training = shapes::sagemaker;

constexpr int64_t kHourSeconds = 3600;

// Decodes, checks and authorises the request like dispatch does for CreateTrainingJob.
class Previews {
 public:
  Previews(const Settings& settings, const Services& services)
      : settings_(settings), services_(services), authorizer_(settings, services) {}

  Outcome<own::PreviewJobResponse> of(const Context& context,
                                      const own::PreviewJobRequest& request) const {
    const shapes::OperationShape& create = training::CreateTrainingJob::shape();
    training::CreateTrainingJobRequest job_request;
    if (const auto read = read_json(*create.input, *request.training_job_request, &job_request);
        !read)
      return unreadable_body(training::kService, read.error().message);
    if (auto violations = constraints_.check(*create.input, &job_request))
      return validation(training::kService, std::move(*violations));
    if (auto denied = authorizer_.check(context, create, &job_request)) return *std::move(denied);
    auto job = TRY(sagemaker::new_job_of(job_request, settings_, services_, context));
    own::PreviewJobResponse out;
    show_costs(context.region, job.spec, out);
    if (!job.spec.notes.empty()) out.notes = job.spec.notes;
    const std::string arn = control::job_arn(context.principal.account, job.key);
    const auto found = services_.control.preview_job(
        std::move(job), explain_rights(services_, authorizer_, context),
        request.with_changes.value_or(false));
    if (!found) return sagemaker::creation_failure(found.error(), arn);
    show_start(*found, request.with_changes.value_or(false), out);
    return out;
  }

 private:
  static void show_start(const reconcile::Explanation& found, bool with_changes,
                         own::PreviewJobResponse& out) {
    out.starts_now = found.reason.empty();
    set_unless_empty(out.wait_reason, found.reason);
    out.start_time = found.starts;
    if (!with_changes) return;
    out.complete = found.whole;
    out.changes.emplace();
    for (const auto& answer : found.answers) out.changes->push_back(start_change_of(answer));
  }

  // A job with preferences is charged for the selected one; this estimate uses the first one.
  void show_costs(const std::string& region, const domain::JobSpec& spec,
                  own::PreviewJobResponse& out) const {
    const auto cost = [&](int64_t seconds) {
      return cost_view(
          domain::cost_of(settings_.prices, region, spec.groups, spec.spot, seconds, seconds),
          settings_.prices.currency);
    };
    out.cost_per_hour = cost(kHourSeconds);
    out.cost_at_max_runtime = cost(spec.max_runtime_seconds);
  }

  const Settings& settings_;
  const Services& services_;
  const Authorizer authorizer_;
  const Constraints constraints_{training::kService};
};

}  // namespace

void add_previews(OperationTable& table, const Settings& settings, const Services& services) {
  table.add<own::PreviewJob>([previews = std::make_shared<Previews>(settings, services)](
                                 const Context& context, const own::PreviewJobRequest& request) {
    return previews->of(context, request);
  });
}

}  // namespace trainyard::api::trainyard_api
