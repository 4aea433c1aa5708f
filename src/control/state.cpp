#include "control/state.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/text.hpp"
#include "domain/json_fields.hpp"

namespace trainyard::control {
namespace {

using namespace domain;

// The words of the AWS status machine.
constexpr std::string_view kStartingTheJob = "Starting the training job.";
constexpr std::string_view kPreparing = "Preparing the instances for training.";
constexpr std::string_view kDownloading = "Downloading input data";
constexpr std::string_view kTraining = "Training image download completed. Training in progress.";
constexpr std::string_view kUploading = "Uploading generated training model";
constexpr std::string_view kStopping = "Stopping the training job";
constexpr std::string_view kStopped = "Training job stopped";
constexpr std::string_view kCompleted = "Training job completed";
constexpr std::string_view kMaxRuntimeExceeded = "Training job runtime exceeded MaxRuntimeInSeconds provided";

// A phase that is entered again is the same line of the history with a newer message.
void enter(Job& job, Phase phase, std::string_view message, Instant at) {
  if (!job.transitions.empty()) {
    Transition& last = job.transitions.back();
    if (last.phase == phase) {
      last.message = message;
      return;
    }
    last.end = std::max(at, last.start);
    at = *last.end;
  }
  job.transitions.push_back({phase, std::string(message), at, {}});
}

void end_phases(Job& job) {
  Transition& last = job.transitions.back();
  last.end = last.start;
}

bool every(const Attempt& attempt, HostState at_least) {
  return std::ranges::all_of(attempt.hosts, [&](const Host& host) { return host.state >= at_least; });
}

bool every_final(const Attempt& attempt) {
  return std::ranges::all_of(attempt.hosts, [](const Host& host) { return is_final(host.state); });
}

// Takes one of our own moves, which the code around it knows to be legal.
template <class State, class Event>
void move(State& state, Event event) {
  const auto moved = next(state, event);
  CHECK(moved, "this move was checked before");
  state = *moved;
}

std::string failure_reason(const Attempt& attempt, HostIndex index) {
  const Host& host = attempt.hosts[index];
  const std::string text = host.failure.empty() ? "the training process failed" : host.failure;
  // The words of the host come first, as people search for them; which host it was comes last.
  const std::string where = attempt.hosts.size() > 1 ? " (" + host_name(index) + ")" : "";
  std::string prefix, suffix;
  switch (host.fault.value_or(Fault::algorithm)) {
    case Fault::algorithm:
      prefix = "AlgorithmError: ";
      if (host.exit_code) suffix = ", exit code: " + std::to_string(*host.exit_code);
      break;
    case Fault::client:
      prefix = "ClientError: ";
      break;
    case Fault::internal:
      prefix = "InternalServerError: ";
      break;
  }
  suffix += where;
  return prefix + shorten(text, kFailureReasonBytesMax - prefix.size() - suffix.size()) + suffix;
}

// Every host's run is over: so is the attempt, and the job with it.
void finish(Job& job, Attempt& attempt, Instant at) {
  if (attempt.state != AttemptState::draining) move(attempt.state, AttemptEvent::drain);
  move(attempt.state, AttemptEvent::end);
  attempt.ended = at;
  if (job.training_start) job.training_end = std::max(at, *job.training_start);
  if (attempt.first_failed) {
    job.failure_reason = failure_reason(attempt, *attempt.first_failed);
    move(job.state, JobEvent::fail);
    enter(job, Phase::failed, job.failure_reason, at);
  } else if (job.stop_cause == StopCause::max_runtime) {
    move(job.state, JobEvent::finish_stopped);
    enter(job, Phase::max_runtime_exceeded, kMaxRuntimeExceeded, at);
  } else if (job.stop_cause != StopCause::none) {
    move(job.state, JobEvent::finish_stopped);
    enter(job, Phase::stopped, kStopped, at);
  } else {
    move(job.state, JobEvent::complete);
    enter(job, Phase::completed, kCompleted, at);
  }
  end_phases(job);
}

// After a host moved: what its gang's states make of attempt and job. `happened` is when it did, `at` is now.
void follow(Job& job, Attempt& attempt, Instant happened, Instant at) {
  if (attempt.state == AttemptState::starting && every(attempt, HostState::running)) {
    move(attempt.state, AttemptEvent::run);
    attempt.training_started = happened;
  }
  if (attempt.state != AttemptState::draining && every(attempt, HostState::draining))
    move(attempt.state, AttemptEvent::drain);

  // While a gang is being stopped, or ends because a host failed, the user sees what was, until it is over.
  if (job.state == JobState::active && job.stop_cause == StopCause::none) {
    if (every(attempt, HostState::uploading))
      enter(job, Phase::uploading, kUploading, happened);
    else if (every(attempt, HostState::running))
      enter(job, Phase::training, kTraining, happened);
    else if (std::ranges::any_of(attempt.hosts,
                                 [](const Host& host) { return host.state >= HostState::downloading; }))
      enter(job, Phase::downloading, kDownloading, happened);
  }
  if (every_final(attempt)) finish(job, attempt, at);
}

// The present attempt, when it is `id` and has not ended.
Result<Attempt*> attempt_of(Job& job, AttemptId id) {
  if (job.attempts.empty() || job.attempts.back().number != id.number)
    return denied("attempt " + id.text() + " is not the present one of " + job_title(job.key));
  return &job.attempts.back();
}

class Applying {
 public:
  Applying(const Subject& subject, Instant at) : subject_(subject), at_(at) {
    if (!subject.job) return;
    job_ = *subject.job;
    // Wall clocks are set back; histories are not.
    at_ = std::max(at, job_.modified);
  }

