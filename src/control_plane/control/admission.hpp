// Admission decides whether a new job may be created.
//
// It rejects jobs that no state of the server allows: with numbers beyond the limits, unknown
// instance types or unknown images. It does not check queues, quotas and machines, which change.
//
// Threads: call from anywhere. Errors: invalid, and those of images. Private to this module.
#pragma once

#include <atomic>
#include <string>

#include "base/result.hpp"
#include "control/control.hpp"
#include "control/image_resolver.hpp"
#include "domain/job.hpp"

namespace trainyard::control {

class Admission {
 public:
  // Lifetime: both outlive it.
  Admission(const Settings& settings, ImageResolver& images)
      : settings_(settings), images_(images) {}

  Result<void> check(const domain::JobSpec& spec);

 private:
  Result<void> check_hosts(const domain::JobSpec& spec) const;
  Result<void> check_image(const std::string& name, const std::string& role_arn);

  const Settings& settings_;
  ImageResolver& images_;
  std::atomic<bool> deprecated_image_logged_ = false;  // once per server
};

}  // namespace trainyard::control
