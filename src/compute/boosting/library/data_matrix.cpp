#include "boosting/library/data_matrix.hpp"

#include <xgboost/c_api.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.hpp"
#include "base/json.hpp"
#include "boosting/library/library_call.hpp"

namespace trainyard::boosting {
namespace {

// Returns an array in numpy's array interface, from which the library reads memory in place.
std::string array_of(const void* data, std::vector<uint64_t> shape, const char* type) {
  // The library rejects a null pointer, even for 0 bytes.
  static const double kNothing = 0;
  const void* address = data ? data : &kNothing;
  return dump(Json{{"data", {reinterpret_cast<uintptr_t>(address), true}},
                   {"shape", std::move(shape)},
                   {"typestr", type},
                   {"version", 3}});
}

std::string config_of(int threads) {
  // Not standard JSON: the library expects NaN.
  return "{\"missing\": NaN, \"nthread\": " + std::to_string(threads) + "}";
}

Result<void*> copy_features(const Table& table, const MatrixOptions& options) {
  void* handle = nullptr;
  const std::string config = config_of(options.threads);
  const std::string values =
      array_of(table.values.data(),
               table.is_sparse ? std::vector<uint64_t>{table.values.size()}
                               : std::vector<uint64_t>{table.rows(), table.columns},
               "<f4");
  if (!table.is_sparse) {
    TRY(library_result(XGDMatrixCreateFromDense(values.c_str(), config.c_str(), &handle)));
    return handle;
  }
  const uint64_t columns = std::max(table.columns, options.columns);
  TRY(library_result(
      XGDMatrixCreateFromCSR(array_of(table.starts.data(), {table.starts.size()}, "<u8").c_str(),
                             array_of(table.numbers.data(), {table.numbers.size()}, "<u4").c_str(),
                             values.c_str(), columns, config.c_str(), &handle)));
  return handle;
}

Result<void> set_floats(void* handle, const char* field, const std::vector<float>& values) {
  return library_result(XGDMatrixSetFloatInfo(handle, field, values.data(), values.size()));
}

// Returns a weight for each group, as the library expects: the weight of the group's first row.
std::vector<float> weights_of_groups(const Table& table) {
  std::vector<float> weights;
  size_t row = 0;
  for (const uint32_t rows : table.group_rows) {
    weights.push_back(table.weights[row]);
    row += rows;
  }
  return weights;
}

Result<void> set_fields(void* handle, Table& table, const MatrixOptions& options) {
  TRY(set_floats(handle, "label", table.labels));
  if (options.has_bounds) {
    TRY(set_floats(handle, "label_lower_bound", table.labels));
    TRY(set_floats(handle, "label_upper_bound", table.labels));
  }
  if (options.has_groups) {
    if (table.group_rows.empty()) table.group_rows.push_back(uint32_t(table.rows()));
    TRY(library_result(
        XGDMatrixSetUIntInfo(handle, "group", table.group_rows.data(), table.group_rows.size())));
  }
  if (!table.weights.empty())
    TRY(set_floats(handle, "weight",
                   options.has_groups ? weights_of_groups(table) : table.weights));
  return ok();
}

}  // namespace

void DataMatrix::Free::operator()(void* handle) const { XGDMatrixFree(handle); }

Result<DataMatrix> DataMatrix::make(Table table, const MatrixOptions& options) {
  DataMatrix matrix(TRY(copy_features(table, options)));
  for (auto* part : {&table.values}) std::vector<float>().swap(*part);
  std::vector<uint32_t>().swap(table.numbers);
  std::vector<uint64_t>().swap(table.starts);
  TRY(set_fields(matrix.handle(), table, options));
  matrix.labels_ = std::move(table.labels);
  return matrix;
}

Result<DataMatrix> DataMatrix::rows_of(std::span<const int> chosen) const {
  void* handle = nullptr;
  TRY(library_result(
      XGDMatrixSliceDMatrixEx(this->handle(), chosen.data(), chosen.size(), &handle, 0)));
  DataMatrix matrix(handle);
  for (const int row : chosen) matrix.labels_.push_back(labels_[size_t(row)]);
  return matrix;
}

}  // namespace trainyard::boosting
