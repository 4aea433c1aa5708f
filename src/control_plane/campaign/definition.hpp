// A campaign as its author wrote it: a query of the catalogue whose rows become jobs, the request that each row fills in,
// and where the jobs may run. docs/formats/campaign.md has the grammar.
//
// What the query's columns mean: `region` is where the data lies, `data` its s3:// URI, `bytes` and `hours` (of the
// job) what choosing the cheapest reckons with, `name` what people call the row. All others are the template's.
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

inline constexpr size_t kDefinitionBytesMax = 256 << 10;  // of its JSON; a template has some kilobytes
inline constexpr size_t kNameBytesMax = 40;  // a job's name is CAMPAIGN-ROW-TRY, and AWS allows 63
inline constexpr int64_t kRetriesMax = 10;   // as Batch
inline constexpr int64_t kAtOnceDefault =
    1000;  // jobs of one region under way: what its queue takes without pain
inline constexpr int64_t kAtOnceMax = 10'000;
inline constexpr size_t kWatchesMax = 32;

enum class Rule {
  data,      // where the data lies
  cheapest,  // where job and copy together cost least
  capacity,  // where the data lies if there is room just now; else the cheapest place with room
};
std::string_view to_string(Rule);

struct Placement {
  Rule rule = Rule::data;
  std::vector<std::string> regions;  // that may be chosen; empty: all that the server knows
  // Where data is copied that lies elsewhere; a template: "s3://data-{job.region}/{name}/". "" = it is not, and jobs
  // with data run where it lies.
  std::string copy_to;
};

// What the results are read for.
struct Wanted {
  std::string best;     // the metric that decides; "" = none
  bool highest = true;  // else the lowest is best
  std::string rate;     // a metric of samples per second, added up per region; "" = none
};

// Objects that come become rows of the catalogue: each once, by the columns of `row`.
struct Watch {
  std::string region;  // "" = the server's own
  std::string bucket;
  std::string prefix;
  std::string suffix;                      // only keys that end so
  std::string table = "datasets";          // of the catalogue
  std::map<std::string, std::string> row;  // column -> text with {uri} {key} {bucket} {region} {bytes} {stem}
};

enum class Face { training_job, batch_job };

struct Definition {
  std::string name;
  std::string query;
  Face face = Face::training_job;
  Json request;  // of CreateTrainingJob or SubmitJob, with {columns}
  Placement placement;
  Wanted wanted;
  int64_t retries = 0;               // of a row whose job failed
  int64_t at_once = kAtOnceDefault;  // jobs under way per region
  bool standing = false;             // the query is asked again and again: rows that are new become jobs too
  std::string key = "name";          // the column by which a standing campaign knows a row again
  std::vector<Watch> watches;
};

Result<Definition> read_definition(std::string_view json);
Json to_json(const Definition&);  // read_definition reads it

// What can be read and not be kept: a rule of placement that nothing is known for. Apart from reading, since campaigns
// that were kept before it was refused go on.
Result<void> check(const Definition&);

}  // namespace trainyard::campaign