  Result<Change> on(const Create& create) {
    CHECK(!subject_.job, "the writer has looked whether the name is taken");
    Change change{create.job, {}};
    change.job->created = change.job->modified = at_;
    enter(*change.job, Phase::starting, kStartingTheJob, at_);
    if (!create.tags.empty()) change.tags.emplace(create.arn, create.tags);
    return change;
  }

  Result<Change> on(const StopJob&) {
    if (job_.state == JobState::stopping) return Change{};
    const bool waited = job_.state == JobState::waiting;
    job_.state = TRY(next(job_.state, JobEvent::stop));
    job_.stop_requested = at_;
    if (job_.stop_cause == StopCause::none) job_.stop_cause = StopCause::user;
    if (waited) {
      enter(job_, Phase::stopped, kStopped, at_);
      end_phases(job_);
    } else {
      enter(job_, Phase::stopping, kStopping, at_);
    }
    return changed();
  }

  Result<Change> on(const SetTags& set) {
    std::vector<Tag> tags = subject_.tags ? *subject_.tags : std::vector<Tag>{};
    std::erase_if(tags, [&](const Tag& tag) {
      return std::ranges::find(set.remove_keys, tag.key) != set.remove_keys.end();
    });
    for (const Tag& tag : set.add) {
      const auto found = std::ranges::find(tags, tag.key, &Tag::key);
      if (found == tags.end())
        tags.push_back(tag);
      else
        found->value = tag.value;
    }
    if (tags.size() > kTagsMax)
      return invalid("a resource has at most " + std::to_string(kTagsMax) + " tags, and this would make " +
                     std::to_string(tags.size()));
    Change change;
    change.tags.emplace(set.arn, std::move(tags));
    return change;
  }

  Result<Change> on(const Place& place) {
    if (job_.state != JobState::waiting) return Change{};
    move(job_.state, JobEvent::place);
    Attempt attempt;
    attempt.number = uint32_t(job_.attempts.size()) + 1;
    attempt.token = place.token;
    attempt.started = at_;
    for (const Place::At& each : place.hosts) {
      Host host;
      host.machine = each.machine;
      host.share = each.share;
      host.state_since = at_;
      attempt.hosts.push_back(std::move(host));
    }
    job_.attempts.push_back(std::move(attempt));
    job_.note = place.note;
    enter(job_, Phase::starting, kPreparing, at_);
    return changed();
  }

  Result<Change> on(const Fact& command) {
    Attempt& attempt = *TRY(attempt_of(job_, command.attempt));
    if (command.host >= attempt.hosts.size())
      return invalid("attempt " + command.attempt.text() + " has no such host");
    Host& host = attempt.hosts[command.host];
    const wire::StateFact& fact = command.fact;
    if (fact.number <= host.facts_applied) return Change{};
    if (fact.number != host.facts_applied + 1)
      return conflict("fact " + std::to_string(fact.number) + " came where " +
                      std::to_string(host.facts_applied + 1) + " is next");
    host.facts_applied = fact.number;
    // A fact that cannot be (an agent that was given up for lost goes on reporting) is counted and changes
    // nothing.
    const auto state = next(host.state, fact.state);
    if (!state || fact.state == HostState::lost) return changed();

    const Instant happened = std::clamp(fact.at, std::min(host.state_since, at_), at_);
    host.state = *state;
    host.state_since = happened;
    if (fact.exit_code) host.exit_code = fact.exit_code;
    if (host.state == HostState::uploading) host.staged_model = fact.staged_model;
    if (host.state == HostState::running && (!job_.training_start || happened < *job_.training_start))
      job_.training_start = happened;
    if (command.host == 0 && !fact.model_uri.empty()) job_.model_uri = fact.model_uri;
    if (!fact.output_uri.empty() && job_.output_uri.empty()) job_.output_uri = fact.output_uri;
    if (host.state == HostState::failed) {
      host.failure = fact.message;
      host.fault = fact.fault.value_or(Fault::internal);
    }
    note_failure(attempt, command.host);
    follow(job_, attempt, happened, at_);
    return changed();
  }

