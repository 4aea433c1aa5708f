// Lists the steps of a host's run in their order. Each step has a file below steps/.
//
// undo_all() undoes all steps in reverse order, even those that never ran. Each step may be carried
// out twice, and undone twice.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "agent/output/usage_meter.hpp"
#include "agent/step_context.hpp"

namespace trainyard::agent {

struct Step {
  Stage stage;
  std::string_view name;
  std::optional<Failure> (*carry_out)(StepContext&);  // returns nullopt when it is done
  void (*undo)(StepContext&);                         // nullptr: leaves nothing behind
};

std::span<const Step> steps();

// Carries out the steps of one stage; the first failure ends it.
std::optional<Failure> carry_out(StepContext& context, Stage stage);
// Undoes all steps of all stages, in reverse.
void undo_all(StepContext& context);

// -- the steps

std::optional<Failure> make_workspace(StepContext& context);
void remove_workspace(StepContext& context);
std::optional<Failure> await_volume(StepContext& context);
std::optional<Failure> await_welcome(StepContext& context);
std::optional<Failure> bring_channels(StepContext& context);
void end_channels(StepContext& context);
std::optional<Failure> bring_volumes(StepContext& context);
std::optional<Failure> restore_checkpoints(StepContext& context);
std::optional<Failure> make_tensorboard_directory(StepContext& context);
std::optional<Failure> ready_image(StepContext& context);
std::optional<Failure> fetch_sources(StepContext& context);
std::optional<Failure> write_contract(StepContext& context);
std::optional<Failure> start_pipes(StepContext& context);
std::optional<Failure> finish_pipes(StepContext& context);
void end_pipes(StepContext& context);
std::optional<Failure> open_activity(StepContext& context);
void close_activity(StepContext& context);
std::optional<Failure> open_job_tunnel(StepContext& context);
void close_job_tunnel(StepContext& context);
std::optional<Failure> open_job_endpoints(StepContext& context);
void close_job_endpoints(StepContext& context);
std::optional<Failure> claim_gpus(StepContext& context);
std::optional<Failure> clear_gpus(StepContext& context);
void release_gpus(StepContext& context);
std::optional<Failure> start_syncs(StepContext& context);
void end_syncs(StepContext& context);
std::optional<Failure> start_process(StepContext& context);
void end_process(StepContext& context);
std::optional<Failure> drain_log(StepContext& context);
std::optional<Failure> finish_syncs(StepContext& context);
std::optional<Failure> stage_artifacts(StepContext& context);
std::optional<Failure> upload_artifacts(StepContext& context);
std::optional<Failure> report_failed_syncs(StepContext& context);

// -- shared functions

// Converts an error into a failure: by the error's kind the fault is the user's (client) or the
// platform's (internal).
Failure failure_of(const Error& error, const std::string& doing);

// Returns the bytes of all channels, copied or mounted, that were read so far.
InputBytes input_bytes(const StepContext& context);

// Adds AWS's name of the failure to the messages of plain jobs: users' retry rules search for it.
Failure named(const StepContext& context, std::string_view name, Failure failure);

// Retries work that uses the object store while the store is unavailable or the keys are being
// renewed, for at most kStoreOutageMax. Errors: those of `work`; cancelled.
//
// One hour: an embedded store is unavailable when the server is, and jobs survive that.
inline constexpr Duration kStoreOutageMax = 1h;
inline constexpr Duration kStoreRetryPause = 500ms;
// A restarted server sends new keys within this time.
inline constexpr Duration kRenewedKeysMax = 10s;
Result<void> with_store(StepContext& context, const std::string& doing,
                        const std::function<Result<void>()>& work);

}  // namespace trainyard::agent
