// ServedConsole connects the console, if its pages were built, with the server's other parts.
//
// Call prepare(), open() and stop() in this order, once each.
//
// Threads: confined to the main thread, except for the functions that prepare() sets, which are
// callable from any. Lifetime: clock, random, and the arguments outlive it; it outlives the control
// loops and the HTTP server. Errors: none; a server without pages has no console, and logs that.
#pragma once

#include <memory>

#include "console/console.hpp"
#include "control/control.hpp"
#include "operations/services.hpp"

namespace trainyard::apps {

class ServedConsole {
 public:
  ServedConsole(Clock& clock, Random& random) : clock_(clock), sessions_(random) {}

  // Reads the pages next to this program, lets the API issue tokens, and subscribes to changes of
  // jobs.
  // Requires: the control loops and the API have not started.
  void prepare(api::Services& services, control::ControlPlane& control);
  // Returns the console in front of the API; the API itself if there is none.
  net::Handler& open(const api::Settings& settings, const api::Services& services,
                     net::Handler& api);
  // Ends the event streams, for which the HTTP server would wait.
  void stop();

 private:
  Clock& clock_;
  api::console::SessionTable sessions_;
  api::console::JobFeed feed_;
  std::unique_ptr<api::console::Assets> assets_;
  std::unique_ptr<api::console::Console> console_;
};

}  // namespace trainyard::apps
