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
inline constexpr int kExitJobFailed = 3;   // from commands that follow a job
inline constexpr int kExitJobStopped = 4;  // likewise
inline constexpr int kExitInterrupted = 130;

// An access key that the API has just made.
struct Key {
  std::string id, secret;
};

struct World {
  client::Client& client;
  os::Terminal& terminal;
  Looks looks;        // of standard output
  Looks error_looks;  // of standard error, to which progress goes
  Clock& clock;
  // Opens the object store behind the API, for uploads.
  std::function<Result<std::unique_ptr<objects::Objects>>()> open_objects;
  std::string terminal_name;  // $TERM, for shells
  // Formats the script with which a user reaches the server at `endpoint` ("": as this client).
  std::function<Result<std::string>(const std::string& user, const Key& key,
                                    const std::string& endpoint)>
      hand_over;
  // --data of the command line, for commands that messages suggest; "": not given.
  std::string data_directory = {};
};

const std::vector<Form>& forms();
// Returns nullptr for an unknown command.
const Form* find_form(const std::string& command);

// Returns the exit code. Errors: those of the command; main then exits with 1, or with
// kExitInterrupted if cancelled.
Result<int> run(World& world, const Arguments& arguments);

// Returns 0, 3 or 4 for a final status of a job.
int exit_code_of(const std::string& status);

}  // namespace trainyard::cli
