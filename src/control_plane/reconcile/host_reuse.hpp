// Decides whether a host may run another job after its first one.
//
// The owner of a queue allows reuse with the tag kReuseTag and the value kReuseYes: jobs then start
// faster, but are less isolated from each other (docs/decisions/26). A job may reuse the host of an
// earlier job of its queue if both are children of one array, or if both hosts would be set up
// alike: their requests may differ only in arguments, environment variables and members that do
// not affect the host, such as the priority.
//
// Threads: callable from anywhere; all but queues_with_reuse() are pure functions. Errors: none.
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

// Returns true if the tags of a queue allow its jobs to reuse hosts.
bool allows_reuse(const std::vector<domain::Tag>& tags_of_queue);

// Returns the queues whose tags allow reuse. A queue whose tags cannot be read is left out.
std::set<domain::JobKey> queues_with_reuse(const batch::Catalog& catalog, ledger::Ledger& ledger,
                                           const std::string& account);

// Returns true if the job may run on a reused host and leave its own host to later jobs: it has one
// host, and its queue is in `queues`, the result of queues_with_reuse().
bool may_reuse(const domain::Job& job, const std::set<domain::JobKey>& queues);

// Returns true if `next` may reuse the host of `previous`. Requires: may_reuse() is true for both.
bool may_follow(const domain::Job& previous, const domain::Job& next);

}  // namespace trainyard::reconcile
