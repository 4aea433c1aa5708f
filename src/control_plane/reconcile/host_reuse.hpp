// Decides which host may run another job after its first one.
//
// A queue allows it by the tag kReuseTag with the value kReuseYes: its owner gives up some
// isolation between its jobs (docs/decisions/26) to save the time of making a host. A job may
// follow another one only if their requests are equal except for arguments and variables.
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

bool allows_reuse(const std::vector<domain::Tag>& tags_of_queue);

// True if the job's host may be reused by another job, or be a reused one. `queues`: those with the
// tag.
bool may_reuse(const domain::Job& job, const std::set<domain::JobKey>& queues);

// True if `next` may have the host that `former` had. Requires: both may_reuse().
bool may_follow(const domain::Job& former, const domain::Job& next);

}  // namespace trainyard::reconcile
