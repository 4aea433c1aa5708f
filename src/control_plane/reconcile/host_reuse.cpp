#include "reconcile/host_reuse.hpp"

#include <algorithm>

#include "batch/arn.hpp"

namespace trainyard::reconcile {
namespace {

// The properties from which hosts are made, and that containers see.
Json shape_of(const domain::JobSpec& spec) {
  Json json = to_json(spec);
  for (const char* own : {"arguments", "environment", "request"}) json.erase(own);
  // Queue and definition stay; properties of a single job, and those that matter only until it is
  // placed, are dropped.
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

bool may_follow(const domain::Job& former, const domain::Job& next) {
  if (former.account != next.account || former.key.region != next.key.region ||
      former.spec.queue->name != next.spec.queue->name)
    return false;
  if (former.parent != 0 && former.parent == next.parent) return true;  // children of one array
  return shape_of(former.spec) == shape_of(next.spec);
}

}  // namespace trainyard::reconcile
