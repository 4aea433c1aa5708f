// Facts receives what the parts of an agent report (states, log lines, metric points) and queues it
// for the server. Never blocks on the server.
//
// Threads: callable from anywhere.
#pragma once

#include <string>
#include <vector>

#include "wire/messages.hpp"

namespace trainyard::agent {

class Facts {
 public:
  virtual ~Facts() = default;
  virtual void state(wire::StateFact fact) = 0;  // assigns number and time
  virtual void lines(std::vector<wire::LogLine> lines) = 0;
  virtual void points(std::vector<wire::MetricPoint> points) = 0;
  // Adds the line "trainyard: TEXT" to the job's log.
  virtual void say(const std::string& text) = 0;
};

}  // namespace trainyard::agent
