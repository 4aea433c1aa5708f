// Decides which requests the audit log records, and makes their records in CloudTrail's format.
//
// Every request of a known principal that manages a resource is recorded, reads included. Requests for data (objects, log
// lines, metric points) are recorded only when they are denied, as in CloudTrail's management events. Requests without a valid
// signature are not recorded: any client could fill the disk with them. At most 100 successful reads a second are recorded
// for one principal. Bodies and parameters are left out, since they carry secrets (environments, hyperparameters): a record
// names the resources.
//
// A shell has two records with one requestID: the request, and kShellEnded at its end. What is typed is not recorded.
//
// Threads: pure functions, and AuditTrail, which is callable from anywhere.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "observe/audit.hpp"
#include "operations/context.hpp"
#include "operations/rate_limiter.hpp"
#include "operations/services.hpp"
#include "operations/table.hpp"
#include "protocol/errors.hpp"

namespace trainyard::api {

inline constexpr std::string_view kShellEnded = "ShellEnded";

struct AnsweredRequest {
  const Context& context;
  const shapes::Service& service;
  std::string_view operation;  // "CreateTrainingJob"
  int status = 200;
  std::string_view error_code;                      // empty: it succeeded
  std::vector<std::string> resources;               // ARNs
  std::string event_id;                             // unique
  std::string host = {};                            // that a shell is for: "algo-1"
  std::optional<std::chrono::seconds> lasted = {};  // of kShellEnded
};

// By its name: Describe, Get, Head, List ..
bool is_read_only(std::string_view operation);
bool is_recorded(const AnsweredRequest& request);
// The text of a JSON object in CloudTrail's format, on one line; of very many resources the first.
std::string audit_record(const AnsweredRequest& request);

// Appends the records of requests that is_recorded. Callable from anywhere; `log` outlives it.
class AuditTrail {
 public:
  AuditTrail(observe::AuditLog* log, Clock& clock) : log_(log), clock_(clock) {}
  // Whether anything is recorded: there is a log.
  bool is_on() const { return log_ != nullptr; }
  void append(const AnsweredRequest& request);

 private:
  bool floods(const AnsweredRequest& request);

  observe::AuditLog* const log_;
  Clock& clock_;
  RateLimiter recorded_reads_;
};

// CloudTrail's operations; without a log they answer that nothing was recorded.
void add_cloudtrail(OperationTable& table, observe::AuditLog* audit);

}  // namespace trainyard::api
