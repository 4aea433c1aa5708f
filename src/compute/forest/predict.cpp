#include "forest/predict.hpp"

#include <cmath>
#include <span>
#include <vector>

#include "base/bytes/record_io.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "channels/tensor_record.hpp"
#include "forest/rows/row_decoder.hpp"

namespace trainyard::forest {
namespace {

constexpr std::string_view kJson = "application/json", kLines = "application/jsonlines",
                           kRecords = "application/x-recordio-protobuf", kCsv = "text/csv";
constexpr size_t kTypeShown = 64;

std::string type_of(std::string_view content_type) {
  return to_lower(trim(split(content_type, ';')[0]));
}

Error unknown_type(std::string_view type, bool has_csv) {
  return invalid("'" + shorten(type, kTypeShown) + "' is not one of [" +
                 (has_csv ? "'" + std::string(kCsv) + "', " : "") + "'" + std::string(kJson) +
                 "', '" + std::string(kLines) + "', '" + std::string(kRecords) + "']");
}

Result<float> to_feature(const Json& value) {
  if (!value.is_number()) return invalid("a feature is not a number");
  const auto number = value.get<float>();
  if (!std::isfinite(number)) return invalid("a feature is not a finite number");
  return number;
}

Error wrong_count(size_t found, size_t dimensions) {
  return invalid("the row has " + std::to_string(found) + " features, but feature_dim is " +
                 std::to_string(dimensions));
}

Result<std::vector<float>> sparse_features(const Json& features, const Json& values,
                                           size_t dimensions) {
  const Json& keys = features.at("keys");
  if (!keys.is_array() || keys.size() != values.size())
    return invalid("a sparse row needs as many keys as values");
  if (features.contains("shape")) {
    const Json& shape = features.at("shape");
    if (!shape.is_array() || shape.empty() || shape.back() != dimensions)
      return invalid("the shape must equal feature_dim " + std::to_string(dimensions));
  }
  std::vector<float> row(dimensions);
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!keys[i].is_number_unsigned() || keys[i].get<uint64_t>() >= dimensions)
      return invalid("invalid key " + shorten(dump(keys[i]), kTypeShown) +
                     ": must be an integer from 0 to " + std::to_string(dimensions - 1));
    row[keys[i].get<size_t>()] = TRY(to_feature(values[i]));
  }
  return row;
}

Result<std::vector<float>> features_of(const Json& instance, size_t dimensions) {
  const Json* at = &instance;
  if (at->is_object() && at->contains("data")) at = &at->at("data");
  if (!at->is_object() || !at->contains("features"))
    return invalid("a row must have the member 'features'");
  const Json& features = at->at("features");
  const bool is_object = features.is_object() && features.contains("values");
  const Json& values = is_object ? features.at("values") : features;
  if (!values.is_array()) return invalid("'features' is not an array of numbers");
  if (is_object && features.contains("keys")) return sparse_features(features, values, dimensions);
  if (values.size() != dimensions) return wrong_count(values.size(), dimensions);
  std::vector<float> row;
  for (const Json& value : values) row.push_back(TRY(to_feature(value)));
  return row;
}

using Rows = std::vector<float>;

Result<void> append(Rows& rows, const Json& instance, size_t number, size_t dimensions) {
  const auto row = TRY(features_of(instance, dimensions).in("instance " + std::to_string(number)));
  rows.insert(rows.end(), row.begin(), row.end());
  return ok();
}

Result<Rows> read_json(std::string_view request, size_t dimensions) {
  const Json document = TRY(parse_json(request));
  if (!document.is_object() || !document.contains("instances") ||
      !document.at("instances").is_array())
    return invalid("the document has no array 'instances'");
  Rows rows;
  size_t number = 0;
  for (const Json& each : document.at("instances")) TRY(append(rows, each, ++number, dimensions));
  return rows;
}

Result<Rows> read_lines(std::string_view request, size_t dimensions) {
  Rows rows;
  size_t number = 0;
  for (const std::string_view line : split(request, '\n')) {
    ++number;
    if (trim(line).empty()) continue;
    const Json instance = TRY(parse_json(line).in("line " + std::to_string(number)));
    TRY(append(rows, instance, number, dimensions));
  }
  return rows;
}

Result<Rows> read_rows(std::string_view request, const std::string& type, size_t dimensions) {
  if (type == kJson) return read_json(request, dimensions);
  if (type == kLines) return read_lines(request, dimensions);
  if (type != kCsv && type != kRecords) return unknown_type(type, true);
  const RowFormat format{type == kCsv ? RowFormat::Type::csv : RowFormat::Type::record, false};
  Rows rows;
  const RowCallback take = [&](std::span<const float> features, std::optional<double>) {
    rows.insert(rows.end(), features.begin(), features.end());
    return ok();
  };
  RowDecoder decoder(format, dimensions);
  TRY(decoder.push(request, take));
  TRY(decoder.finish(take));
  return rows;
}

std::string framed(const std::string& message) {
  const auto head = record_head(message.size());
  return std::string(head.data(), head.size()) + message +
         std::string(record_padding(message.size()), '\0');
}

}  // namespace

Result<std::string> predict(Forest& forest, std::string_view request,
                            const PredictOptions& options) {
  const std::string accept = type_of(options.accept);
  if (accept != kJson && accept != kLines && accept != kRecords) return unknown_type(accept, false);
  const size_t dimensions = forest.options().dimensions;
  const Rows rows = TRY(read_rows(request, type_of(options.content_type), dimensions));
  std::vector<double> scores(rows.size() / dimensions);
  if (!options.update) forest.score(rows, scores);
  std::string text;
  Json list = Json::array();
  for (size_t i = 0; i < scores.size(); ++i) {
    const auto row = std::span(rows).subspan(i * dimensions, dimensions);
    if (options.update) scores[i] = forest.score(row);
    Json score = {{"score", scores[i]}};
    if (options.attribution) score["attribution"] = forest.attribution(row);
    if (options.update) forest.update(row);
    if (accept == kRecords) {
      text += framed(encode_label("score", float(scores[i])));
    } else if (accept == kLines) {
      text += dump(score) + "\n";
    } else {
      list.push_back(std::move(score));
    }
  }
  return accept == kJson ? dump(Json{{"scores", std::move(list)}}) + "\n" : text;
}

}  // namespace trainyard::forest
