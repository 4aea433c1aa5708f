// Decides which host may run another job after its own. Pure.
//
// Queues say so by a tag, kReuseTag, whose value is kReuseYes: people who own a queue give up some of what keeps its jobs
// apart (docs/decisions/26) for the time that making a host takes. Jobs follow each other only where they ask for the
// same in all but arguments and variables.
//
// Threads: pure functions.
#pragma once

#include <set>
#include <string_view>
#include <vector>

#include "domain/job.hpp"

namespace trainyard::reconcile {

inline constexpr std::string_view kReuseTag = "trainyard:reuse-hosts";
inline constexpr std::string_view kReuseYes = "true";

bool asks_for_reuse(const std::vector<domain::Tag>& tags_of_queue);

// Whether the job's host may be handed to another job, or be one that was handed to it. `queues`: those with the tag.
bool may_reuse(const domain::Job& job, const std::set<domain::JobKey>& queues);

// Whether `next` may have the host that `former` had. Requires: both may_reuse().
bool may_follow(const domain::Job& former, const domain::Job& next);

}  // namespace trainyard::reconcile
