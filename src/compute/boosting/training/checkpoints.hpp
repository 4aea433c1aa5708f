// Keeps the last checkpoints of a job in a directory, under SageMaker's names.
//
//   xgboost-checkpoint.7    the model after round 7, counted from 0; the library's format
//
// A file with this name is complete: while it is written, its name ends with .sagemaker-ignore. The
// agent marks a file that it uploads by NAME.sagemaker-uploading; such a file is not deleted.
//
// Threads: confined to one. Errors: of files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::boosting {

inline constexpr size_t kCheckpointsKept = 5;
inline constexpr size_t kModelBytesMax = size_t{4} << 30;  // a model is read into memory

struct Checkpoint {
  int64_t round = 0;
  std::string path;
};

class Checkpoints {
 public:
  // `directory` "": saves nothing.
  explicit Checkpoints(std::string directory) : directory_(std::move(directory)) {}
  // Returns at most kCheckpointsKept checkpoints, newest first; none if the directory does not
  // exist.
  Result<std::vector<Checkpoint>> list() const;
  Result<void> save(int64_t round, std::string_view model);

 private:
  std::string directory_;
};

}  // namespace trainyard::boosting
