// Declares the commands for the table in cli.cpp. Each returns its exit code, and is in a file with
// its name.
#pragma once

#include "cli/cli.hpp"
#include "cli/job_reference.hpp"
#include "cli/job_view.hpp"

namespace trainyard::cli {

Result<int> jobs_command(CommandContext& context, const Arguments& arguments);
Result<int> describe_command(CommandContext& context, const Arguments& arguments);
Result<int> explain_command(CommandContext& context, const Arguments& arguments);
Result<int> logs_command(CommandContext& context, const Arguments& arguments);
Result<int> query_command(CommandContext& context, const Arguments& arguments);
Result<int> tensorboard_command(CommandContext& context, const Arguments& arguments);
Result<int> top_command(CommandContext& context, const Arguments& arguments);
Result<int> events_command(CommandContext& context, const Arguments& arguments);
Result<int> time_command(CommandContext& context, const Arguments& arguments);
Result<int> timeline_command(CommandContext& context, const Arguments& arguments);
Result<int> replay_command(CommandContext& context, const Arguments& arguments);
Result<int> stop_command(CommandContext& context, const Arguments& arguments);
Result<int> interrupt_command(CommandContext& context, const Arguments& arguments);
Result<int> cost_command(CommandContext& context, const Arguments& arguments);
Result<int> submit_command(CommandContext& context, const Arguments& arguments);
Result<int> campaign_command(CommandContext& context, const Arguments& arguments);
Result<int> shell_command(CommandContext& context, const Arguments& arguments);
Result<int> user_command(CommandContext& context, const Arguments& arguments);
Result<int> status_command(CommandContext& context, const Arguments& arguments);
Result<int> console_command(CommandContext& context, const Arguments& arguments);
Result<int> metrics_token_command(CommandContext& context, const Arguments& arguments);

// -- shared by several commands

// Finds the job that an argument names (job_reference.hpp).
Result<FoundJob> find_job(CommandContext& context, const std::string& text,
                          JobScope scope = JobScope::any);
// Calls the API about a job; if the job does not exist, the error says what to do.
Result<Json> call_about(CommandContext& context, const std::string& name, client::Service service,
                        const std::string& operation, const Json& question);
// Stops a training job, a Batch job, an array or a child of one. `reason`: the status reason of a
// Batch job.
Result<void> stop_job(CommandContext& context, const FoundJob& found, const std::string& reason);
// Fetches DescribeJob's description of a job, by its exact name or id.
Result<JobView> fetch_job(CommandContext& context, const std::string& name);

// Sets the role of a request for a training job, if it has none, to `trainer` of the server's
// account.
Result<void> add_role(CommandContext& context, Json& request);

// Calls `page` and redraws its text at each interval, until Ctrl-C or until `more` is false. If the
// output cannot be redrawn, prints the text when it has changed.
struct Frame {
  std::string text;
  bool more = true;
};
Result<int> redraw(CommandContext& context, Duration interval,
                   const std::function<Result<Frame>()>& page);

// Sets the size of the context's style to the terminal's current size.
void update_size(CommandContext& context);

// Parses "algo-2" or "2" to 1. Errors: invalid.
Result<uint32_t> host_index(const std::string& text);

}  // namespace trainyard::cli
