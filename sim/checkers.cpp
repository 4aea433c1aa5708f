#include "sim/checkers.hpp"

#include <algorithm>
#include <cmath>

#include "base/json.hpp"
#include "reconcile/state.hpp"

namespace trainyard::sim {
namespace {

using namespace domain;

// True for the legal transitions between phases, as AWS documents them. They are written a second
// time on purpose: the checkers share no code with the code under test.
bool may_follow(Phase from, Phase to) {
  switch (from) {
    case Phase::starting:
      return to == Phase::downloading || to == Phase::training || to == Phase::uploading ||
             to == Phase::stopping || to == Phase::stopped || to == Phase::failed ||
             to == Phase::completed || to == Phase::interrupted;
    case Phase::downloading:
      return to == Phase::training || to == Phase::uploading || to == Phase::stopping ||
             to == Phase::failed || to == Phase::completed || to == Phase::interrupted ||
             to == Phase::starting;
    case Phase::training:
      return to == Phase::uploading || to == Phase::stopping || to == Phase::failed ||
             to == Phase::completed || to == Phase::interrupted || to == Phase::starting;
    case Phase::uploading:
      return to == Phase::stopping || to == Phase::failed || to == Phase::completed ||
             to == Phase::interrupted || to == Phase::starting;
    case Phase::interrupted:
      return to == Phase::starting || to == Phase::stopping || to == Phase::stopped ||
             // preempted more often than the job allows
             to == Phase::completed || to == Phase::failed;
    case Phase::stopping:
      return to == Phase::stopped || to == Phase::failed || to == Phase::max_runtime_exceeded ||
             to == Phase::max_wait_time_exceeded ||
             to == Phase::completed;  // an array whose children had all succeeded
    default:
      return false;
  }
}

void add(Share& sum, const Share& share, int sign) {
  sum.cpus += sign * share.cpus;
  sum.memory_bytes += sign * share.memory_bytes;
  sum.gpus += sign * share.gpus;
}

bool within(const Share& part, const Share& whole) {
  return part.cpus <= whole.cpus + 1e-6 && part.memory_bytes <= whole.memory_bytes &&
         part.gpus <= whole.gpus;
}

// Checks a job with a record that was written again after its end.
void check_unchanged_after_end(const Job& before, const Job& after) {
  Job but_for_the_pool = after;
  but_for_the_pool.warm_pool = before.warm_pool;
  but_for_the_pool.modified = before.modified;
  // An agent that was killed after its last fact and started again reports further facts; the
  // record counts them.
  if (after.attempt() && after.attempts.size() == before.attempts.size())
    for (size_t h = 0; h < after.attempt()->hosts.size() && h < before.attempt()->hosts.size(); ++h)
      but_for_the_pool.attempts.back().hosts[h].facts_applied =
          before.attempt()->hosts[h].facts_applied;
  World::check(dump(progress_json(but_for_the_pool)) == dump(progress_json(before)),
               title(before) + " changed after its end");
}

// Checks the hosts of one attempt of the job.
void check_host_moves(const Job& job, const Attempt& from, const Attempt& to) {
  for (size_t h = 0; h < from.hosts.size(); ++h) {
    const Host& was = from.hosts[h];
    const Host& is = to.hosts[h];
    World::check(is.state >= was.state && (!is_final(was.state) || is.state == was.state),
                 title(job) + ": " + host_name(HostIndex(h)) + " went from " +
                     std::string(to_string(was.state)) + " to " + std::string(to_string(is.state)));
    World::check(is.facts_applied >= was.facts_applied, title(job) + ": facts were forgotten");
    World::check(is.machine == was.machine, title(job) + ": a host moved to another machine");
  }
}

void check_attempts(const Job& before, const Job& after) {
  World::check(after.attempts.size() >= before.attempts.size(),
               title(before) + ": attempts were forgotten");
  // Several commands may share a transaction, but an attempt does not begin and end within one.
  World::check(after.attempts.size() <= before.attempts.size() + 1,
               title(before) + ": it has two new attempts");
  if (after.attempts.size() > before.attempts.size() && after.attempts.size() > 1) {
    const Attempt& former = after.attempts[after.attempts.size() - 2];
    World::check(former.state == AttemptState::ended && !former.interruption.empty(),
                 title(before) + ": an attempt began before the former one had ended");
    World::check(after.attempt()->token != former.token,
                 title(before) + ": two attempts have one token");
  }
  for (size_t a = 0; a < before.attempts.size(); ++a) {
    World::check(before.attempts[a].token == after.attempts[a].token,
                 title(before) + ": its token changed");
    if (a + 1 < after.attempts.size()) continue;  // hosts of earlier attempts are not stored
    check_host_moves(before, before.attempts[a], after.attempts[a]);
  }
}

}  // namespace

std::string title(const Job& job) {
  return "job " + std::to_string(job.number) + " (" + job.key.name + ")";
}

// -- reported to users

void Checkers::acknowledged(const Job& job) {
  const auto [found, fresh] = acknowledged_.emplace(job.key, job.number);
  World::check(fresh, "the name " + job.key.name + " was given twice");
  World::check(durable_.contains(job.number),
               title(job) + " was acknowledged before it was durable");
}

void Checkers::described(const Job& job) {
  const auto acknowledged = acknowledged_.find(job.key);
  World::check(acknowledged == acknowledged_.end() || acknowledged->second == job.number,
               title(job) + " changed its number");
  const auto kept = durable_.find(job.number);
  World::check(kept != durable_.end(), title(job) + " is shown before it is durable");
  World::check(kept->second.state == job.state,
               title(job) + " is shown in a different state from the durable one");
  size_t& seen = seen_transitions_[job.number];
  World::check(job.transitions.size() >= seen, title(job) + ": its history became shorter");
  seen = job.transitions.size();
  check_history(job);
}

// -- what is durable

void Checkers::committed(const ledger::Batch& batch) {
  for (const ledger::CommandRecord& command : batch.commands) {
    if (command.kind == "lose") lost(command.body);
    if (command.kind == "interrupt") interrupted(command.body);
    if (command.kind == "expire") expired(command.body);
    if (command.kind != "fact") continue;
    const auto attempt = parse_attempt_id(*string_at(command.body, "attempt"));
    const auto host = HostIndex(*int_at(command.body, "host"));
    const auto number = uint64_t(*int_at(command.body, "number"));
    uint64_t& last = facts_[{*attempt, host}];
    World::check(number == last + 1, attempt->text() + "/" + std::to_string(host) + ": fact " +
                                         std::to_string(number) + " was applied after " +
                                         std::to_string(last));
    last = number;
    check_fact(*attempt, host, number, command.body);
    const HostState state = *parse_host_state(*string_at(command.body, "state"));
    const bool died = state == HostState::draining && command.body.value("exit_code", 0) != 0;
    if (died || state == HostState::failed) first_failed_host_.emplace(*attempt, host);
    // Facts of a host that was declared lost have no effect.
    if (state != HostState::running || given_up_.contains({*attempt, host})) continue;
    // The clock of an agent may be ahead.
    const Job* job = durable(attempt->job);
    World::check(job, "a host runs for a job that is not in the ledger");
    const Instant reported = from_milliseconds(*int_at(command.body, "at"));
    const Instant at = std::min(reported, job->own_time(command.at));
    const auto [first, fresh] = first_running_.emplace(*attempt, at);
    if (!fresh) first->second = std::min(first->second, at);
  }
  for (const Job& job : batch.jobs) {
    const auto before = durable_.find(job.number);
    if (before != durable_.end()) check_moves(before->second, job);
    check_history(job);
    check_times(job);
    const bool ended_before =
        before != durable_.end() && before->second.attempts.size() == job.attempts.size() &&
        before->second.attempt() && before->second.attempt()->state == AttemptState::ended;
    if (job.attempt() && job.attempt()->state == AttemptState::ended && !ended_before) {
      const AttemptId id{job.number, job.attempt()->number};
      World::check(job.attempt()->ended == job.own_time(batch.commands.back().at) ||
                       batch.commands.size() > 1,
                   title(job) + ": the end of its attempt has a wrong time");
      if (first_running_.contains(id))
        ran_[job.number] += *job.attempt()->ended - first_running_[id];
      failed_attempts_[job.number] += job.attempt()->first_failed && !job.attempt()->interrupted;
    }
    durable_[job.number] = job;
  }
  check_machines();
  check_limits();
}

void Checkers::lost(const Json& command) {
  const auto attempt = parse_attempt_id(*string_at(command, "attempt"));
  // Every host ends within minutes of its stop order, so control may declare a host lost for this
  // reason only if it sent no order.
  World::check(!string_at(command, "reason")->starts_with("the host did not end"),
               "a host of attempt " + attempt->text() + " got no stop order");
  World::check(!string_at(command, "reason")->starts_with("the host's agent") ||
                   allowed_failures_.contains(attempt->job),
               "a host of attempt " + attempt->text() + " was given up, but its agent is alive");
  first_failed_host_.emplace(*attempt, command["hosts"][0].get<HostIndex>());
  for (const Json& host : command["hosts"]) given_up_.emplace(*attempt, host.get<HostIndex>());
}

void Checkers::interrupted(const Json& command) {
  const auto job = durable_.find(JobNumber(*int_at(command, "job")));
  World::check(job != durable_.end(), "an interrupted job is not in the ledger");
  if (command.value("preemption", false)) {
    ++preemptions_[job->first];
    const AttemptId attempt{job->first, uint32_t(*int_at(command, "attempt"))};
    if (preempted_attempts_.contains(attempt)) return;
    return World::check(job->second.spec.queue && !job->second.spec.queue->quota_share.empty(),
                        title(job->second) + " was preempted, but belongs to no quota share");
  }
  World::check(*int_at(command, "attempt") == 0 || job->second.spec.spot,
               title(job->second) + " lost its machines as spot capacity, but is not a spot job");
}

const Job* Checkers::durable(JobNumber number) const {
  const auto found = durable_.find(number);
  return found == durable_.end() ? nullptr : &found->second;
}

void Checkers::check_moves(const Job& before, const Job& after) {
  World::check(before.key == after.key && before.created == after.created,
               title(before) + " became another job");
  check_pools(before, after);
  if (before.finished()) check_unchanged_after_end(before, after);
  if (before.state == JobState::active && after.state == JobState::waiting)
    World::check(
        !after.attempt()->interruption.empty() && after.attempt()->state == AttemptState::ended,
        title(before) + " waits again without a reason");
  if (before.state == JobState::stopping)
    World::check(after.state == JobState::stopping || after.finished(),
                 title(before) + " was stopping, but left that state before its end");
  World::check(after.transitions.size() >= before.transitions.size(),
               title(before) + ": its history became shorter");
  for (size_t i = 0; i < before.transitions.size(); ++i) {
    const Transition& was = before.transitions[i];
    const Transition& is = after.transitions[i];
    World::check(was.phase == is.phase && was.start == is.start && (!was.end || was.end == is.end),
                 title(before) + ": its history was rewritten");
  }
  check_attempts(before, after);
}

void Checkers::check_history(const Job& job) {
  World::check(!job.transitions.empty(), title(job) + " has no history");
  for (size_t i = 0; i < job.transitions.size(); ++i) {
    const Transition& each = job.transitions[i];
    const bool last = i + 1 == job.transitions.size();
    World::check(last ? bool(each.end) == job.finished() : each.end && *each.end >= each.start,
                 title(job) + ": phase " + std::string(to_string(each.phase)) + " has a wrong end");
    if (i == 0) continue;
    const Transition& former = job.transitions[i - 1];
    World::check(may_follow(former.phase, each.phase),
                 title(job) + ": phase " + std::string(to_string(each.phase)) + " after " +
                     std::string(to_string(former.phase)));
    World::check(former.end == each.start, title(job) + ": its history has a gap");
  }
}

// Counts the shares of attempts that have not ended, by the ledger.
void Checkers::check_machines() {
  std::map<std::string, Share> allocated;
  for (const auto& [number, job] : durable_) {
    if (!job.attempt()) continue;
    const bool taken_over = std::ranges::any_of(durable_, [number = number](const auto& other) {
      return std::ranges::any_of(other.second.attempts, [&](const Attempt& attempt) {
        return attempt.warm_pool == number;
      });
    });
    if (job.attempt()->state == AttemptState::ended && (!job.keeps_hosts() || taken_over)) continue;
    for (const Host& host : job.attempt()->hosts) add(allocated[host.machine], host.share, 1);
  }
  for (const launch::Machine& machine : machines_)
    World::check(
        within(allocated[machine.name], {machine.cpus, machine.memory_bytes, machine.gpus}),
        "machine " + machine.name + " has allocations beyond its capacity");
}

// -- on the simulated hosts

void Checkers::process_started(AttemptId attempt, HostIndex host, const std::string& agent) {
  for (const auto& [where, other] : processes_)
    World::check(
        where.first.job != attempt.job || other.running.empty() ||
            (where.first == attempt && where.second != host),
        attempt.text() + "/" + std::to_string(host) + " runs at the same time as " + other.running);
  Process& process = processes_[{attempt, host}];
  World::check(process.runs == 0, attempt.text() + "/" + std::to_string(host) + " ran before");
  const Job* kept = durable(attempt.job);
  World::check(kept && !kept->attempts.empty(), "a process runs for a job that was never placed");
  const bool ended = kept->finished() || kept->attempt()->number != attempt.number ||
                     kept->attempt()->state == AttemptState::ended;
  World::check(!ended || not_removed_.contains(attempt),
               "attempt " + attempt.text() + " has ended, but a process of it starts");
  first_ran_.emplace(attempt.job, world_.elapsed());
  ++process.runs;
  process.running = agent;
}

void Checkers::process_ended(AttemptId attempt, HostIndex host, std::optional<int> code) {
  Process& process = processes_[{attempt, host}];
  process.running.clear();
  process.code = code;
}

void Checkers::agent_started(const std::string& machine, const Share& share) {
  add(used_[machine], share, 1);
  for (const launch::Machine& each : machines_)
    if (each.name == machine)
      World::check(within(used_[machine], {each.cpus, each.memory_bytes, each.gpus}),
                   "machine " + machine + " runs more than its capacity");
}

void Checkers::agent_removed(const std::string& machine, const Share& share) {
  add(used_[machine], share, -1);
}

void Checkers::attempt_removed(AttemptId attempt) {
  const Job* job = durable(attempt.job);
  World::check(!job || !job->attempt() || job->attempt()->number != attempt.number ||
                   job->attempt()->state == AttemptState::ended,
               "attempt " + attempt.text() + " was removed before it had ended");
}

void Checkers::fact_acknowledged(AttemptId attempt, HostIndex host, uint64_t number) {
  World::check(facts_[{attempt, host}] >= number, attempt.text() + "/" + std::to_string(host) +
                                                      ": fact " + std::to_string(number) +
                                                      " was acknowledged, but is not durable");
}

void Checkers::data_sent(AttemptId attempt, HostIndex host, uint64_t number) {
  uint64_t& last = data_sent_[{attempt, host}];
  last = std::max(last, number);
}

void Checkers::data_welcomed(AttemptId attempt, HostIndex host, uint64_t acknowledged) {
  const auto sent = data_sent_.find({attempt, host});
  World::check(acknowledged <= (sent == data_sent_.end() ? 0 : sent->second),
               attempt.text() + "/" + std::to_string(host) +
                   " received an acknowledgement of data that no agent of it ever sent");
}

void Checkers::dismissed(AttemptId attempt, HostIndex host) {
  const Job* job = durable(attempt.job);
  World::check(job && job->attempts.size() >= attempt.number,
               attempt.text() + " was dismissed, but never existed");
  if (attempt.number < job->attempts.size()) return;  // ended long ago
  World::check(job && is_final(job->attempts[attempt.number - 1].hosts[host].state),
               attempt.text() + "/" + std::to_string(host) +
                   " was dismissed before its last fact was durable");
}

void Checkers::host_staged(AttemptId attempt, HostIndex host, const std::string& key) {
  staged_[{attempt, host}] = key;
}

void Checkers::merging(AttemptId attempt, const std::vector<std::string>& keys) {
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto found = staged_.find({attempt, HostIndex(i + 1)});
    if (found == staged_.end()) {
      World::check(allowed_failures_.contains(attempt.job) ||
                       stop_requests_.contains(durable(attempt.job)->key) ||
                       durable(attempt.job)->stop_cause != StopCause::none ||
                       !durable(attempt.job)->attempt()->interruption.empty(),
                   attempt.text() + ": the first host merges before host " + std::to_string(i + 1) +
                       " has staged its model");
      continue;
    }
    if (given_up_.contains({attempt, HostIndex(i + 1)}) ||
        restarted_.contains({attempt, HostIndex(i + 1)}))
      continue;  // it may have died before it reported its staged model
    World::check(found->second == keys[i], attempt.text() + ": host " + std::to_string(i + 1) +
                                               " staged '" + found->second +
                                               "', but the first host was sent '" + keys[i] + "'");
  }
}

