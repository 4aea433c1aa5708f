// Reads the settings of a job in script mode, from its files and variables, as SageMaker's own
// toolkit does.
//
// Threads: pure functions. Errors: invalid, with a text for the user.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "entry/values.hpp"

namespace trainyard::entry {

using Variables = std::map<std::string, std::string>;

// The inputs of read_settings().
struct Found {
  std::string base = "/opt/ml";
  std::string hyperparameters;  // the files' content
  std::string resource_config;
  std::string input_data_config;
  Variables variables;  // the environment that entry was started with
  int cpus = 1;
  // For each GPU: the processors near it, if known (gpus.hpp).
  std::vector<std::vector<int>> gpus = {};
};

struct Group {
  std::string name;
  std::string instance_type;
  std::vector<std::string> hosts;
};

struct Settings {
  std::string base;
  std::string program;     // the user's entry point, below code_directory()
  std::string module_dir;  // the source of its files
  Json log_level;          // as given: usually a number
  Values user;             // the script's own hyperparameters
  Values framework;        // sagemaker_* options of the framework
  std::string job_name;    // "" when it is unknown
  std::string sdk_job_name, region, framework_module;

  std::string current_host;
  std::string current_instance_type;
  std::string current_group;
  std::vector<std::string> hosts;
  std::vector<Group> groups;
  std::string network_interface;
  Json resource_config;
  Json input_data_config;

  // The groups and hosts that take part in the distribution; the first host leads.
  Json distribution_groups;
  std::vector<std::string> distribution_hosts;
  int cpus = 1;
  int gpus = 0;
  std::vector<std::vector<int>> gpu_cpus;  // one for each GPU

  std::string code_directory() const { return base + "/code"; }
  const std::string& master() const {
    return distribution_hosts.empty() ? hosts.front() : distribution_hosts.front();
  }
  bool in_distribution() const;  // true if the current group takes part
  // Returns a member of `framework` as a flag, by Python's truth value.
  bool enabled(const std::string& framework_name) const;
};

Result<Settings> read_settings(const Found& found);

// Checks that the name is a plain path below the code directory. Errors: invalid.
Result<void> check_program(std::string_view program);

// Returns the toolkit's environment variables (SM_*, PYTHONPATH and a few others), which are added
// to those in `present`.
Variables script_variables(const Settings& settings, const Variables& present);

// True for variables that differ between hosts: a launcher must not copy them.
bool is_of_host(std::string_view variable);

}  // namespace trainyard::entry
