// Implements the interface Slurm by its programs: sbatch, squeue, scontrol and scancel.
//
// The script goes to sbatch's standard input; arguments hold no secrets. Threads and errors: as
// slurm.hpp; also not_found, when a program is missing, and exhausted, when it prints too much.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launch/slurm/slurm.hpp"
#include "os/process.hpp"

namespace trainyard::launch {

// Runs a program to its end: os::run(), or a fake in tests.
using RunProgram = std::function<Result<os::Outcome>(const os::Command&)>;

struct SlurmPrograms {
  std::string config_file;  // slurm.conf; "": where Slurm's programs look for it
};

std::unique_ptr<Slurm> slurm_by_programs(SlurmPrograms programs, RunProgram run);

// Returns the arguments of sbatch. Pure.
std::vector<std::string> sbatch_arguments(const SlurmJobRequest& request);

}  // namespace trainyard::launch
