#include "agent/lifecycle.hpp"

#include <utility>

#include "base/enum_table.hpp"
#include "contract/aws_texts.hpp"

namespace trainyard::agent {

using domain::HostState;
using domain::StopCause;

namespace {

constexpr EnumTable<Stage> kStageNames{"stage",
                                       {{Stage::prepare, "prepare"},
                                        {Stage::pull, "pull"},
                                        {Stage::mount, "mount"},
                                        {Stage::run, "run"},
                                        {Stage::drain, "drain"},
                                        {Stage::upload, "upload"},
                                        {Stage::report, "report"},
                                        {Stage::gone, "gone"}}};

static_assert(kEnumerators<Stage> == kStages);

}  // namespace

std::string_view to_string(Stage stage) { return kStageNames.text(stage); }

namespace {

wire::StateFact fact(HostState state, std::string_view message) {
  wire::StateFact fact;
  fact.state = state;
  fact.message = message;
  return fact;
}

// One decision in progress: the run as it changes and the actions so far.
class HostLifecycle {
 public:
  explicit HostLifecycle(HostRun run) : run_(std::move(run)) {}

  Result<Decision> on(const Event& event) {
    return std::visit([&](const auto& each) { return on_event(each); }, event);
  }

 private:
  Result<Decision> decided() { return Decision{std::move(run_), std::move(actions_)}; }
  Result<Decision> cannot(std::string_view event) const {
    return conflict("lifecycle: " + std::string(event) + " cannot occur in " +
                    std::string(to_string(run_.stage)));
  }
  template <class Kind>
  void act(Kind action) {
    actions_.emplace_back(std::in_place_type<Kind>, std::move(action));
  }
  bool before_process() const {
    return run_.stage < Stage::run || (run_.stage == Stage::run && !run_.process_started);
  }

  Result<Decision> on_event(const Begin&) {
    if (run_.stage != Stage::prepare || run_.begun) return cannot("begin");
    run_.begun = true;
    act(Report{fact(HostState::preparing, contract::kPreparing)});
    act(Work{Stage::prepare});
    return decided();
  }

  Result<Decision> on_event(const StepsDone& done) {
    if (!run_.begun) return cannot("steps done before begin");
    // A stop arrived during the preparation: the process never ran, so there is nothing to drain
    // or upload.
    if (run_.stage < Stage::run && run_.stop != StopCause::none) return finish(done);
    switch (run_.stage) {
      case Stage::prepare:
        run_.stage = Stage::pull;
        if (!run_.quiet) act(Report{fact(HostState::downloading, contract::kDownloading)});
        act(Work{Stage::pull});
        return decided();
      case Stage::pull:
        run_.stage = Stage::mount;
        act(Work{Stage::mount});
        return decided();
      case Stage::mount:
        run_.stage = Stage::run;
        order_start_when_ready();
        return decided();
      case Stage::run:
        if (!run_.start_ordered) return cannot("steps done while waiting for the main host");
        if (run_.process_started) return cannot("a second start of the process");
        run_.process_started = true;
        act(Report{fact(HostState::running, contract::kTraining)});
        if (!done.notice.empty()) act(Report{fact(HostState::running, done.notice)});
        if (run_.stop != StopCause::none) act(Terminate{run_.grace});
        return decided();
      case Stage::drain:
        run_.staged_model = done.staged_model;
        return begin_upload();
      case Stage::upload:
        if (!run_.upload_ordered) return cannot("steps done while waiting for the peers");
        return finish(done);
      case Stage::report:
      case Stage::gone:
        return cannot("steps done");
    }
    return cannot("steps done");
  }

  Result<Decision> on_event(const StepsFailed& failed) {
    if (!run_.begun) return cannot("steps failed before begin");
    switch (run_.stage) {
      case Stage::prepare:
      case Stage::pull:
      case Stage::mount:
      case Stage::run:
        if (run_.process_started) return cannot("a failed start of a process that runs");
        if (run_.stage == Stage::run && !run_.start_ordered)
          return cannot("steps failed while waiting for the main host");
        // An interruption by a stop is not a failure.
        if (run_.stop == StopCause::none) run_.failure = failed.failure;
        return finish({});
      case Stage::drain:
        if (!run_.failure) run_.failure = failed.failure;
        return begin_upload();
      case Stage::upload:
        if (!run_.upload_ordered) return cannot("steps failed while waiting for the peers");
        if (run_.stop == StopCause::interrupted)
          run_.stopped = run_.stop;  // the stop ended it
        else if (!run_.failure)
          run_.failure = failed.failure;
        return finish({});
      case Stage::report:
      case Stage::gone:
        return cannot("steps failed");
    }
    return cannot("steps failed");
  }

  Result<Decision> on_event(const ProcessExited& exited) {
    if (run_.stage != Stage::run || !run_.process_started) return cannot("process exited");
    run_.exit_code = exited.code;
    // After a stop every exit is its consequence.
    if (exited.code != 0 && run_.stop == StopCause::none)
      run_.failure = Failure{exited.fault, exited.reason};
    run_.stage = Stage::drain;
    if (!run_.quiet || run_.failure) report_draining(exited);
    act(Work{Stage::drain});
    return decided();
  }

  Result<Decision> on_event(const StopOrdered& order) {
    if (run_.stage < Stage::report && run_.reclaimed) {
      // Its processes were told to end: only the cause, and perhaps the time, is another.
      run_.reclaimed = false;
      run_.stop = order.cause;
      if (run_.stopped != StopCause::none) run_.stopped = order.cause;
    }
    return stop(order);
  }

