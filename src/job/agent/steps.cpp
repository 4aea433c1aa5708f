#include "agent/steps.hpp"

#include <array>

#include "base/log.hpp"
#include "base/thread_safety.hpp"
#include "base/watched_time.hpp"

namespace trainyard::agent {

std::span<const Step> steps() {
  static constexpr std::array kSteps = {
      Step{Stage::prepare, "workspace", make_workspace, remove_workspace},
      Step{Stage::prepare, "welcome", await_welcome, nullptr},
      Step{Stage::pull, "volume", await_volume, nullptr},
      Step{Stage::pull, "channels", bring_channels, end_channels},
      Step{Stage::pull, "job's volumes", bring_volumes, nullptr},
      Step{Stage::pull, "checkpoints", restore_checkpoints, nullptr},
      Step{Stage::pull, "TensorBoard output", make_tensorboard_directory, nullptr},
      Step{Stage::pull, "image", ready_image, nullptr},
      Step{Stage::pull, "sources", fetch_sources, nullptr},
      Step{Stage::mount, "contract", write_contract, nullptr},
      Step{Stage::mount, "pipes", start_pipes, end_pipes},
      Step{Stage::mount, "activity table", open_activity, close_activity},
      Step{Stage::mount, "tunnel", open_job_tunnel, close_job_tunnel},
      Step{Stage::mount, "endpoints", open_job_endpoints, close_job_endpoints},
      Step{Stage::run, "GPUs", claim_gpus, release_gpus},
      Step{Stage::run, "checkpoint sync", start_syncs, end_syncs},
      Step{Stage::run, "process", start_process, end_process},
      Step{Stage::drain, "log", drain_log, nullptr},
      Step{Stage::drain, "GPUs", clear_gpus, nullptr},
      Step{Stage::drain, "pipes", finish_pipes, nullptr},
      Step{Stage::drain, "checkpoint sync", finish_syncs, nullptr},
      Step{Stage::drain, "stage artifacts", stage_artifacts, nullptr},
      Step{Stage::upload, "upload artifacts", upload_artifacts, nullptr},
      Step{Stage::upload, "checkpoint sync", report_failed_syncs, nullptr},
  };
  return kSteps;
}

std::optional<Failure> carry_out(StepContext& context, Stage stage) {
  for (const auto& step : steps()) {
    if (step.stage != stage) continue;
    if (context.interruption.ordered()) return Failure{domain::Fault::internal, "interrupted"};
    if (auto failure = step.carry_out(context)) {
      log(Level::warning, "agent", "a step failed",
          {{"step", std::string(step.name)}, {"why", failure->message}});
      return failure;
    }
  }
  return {};
}

void undo_all(StepContext& context) {
  const auto all = steps();
  for (auto step = all.rbegin(); step != all.rend(); ++step) {
    if (step->undo != nullptr) step->undo(context);
  }
}

void WelcomeLatch::set_received() {
  {
    const MutexLock lock(mutex_);
    received_ = true;
  }
  changed_.notify_all();
}

Result<void> WelcomeLatch::wait(const Interruption& interruption) const {
  constexpr Duration check_interval = 20ms;  // of the interruption
  MutexLock lock(mutex_);
  while (!received_) {
    TRY(interruption.check());
    changed_.wait_for(lock, check_interval);
  }
  return {};
}

Failure failure_of(const Error& error, const std::string& doing) {
  Failure failure{domain::Fault::internal, doing + ": " + error.message};
  switch (error.kind) {
    case Kind::invalid:
    case Kind::denied:
    case Kind::not_found:
    case Kind::conflict:
    case Kind::exhausted:
      failure.fault = domain::Fault::client;
      break;
    case Kind::unavailable:
    case Kind::cancelled:
    case Kind::corrupt:
    case Kind::internal:
      break;
  }
  return failure;
}

Failure named(const StepContext& context, std::string_view name, Failure failure) {
  if (context.order.spec.contract == domain::Contract::plain) failure.message.insert(0, name);
  return failure;
}

Result<void> with_store(StepContext& context, const std::string& doing,
                        const std::function<Result<void>()>& work) {
  // One call of `work` counts as a quarter of the limit at most, even if it lasted longer, or the
  // machine was suspended.
  WatchedTime time(context.world.clock, kStoreOutageMax / 4);
  const auto since = time.now();
  bool reported = false, keys_renewed = false;
  for (;;) {
    const auto keys = TRY(context.keys.wait(context.world.clock, context.interruption));
    auto done = work();
    if (done) return done;
    const Kind kind = done.error().kind;
    if (kind == Kind::denied && !keys_renewed) {
      // A restarted server rejects its earlier keys and sends new ones.
      keys_renewed = true;
      if (context.keys.wait_for_others(keys.session_token, kRenewedKeysMax)) continue;
      return done;
    }
    if (kind != Kind::unavailable || time.now() - since > kStoreOutageMax) return done;
    if (!reported)
      context.world.facts.say("the object store is unavailable: " + done.error().message +
                              "; retrying (" + doing + ")");
    reported = true;
    Mutex mutex;
    ConditionVariable never;
    MutexLock lock(mutex);
    never.wait_for(lock, kStoreRetryPause);
  }
}

}  // namespace trainyard::agent
