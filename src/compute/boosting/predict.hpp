// Scores the rows of a request, in the formats of the requests and replies of SageMaker's
// endpoints.
//
//   content types  text/csv (without labels), text/libsvm, application/x-recordio-protobuf
//   replies        text/csv               a line for each row; the classes of multi:softprob
//                                         between commas
//                  application/json       {"predictions":[{"score":0.9},{"score":[0.1,0.9]}]}
//                  application/jsonlines  {"score":0.9}, a line for each row
//
// The models of a cross validation are combined: a score is the mean of their scores. A class
// (multi:softmax) is the one that most models predict, and the lowest of several such classes.
//
// Threads: confined to one. Errors: invalid, naming the line; corrupt: not a model.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "boosting/library/booster.hpp"

namespace trainyard::boosting {

struct PredictOptions {
  std::string content_type = "text/csv";
  std::string accept = "text/csv";
  int threads = 1;
};

inline constexpr size_t kRequestBytesMax = size_t{1} << 30;

// The model in a directory, or the models of a cross validation.
struct StoredModel {
  std::vector<Booster> boosters;
  std::string objective;
};
Result<StoredModel> load_stored_model(const std::string& directory);

// Returns the reply.
Result<std::string> predict(const StoredModel& model, std::string_view request,
                            const PredictOptions& options);

}  // namespace trainyard::boosting
