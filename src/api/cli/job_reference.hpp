// Finds the job that a command line names: one resolver for all commands.
//
// A reference is a training job's name, a Batch job's id or the beginning of one, or the name of a
// Batch job, which need not be unique; also an ARN that ends with one of these. "REFERENCE:7" is a
// child of an array, "REFERENCE#1" a node of a multi-node parallel job, as in Batch's own ids.
//
// Threads: plain values; find_job() is confined to the client's thread. Errors: invalid (no such
// form, no such child or node), not_found, conflict (several jobs, with a list of them), and those
// of the client.
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

  // "4b7d:7", "4b7d#1"
  std::string text() const;
};
// Errors: invalid.
Result<JobReference> parse_job_reference(const std::string& text);

struct FoundJob {
  JobView job;
  std::optional<uint32_t> node;  // if the reference names one

  // The id by which Batch knows the job or its node; of others the name.
  std::string id() const;
};

// The jobs to which a command may refer, if several have the same name.
enum class Meant { any, unfinished };

// Formats the candidates of an ambiguous reference: id, name, status and age of each.
std::string candidates_table(const Looks& looks, const std::vector<JobView>& jobs, Instant now);

// An exact name or id comes first, then the jobs in queues that ListJobs finds by the reference.
Result<FoundJob> find_job(client::Client& client, const Looks& looks, Instant now,
                          const std::string& text, Meant meant);

}  // namespace trainyard::cli
