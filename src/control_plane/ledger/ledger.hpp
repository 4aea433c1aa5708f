// Ledger is the durable state of the control plane: a log of commands, and the tables that result
// from applying them. Only control writes; any thread may read. Embedded in SQLite (WAL,
// synchronous FULL): one commit() is one fsync, however many commands it holds.
//
// Threads: commit() from one thread at a time; reads from anywhere, they do not wait for a commit.
//          (":memory:" has one connection, so that calls wait for each other.)
// Errors:  exhausted (disk full), corrupt, unavailable (locked), not_found, invalid (a token that
//          no list returned), conflict (a newer version or another program wrote it; a sequence
//          number that is not the next).
// Format:  docs/formats/ledger.md.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_faults.hpp"
#include "base/json.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "domain/array.hpp"
#include "domain/job.hpp"
#include "domain/record.hpp"
#include "domain/stage.hpp"
#include "domain/usage.hpp"

namespace trainyard::ledger {

// A command as the ledger stores it, with everything that a replay needs.
struct CommandRecord {
  uint64_t sequence = 0;  // from 1, without gaps; the oldest are dropped beyond kCommandsMax
  Instant at;
  std::string kind;
  Json body;
};

// A resource (a queue, an environment, a definition, ..) as its owning module wrote it. The ledger
// does not interpret the body.
struct ResourceRecord {
  std::string kind;  // "job_queue"
  domain::JobKey key;
  uint32_t revision = 0;  // 1, 2, .. for a definition; 0: this kind has no revisions
  bool active = true;
  Json body;
};
// The only kind with revisions.
inline constexpr std::string_view kDefinitionKind = "job_definition";
struct ResourceWrite {
  ResourceRecord resource;  // the new record, or the removed one
  bool remove = false;
};
// Checks that the module that owns a resource can read it. Errors: what is wrong with it.
using ResourceCheck = std::function<Result<void>(const ResourceRecord&)>;

// The changes of one commit.
struct Batch {
  std::vector<CommandRecord> commands;
  std::vector<domain::Job> jobs;  // rows to insert or replace
  // All tags of an ARN, which replace its stored tags.
  std::vector<std::pair<std::string, std::vector<domain::Tag>>> tags;
  std::vector<ResourceWrite> resources;
  // nullopt removes the usage.
  std::vector<std::pair<domain::ShareKey, std::optional<domain::Usage>>> usages = {};
  // nullptr removes the record.
  std::vector<std::pair<domain::RecordKey, std::shared_ptr<const domain::Record>>> records = {};
};

// Selects jobs, except the children of arrays.
struct JobQuery {
  std::string region;
  std::vector<std::string> names;  // only these jobs; empty: all
  std::string name_contains;
  // True: also selects jobs in queues whose display name contains name_contains.
  bool or_display_name_contains = false;
  // Selects jobs in queues with this display name; if `id_prefix` is not "", also jobs in queues
  // whose name (a Batch job's id) begins with it. display_name "": all jobs.
  std::string display_name, id_prefix;
  std::optional<Instant> created_after, created_before, modified_after, modified_before;
  std::vector<domain::JobState> states;            // empty: all
  std::optional<std::string> queue;                // "": jobs without a queue; nullopt: all
  bool training = false;                           // true: jobs without a queue, and service jobs
  std::optional<domain::Stage> stage;              // jobs in queues in this stage
  std::optional<domain::WarmPoolState> warm_pool;  // jobs with a warm pool in this state
  enum class Sort { name, created, state } sort = Sort::created;
  bool descending = true;
  std::string token;  // JobPage::next_token of the previous page; "": the first page
  size_t jobs_max = 10;
};

// Selects the created children of an array, in the order of their index.
struct ChildQuery {
  domain::JobNumber array = 0;
  uint32_t first = 0;                              // the smallest index
  uint32_t end = uint32_t(domain::kArraySizeMax);  // one past the largest index
  std::optional<domain::Stage> stage;
  size_t children_max = 100;  // at most kPageJobsMax
};

// Selects definitions by name, the newest revision of each first.
struct DefinitionQuery {
  std::string region;
  std::string name;  // "": all
  std::optional<uint32_t> revision;
  std::optional<bool> active;
  std::string after_name;  // "": from the first; else after that name and revision
  uint32_t after_revision = 0;
  size_t definitions_max = 100;  // at most kPageJobsMax
};

struct JobPage {
  std::vector<domain::Job> jobs;
  std::string next_token;  // "" at the end
};

class Ledger {
 public:
  virtual ~Ledger() = default;
  // Writes the batch. It is durable when commit() returns; after an error nothing has changed.
  virtual Result<void> commit(const Batch& batch) = 0;
  // Returns "" as long as commits are possible. Once a sync has failed, returns the reason: the
  // contents of the disk are unknown until the ledger is opened again, so every later commit fails
  // with `unavailable`, and the process that writes must end.
  virtual std::string failure() { return ""; }
  virtual uint64_t last_sequence() = 0;
  virtual domain::JobNumber last_job_number() = 0;  // including numbers that arrays have reserved
  // Returns the jobs that may still change, which control keeps in memory.
  virtual Result<std::vector<domain::Job>> live_jobs() = 0;
  virtual Result<domain::Job> find_job(const domain::JobKey& key) = 0;
  virtual Result<domain::Job> find_job(domain::JobNumber number) = 0;
  // Returns the array that has reserved this number for one of its children.
  virtual Result<domain::Job> find_array_of(domain::JobNumber child) = 0;
  virtual Result<std::vector<domain::Job>> children(const ChildQuery& query) = 0;
  // Counts the created children.
  virtual Result<domain::ChildCounts> count_children(domain::JobNumber array) = 0;
  virtual Result<JobPage> list_jobs(const JobQuery& query) = 0;
  virtual Result<std::vector<domain::Tag>> tags(const std::string& arn) = 0;
  // Returns all resources except definitions.
  virtual Result<std::vector<ResourceRecord>> resources() = 0;
  virtual Result<domain::Records> records() = 0;
  // Returns the usage of each share of each queue.
  virtual Result<domain::Usages> usages() = 0;
  virtual Result<std::vector<ResourceRecord>> definitions(const DefinitionQuery& query) = 0;
  // Calls `each` for every stored command, in order.
  virtual Result<void> replay(const std::function<Result<void>(const CommandRecord&)>& each) = 0;
};

// The largest page of list_jobs.
inline constexpr size_t kPageJobsMax = 1'000;
// Limits the concurrent readers, each with a connection and its cache; further readers wait.
inline constexpr size_t kReadersMax = 8;

// Limits the log to some 100 MB. The tables have the whole state, so only history is dropped: a
// replay covers the last days.
inline constexpr uint64_t kCommandsMax = 250'000;
// Commands dropped at once: some milliseconds of one commit.
inline constexpr uint64_t kCommandsDroppedAtOnce = 1'000;

// Opens or creates the database file at `path`; ":memory:" for tests and the simulator. Sets
// resources aside that `check` rejects. Lifetime: `faults`, for tests, outlives the ledger.
Result<std::unique_ptr<Ledger>> open_sqlite(const std::string& path,
                                            uint64_t commands_max = kCommandsMax,
                                            FileFaults* faults = nullptr,
                                            const ResourceCheck& check = {});

// Reads the API layer's records (users, policies); also works while a server runs.
// Errors: not_found: no ledger.
Result<domain::Records> read_records(const std::string& path);

}  // namespace trainyard::ledger
