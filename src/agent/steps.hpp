// The steps of a host's run, in order: one list, one file each below steps/.
//
// One law: undo runs in reverse, all of it, even where the do-step never ran; each step may be done and
// undone twice.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "agent/site.hpp"

namespace trainyard::agent {

struct Step {
  Stage stage;
  std::string_view name;
  std::optional<Failure> (*carry_out)(Site&);  // nothing: done
  void (*undo)(Site&);                         // nullptr: leaves nothing behind
};

std::span<const Step> steps();

// Carries out the steps of one stage; the first failure ends it.
std::optional<Failure> carry_out(Site& site, Stage stage);
// Undoes all steps of all stages, in reverse.
void undo_all(Site& site);

// -- the steps

std::optional<Failure> make_workspace(Site& site);
void remove_workspace(Site& site);
std::optional<Failure> await_volume(Site& site);
std::optional<Failure> await_welcome(Site& site);
std::optional<Failure> bring_channels(Site& site);
std::optional<Failure> bring_volumes(Site& site);
std::optional<Failure> restore_checkpoints(Site& site);
std::optional<Failure> ready_image(Site& site);
std::optional<Failure> fetch_sources(Site& site);
std::optional<Failure> write_contract(Site& site);
std::optional<Failure> start_pipes(Site& site);
std::optional<Failure> finish_pipes(Site& site);
void end_pipes(Site& site);
std::optional<Failure> open_job_tunnel(Site& site);
void close_job_tunnel(Site& site);
std::optional<Failure> open_job_endpoints(Site& site);
void close_job_endpoints(Site& site);
std::optional<Failure> claim_gpus(Site& site);
std::optional<Failure> clear_gpus(Site& site);
void release_gpus(Site& site);
std::optional<Failure> start_mirrors(Site& site);
void end_mirrors(Site& site);
std::optional<Failure> start_process(Site& site);
void end_process(Site& site);
std::optional<Failure> drain_log(Site& site);
std::optional<Failure> finish_mirrors(Site& site);
std::optional<Failure> stage_artifacts(Site& site);
std::optional<Failure> upload_artifacts(Site& site);
std::optional<Failure> judge_mirrors(Site& site);

// -- what several of them need

// The same error as a failure: of the user's making (client) or ours (internal), by its kind.
Failure failure_of(const Error& error, const std::string& doing);

// The same failure, of Batch jobs with AWS's name of it before, which rules of retries look for.
Failure named(const Site& site, std::string_view name, Failure failure);

// Does what talks to the object store, again and again while that is away or the keys are being renewed, but
// not longer than kStoreAwayMax. Errors: those of `work`, cancelled.
inline constexpr Duration kStoreAwayMax =
    1h;  // an embedded store is away when the server is; jobs outlive that
inline constexpr Duration kStorePause = 500ms;
inline constexpr Duration kRenewedKeysMax = 10s;  // a server that restarted gives new keys within that
Result<void> with_store(Site& site, const std::string& doing, const std::function<Result<void>()>& work);

}  // namespace trainyard::agent
