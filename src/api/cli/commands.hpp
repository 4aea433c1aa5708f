// Declares the commands for cli.cpp's table; each is in a file of its name and returns its exit
// code.
#pragma once

#include "cli/cli.hpp"
#include "cli/job_reference.hpp"
#include "cli/job_view.hpp"

namespace trainyard::cli {

Result<int> jobs_command(World& world, const Arguments& arguments);
Result<int> describe_command(World& world, const Arguments& arguments);
Result<int> explain_command(World& world, const Arguments& arguments);
Result<int> logs_command(World& world, const Arguments& arguments);
Result<int> query_command(World& world, const Arguments& arguments);
Result<int> tensorboard_command(World& world, const Arguments& arguments);
Result<int> top_command(World& world, const Arguments& arguments);
Result<int> events_command(World& world, const Arguments& arguments);
Result<int> time_command(World& world, const Arguments& arguments);
Result<int> timeline_command(World& world, const Arguments& arguments);
Result<int> replay_command(World& world, const Arguments& arguments);
Result<int> stop_command(World& world, const Arguments& arguments);
Result<int> interrupt_command(World& world, const Arguments& arguments);
Result<int> cost_command(World& world, const Arguments& arguments);
Result<int> submit_command(World& world, const Arguments& arguments);
Result<int> campaign_command(World& world, const Arguments& arguments);
Result<int> shell_command(World& world, const Arguments& arguments);
Result<int> user_command(World& world, const Arguments& arguments);
Result<int> status_command(World& world, const Arguments& arguments);
Result<int> console_command(World& world, const Arguments& arguments);
Result<int> metrics_token_command(World& world, const Arguments& arguments);

// -- shared by several commands

// Finds the job that an argument names (job_reference.hpp).
Result<FoundJob> find_job(World& world, const std::string& text, Meant meant = Meant::any);
// Calls the API about a job; if the job does not exist, the error says what to do.
Result<Json> call_about(World& world, const std::string& name, client::Service service,
                        const std::string& operation, const Json& question);
// Stops a job: a training job, a job of Batch, an array or a child of one. `reason`: for Batch.
Result<void> stop_job(World& world, const FoundJob& found, const std::string& reason);
// Trainyard's own description of one job, by its exact name or id.
Result<JobView> fetch_job(World& world, const std::string& name);

// Gives a request for a training job without a role the role `trainer` of the server's account.
Result<void> add_role(World& world, Json& request);

// Draws `page` repeatedly over itself, until Ctrl-C or until it returns false in `more`. If the
// output cannot be redrawn, the page is printed when it has changed.
struct Frame {
  std::string text;
  bool more = true;
};
Result<int> redraw(World& world, Duration interval, const std::function<Result<Frame>()>& page);

// Adopts the terminal's present size.
void update_size(World& world);

// Parses "algo-2" or "2" to 1. Errors: invalid.
Result<uint32_t> host_index(const std::string& text);

}  // namespace trainyard::cli
