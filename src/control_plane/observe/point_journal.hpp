// A PointJournal passes the points that are appended to metrics to readers, in the order of the
// appends. Each reader has a durable position, at which it continues after a restart.
//
// A point is added to the journal in the transaction that stores it, so none is missing after a
// crash. If a crash occurs after a reader has used points and before advance(), it reads them
// again.
//
// Beyond points_max the oldest points are removed from the journal. Removed points that a reader
// has not read are lost for it, and counted.
//
// Threads: callable from anywhere; each reader calls from one thread at a time. Errors: those of
// Metrics; not_found, for a reader that the settings do not name.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace trainyard::observe {

struct MetricKey;     // observe/metrics.hpp
struct MetricRecord;  // observe/metrics.hpp

struct JournalSettings {
  std::vector<std::string> readers;  // empty: there is no journal
  int64_t points_max = 1'000'000;    // some 40 MB on disk
  // Returns whether the journal has the points of this metric; nullptr: of all metrics. It is
  // called by any thread.
  std::function<bool(const MetricKey&)> wanted = nullptr;
};

struct JournalPage {
  std::vector<MetricRecord> records;  // without points whose metric was removed meanwhile
  bool empty = true;                  // the reader has read all points
  uint64_t position = 0;              // after the last point of the page
  uint64_t lost = 0;  // points after the reader's position that were removed from the journal
};

class PointJournal {
 public:
  virtual ~PointJournal() = default;
  // Returns the next points of a reader, at most `count_max`.
  virtual Result<JournalPage> read(const std::string& reader, size_t count_max) = 0;
  // Makes the reader's position durable, and removes points that all readers have read.
  virtual Result<void> advance(const std::string& reader, uint64_t position) = 0;
  // Returns the number of points that a reader has not read.
  virtual Result<uint64_t> behind(const std::string& reader) = 0;
};

}  // namespace trainyard::observe
