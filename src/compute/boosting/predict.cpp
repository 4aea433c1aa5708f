#include "boosting/predict.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "base/json.hpp"
#include "base/text.hpp"
#include "boosting/model_files.hpp"
#include "boosting/rows/table_decoder.hpp"
#include "boosting/training/checkpoints.hpp"
#include "os/files.hpp"

namespace trainyard::boosting {
namespace {

constexpr size_t kTypeShown = 64;
constexpr size_t kFoldModelsMax = 1000;

std::string type_of(std::string_view content_type) {
  return to_lower(trim(split(content_type, ';')[0]));
}

Result<Booster> load_booster(const std::string& path) {
  auto booster = TRY(Booster::make({}));
  TRY(booster.load(TRY(os::read_file(path, kModelBytesMax))).in(path));
  return booster;
}

Result<std::string> objective_of(const Booster& booster) {
  const Json config = TRY(parse_json(TRY(booster.config())));
  const auto at = Json::json_pointer("/learner/objective/name");
  if (!config.contains(at) || !config.at(at).is_string())
    return corrupt("the model has no objective");
  return config.at(at).get<std::string>();
}

// Reads the rows of a request. Rows of csv must have all columns of the model.
Result<Table> read_request(std::string_view request, const PredictOptions& options,
                           uint64_t columns) {
  DecoderOptions decoder_options;
  decoder_options.has_labels = false;
  decoder_options.format = TRY(parse_table_format(options.content_type));
  Table table;
  TableDecoder decoder(decoder_options, table);
  TRY(decoder.push(request));
  TRY(decoder.finish());
  if (table.rows() == 0) return invalid("the request has no rows");
  const bool fits = table.is_sparse ? table.columns <= columns : table.columns == columns;
  if (!fits)
    return invalid("Feature size of " + std::string(table.is_sparse ? "libsvm" : "csv") +
                   " inference data " + std::to_string(table.columns) +
                   " is not consistent with feature size of trained model " +
                   std::to_string(columns) + ".");
  return table;
}

float majority(const std::vector<Predictions>& all, size_t at) {
  std::map<float, size_t> votes;
  for (const Predictions& each : all) ++votes[each.values[at]];
  const auto most = std::ranges::max_element(
      votes, [](const auto& left, const auto& right) { return left.second < right.second; });
  return most->first;
}

Predictions together(const std::vector<Predictions>& all, bool votes) {
  Predictions result = all.front();
  if (all.size() == 1) return result;
  for (size_t at = 0; at < result.values.size(); ++at) {
    double sum = 0;
    for (const Predictions& each : all) sum += double(each.values[at]);
    result.values[at] = votes ? majority(all, at) : float(sum / double(all.size()));
  }
  return result;
}

std::string number(float value) {
  char text[48];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string as_csv(const Predictions& predictions) {
  std::string text;
  for (size_t i = 0; i < predictions.values.size(); ++i)
    text += number(predictions.values[i]) + ((i + 1) % predictions.per_row == 0 ? "\n" : ",");
  return text;
}

Json score_of(const Predictions& predictions, size_t row) {
  const size_t at = row * predictions.per_row;
  if (predictions.per_row == 1) return Json{{"score", predictions.values[at]}};
  Json scores = Json::array();
  for (size_t i = 0; i < predictions.per_row; ++i) scores.push_back(predictions.values[at + i]);
  return Json{{"score", std::move(scores)}};
}

}  // namespace

Result<StoredModel> load_stored_model(const std::string& directory) {
  StoredModel model;
  const std::string single = directory + "/" + kModelFile;
  if (os::exists(single)) {
    model.boosters.push_back(TRY(load_booster(single)));
  } else {
    for (size_t fold = 0; fold < kFoldModelsMax; ++fold) {
      const std::string path = directory + "/" + model_file_of_fold(fold);
      if (!os::exists(path)) break;
      model.boosters.push_back(TRY(load_booster(path)));
    }
  }
  if (model.boosters.empty()) return not_found(single + " not found");
  model.objective = TRY(objective_of(model.boosters.front()).in(directory));
  return model;
}

Result<std::string> predict(const StoredModel& model, std::string_view request,
                            const PredictOptions& options) {
  const std::string accept = type_of(options.accept);
  if (accept != "text/csv" && accept != "application/json" && accept != "application/jsonlines")
    return invalid("'" + shorten(accept, kTypeShown) +
                   "' is not one of ['text/csv', 'application/json', 'application/jsonlines']");
  const uint64_t columns = TRY(model.boosters.front().columns());
  Table table = TRY(read_request(request, options, columns));
  MatrixOptions matrix_options;
  matrix_options.threads = options.threads;
  matrix_options.columns = columns;
  const DataMatrix matrix = TRY(DataMatrix::make(std::move(table), matrix_options));
  std::vector<Predictions> all;
  for (const Booster& booster : model.boosters) all.push_back(TRY(booster.predict(matrix)));
  for (const Predictions& each : all)
    if (each.values.size() != all.front().values.size())
      return corrupt("the models of a cross validation have different numbers of classes");
  const Predictions predictions = together(all, model.objective == "multi:softmax");
  if (accept == "text/csv") return as_csv(predictions);
  Json list = Json::array();
  std::string lines;
  for (size_t row = 0; row < matrix.rows(); ++row) {
    Json score = score_of(predictions, row);
    if (accept == "application/jsonlines") {
      lines += dump(score) + "\n";
    } else {
      list.push_back(std::move(score));
    }
  }
  return accept == "application/json" ? dump(Json{{"predictions", std::move(list)}}) + "\n" : lines;
}

}  // namespace trainyard::boosting
