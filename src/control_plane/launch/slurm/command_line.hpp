// Implements the interface Slurm with Slurm's programs: sbatch, squeue, scontrol, scancel and
// sacct.
//
// The script is sbatch's standard input; arguments hold no secrets. Jobs of other accounts are
// submitted by `sbatch --uid`, which slurmctld accepts from root only.
//
// The first call of jobs() lists the jobs of all users, since an earlier server may have submitted
// jobs for accounts that this one does not know. To reduce slurmctld's load, later calls list only
// the known accounts and those that had a job with our comment then.
//
// Threads and errors: as slurm.hpp; also not_found, when a program is missing, and exhausted, when
// it prints too much.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "launch/run_program.hpp"
#include "launch/slurm/slurm.hpp"

namespace trainyard::launch {

struct SlurmPrograms {
  std::string config_file = {};         // slurm.conf; "": where Slurm's programs look for it
  std::string own_user = "root";        // the account as which this process runs
  std::vector<std::string> users = {};  // other accounts that jobs are submitted for
};

// `random`: for the markers of read_jobs(). It outlives the result.
std::unique_ptr<Slurm> slurm_by_programs(SlurmPrograms programs, RunProgram run, Random& random);

// Returns the arguments of sbatch. Pure.
std::vector<std::string> sbatch_arguments(const SlurmJobRequest& request);

}  // namespace trainyard::launch
