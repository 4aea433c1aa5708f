#include "train/evaluate.hpp"

#include <algorithm>
#include <numeric>

#include "base/check.hpp"
#include "train/image.hpp"

namespace trainyard::train {
namespace {

constexpr size_t kImagesPerLine = 4;
constexpr std::string_view kGap = "   ";

// Pads to a width. Requires: characters of one byte each.
std::string padded(std::string text, size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

}  // namespace

Result<Evaluation> evaluate(const Model& model, const Table& table) {
  if (table.rows() > 0 && table.columns != model.shape.inputs) {
    return invalid("evaluating: the rows have " + std::to_string(table.columns) +
                   " features, but the model has " + std::to_string(model.shape.inputs) +
                   " inputs");
  }
  Evaluation evaluation;
  Workspace workspace;
  std::vector<float> input(table.columns);
  for (size_t row = 0; row < table.rows(); ++row) {
    const auto features = table.row(row);
    for (size_t i = 0; i < features.size(); ++i) input[i] = features[i] / model.input_scale;
    evaluation.predicted.push_back(predict(model.shape, model.parameters, input, workspace));
    evaluation.correct += evaluation.predicted.back() == table.labels[row] ? 1 : 0;
  }
  return evaluation;
}

std::vector<size_t> first_rows(const Table& table, size_t count) {
  std::vector<size_t> rows(std::min(count, table.rows()));
  std::iota(rows.begin(), rows.end(), size_t{0});
  return rows;
}

std::vector<size_t> first_mistakes(const Table& table, const Evaluation& evaluation, size_t count) {
  std::vector<size_t> rows;
  for (size_t row = 0; row < table.rows() && rows.size() < count; ++row) {
    if (evaluation.predicted[row] != table.labels[row]) rows.push_back(row);
  }
  return rows;
}

std::string draw_predictions(const Model& model, const Table& table, const Evaluation& evaluation,
                             const std::vector<size_t>& rows) {
  CHECK(model.image_width > 0, "draw_predictions needs a model of images");
  std::string text;
  for (size_t begin = 0; begin < rows.size(); begin += kImagesPerLine) {
    const size_t end = std::min(begin + kImagesPerLine, rows.size());
    std::vector<std::vector<std::string>> images;
    for (size_t i = begin; i < end; ++i) {
      images.push_back(draw_image(table.row(rows[i]), model.image_width, model.input_scale));
    }
    for (size_t line = 0; line < images[0].size(); ++line) {
      for (const auto& image : images) text.append(kGap).append(image[line]);
      text += '\n';
    }
    for (size_t i = begin; i < end; ++i) {
      const int32_t predicted = evaluation.predicted[rows[i]];
      const int32_t label = table.labels[rows[i]];
      const std::string caption = predicted == label ? "says " + std::to_string(predicted)
                                                     : "says " + std::to_string(predicted) +
                                                           ", is " + std::to_string(label);
      text.append(kGap).append(padded(caption, 2 * model.image_width));
    }
    text += "\n\n";
  }
  return text;
}

}  // namespace trainyard::train
