// Checks what the server receives from agents: facts, which pass through the agents' spools, and
// log lines.
#include "sim/checkers.hpp"
#include "wire/codec.hpp"

namespace trainyard::sim {

using namespace domain;

void Checkers::line_acknowledged(const std::string& region, const std::string& stream,
                                 const std::string& line) {
  lines_[{region, stream}].insert(line);
}

void Checkers::check_logs(control::test::MemoryLogs& logs) {
  for (const auto& [key, acknowledged] : lines_) {
    const bool batch = key.second.find("/default/") != std::string::npos;
    const auto page = logs.read(
        {key.first, batch ? "/aws/batch/job" : "/aws/sagemaker/TrainingJobs", key.second}, {});
    World::check(bool(page), "log " + key.second + " cannot be read");
    std::set<std::string> kept;
    for (const auto& event : page->events) kept.insert(event.message);
    for (const std::string& line : acknowledged)
      World::check(kept.contains(line),
                   "log " + key.second + " has lost '" + line + "', which was acknowledged");
    for (size_t i = 0; i < page->events.size() && !repeating_.contains(key); ++i)
      World::check(page->events[i].message == "line " + std::to_string(i + 1),
                   "log " + key.second + " has '" + page->events[i].message + "' instead of line " +
                       std::to_string(i + 1));
  }
}

void Checkers::fact_reported(AttemptId attempt, HostIndex host, const wire::StateFact& fact) {
  Spooled& spool = spools_[{attempt, host}];
  spool.reported.push_back(fact);
  spool.reported.back().number = spool.reported.size();
}

void Checkers::agent_restarted(AttemptId attempt, HostIndex host, const std::string& region,
                               const std::string& stream) {
  const bool before = spools_.erase({attempt, host}) > 0;
  if (!before) return;
  Process& process = processes_[{attempt, host}];
  World::check(process.running.empty(), attempt.text() + "/" + std::to_string(host) +
                                            " is started again while " + process.running + " runs");
  World::check(facts_[{attempt, host}] == 0, attempt.text() + "/" + std::to_string(host) +
                                                 " is started again after its facts were applied");
  process = {};
  staged_.erase({attempt, host});
  allow_repeated_lines(region, stream);
}

void Checkers::facts_spooled(AttemptId attempt, HostIndex host) {
  Spooled& spool = spools_[{attempt, host}];
  spool.written = spool.reported.size();
}

void Checkers::spool_found(AttemptId attempt, HostIndex host,
                           const std::vector<wire::StateFact>& facts, bool power_lost) {
  Spooled& spool = spools_[{attempt, host}];
  const std::string of = attempt.text() + "/" + std::to_string(host) + ": its spool ";
  for (size_t i = 0; i < facts.size(); ++i) {
    World::check(facts[i].number == i + 1, of + "has fact " + std::to_string(facts[i].number) +
                                               " instead of fact " + std::to_string(i + 1));
    World::check(
        i < spool.reported.size() && wire::encode(facts[i]) == wire::encode(spool.reported[i]),
        of + "has a fact " + std::to_string(i + 1) + " that the agent never reported");
  }
  World::check(power_lost || facts.size() >= spool.written,
               of + "has " + std::to_string(facts.size()) + " facts, but " +
                   std::to_string(spool.written) + " were reported as written");
  if (power_lost) return;  // no agent follows, and the server may receive later facts
  // Facts that were not written were not sent either, so the next agent reuses their numbers.
  if (!facts.empty()) restarted_.insert({attempt, host});
  spool.reported.resize(facts.size());
  spool.written = facts.size();
}

void Checkers::check_fact(AttemptId attempt, HostIndex host, uint64_t number, const Json& command) {
  const Spooled& spool = spools_[{attempt, host}];
  const std::string of =
      attempt.text() + "/" + std::to_string(host) + ": fact " + std::to_string(number);
  World::check(number <= spool.reported.size(),
               of + " was applied, but the agent never reported it");
  const wire::StateFact& reported = spool.reported[number - 1];
  World::check(*parse_host_state(*string_at(command, "state")) == reported.state,
               of + " was applied with a different state from the reported one");
}

}  // namespace trainyard::sim
