// A DataMatrix is the library's copy of a Table.
//
// Threads: confined to one. Errors: invalid, with the library's message.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "boosting/rows/table.hpp"

namespace trainyard::boosting {

struct MatrixOptions {
  int threads = 1;
  bool has_bounds = false;  // survival:aft: the lower and the upper bound are the label
  bool has_groups = false;  // ranking: if rows have no qid, all are one group
  uint64_t columns = 0;     // the matrix has at least this number: the largest of all hosts
};

class DataMatrix {
 public:
  // Frees the features of the table once they are copied, and keeps its labels.
  static Result<DataMatrix> make(Table table, const MatrixOptions& options);
  // Returns a matrix of the chosen rows, which are in ascending order. Requires: no groups.
  Result<DataMatrix> rows_of(std::span<const int> chosen) const;

  uint64_t rows() const { return labels_.size(); }
  const std::vector<float>& labels() const { return labels_; }
  void* handle() const { return handle_.get(); }

 private:
  struct Free {
    void operator()(void* handle) const;
  };
  explicit DataMatrix(void* handle) : handle_(handle) {}

  std::unique_ptr<void, Free> handle_;
  std::vector<float> labels_;
};

}  // namespace trainyard::boosting
