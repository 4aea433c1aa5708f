// Reads a job file: CreateTrainingJob's request, as JSON or TOML, with a short form for common
// settings.
//
// Short keys begin with a lower-case letter, the API's keys with a capital; the API's keys take
// precedence. Local paths of channels (./data, ../data, /data, file:///data) and [code] become
// uploads, to whose destination the request refers. With code.entry the job runs in script mode,
// like an estimator of the SageMaker SDK: the sources are an archive, and the hyperparameters
// become arguments of the script. The sender adds a missing role, for which it queries the server's
// account.
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
  std::string path;  // of a directory or a file, as in the job file
  std::string bucket;
  std::string prefix;  // "jobs/mnist/input/train/"; keys are this and the path below the directory
  // Only of [code] with an entry, which is packed as one object (kSourceArchive): the script below
  // `path`.
  std::string entry = {};
};
inline constexpr const char* kSourceArchive = "sourcedir.tar.gz";

struct Submission {
  Json request;  // of CreateTrainingJob
  std::vector<Upload> uploads;
};

struct FileFacts {
  std::string name;    // of the file: "job.toml"
  std::string region;  // the default bucket is trainyard-REGION
  Instant now;         // the end of generated names
};

// Reads a job file. `text` is JSON if it begins with '{', else TOML. `name_given` replaces the
// file's name for the job, unless it is "".
Result<Submission> read_submission(const std::string& text, const FileFacts& facts,
                                   const std::string& name_given);

// Converts TOML to JSON; dates become text. Errors: invalid, with the line.
Result<Json> json_of_toml(const std::string& text, const std::string& name);

}  // namespace trainyard::cli
