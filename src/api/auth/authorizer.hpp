// Decides whether a principal may make a request.
//
//   owner    everything
//   user     the policies of the user and the user's groups, within the user's boundary
//   session  of a role that is defined: the role's policies, within its boundary and the session's policies
//            of another role, with a job's own keys: what that job needs (job_policy.hpp)
//            of another role otherwise: nothing; with roles = "open" in the configuration: everything
//
// A bucket's policy applies too, except to the owner: what it denies is denied, and what it allows to a principal needs no
// policy of the principal's own.
//
// A principal that creates a job with a role needs iam:PassRole for it, and the role must trust the service. A role that is
// not defined gets its rights from the job's own request, so its creator needs the same rights.
//
// Threads: call from many threads at once. Lifetime: settings and services outlive it.
// Errors:  AccessDenied with AWS's text, which does not reveal what exists: the decision precedes any look-up of the resource.
//          Policies that need tags (aws:ResourceTag) read those of the resource.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "auth/access_table.hpp"
#include "operations/context.hpp"
#include "operations/services.hpp"
#include "policy/evaluate.hpp"
#include "protocol/errors.hpp"

namespace trainyard::api {

class Authorizer {
 public:
  Authorizer(const Settings& settings, const Services& services);
  ~Authorizer();

  // Nothing: allowed. `input`: decoded, of the operation.
  std::optional<Failure> check(const Context& context, const shapes::OperationShape& operation,
                               const void* input) const;
  // The same for what is not an operation of a model.
  std::optional<Failure> check(const Context& context, const shapes::Service& service, std::string action,
                               std::string resource) const;

 private:
  struct Rights;
  struct Cache;

  Rights rights_of(const Principal& principal) const;
  std::optional<Failure> check_all(const Context& context, const shapes::Service& service,
                                   Accesses accesses) const;
  std::optional<Failure> check_assume_role(const Context& context, const shapes::Service& service,
                                           Accesses accesses, bool sets_source_identity) const;
  std::optional<Failure> check_passed(const Context& context, const shapes::Service& service,
                                      const Accesses& accesses) const;
  policy::Request request_of(const Context& context, const ServiceValues& values) const;
  std::string tagged_arn(const std::string& resource) const;
  void add_tags(const Access& access, policy::Request& request) const;

  const Settings& settings_;
  const Services& services_;
  const AccessTable table_;
  std::unique_ptr<Cache> cache_;
};

}  // namespace trainyard::api