  // A host that drains or uploads may still complete its work in the time that is left.
  Result<Decision> on_event(const MachineReclaimed& reclaimed) {
    if (run_.stage > Stage::run || run_.stop != StopCause::none) return decided();
    run_.reclaimed = true;
    return stop({StopCause::interrupted, reclaimed.grace});
  }

  Result<Decision> stop(const StopOrdered& order) {
    if (run_.stage >= Stage::report) return decided();
    const bool first = run_.stop == StopCause::none;
    // The grace period of the first order applies, unless a later order ends it. A failure of the
    // gang is recorded at any time.
    if (first || order.cause == StopCause::host_failed) run_.stop = order.cause;
    if (first || order.grace < run_.grace) run_.grace = order.grace;
    // In drain the process has ended by itself, but its results may have to be dropped; in upload,
    // an ordered upload may still finish in time.
    const bool ends_it = run_.stage <= Stage::run || !run_.keeps_model();
    if (ends_it && !run_.upload_ordered && run_.stopped == StopCause::none)
      run_.stopped = run_.stop;
    if (run_.stage == Stage::run && !run_.start_ordered) return finish({});
    if (before_process()) {
      if (first && run_.begun) act(Interrupt{});
    } else if (run_.stage == Stage::run) {
      if (first)
        act(Terminate{run_.grace});
      else if (run_.grace <= 0ms)
        act(Kill{});
    } else if (run_.stage == Stage::upload) {
      if (run_.upload_ordered && order.cause == StopCause::interrupted) act(Interrupt{});
      order_upload_when_ready();  // the wait for peers is over
    }
    return decided();
  }

  Result<Decision> on_event(const GraceOver&) {
    if (run_.stage == Stage::run && run_.process_started && run_.stop != StopCause::none)
      act(Kill{});
    return decided();
  }

  Result<Decision> on_event(const PeersDrained& peers) {
    if (run_.merges() && !run_.peers) run_.peers = peers.staged_models;
    if (run_.stage == Stage::upload) order_upload_when_ready();
    return decided();
  }

  Result<Decision> on_event(const MainRuns&) {
    run_.main_runs = true;
    if (run_.stage == Stage::run) order_start_when_ready();
    return decided();
  }

  Result<Decision> on_event(const Fenced&) {
    if (run_.stage == Stage::gone) return decided();
    run_.stage = Stage::gone;
    act(Interrupt{});
    act(Kill{});
    act(Undo{});
    act(Leave{});
    return decided();
  }

  Result<Decision> on_event(const Dismissed&) {
    // The host has ended without a report from this agent, so another agent has run it.
    if (run_.stage < Stage::report) return on_event(Fenced{});
    if (run_.stage != Stage::report) return decided();
    run_.stage = Stage::gone;
    act(Leave{});
    return decided();
  }

  Result<Decision> begin_upload() {
    run_.stage = Stage::upload;
    if (!run_.quiet) {
      auto uploading = fact(HostState::uploading, contract::kUploading);
      uploading.exit_code = run_.exit_code;
      uploading.staged_model = run_.staged_model;
      uploading.stopped = run_.stopped;
      act(Report{std::move(uploading)});
    }
    order_upload_when_ready();
    return decided();
  }

  void report_draining(const ProcessExited& exited) {
    auto draining = fact(HostState::draining, run_.failure ? exited.reason : "");
    draining.exit_code = exited.code;
    // The kind of the fault decides whether the job is retried.
    if (run_.failure) draining.fault = exited.fault;
    draining.stopped = run_.stopped;
    act(Report{std::move(draining)});
  }

  void order_start_when_ready() {
    if (run_.start_ordered || (run_.follows_main && !run_.main_runs)) return;
    run_.start_ordered = true;
    act(Work{Stage::run});
  }

  void order_upload_when_ready() {
    if (run_.upload_ordered) return;
    if (run_.merges() && run_.keeps_model() && !run_.peers) return;
    run_.upload_ordered = true;
    act(Work{Stage::upload});
  }

  Result<Decision> finish(const StepsDone& done) {
    if (run_.reclaimed) {
      run_.stage = Stage::gone;
      act(Undo{});
      act(Leave{});
      return decided();
    }
    run_.stage = Stage::report;
    auto last = fact(HostState::finished, "");
    last.exit_code = run_.exit_code;
    last.model_uri = done.model_uri;
    last.output_uri = done.output_uri;
    last.stopped = run_.stopped;
    if (run_.failure) {
      last.state = HostState::failed;
      last.message = run_.failure->message;
      last.fault = run_.failure->fault;
    }
    act(Report{std::move(last)});
    act(Undo{});
    return decided();
  }

  HostRun run_;
  std::vector<Action> actions_;
};

}  // namespace

HostRun initial_run(const wire::Order& order) {
  HostRun run;
  run.host = order.host;
  // Plain containers have no results to merge.
  run.hosts = order.spec.contract == domain::Contract::plain ? 1 : order.spec.hosts();
  run.follows_main = !order.spec.decides(order.host);
  run.quiet = order.spec.contract == domain::Contract::plain && order.spec.hosts() == 1;
  return run;
}

Result<Decision> next(HostRun run, const Event& event) {
  return HostLifecycle(std::move(run)).on(event);
}

}  // namespace trainyard::agent
