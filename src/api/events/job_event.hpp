// Makes events of jobs' changes, in the shapes of EventBridge's own.
//
// Threads: pure functions. Errors: those of the descriptions (internal).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diagnosis/rank_watch.hpp"
#include "domain/job.hpp"
#include "notify/event.hpp"

namespace trainyard::api::events {

// Announced records what was announced of a job.
struct Announced {
  size_t phases = 0;   // of a training job: the first of its transitions
  std::string status;  // of a job of Batch
  // Set once the job is over: when that was announced.
  std::optional<Instant> over = {};
  bool operator==(const Announced&) const = default;
};

// Returns what is announced once all events of the job have been put.
Announced announced_of(const domain::Job& job, Instant now);

// The events of the job that are due, in order: "SageMaker Training Job State Change" for each new
// phase (SecondaryStatus), "Batch Job State Change" if the status has changed. Environments of
// containers, which may have secrets, are left out.
Result<std::vector<notify::Event>> due_events(const domain::Job& job, const Announced& before,
                                              Instant now);

// The source of events that AWS does not have. Clients may not use it.
inline constexpr const char* kOwnSource = "trainyard";

// The event "Training Job Rank Fault" of the source "trainyard": a rank, loader or link that slows
// the job down was found, or does so no more.
notify::Event fault_event(const domain::Job& job, const diagnosis::FaultNews& news, Instant now);

}  // namespace trainyard::api::events
