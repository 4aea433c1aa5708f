// Decides which host may run another job after its first one.
//
// A queue allows it by the tag kReuseTag with the value kReuseYes: its owner gives up some
// isolation between its jobs (docs/decisions/26) to save the time of making a host. A job may
// follow another one only if their requests are equal except for arguments and variables.
//
// Threads: pure functions, and queues_with_reuse(), callable from anywhere.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "batch/catalog.hpp"
#include "domain/job.hpp"
#include "ledger/ledger.hpp"

namespace trainyard::reconcile {

inline constexpr std::string_view kReuseTag = "trainyard:reuse-hosts";
inline constexpr std::string_view kReuseYes = "true";

bool allows_reuse(const std::vector<domain::Tag>& tags_of_queue);

// Returns the queues with the tag. A queue whose tags cannot be read is left out.
std::set<domain::JobKey> queues_with_reuse(const batch::Catalog& catalog, ledger::Ledger& ledger,
                                           const std::string& account);

// True if the job's host may be reused by another job, or be a reused one. `queues`: those with the
// tag.
bool may_reuse(const domain::Job& job, const std::set<domain::JobKey>& queues);

// True if `next` may have the host that `former` had. Requires: both may_reuse().
bool may_follow(const domain::Job& former, const domain::Job& next);

}  // namespace trainyard::reconcile
