// AuditLog records requests, their callers and their results, in append-only files
// (docs/formats/audit.md).
//
// append() puts a record into a bounded queue. One thread writes and syncs the records of some
// milliseconds together, thus many requests share one sync, and a record is on disk soon after the
// response. Records that may be dropped are written with the next other record, or within a second:
// clients that poll would cause a sync each time, for which changes of jobs then wait. If the disk
// is slower than the requests, append() waits: records are delayed, not dropped. If the log cannot
// be written (the disk is full or broken), the writer retries each second, and append() waits for
// at most append_wait_max and then returns an error.
//
// A new file begins each day (UTC), and when a file is full. The oldest files are then removed if
// they are older than the retention or exceed the log's space limit. Opening the log cuts off an
// incomplete line after a crash.
//
// Threads: callable from anywhere. Lifetime: the destructor writes the queued records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "observe/audit_chain.hpp"

namespace trainyard::observe {

struct AuditLimits {
  uint64_t file_bytes_max = 16 << 20;  // a lookup reads whole files
  uint64_t total_bytes_max = uint64_t{8} << 30;
  Duration retention = 90 * 24h;               // as CloudTrail's event history
  size_t queue_records_max = 4'096;            // about 4 MiB of records
  Duration append_wait_max = Duration(5'000);  // less than a client's read timeout
  // Between the first record of a batch and its write. Each sync delays commits of the ledger: 50
  // in a second cost 5% of the jobs that can be created.
  Duration gather_for = Duration(100);
  Duration gather_droppable_for = Duration(1'000);  // the same if all may be dropped
};
constexpr size_t kAuditRecordBytesMax = 256 << 10;  // as CloudTrail
constexpr uint64_t kLookupBytesMax = 64 << 20;      // read by one lookup; the token continues it
constexpr size_t kLookupRecordsMax = 50;            // as LookupEvents

struct AuditQuery {
  AuditFilter filter;
  size_t count_max = kLookupRecordsMax;
  std::string token;  // next_token of the previous page; "": the newest records
};

struct AuditPage {
  std::vector<Json> events;  // newest first; may be fewer than count_max before the last page
  std::string next_token;    // empty: this is the last page
};

// The behaviour of append() when the queue is full. Records with `drop` are less urgent.
enum class WhenFull { wait, drop };

class AuditLog {
 public:
  virtual ~AuditLog() = default;

  // Queues a record: a JSON object with eventTime, as text on one line. Errors: invalid, if it is
  // longer than kAuditRecordBytesMax; unavailable, if the log cannot be written, or if the queue is
  // full and when_full is drop. After an error the record is lost.
  virtual Result<void> append(std::string record, Instant at,
                              WhenFull when_full = WhenFull::wait) = 0;
  // Waits until all records appended before are on disk. Errors: unavailable, after
  // append_wait_max.
  virtual Result<void> flush() = 0;
  // Finds records that are on disk; call flush() first to include all. Errors: invalid, for an
  // invalid token.
  virtual Result<AuditPage> lookup(const AuditQuery& query) = 0;
};

// Opens the log; creates the directory if it is missing. Errors: by errno.
Result<std::unique_ptr<AuditLog>> open_audit_log(const std::string& directory,
                                                 AuditLimits limits = {});

struct AuditVerification {
  uint64_t files = 0, records = 0;
  std::string digest;          // of the last line, for comparison with a copy stored elsewhere
  bool from_beginning = true;  // false: older files were removed
  bool torn = false;           // the last line is incomplete: the server was killed, or is writing
};

// Reads and checks all files in order. Errors: corrupt, with file and line; not_found; by errno.
Result<AuditVerification> verify_audit_log(const std::string& directory);

}  // namespace trainyard::observe
