// Implements ExplainJob: why a job waits, and what would make it start.
#include <memory>

#include "shapes/trainyard.hpp"
#include "trainyard_api/explanation_view.hpp"
#include "trainyard_api/operations.hpp"

namespace trainyard::api::trainyard_api {
namespace {

namespace own = shapes::trainyard;

class Explanations {
 public:
  Explanations(const Settings& settings, const Services& services)
      : services_(services), authorizer_(settings, services) {}

  Outcome<own::ExplainJobResponse> of(const Context& context,
                                      const own::ExplainJobRequest& request) const {
    const auto rights = explain_rights(services_, authorizer_, context);
    const auto found = services_.control.explain({context.region, *request.job_name}, rights);
    own::ExplainJobResponse out;
    out.job_name = request.job_name;
    out.waiting = false;
    if (!found && found.error().kind == Kind::conflict) return out;
    if (!found && found.error().kind == Kind::not_found)
      return validation_exception("Requested resource not found.");
    if (!found) return found.error();
    out.job_name = found->job.name;
    out.waiting = true;
    set_unless_empty(out.wait_reason, found->reason);
    out.start_time = found->starts;
    out.complete = found->whole;
    out.changes.emplace();
    for (const auto& answer : found->answers) out.changes->push_back(start_change_of(answer));
    return out;
  }

 private:
  const Services& services_;
  const Authorizer authorizer_;
};

}  // namespace

void add_explanations(OperationTable& table, const Settings& settings, const Services& services) {
  table.add<own::ExplainJob>([explanations = std::make_shared<Explanations>(settings, services)](
                                 const Context& context, const own::ExplainJobRequest& request) {
    return explanations->of(context, request);
  });
}

}  // namespace trainyard::api::trainyard_api
