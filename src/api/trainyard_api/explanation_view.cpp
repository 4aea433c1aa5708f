#include "trainyard_api/explanation_view.hpp"

#include <cmath>
#include <cstdio>

#include "base/plural.hpp"
#include "batch/arn.hpp"
#include "shapes/batch.hpp"
#include "trainyard_api/operations.hpp"

namespace trainyard::api::trainyard_api {
namespace {

namespace own = shapes::trainyard;
using schedule::Change;
using schedule::ChangeKind;

std::string amount_text(double amount) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", amount);
  return text;
}

std::string share_text(const domain::Share& share) {
  std::string text = amount_text(share.cpus) + " vCPU, " +
                     amount_text(double(share.memory_bytes) / double(int64_t{1} << 30)) + " GiB";
  if (share.gpus > 0) text += ", " + counted(uint64_t(share.gpus), "GPU");
  return text;
}

std::string from_to(const Change& change) {
  return "from " + amount_text(change.from) + " to " + amount_text(change.to);
}

std::string description_of(const reconcile::ExplanationAnswer& answer) {
  const Change& change = answer.change;
  switch (change.kind) {
    case ChangeKind::raise_priority:
      return "raise its priority " + from_to(change);
    case ChangeKind::shrink_gang:
      return "request " + counted(uint64_t(change.to), "instance") + " instead of " +
             amount_text(change.from);
    case ChangeKind::change_type:
      return "request " + change.name + " (" + share_text(change.share) + ")";
    case ChangeKind::change_queue:
      return "submit it to job queue " + change.name;
    case ChangeKind::raise_limit:
      return "raise " + change.name + " " + from_to(change);
    case ChangeKind::raise_quota_share:
      return "raise the " + change.unit + " of quota share " + change.name + " " + from_to(change);
    case ChangeKind::cancel_job:
      return "stop " + answer.job_title + ", which waits before it";
    case ChangeKind::end_job:
      return "stop " + answer.job_title + ", which runs";
    case ChangeKind::add_machines:
      return "add " + counted(uint64_t(change.to), "machine") +
             (change.name.empty() ? "" : " " + change.name) + " (" + share_text(change.share) + ")";
  }
  return "";
}

bool may_submit(const Services& services, const Authorizer& authorizer, const Context& context,
                const domain::JobKey& key) {
  const auto catalog = services.control.batch_catalog();
  const auto* queue = catalog->queue(key);
  if (!queue) return false;
  return !authorizer.check(context, shapes::batch::kService,
                           queue->service ? "batch:SubmitServiceJob" : "batch:SubmitJob",
                           trainyard::batch::arn_of(context.principal.account, key.region,
                                                    trainyard::batch::kQueueArn, key.name));
}

}  // namespace

own::StartChange start_change_of(const reconcile::ExplanationAnswer& answer) {
  const Change& change = answer.change;
  own::StartChange out;
  out.kind = schedule::kChangeKinds.text(change.kind);
  out.description = description_of(answer);
  out.now = answer.now;
  out.start_time = answer.starts;
  set_unless_empty(out.job_name, answer.job.name);
  set_unless_empty(out.job_region, answer.job.region);
  set_unless_empty(out.name, change.name);
  set_unless_empty(out.unit, change.unit);
  if (change.to > 0) {
    out.from = change.from;
    out.to = change.to;
  }
  return out;
}

reconcile::ExplainRights explain_rights(const Services& services, const Authorizer& authorizer,
                                        const Context& context) {
  return {.may_see = context.may_see_job(), .may_use = [&](const domain::JobKey& queue) {
            return may_submit(services, authorizer, context, queue);
          }};
}

}  // namespace trainyard::api::trainyard_api
