// Decides which requests the audit log records, and makes their records in CloudTrail's format.
//
// Every request of a known principal that manages a resource is recorded, reads included. Requests
// for data (objects, log lines, metric points) are recorded only if they are denied, as in
// CloudTrail's management events. Requests without a valid signature are not recorded: any client
// could fill the disk with them. At most 100 successful reads a second are recorded for one
// principal. Bodies and parameters are left out, since they may contain secrets (environments,
// hyperparameters); a record has the resources.
//
// A shell has two records with the same requestID: the request, and kShellEnded at its end. Its
// input is not recorded.
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
  std::string_view error_code;                      // "" = success
  std::vector<std::string> resources;               // ARNs
  std::string event_id;                             // unique
  std::string host = {};                            // where a shell ran: "algo-1"
  std::optional<std::chrono::seconds> lasted = {};  // only in kShellEnded
};

// Returns whether the operation's name begins with a verb for reading: Describe, Get, Head, List ..
bool is_read_only(std::string_view operation);
bool is_recorded(const AnsweredRequest& request);
// Makes a JSON object in CloudTrail's format on one line, with the first 100 resources.
std::string audit_record(const AnsweredRequest& request);

// AuditTrail appends the records of requests that is_recorded() accepts to the log. Without a log
// it does nothing.
//
// Threads: callable from anywhere. Lifetime: `log` and `clock` outlive it.
class AuditTrail {
 public:
  AuditTrail(observe::AuditLog* log, Clock& clock) : log_(log), clock_(clock) {}
  // Returns whether requests are recorded.
  bool is_on() const { return log_ != nullptr; }
  void append(const AnsweredRequest& request);

 private:
  bool exceeds_read_rate(const AnsweredRequest& request);

  observe::AuditLog* const log_;
  Clock& clock_;
  RateLimiter recorded_reads_;
};

// Registers CloudTrail's operations. Without a log they return no events.
void add_cloudtrail(OperationTable& table, observe::AuditLog* audit);

}  // namespace trainyard::api
