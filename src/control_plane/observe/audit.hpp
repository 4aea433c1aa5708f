// The audit log: records of who asked for what and how it was answered, appended to files that are never changed
// (docs/formats/audit.md).
//
// append() puts a record into a bounded queue; one thread writes and syncs what has gathered for some milliseconds, so one
// sync serves many requests, and a record is on the disk soon after the answer that it tells of. When the disk is slower than the requests, append() waits: records are
// delayed, not dropped. When it cannot be written at all (full, broken), the writer tries again each second, append() waits
// for at most kAppendWaitMax and then says so.
//
// A file ends with its day (UTC) or when it is full. Each time that one begins, the oldest are removed: those past
// retention, and those beyond the space that the log may take. On opening, a line that a crash tore is cut off.
//
// Threads: callable from anywhere. Lifetime: the destructor writes what is queued.
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
  uint64_t file_bytes_max = 16 << 20;  // a file is read whole by a lookup
  uint64_t total_bytes_max = uint64_t{8} << 30;
  Duration retention = 90 * 24h;               // as CloudTrail's event history
  size_t queue_records_max = 4'096;            // some 4 MiB of records
  Duration append_wait_max = Duration(5'000);  // less than a client's read timeout
  Duration gather_for = Duration(20);          // from the first record of a batch to its write
};
constexpr size_t kAuditRecordBytesMax = 256 << 10;  // as CloudTrail
constexpr uint64_t kLookupBytesMax = 64 << 20;      // read by one lookup; the rest is behind the token
constexpr size_t kLookupRecordsMax = 50;            // LookupEvents' own

struct AuditQuery {
  AuditFilter filter;
  size_t count_max = kLookupRecordsMax;
  std::string token;  // of the page before; empty: the newest records
};

struct AuditPage {
  std::vector<Json> events;  // newest first; fewer than asked for when much had to be read
  std::string next_token;    // empty: there are no more
};

// What append() does when the queue is full.
enum class WhenFull { wait, drop };

class AuditLog {
 public:
  virtual ~AuditLog() = default;

  // Takes the text of a JSON object with eventTime, on one line. Errors: invalid: it has more than
  // kAuditRecordBytesMax; unavailable: the log cannot be written, or the queue is full and not waited for. The record
  // is lost then.
  virtual Result<void> append(std::string record, Instant at, WhenFull when_full = WhenFull::wait) = 0;
  // Waits until every record appended before is on the disk. Errors: unavailable after append_wait_max.
  virtual Result<void> flush() = 0;
  // Sees records that flush() has put on the disk. Errors: invalid (a token that this log did not give).
  virtual Result<AuditPage> lookup(const AuditQuery& query) = 0;
};

// Makes the directory where it is missing. Errors: by errno.
Result<std::unique_ptr<AuditLog>> open_audit_log(const std::string& directory, AuditLimits limits = {});

struct AuditVerification {
  uint64_t files = 0, records = 0;
  std::string digest;          // of the last line: to compare with one kept elsewhere
  bool from_beginning = true;  // false: older files were removed
  bool torn = false;           // the last line is not whole: the server was killed, or is writing
};

// Reads every file in order. Errors: corrupt, naming file and line; not_found; by errno.
Result<AuditVerification> verify_audit_log(const std::string& directory);

}  // namespace trainyard::observe
