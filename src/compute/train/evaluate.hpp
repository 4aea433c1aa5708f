// Evaluates a model on labelled rows: its predictions, its accuracy, and drawings of some of them.
//
// Threads: pure functions. Errors: invalid, if the rows do not fit the model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "train/model.hpp"
#include "train/table.hpp"

namespace trainyard::train {

struct Evaluation {
  std::vector<int32_t> predicted;  // by row
  size_t correct = 0;
  double accuracy() const {
    return predicted.empty() ? 0 : double(correct) / double(predicted.size());
  }
};

Result<Evaluation> evaluate(const Model& model, const Table& table);

// Draws the images of some rows, four on a line, with the model's prediction under each. Requires:
// model.image_width > 0; rows within the table.
std::string draw_predictions(const Model& model, const Table& table, const Evaluation& evaluation,
                             const std::vector<size_t>& rows);

// Return the first `count` rows, and the first `count` with a wrong prediction.
std::vector<size_t> first_rows(const Table& table, size_t count);
std::vector<size_t> first_mistakes(const Table& table, const Evaluation& evaluation, size_t count);

}  // namespace trainyard::train