  Result<Change> on(const Lose& lose) {
    Attempt& attempt = *TRY(attempt_of(job_, lose.attempt));
    bool any = false;
    for (const HostIndex index : lose.hosts) {
      CHECK(index < attempt.hosts.size(), "our own loop names hosts of the attempt");
      Host& host = attempt.hosts[index];
      if (is_final(host.state)) continue;
      const bool ran = host.state >= HostState::running;
      host.state = HostState::lost;
      host.state_since = at_;
      host.failure = lose.reason;
      host.fault = lose.fault;
      any = true;
      // Whoever asked for a stop before the host ran has not lost anything with it.
      if (!attempt.first_failed && (ran || job_.state != JobState::stopping)) fail(attempt, index);
    }
    if (!any) return Change{};
    follow(job_, attempt, at_, at_);
    return changed();
  }

  Result<Change> on(const Expire&) {
    if (job_.state != JobState::active || job_.stop_cause != StopCause::none) return Change{};
    move(job_.state, JobEvent::stop);
    job_.stop_requested = at_;
    job_.stop_cause = StopCause::max_runtime;
    enter(job_, Phase::stopping, kStopping, at_);
    return changed();
  }

 private:
  void fail(Attempt& attempt, HostIndex index) {
    attempt.first_failed = index;
    if (job_.stop_cause == StopCause::none) job_.stop_cause = StopCause::host_failed;
  }

  // A host's process ended badly, or the host could not do its part. After a stop was asked for, a process
  // that ends badly is the stop's doing, or a consequence of its peers' going.
  void note_failure(Attempt& attempt, HostIndex index) {
    const Host& host = attempt.hosts[index];
    if (attempt.first_failed) return;
    const bool asked = job_.stop_cause != StopCause::none;
    if (host.state == HostState::failed) {
      if (!asked || host.fault != Fault::algorithm) fail(attempt, index);
    } else if (host.state == HostState::draining && host.exit_code.value_or(0) != 0 && !asked) {
      fail(attempt, index);
    }
  }

  Result<Change> changed() {
    job_.modified = at_;
    Change change;
    change.job = std::move(job_);
    return change;
  }

