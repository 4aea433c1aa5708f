// Where an agent's parts put what is to be known above: states, log lines, metric points. Never waits for the
// server.
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
  virtual void state(wire::StateFact fact) = 0;  // number and time are given here
  virtual void lines(std::vector<wire::LogLine> lines) = 0;
  virtual void points(std::vector<wire::MetricPoint> points) = 0;
  // One line of ours in the job's log: "trainyard: TEXT".
  virtual void say(const std::string& text) = 0;
};

}  // namespace trainyard::agent
