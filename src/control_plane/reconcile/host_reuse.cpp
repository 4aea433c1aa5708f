#include "reconcile/host_reuse.hpp"

#include <algorithm>

#include "batch/arn.hpp"

namespace trainyard::reconcile {
namespace {

// Returns the parts of a request that determine how its host is set up.
Json host_setup_of(const domain::JobSpec& spec) {
  Json json = to_json(spec);
  for (const char* member : {"arguments", "environment", "request"}) json.erase(member);
  // Only queue and definition stay: the other members belong to a single job, or matter only until
  // it is placed.
  json["batch"] = {{"queue", spec.queue->name}, {"definition", spec.definition}};
  return json;
}

}  // namespace

bool allows_reuse(const std::vector<domain::Tag>& tags_of_queue) {
  return std::ranges::any_of(tags_of_queue, [](const domain::Tag& tag) {
    return tag.key == kReuseTag && tag.value == kReuseYes;
  });
}

std::set<domain::JobKey> queues_with_reuse(const batch::Catalog& catalog, ledger::Ledger& ledger,
                                           const std::string& account) {
  std::set<domain::JobKey> queues;
  for (const auto& [key, queue] : catalog.queues) {
    const auto tags = ledger.tags(batch::arn_of(account, key.region, batch::kQueueArn, key.name));
    if (tags && allows_reuse(*tags)) queues.insert(key);
  }
  return queues;
}

bool may_reuse(const domain::Job& job, const std::set<domain::JobKey>& queues) {
  return job.spec.queue && job.spec.hosts() == 1 &&
         queues.contains({job.key.region, job.spec.queue->name});
}

bool may_follow(const domain::Job& previous, const domain::Job& next) {
  if (previous.account != next.account || previous.key.region != next.key.region ||
      previous.spec.queue->name != next.spec.queue->name)
    return false;
  if (previous.parent != 0 && previous.parent == next.parent) return true;  // children of one array
  return host_setup_of(previous.spec) == host_setup_of(next.spec);
}

}  // namespace trainyard::reconcile