void Checkers::allow_failure(JobNumber job, const std::string& why) {
  allowed_failures_.emplace(job, why);
}

// -- when the world is calm

void Checkers::check_pending_reasons(control::ControlPlane& control) {
  for (const auto& job : control.live_jobs()) {
    const auto shown = control.find(job->number);
    if (!shown || (*shown)->state != JobState::waiting || !(*shown)->wait_reason.empty()) {
      no_reason_since_.erase(job->number);
      continue;
    }
    const Duration since =
        no_reason_since_.try_emplace(job->number, world_.elapsed()).first->second;
    World::check(world_.elapsed() - since < kReasonlessMax,
                 title(*job) + " waits, but the API reports no pending reason");
  }
}

std::string Checkers::unfinished(ledger::Ledger& ledger, launch::Launcher& launcher) {
  for (const auto& [key, number] : acknowledged_) {
    const auto job = ledger.find_job(key);
    World::check(bool(job), "job " + key.name + " was acknowledged, but is not in the ledger");
    if (!job->finished()) return title(*job) + " is still " + std::string(to_string(job->state));
  }
  const auto agents = launcher.list();
  if (!agents.empty()) return "attempt " + agents.front().attempt.text() + " is still on a machine";
  return "";
}

void Checkers::check_end(ledger::Ledger& ledger, control::test::MemoryLogs& logs,
                         control::test::MemoryMetrics& metrics) {
  for (const auto& [number, seen] : durable_) {
    const auto job = ledger.find_job(number);
    World::check(bool(job), "job " + std::to_string(number) + " is lost");
    World::check(dump(to_json(*job)) == dump(to_json(seen)),
                 title(*job) + " differs from what was committed");
    World::check(job->finished(), title(*job) + " has not ended");
    check_outcome(*job);
  }
  check_logs(logs);
  for (const auto& [key, points] : points_) {
    const size_t kept = metrics.samples(key);
    World::check(kept >= points.acknowledged && kept <= points.made,
                 std::to_string(kept) + " points of a metric are stored, of which " +
                     std::to_string(points.made) + " were made and " +
                     std::to_string(points.acknowledged) + " acknowledged");
  }
  check_replay(ledger);
  for (const auto& [machine, share] : used_)
    World::check(share.cpus < 1e-6 && share.memory_bytes == 0,
                 "machine " + machine + " still has allocations");
}

