// Decides whether a host may run another job after its first one.
//
// The owner of a queue allows it by the tag kReuseTag with the value kReuseYes: jobs are isolated
// less (docs/decisions/26), and start faster. A job may reuse the host of another only if their
// requests are equal except for arguments and variables.
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

// Returns true if the job may reuse a host, and leave its host to other jobs. `queues`: those with
// the tag.
bool may_reuse(const domain::Job& job, const std::set<domain::JobKey>& queues);

// Returns true if `next` may reuse the host of `previous`. Requires: may_reuse() is true for both.
bool may_follow(const domain::Job& previous, const domain::Job& next);

}  // namespace trainyard::reconcile
