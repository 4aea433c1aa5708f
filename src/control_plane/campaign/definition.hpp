// Describes a campaign as its author wrote it: a query of the catalogue whose rows become jobs, the
// request template of the jobs, and the regions where they may run. docs/formats/campaign.md has
// the grammar.
//
// The query's columns: `region` is where the data is, `data` its s3:// URI, `bytes` and `hours` (of
// the job) determine the cheapest region, `name` is the label of the row. Templates use these and
// any other columns.
//
// Threads: plain values, pure functions. Errors: invalid, naming the member.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::campaign {

// The size of a definition's JSON; a template has a few kilobytes.
inline constexpr size_t kDefinitionBytesMax = 256 << 10;
// A job's name is CAMPAIGN-ROW-TRY, and AWS allows 63 characters.
inline constexpr size_t kNameBytesMax = 40;
inline constexpr int64_t kRetriesMax = 10;  // as Batch
// Active jobs per region: more would burden its queue.
inline constexpr int64_t kAtOnceDefault = 1000;
inline constexpr int64_t kAtOnceMax = 10'000;
inline constexpr size_t kWatchesMax = 32;

enum class Rule {
  data,      // runs where the data is
  cheapest,  // runs where job and copy together cost least
  // Runs where the data is if there is free capacity now; else in the cheapest region with free
  // capacity.
  capacity,
};
std::string_view to_string(Rule);

struct Placement {
  Rule rule = Rule::data;
  std::vector<std::string> regions;  // the regions to choose from; empty: all that the server knows
  // A template of the URI to which data of another region is copied:
  // "s3://data-{job.region}/{name}/". "": data is not copied, and its jobs run where it is.
  std::string copy_to;
};

// Selects the metrics that are read from the results of jobs.
struct ResultMetrics {
  std::string best;     // the metric by which results are compared; "": none
  bool highest = true;  // true: the highest value is best; false: the lowest
  std::string rate;     // a metric of samples per second, summed per region; "": none
};

// Adds a row to the catalogue for each new object below a prefix.
struct Watch {
  std::string region;  // "": the server's own
  std::string bucket;
  std::string prefix;
  std::string suffix;              // only keys with this suffix
  std::string table = "datasets";  // in the catalogue
  // By column: its text, a template with {uri} {key} {bucket} {region} {bytes} {stem}.
  std::map<std::string, std::string> row;
};

enum class RequestKind { training_job, batch_job };

struct Definition {
  std::string name;
  std::string query;
  RequestKind request_kind = RequestKind::training_job;
  Json request;  // a template of CreateTrainingJob's or SubmitJob's input, with {columns}
  Placement placement;
  ResultMetrics result_metrics;
  int64_t retries = 0;               // further jobs for a row whose job failed
  int64_t at_once = kAtOnceDefault;  // active jobs per region
  bool standing = false;             // the query is repeated, and new rows also become jobs
  std::string key = "name";          // the column that identifies a row of a standing campaign
  std::vector<Watch> watches;
};

Result<Definition> read_definition(std::string_view json);
Json to_json(const Definition&);  // in the format of read_definition()

// Rejects definitions that can be read but not started: placement rules without the data that they
// need. It is separate from reading, since campaigns that were stored before this check continue.
Result<void> check(const Definition&);

}  // namespace trainyard::campaign
