// The audit log's side of the API: which requests are recorded, and their records in CloudTrail's format.
//
// Recorded is every request of a known principal that manages something, reads included. Requests for data (objects, log
// lines, metric points) are recorded only when they are denied, as in CloudTrail's management events. Requests without a valid
// signature are not: anyone could fill the disk with them. Of a principal's reads that succeed, 100 a second are. Bodies and parameters are left out, since they carry secrets
// (environments, hyperparameters): a record names the resources.
//
// A shell makes two records with one requestID: the request, and kShellEnded when it is over. What is typed is not recorded.
//
// Threads: pure functions, and AuditTrail.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/api.hpp"
#include "api/context.hpp"
#include "api/errors.hpp"
#include "api/operations/table.hpp"
#include "api/rate_limiter.hpp"
#include "observe/audit.hpp"

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

// As make_api(settings, services), with a record of each request that is_recorded. audit outlives the handler.
std::unique_ptr<net::Handler> make_api(const Settings& settings, const Services& services,
                                       observe::AuditLog* audit);

}  // namespace trainyard::api
