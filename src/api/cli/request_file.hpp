// Reads a job file: CreateTrainingJob's request, as JSON or TOML, with a short form for common settings.
//
// Short keys begin with a lower-case letter, the API's own with a capital; the API's own win. Local paths as
// channels (./data, ../data, /data, file:///data) and [code] become uploads: the files and their destination,
// so that the request can name it.
//
// Threads: pure. Errors: invalid, naming the key and the expected value.
#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::cli {

struct Upload {
  std::string channel;
  std::string path;  // of a directory or a file, as written
  std::string bucket;
  std::string prefix;  // "jobs/mnist/input/train/"; the paths below the directory follow it
};

struct Submission {
  Json request;  // of CreateTrainingJob
  std::vector<Upload> uploads;
};

struct FileFacts {
  std::string name;    // of the file: "job.toml"
  std::string region;  // the default bucket is trainyard-REGION
  Instant now;         // generated names end in it
};

// `text` is JSON when it begins with '{', else TOML. `name_given`: "" = the file's.
Result<Submission> read_submission(const std::string& text, const FileFacts& facts,
                                   const std::string& name_given);

// TOML as JSON: dates become their text. Errors: invalid, with the line.
Result<Json> json_of_toml(const std::string& text, const std::string& name);

}  // namespace trainyard::cli
