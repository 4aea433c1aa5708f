// LogDestinations stores the names that clients define for targets of subscription filters
// (LogDestination).
//
// Threads: callable from anywhere; changes are made one after another. A change is durable when the
// call returns. Errors: not_found, invalid and exhausted, with messages for the client; those of
// observe. Lifetime: definitions and targets outlive it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/thread_safety.hpp"
#include "log_routing/definitions.hpp"
#include "log_routing/targets.hpp"
#include "observe/log_definitions.hpp"

namespace trainyard::log_routing {

class LogDestinations {
 public:
  LogDestinations(observe::LogDefinitions& definitions, const LogTargets& targets)
      : definitions_(definitions), targets_(targets) {}

  // Creates or replaces a destination, and returns the stored form. A replaced destination keeps
  // its policy and its time of creation, and its tags unless new ones are given. Errors also:
  // invalid, if the target is unknown, or a webhook of the configuration has the same name.
  Result<LogDestination> put(const std::string& region, const std::string& name,
                             LogDestination destination);
  Result<LogDestination> find(const std::string& region, const std::string& name);
  // Returns the destinations sorted by name.
  Result<std::vector<std::pair<std::string, LogDestination>>> list(const std::string& region);
  Result<void> remove(const std::string& region, const std::string& name);
  // Changes a destination. If `change` returns an error, nothing is changed, and the error is
  // returned.
  using Change = std::function<Result<void>(LogDestination&)>;
  Result<void> change(const std::string& region, const std::string& name, const Change& change);

 private:
  Result<void> store(const std::string& region, const std::string& name,
                     const LogDestination& destination) REQUIRES(changing_);

  observe::LogDefinitions& definitions_;
  const LogTargets& targets_;
  Mutex changing_;  // held during a change, including its checks
};

}  // namespace trainyard::log_routing