  const Subject& subject_;
  Instant at_;
  Job job_;
};

// -- records --------------------------------------------------------------------------------------

Json tags_json(const std::vector<Tag>& tags) {
  Json list = Json::array();
  for (const Tag& tag : tags) list.push_back(to_json(tag));
  return list;
}

Json json_of(const Create& create) {
  const Job& job = create.job;
  return {{"number", job.number},      {"key", to_json(job.key)}, {"account", job.account},
          {"spec", to_json(job.spec)}, {"arn", create.arn},       {"tags", tags_json(create.tags)}};
}
Json json_of(const StopJob& stop) { return {{"job", stop.job}}; }
Json json_of(const SetTags& set) {
  return {{"arn", set.arn}, {"add", tags_json(set.add)}, {"remove_keys", set.remove_keys}};
}
Json json_of(const Place& place) {
  Json hosts = Json::array();
  for (const Place::At& at : place.hosts)
    hosts.push_back({{"machine", at.machine}, {"share", to_json(at.share)}});
  return {{"job", place.job}, {"token", place.token}, {"hosts", hosts}, {"note", place.note}};
}
Json json_of(const Fact& command) {
  const wire::StateFact& fact = command.fact;
  Json json{{"attempt", command.attempt.text()},
            {"host", command.host},
            {"number", fact.number},
            {"at", to_milliseconds(fact.at)},
            {"state", to_string(fact.state)}};
  if (!fact.message.empty()) json["message"] = fact.message;
  if (fact.exit_code) json["exit_code"] = *fact.exit_code;
  if (fact.fault) json["fault"] = to_string(*fact.fault);
  if (!fact.staged_model.empty()) json["staged_model"] = fact.staged_model;
  if (!fact.model_uri.empty()) json["model_uri"] = fact.model_uri;
  if (!fact.output_uri.empty()) json["output_uri"] = fact.output_uri;
  return json;
}
Json json_of(const Lose& lose) {
  return {{"attempt", lose.attempt.text()},
          {"hosts", lose.hosts},
          {"fault", to_string(lose.fault)},
          {"reason", lose.reason}};
}
Json json_of(const Expire& expire) { return {{"job", expire.job}}; }

Result<AttemptId> attempt_id_of(const Json& json) {
  if (!json.is_string()) return invalid("an attempt must be a string");
  return parse_attempt_id(json.get<std::string>());
}
Result<HostIndex> host_of(const Json& json) {
  if (!json.is_number_unsigned()) return invalid("a host must be a number");
  return json.get<HostIndex>();
}
Result<Place::At> place_of(const Json& json) {
  Place::At at;
  TRY(Fields(json, "place").read("machine", at.machine).read("share", at.share, share_from_json).result());
  return at;
}

Result<Command> create_of(const Json& json) {
  Create create;
  TRY(Fields(json, "create")
          .read("number", create.job.number)
          .read("key", create.job.key, job_key_from_json)
          .read("account", create.job.account)
          .read("spec", create.job.spec, job_spec_from_json)
          .read("arn", create.arn)
          .read("tags", create.tags, tag_from_json)
          .result());
  return Command(std::move(create));
}
Result<Command> stop_of(const Json& json) {
  StopJob stop;
  TRY(Fields(json, "stop").read("job", stop.job).result());
  return Command(stop);
}
Result<Command> tags_of(const Json& json) {
  SetTags set;
  TRY(Fields(json, "tags")
          .read("arn", set.arn)
          .read("add", set.add, tag_from_json)
          .read("remove_keys", set.remove_keys)
          .result());
  return Command(std::move(set));
}
Result<Command> placed_of(const Json& json) {
  Place place;
  TRY(Fields(json, "place")
          .read("job", place.job)
          .read("token", place.token)
          .read("hosts", place.hosts, place_of)
          .read("note", place.note)
          .result());
  return Command(std::move(place));
}
Result<Command> fact_of(const Json& json) {
  Fact command;
  wire::StateFact& fact = command.fact;
  TRY(Fields(json, "fact")
          .read("attempt", command.attempt, attempt_id_of)
          .read("host", command.host)
          .read("number", fact.number)
          .read("at", fact.at)
          .read("state", fact.state, parse_host_state)
          .read("message", fact.message)
          .read("exit_code", fact.exit_code)
          .read("fault", fact.fault, parse_fault)
          .read("staged_model", fact.staged_model)
          .read("model_uri", fact.model_uri)
          .read("output_uri", fact.output_uri)
          .result());
  return Command(std::move(command));
}
Result<Command> lose_of(const Json& json) {
  Lose lose;
  TRY(Fields(json, "lose")
          .read("attempt", lose.attempt, attempt_id_of)
          .read("hosts", lose.hosts, host_of)
          .read("fault", lose.fault, parse_fault)
          .read("reason", lose.reason)
          .result());
  return Command(std::move(lose));
}
Result<Command> expire_of(const Json& json) {
  Expire expire;
  TRY(Fields(json, "expire").read("job", expire.job).result());
  return Command(expire);
}

struct Form {
  std::string_view kind;
  Result<Command> (*read)(const Json&);
};
// In the order of Command.
constexpr Form kForms[] = {{"create", create_of}, {"stop", stop_of}, {"tags", tags_of},
                           {"place", placed_of},  {"fact", fact_of}, {"lose", lose_of},
                           {"expire", expire_of}};
static_assert(std::size(kForms) == std::variant_size_v<Command>);

}  // namespace

Result<Change> apply(const Subject& subject, const Command& command, Instant at) {
  if (!subject.job && !std::holds_alternative<Create>(command) && !std::holds_alternative<SetTags>(command))
    return not_found("there is no such job");
  Applying applying(subject, at);
  return std::visit([&](const auto& each) { return applying.on(each); }, command);
}

std::optional<JobNumber> job_of(const Command& command) {
  struct Number {
    std::optional<JobNumber> operator()(const Create& c) const { return c.job.number; }
    std::optional<JobNumber> operator()(const StopJob& c) const { return c.job; }
    std::optional<JobNumber> operator()(const SetTags&) const { return std::nullopt; }
    std::optional<JobNumber> operator()(const Place& c) const { return c.job; }
    std::optional<JobNumber> operator()(const Fact& c) const { return c.attempt.job; }
    std::optional<JobNumber> operator()(const Lose& c) const { return c.attempt.job; }
    std::optional<JobNumber> operator()(const Expire& c) const { return c.job; }
  };
  return std::visit(Number{}, command);
}

std::string_view kind_of(const Command& command) { return kForms[command.index()].kind; }

Json body_of(const Command& command) {
  return std::visit([](const auto& each) { return json_of(each); }, command);
}

Result<Command> command_of(const ledger::CommandRecord& record) {
  for (const Form& form : kForms)
    if (form.kind == record.kind) return form.read(record.body);
  return corrupt("the ledger has a command of the unknown kind '" + shorten(record.kind, 40) + "'");
}

std::string job_title(const JobKey& key) { return "training-job/" + key.name; }

std::string log_stream_of(const Job& job, const Attempt& attempt, HostIndex host) {
  return job.key.name + "/" + host_name(host) + "-" + std::to_string(to_milliseconds(attempt.started) / 1000);
}

}  // namespace trainyard::control
