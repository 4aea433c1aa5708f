// A Booster is a model of XGBoost's library, during training or complete.
//
// Threads: confined to one. Errors: invalid, with the library's message; corrupt: the bytes are not
// a model.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "boosting/library/data_matrix.hpp"

namespace trainyard::boosting {

struct Predictions {
  std::vector<float> values;
  size_t per_row = 1;  // multi:softprob has one for each class
};

struct Evaluation {
  std::string set;     // "train", "validation"
  std::string metric;  // "rmse"
  double value = 0;
};

struct EvaluatedSet {
  std::string name;
  const DataMatrix* matrix;
};

class Booster {
 public:
  // Makes an empty model. The matrices outlive the booster, which caches their predictions.
  static Result<Booster> make(std::span<const DataMatrix* const> matrices);
  // Replaces the model by a stored one. Call set() afterwards.
  Result<void> load(std::string_view model);
  Result<void> set(const std::string& parameter, const std::string& value);

  // Adds the trees of one round. `iteration` seeds the random choices of the round.
  Result<void> update(int64_t iteration, const DataMatrix& train);
  // Returns the metrics, sorted by set, then in the order in which the metrics were set.
  Result<std::vector<Evaluation>> evaluate(int64_t iteration,
                                           const std::vector<EvaluatedSet>& sets);
  Result<Predictions> predict(const DataMatrix& matrix, bool margin = false) const;

  // Returns the number of rounds in the model; 0 for a linear model.
  Result<int64_t> rounds() const;
  Result<uint64_t> columns() const;
  // Returns the model of the first `rounds` rounds.
  Result<Booster> first_rounds(int64_t rounds) const;
  Result<std::optional<std::string>> attribute(const std::string& name) const;
  Result<void> set_attribute(const std::string& name, const std::string& value);
  // Returns the model in the library's binary format, which all of its versions before 3 read.
  Result<std::string> save() const;
  Result<std::string> config() const;  // JSON

 private:
  struct Free {
    void operator()(void* handle) const;
  };
  explicit Booster(void* handle) : handle_(handle) {}

  std::unique_ptr<void, Free> handle_;
};

// Parses "[0]\ttrain-auc:0.98\tvalidation-auc:0.5".
Result<std::vector<Evaluation>> parse_evaluations(std::string_view line);

}  // namespace trainyard::boosting
