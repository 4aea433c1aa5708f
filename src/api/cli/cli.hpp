// What a person types about jobs: `trainyard jobs`, `describe`, `logs`, `top`, `stop`, `interrupt`, `cost`, `submit`,
// `campaign`, `shell`. A client like any other: all that is known comes from the API.
//
// Threads: confined to the main thread. Lifetime: the world outlives run().
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

// What the program ends with. 0 and 1 are as everywhere: done, could not be done.
inline constexpr int kExitUsage = 2;
inline constexpr int kExitJobFailed = 3;   // of commands that follow a job
inline constexpr int kExitJobStopped = 4;  // likewise
inline constexpr int kExitInterrupted = 130;

struct World {
  client::Client& client;
  os::Terminal& terminal;
  Looks looks;
  Clock& clock;
  // The object store behind the API; asked for when something is to be uploaded.
  std::function<Result<std::unique_ptr<objects::Objects>>()> open_objects;
  std::string terminal_name;  // $TERM, for shells
};

const std::vector<Form>& forms();
// nullptr: no command of ours.
const Form* find_form(const std::string& command);

// Errors: as the command has them; the exit code is then 1, for `invalid` arguments 2.
Result<int> run(World& world, const Arguments& arguments);

// 0, 3 or 4, of a status that is final.
int exit_code_of(const std::string& status);

}  // namespace trainyard::cli
