// The audit log's side of the API: which requests are recorded, and their records in CloudTrail's format.
//
// Recorded is every request of a known principal that manages something, reads included. Requests for data (objects, log
// lines, metric points) are recorded only when they are denied, as in CloudTrail's management events. Requests without a valid
// signature are not: anyone could fill the disk with them. Of a principal's reads that succeed, 100 a second are. Bodies and parameters are left out, since they carry secrets
// (environments, hyperparameters): a record names the resources.
//
// Threads: pure functions.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/api.hpp"
#include "api/context.hpp"
#include "api/errors.hpp"
#include "api/operations/table.hpp"
#include "observe/audit.hpp"

namespace trainyard::api {

struct AnsweredRequest {
  const Context& context;
  const shapes::Service& service;
  std::string_view operation;  // "CreateTrainingJob"
  int status = 200;
  std::string_view error_code;         // empty: it succeeded
  std::vector<std::string> resources;  // ARNs
  std::string event_id;                // unique
};

// By its name: Describe, Get, Head, List ..
bool is_read_only(std::string_view operation);
bool is_recorded(const AnsweredRequest& request);
// The text of a JSON object in CloudTrail's format, on one line; of very many resources the first.
std::string audit_record(const AnsweredRequest& request);

// CloudTrail's operations; without a log they answer that nothing was recorded.
void add_cloudtrail(OperationTable& table, observe::AuditLog* audit);

// As make_api(settings, services), with a record of each request that is_recorded. audit outlives the handler.
std::unique_ptr<host::Handler> make_api(const Settings& settings, const Services& services,
                                        observe::AuditLog* audit);

}  // namespace trainyard::api
