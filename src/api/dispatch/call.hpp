// A Call is the state of one request from its head to its response. CallRecorder writes the outcome
// to the server's log, the statistics and the audit log.
//
// Threads:  a Call is confined to one thread at a time; CallRecorder: call from anywhere.
// Errors:   none; a failed write to the audit log is logged (audit.hpp).
// Lifetime: the head outlives its Call; the services outlive their CallRecorder.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "audit/audit.hpp"
#include "auth/access_table.hpp"
#include "auth/auth.hpp"
#include "base/random.hpp"
#include "base/thread_safety.hpp"
#include "dispatch/match.hpp"
#include "net/http_server.hpp"
#include "observe/audit.hpp"
#include "operations/context.hpp"
#include "operations/services.hpp"
#include "shapes/shape.hpp"

namespace trainyard::api {

struct Call {
  const net::RequestHead& head;
  Match route;
  Context context;
  std::chrono::nanoseconds begun;
  // ARNs for the audit log, set once the input is decoded. Shared with the call that responds
  // later.
  std::shared_ptr<std::vector<std::string>> resources =
      std::make_shared<std::vector<std::string>>();
  std::string host = {};  // of a shell
};

// Returns the service that determines the form of a failure; for an unknown service, one with the
// JSON protocol.
const shapes::Service& service_of(const Call& call);

// Fills the context from the verified signature and from the connection.
void accept(Call& call, const Signer& signer);

// RequestIds makes UUIDs for requests and audit records, from random bytes that it reads for many
// at once: a system call for each takes longer than a short request. They are not secrets. Threads:
// callable from anywhere. Lifetime: `random` outlives it.
class RequestIds {
 public:
  explicit RequestIds(Random& random) : random_(random) {}
  std::string next();

 private:
  static constexpr size_t kBytes = 16;
  static constexpr size_t kIdsAtOnce = 64;

  Random& random_;
  Mutex mutex_;
  std::array<char, kBytes * kIdsAtOnce> bytes_ GUARDED_BY(mutex_);
  size_t left_ GUARDED_BY(mutex_) = 0;
};

class CallRecorder {
 public:
  // `audit` nullptr = no audit log.
  CallRecorder(const Services& services, observe::AuditLog* audit);

  // Records a finished request. `code`: of the error; "" = none.
  void record(const Call& call, int status, std::string_view code);
  // Records the end of a shell. `opened`: by the monotonic clock.
  void record_end_of_shell(const Call& call, std::chrono::nanoseconds opened);
  // Sets call.resources for the audit log, and returns what the request accesses; nothing
  // without an audit log. Requires: `input` is an input of the call's operation.
  std::optional<Accesses> note_resources(const Call& call, const void* input) const;
  std::string new_request_id() { return ids_.next(); }

 private:
  void audit(const Call& call, int status, std::string_view code);

  const Services& services_;
  const AccessTable& access_table_ = AccessTable::shared();
  AuditTrail audit_;
  RequestIds ids_;
};

}  // namespace trainyard::api
