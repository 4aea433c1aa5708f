// Finds the job that a command line refers to, for all commands.
//
// A reference is the name of a training job, the id of a Batch job or its beginning, the name of a
// Batch job, which need not be unique, or an ARN that ends with one of these. "REFERENCE:7" is a
// child of an array, "REFERENCE#1" a node of a multi-node parallel job, as in Batch's own ids.
//
// Threads: plain values; find_job() is confined to the client's thread. Errors: invalid (a
// malformed reference, an unknown child or node), not_found, conflict (several jobs match; the
// message lists them), and those of the client.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "cli/job_view.hpp"
#include "client/client.hpp"

namespace trainyard::cli {

struct JobReference {
  std::string name;  // without child and node
  std::optional<int64_t> child, node;

  // Formats "4b7d:7", "4b7d#1".
  std::string text() const;
};
// Errors: invalid.
Result<JobReference> parse_job_reference(const std::string& text);

struct FoundJob {
  JobView job;
  std::optional<uint32_t> node;  // if the reference names one

  // Returns Batch's id of the job or its node; for a training job, the name.
  std::string id() const;
};

// JobScope tells which jobs a command applies to, if several have the same name.
enum class JobScope { any, unfinished };

// Formats the candidates of an ambiguous reference: id, name, status and age of each.
std::string candidates_table(const OutputStyle& style, const std::vector<JobView>& jobs,
                             Instant now);

// Finds the job with exactly this name or id, else the Batch job that ListJobs finds by the
// reference.
Result<FoundJob> find_job(client::Client& client, const OutputStyle& style, Instant now,
                          const std::string& text, JobScope scope);

}  // namespace trainyard::cli
