// Names the files of a trained model, as SageMaker's image does.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace trainyard::boosting {

inline const std::string kModelFile = "xgboost-model";

// Returns the name for one of the models of a cross validation.
inline std::string model_file_of_fold(size_t fold) {
  return kModelFile + "-" + std::to_string(fold);
}

}  // namespace trainyard::boosting
