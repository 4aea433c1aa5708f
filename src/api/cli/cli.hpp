// Runs the commands about jobs: `trainyard jobs`, `describe`, `logs`, `top`, `stop`, `interrupt`, `cost`,
// `submit`, `campaign`, `shell`. The commands are clients like any other: all their data comes from the API.
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

struct World {
  client::Client& client;
  os::Terminal& terminal;
  Looks looks;
  Clock& clock;
  // Opens the object store behind the API, when something must be uploaded.
  std::function<Result<std::unique_ptr<objects::Objects>>()> open_objects;
  std::string terminal_name;  // $TERM, for shells
};

const std::vector<Form>& forms();
// nullptr: an unknown command.
const Form* find_form(const std::string& command);

// Errors: those of the command; the exit code is then 1, for `invalid` arguments 2.
Result<int> run(World& world, const Arguments& arguments);

// 0, 3 or 4, for a final status.
int exit_code_of(const std::string& status);

}  // namespace trainyard::cli