void Checkers::check_replay(ledger::Ledger& ledger) {
  control::test::Replay replay;
  const auto replayed = replay.run(ledger);
  const std::map<JobNumber, Job>& jobs = replay.jobs;
  World::check(bool(replayed), "the commands cannot be applied again: " +
                                   (replayed ? "" : replayed.error().message));
  const auto usages = ledger.usages();
  World::check(bool(usages), "the usage of the shares cannot be read");
  for (const auto& [share, usage] : *usages) {
    // The tables may drop usage that has decayed to almost nothing.
    const domain::Usage& same = replay.usages[share];
    World::check(same.at == usage.at && std::abs(same.cpu_seconds - usage.cpu_seconds) < 0.01,
                 "replayed commands give a usage of share '" + share.share +
                     "' that differs from the table's");
  }
  Instant last;
  for (const auto& [number, job] : durable_) last = std::max(last, job.control_time(job.modified));
  for (const auto& [share, usage] : replay.usages)
    World::check(usages->contains(share) ||
                     is_negligible(usage, decay_of(replay.catalog, share.queue), last),
                 "the usage of share '" + share.share + "' is not in the table");
  World::check(jobs.size() == durable_.size(),
               "replayed commands give a number of jobs that differs from the table's");
  for (const auto& [number, job] : jobs)
    World::check(dump(progress_json(job)) == dump(progress_json(durable_[number])),
                 title(job) + ": its replayed commands give a job that differs from the table's");
}

}  // namespace trainyard::sim
