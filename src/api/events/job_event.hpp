// Makes the events that announce changes of jobs, in the shapes of AWS's events.
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

// Announced records which changes of a job were announced.
struct Announced {
  size_t phases = 0;   // of a training job: how many of its transitions
  std::string status;  // of a Batch job
  // Set once the end of the job was announced: the time of that.
  std::optional<Instant> over = {};
  bool operator==(const Announced&) const = default;
};

// Returns the record after all events of the job have been put.
Announced announced_of(const domain::Job& job, Instant now);

// Makes the events of the job that were not announced yet, in order: "SageMaker Training Job State
// Change" for each new phase (SecondaryStatus), "Batch Job State Change" if the status has changed.
// Environments of containers, which may have secrets, are left out.
Result<std::vector<notify::Event>> due_events(const domain::Job& job, const Announced& before,
                                              Instant now);

// The source of events that AWS does not have. PutEvents rejects it.
inline constexpr const char* kOwnSource = "trainyard";

// The event "Training Job Rank Fault" of the source "trainyard": a rank, loader or link that slows
// the job down was found, or no longer does so.
notify::Event fault_event(const domain::Job& job, const diagnosis::FaultNews& news, Instant now);

}  // namespace trainyard::api::events
