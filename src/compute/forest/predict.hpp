// Scores the rows of a request, in the formats of the requests and replies of SageMaker's
// endpoints.
//
//   content types  text/csv (without labels), application/json, application/jsonlines,
//                  application/x-recordio-protobuf
//   replies        application/json               {"scores":[{"score":0.9},{"score":1.7}]}
//                  application/jsonlines          {"score":0.9}, a line for each row
//                  application/x-recordio-protobuf  records with the label "score"
//
//   {"instances":[{"features":[1,2]},{"data":{"features":{"values":[1,2]}}}]}   application/json
//   {"features":{"keys":[0,7],"shape":[10],"values":[1,2]}}                     a sparse row
//
// With `attribution`, a JSON reply also has the contribution of each dimension to a score. With
// `update`, the forest learns each row after scoring it.
//
// Threads: confined to one. Errors: invalid, naming the row.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "forest/trees/forest.hpp"

namespace trainyard::forest {

struct PredictOptions {
  std::string content_type = "text/csv";
  std::string accept = "application/json";
  bool attribution = false;
  bool update = false;
};

inline constexpr size_t kRequestBytesMax = size_t{1} << 30;

// Returns the reply.
Result<std::string> predict(Forest& forest, std::string_view request,
                            const PredictOptions& options);

}  // namespace trainyard::forest
