// What a launcher may be able to do beside launcher.hpp: give a host that has done with its attempt another one.
//
// Threads and errors: as the launcher's.
#pragma once

#include "launch/launcher.hpp"

namespace trainyard::launch {

class HandsOver {
 public:
  virtual ~HandsOver() = default;
  // Hands the gang, of one host, to the agent of the attempt `from`, which has done with it, in the place and with all
  // that the launcher made for that one; list() then shows it under the gang's attempt, and nothing under `from`. False:
  // that agent does not wait for another, and nothing has changed: ensure() starts the gang. Requires: what the gang is
  // given is what `from` was given.
  virtual Result<bool> hand_over(domain::AttemptId from, const Gang& gang) = 0;
};

}  // namespace trainyard::launch
