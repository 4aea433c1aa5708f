// A PointJournal hands the points that are appended to metrics to readers, in the order of the
// appends, across restarts: each reader has a durable position.
//
// A point enters the journal in the transaction that stores it, so none is missing after a crash. A
// reader that crashes between its use of points and advance() reads them again.
//
// Beyond points_max the oldest points leave the journal: readers that have not read them yet have
// lost them, which is counted.
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
  std::vector<std::string> readers;  // none: there is no journal
  int64_t points_max = 1'000'000;    // some 40 MB on the disk
  // True if the journal takes points of this metric; it is called by any thread. Unset: it takes
  // all.
  std::function<bool(const MetricKey&)> wanted = nullptr;
};

struct JournalPage {
  std::vector<MetricRecord> records;  // without points whose metric was removed meanwhile
  bool empty = true;                  // the reader has read everything
  uint64_t position = 0;              // behind the last point
  uint64_t lost = 0;  // points that left the journal unread, since the reader's position
};

class PointJournal {
 public:
  virtual ~PointJournal() = default;
  // Returns the next points of a reader, at most `count_max`.
  virtual Result<JournalPage> read(const std::string& reader, size_t count_max) = 0;
  // Makes the reader's position durable, and removes points that all readers have read.
  virtual Result<void> advance(const std::string& reader, uint64_t position) = 0;
  // Counts the points that a reader has not read.
  virtual Result<uint64_t> behind(const std::string& reader) = 0;
};

}  // namespace trainyard::observe
