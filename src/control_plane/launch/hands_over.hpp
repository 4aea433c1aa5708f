// Interface of launchers that support host reuse, in addition to launcher.hpp: an idle host gets another
// attempt.
//
// Threads and errors: as the launcher's.
#pragma once

#include "launch/launcher.hpp"

namespace trainyard::launch {

class HandsOver {
 public:
  virtual ~HandsOver() = default;
  // Passes the gang, of one host, to the idle agent of the attempt `from`, which has ended. The agent keeps
  // everything that the launcher made for `from`; list() then shows it under the gang's attempt, and nothing
  // under `from`. False: that agent does not wait for another attempt, and nothing has changed: ensure()
  // starts the gang. Requires: the gang gets what `from` got.
  virtual Result<bool> hand_over(domain::AttemptId from, const Gang& gang) = 0;
};

}  // namespace trainyard::launch
