// Scores any bytes as a request of every content type: a reply has a finite score for each row.
// decoder: src/compute/forest/predict.cpp
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "forest/predict.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard;
  static forest::Forest model = [] {
    forest::Forest made({.dimensions = 2, .trees = 2, .samples_per_tree = 4, .seed = 1});
    for (int i = 0; i < 9; ++i) made.update(std::vector<float>{float(i), float(i % 3)});
    return made;
  }();
  const std::string_view request(reinterpret_cast<const char*>(data), size);
  for (const char* type : {"text/csv", "application/json", "application/jsonlines",
                           "application/x-recordio-protobuf", "text/html"}) {
    const auto reply = forest::predict(model, request, {.content_type = type, .attribution = true});
    if (!reply) continue;
    const auto scores = parse_json(*reply);
    if (!scores) __builtin_trap();
    for (const Json& each : scores->at("scores"))
      if (!std::isfinite(each.at("score").get<double>())) __builtin_trap();
    for (const char* accept : {"application/jsonlines", "application/x-recordio-protobuf"})
      if (!forest::predict(model, request, {.content_type = type, .accept = accept}))
        __builtin_trap();
  }
  return 0;
}
