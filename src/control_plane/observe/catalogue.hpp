// Catalogue stores the log groups and streams: names, numbers, and a summary of each stream that is
// not open.
//
// A stream's row is marked `open` before its first byte is written, until its summary is stored. So
// after a crash only the ends of open streams must be read.
//
// Threads: callable from anywhere. Errors: those of database.hpp; not_found, conflict.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "observe/database.hpp"
#include "observe/log_definitions.hpp"
#include "observe/logs.hpp"

namespace trainyard::observe {

// Returns not_found, with the detail LogResource::group.
Error no_group(const std::string& group);

struct StreamSummary {
  uint64_t bytes = 0;
  std::optional<Instant> first_event;
  std::optional<Instant> last_event;
  std::optional<Instant> last_ingestion;
};

struct StreamRow {
  uint64_t id = 0;
  StreamKey key;
  Instant created;
  bool open = false;
  uint64_t first_segment = 0;  // earlier segments were retired
  StreamSummary summary;       // as it was when the stream was last closed
};

class Catalogue {
 public:
  // `files` is the name of a sqlite::FileWatch; "": the operating system's files.
  static Result<std::unique_ptr<Catalogue>> open(const std::string& path,
                                                 const std::string& files = "");

  Result<void> create_group(const std::string& region, const std::string& group, Instant now,
                            const LogGroupSettings& settings);
  Result<LogGroupInfo> group(const std::string& region, const std::string& group);
  Result<void> change_group(const std::string& region, const std::string& group,
                            const Logs::ChangeGroup& change);
  // Removes the group with the rows of its streams, which it returns, and its definitions.
  Result<std::vector<StreamRow>> delete_group(const std::string& region, const std::string& group);
  // The groups that have a retention setting.
  struct Retention {
    std::string region, group;
    int64_t days = 0;
  };
  Result<std::vector<Retention>> retentions();
  LogDefinitions& definitions() { return *definitions_; }
  // Creates a stream and marks it open. Errors: conflict (it exists), not_found (the group).
  Result<void> create_stream(const StreamKey& key, Instant now);
  // Creates missing groups and streams, in one transaction.
  Result<void> ensure_streams(const std::vector<StreamKey>& keys, Instant now);

  // Errors: not_found, with the name of the group or the stream.
  Result<StreamRow> find(const StreamKey& key);
  Result<void> mark_open(uint64_t id);
  struct Closed {
    uint64_t id = 0;
    StreamSummary summary;
  };
  Result<void> close(const std::vector<Closed>& streams);
  Result<void> retire_segments(uint64_t id, uint64_t first_segment);
  Result<void> remove(const std::vector<uint64_t>& streams);

  // Returns streams ordered by name. Errors: not_found (the group).
  Result<std::vector<StreamRow>> streams(const std::string& region, const std::string& group,
                                         const std::string& prefix);
  Result<std::vector<StreamRow>> open_streams();
  // Returns closed streams whose last event (or creation, without events) is before `before`.
  Result<std::vector<StreamRow>> ended_before(Instant before);
  // Returns streams that may have events before `before`.
  Result<std::vector<StreamRow>> started_before(Instant before);
  struct GroupRow {
    LogGroupInfo info;  // stored_bytes: of closed streams only
    std::vector<uint64_t> open_streams;
  };
  Result<std::vector<GroupRow>> groups(const std::string& region, const std::string& prefix);

 private:
  explicit Catalogue(std::unique_ptr<Database> database)
      : database_(std::move(database)), definitions_(make_log_definitions(*database_)) {}
  const std::unique_ptr<Database> database_;
  const std::unique_ptr<LogDefinitions> definitions_;
};

}  // namespace trainyard::observe
