// Encodes and decodes batches of points: the samples of one append, of any metrics, in its order.
//
// A batch is written once, read at most twice, and soon replaced by blocks (point_block.hpp). So
// its encoding is fast rather than compact: runs of samples of one metric and unit, with times as
// varints of differences. Layout: docs/formats/metrics.md.
//
// Threads: a PointBatch is confined to one thread. Errors: corrupt, with a description. Input is
// untrusted: decoding allocates memory in proportion to the bytes, and reads nothing outside them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "observe/metrics.hpp"

namespace trainyard::observe {

class PointBatch {
 public:
  // Requires: the unit has at most kUnitBytesMax.
  void add(int64_t series, const Sample& sample);
  bool empty() const { return run_count_ == 0 && runs_.empty(); }
  // Returns the bytes of the batch. It may be called once.
  std::string finish();

 private:
  void end_run();

  std::map<std::string, uint64_t, std::less<>> units_;
  std::vector<std::string> unit_names_;
  std::string runs_;
  int64_t at_ = 0;  // the time of the last sample
  // The current run, which is not yet in runs_.
  int64_t run_series_ = 0;
  uint64_t run_unit_ = 0;
  bool run_plain_ = false;
  size_t run_count_ = 0;
  std::string run_;
};

// Calls `take` for each sample, in the order of the append.
using TakePoint = std::function<void(int64_t series, const Sample& sample)>;
Result<void> decode_point_batch(std::string_view bytes, const TakePoint& take);

}  // namespace trainyard::observe
