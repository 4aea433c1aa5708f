// Runs the commands about jobs, users and the server: `trainyard jobs`, `describe`, `logs`, `top`,
// `timeline`, `stop`, `interrupt`, `cost`, `submit`, `campaign`, `shell`, `user`, `status`,
// `console`, `metrics-token`. The commands are ordinary clients: all their data comes from the API.
//
// Threads: confined to the main thread. Lifetime: the dependencies outlive run().
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "cli/arguments.hpp"
#include "cli/layout.hpp"
#include "client/client.hpp"
#include "objects/objects.hpp"
#include "os/terminal.hpp"

namespace trainyard::cli {

// Exit codes. 0 and 1 have their usual meaning: success and failure.
inline constexpr int kExitUsage = 2;
inline constexpr int kExitJobFailed = 3;   // of commands that follow a job
inline constexpr int kExitJobStopped = 4;  // likewise
inline constexpr int kExitInterrupted = 130;

// Key is an access key that the API has just made.
struct Key {
  std::string id, secret;
};

// CommandContext has the dependencies of a command.
struct CommandContext {
  client::Client& client;
  os::Terminal& terminal;
  OutputStyle style;        // of standard output
  OutputStyle error_style;  // of standard error, to which progress goes
  Clock& clock;
  // Opens the object store behind the API, for uploads.
  std::function<Result<std::unique_ptr<objects::Objects>>()> open_objects;
  std::string terminal_name;  // $TERM, for shells
  // Formats the shell script that sets up a user's environment for the server at `endpoint` ("" =
  // the endpoint of this client).
  std::function<Result<std::string>(const std::string& user, const Key& key,
                                    const std::string& endpoint)>
      hand_over;
  // --data of the command line, for commands that messages suggest; "" = absent.
  std::string data_directory = {};
  // Opens a further client, for requests to other regions at the same time.
  std::function<Result<std::unique_ptr<client::Client>>(client::Settings settings)> open_client =
      {};
};

const std::vector<Form>& forms();
// Returns nullptr for an unknown command.
const Form* find_form(const std::string& command);

// Runs a command and returns its exit code. After an error main exits with 1, or with
// kExitInterrupted if the error is `cancelled`.
Result<int> run(CommandContext& context, const Arguments& arguments);

// Returns the exit code for a job's final status: 0, kExitJobFailed or kExitJobStopped.
int exit_code_of(const std::string& status);

}  // namespace trainyard::cli
