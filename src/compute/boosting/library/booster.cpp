#include "boosting/library/booster.hpp"

#include <xgboost/c_api.h>

#include "base/text.hpp"
#include "boosting/library/library_call.hpp"

namespace trainyard::boosting {

void Booster::Free::operator()(void* handle) const { XGBoosterFree(handle); }

Result<Booster> Booster::make(std::span<const DataMatrix* const> matrices) {
  std::vector<void*> handles;
  for (const DataMatrix* each : matrices) handles.push_back(each->handle());
  void* handle = nullptr;
  TRY(library_result(XGBoosterCreate(handles.data(), handles.size(), &handle)));
  return Booster(handle);
}

Result<void> Booster::load(std::string_view model) {
  if (model.empty()) return corrupt("the file is empty");
  auto done =
      library_result(XGBoosterLoadModelFromBuffer(handle_.get(), model.data(), model.size()));
  if (!done) return corrupt("not an XGBoost model: " + done.error().message);
  return done;
}

Result<void> Booster::set(const std::string& parameter, const std::string& value) {
  return library_result(XGBoosterSetParam(handle_.get(), parameter.c_str(), value.c_str()));
}

Result<void> Booster::update(int64_t iteration, const DataMatrix& train) {
  return library_result(XGBoosterUpdateOneIter(handle_.get(), int(iteration), train.handle()));
}

Result<std::vector<Evaluation>> Booster::evaluate(int64_t iteration,
                                                  const std::vector<EvaluatedSet>& sets) {
  std::vector<void*> handles;
  std::vector<const char*> names;
  for (const EvaluatedSet& each : sets) {
    handles.push_back(each.matrix->handle());
    names.push_back(each.name.c_str());
  }
  const char* line = nullptr;
  TRY(library_result(XGBoosterEvalOneIter(handle_.get(), int(iteration), handles.data(),
                                          names.data(), handles.size(), &line)));
  return parse_evaluations(line);
}

Result<Predictions> Booster::predict(const DataMatrix& matrix, bool margin) const {
  const std::string config = std::string("{\"type\": ") + (margin ? "1" : "0") +
                             ", \"training\": false, \"iteration_begin\": 0, \"iteration_end\": 0, "
                             "\"strict_shape\": false}";
  const bst_ulong* shape = nullptr;
  bst_ulong dimensions = 0;
  const float* values = nullptr;
  TRY(library_result(XGBoosterPredictFromDMatrix(handle_.get(), matrix.handle(), config.c_str(),
                                                 &shape, &dimensions, &values)));
  Predictions found;
  uint64_t count = 1;
  for (bst_ulong i = 0; i < dimensions; ++i) count *= shape[i];
  found.values.assign(values, values + count);
  if (matrix.rows() > 0) found.per_row = count / matrix.rows();
  return found;
}

Result<int64_t> Booster::rounds() const {
  int rounds = 0;
  TRY(library_result(XGBoosterBoostedRounds(handle_.get(), &rounds)));
  return int64_t(rounds);
}

Result<uint64_t> Booster::columns() const {
  bst_ulong columns = 0;
  TRY(library_result(XGBoosterGetNumFeature(handle_.get(), &columns)));
  return uint64_t(columns);
}

Result<Booster> Booster::first_rounds(int64_t rounds) const {
  void* handle = nullptr;
  TRY(library_result(XGBoosterSlice(handle_.get(), 0, int(rounds), 1, &handle)));
  return Booster(handle);
}

Result<std::optional<std::string>> Booster::attribute(const std::string& name) const {
  const char* value = nullptr;
  int exists = 0;
  TRY(library_result(XGBoosterGetAttr(handle_.get(), name.c_str(), &value, &exists)));
  return exists ? std::optional<std::string>(value) : std::nullopt;
}

Result<void> Booster::set_attribute(const std::string& name, const std::string& value) {
  return library_result(XGBoosterSetAttr(handle_.get(), name.c_str(), value.c_str()));
}

Result<std::string> Booster::save() const {
  bst_ulong length = 0;
  const char* bytes = nullptr;
  TRY(library_result(
      XGBoosterSaveModelToBuffer(handle_.get(), "{\"format\": \"deprecated\"}", &length, &bytes)));
  return std::string(bytes, length);
}

Result<std::string> Booster::config() const {
  bst_ulong length = 0;
  const char* text = nullptr;
  TRY(library_result(XGBoosterSaveJsonConfig(handle_.get(), &length, &text)));
  return std::string(text, length);
}

Result<std::vector<Evaluation>> parse_evaluations(std::string_view line) {
  std::vector<Evaluation> all;
  bool is_first = true;
  for (const std::string_view part : split(line, '\t')) {
    if (std::exchange(is_first, false)) continue;  // [0]
    const size_t dash = part.find('-'), colon = part.rfind(':');
    if (dash == std::string_view::npos || colon == std::string_view::npos || colon < dash)
      return corrupt("the library evaluated '" + std::string(part) + "'");
    const double value = TRY(parse_double(trim(part.substr(colon + 1))));
    all.push_back({std::string(part.substr(0, dash)),
                   std::string(part.substr(dash + 1, colon - dash - 1)), value});
  }
  return all;
}

}  // namespace trainyard::boosting
