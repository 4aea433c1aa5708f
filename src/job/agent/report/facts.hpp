// Accepts the facts of an agent's parts for the server: states, log lines, metric points. Never
// waits for the server.
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
  virtual void state(wire::StateFact fact) = 0;  // number and time are assigned here
  virtual void lines(std::vector<wire::LogLine> lines) = 0;
  virtual void points(std::vector<wire::MetricPoint> points) = 0;
  // Adds a line of ours to the job's log: "trainyard: TEXT".
  virtual void say(const std::string& text) = 0;
};

}  // namespace trainyard::agent
