// Authorizer decides whether a principal may make a request.
//
//   owner    everything
//   user     the policies of the user and the user's groups, within the user's boundary
//   session  of a defined role:                    the role's policies, within its boundary and the
//                                                  session's policies
//            of an undefined role, with job keys:  what that job needs (job_policy.hpp)
//            of an undefined role, otherwise:      nothing; everything if the configuration has
//                                                  roles = "open"
//
// A bucket's policy also applies, except to the owner: it can deny a request, and it can allow one
// that no policy of the principal allows.
//
// A principal that creates a job with a role needs iam:PassRole for it, and the role must trust the
// service. A role that is not defined gets its rights from the job's own request, so its creator
// needs the same rights.
//
// Threads: call from many threads at once. Lifetime: settings and services outlive it.
// Errors:  AccessDenied with AWS's text, which does not reveal what exists: the decision precedes
//          any look-up of the resource. Only the tags of the resource are read before it, for
//          policies that need them (aws:ResourceTag).
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

  // `input`: a structure of the operation's input. `known`: what AccessTable::find() returns for
  // it, if the caller has it. Returns nothing if the request is allowed.
  std::optional<Failure> check(const Context& context, const shapes::OperationShape& operation,
                               const void* input, std::optional<Accesses> known = {}) const;
  // Checks a request that is not an operation of a model.
  std::optional<Failure> check(const Context& context, const shapes::Service& service,
                               std::string action, std::string resource) const;
  // Returns whether the principal may describe the job, in any region.
  bool may_describe(const Context& context, const domain::JobKey& job) const;

 private:
  struct Rights;
  struct Cache;

  Rights rights_of(const Principal& principal) const;
  std::optional<Failure> check_all(const Context& context, const shapes::Service& service,
                                   Accesses accesses) const;
  std::optional<Failure> check_assume_role(const Context& context, const shapes::Service& service,
                                           Accesses accesses, bool sets_source_identity) const;
  std::optional<Failure> check_passed(const Context& context, const shapes::Service& service,
                                      const std::vector<PassedRole>& roles) const;
  policy::Request request_of(const Context& context, const ServiceValues& values) const;
  std::string tagged_arn(const std::string& resource) const;
  void add_tags(const Access& access, policy::Request& request) const;

  const Settings& settings_;
  const Services& services_;
  const AccessTable& table_ = AccessTable::shared();
  std::unique_ptr<Cache> cache_;
};

}  // namespace trainyard::api
