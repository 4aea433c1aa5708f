// Lists the members of CreateTrainingJob that are stored and described, but have no effect.
// Members that a user would rely on are rejected instead (training_job_request.cpp).
#pragma once

#include "operations/no_effect.hpp"

namespace trainyard::api::sagemaker {

inline constexpr NoEffect kTrainingJobNoEffect[] = {
    {"VpcConfig", "the hosts of a job share a private network of their own"},
    {"AlgorithmSpecification.TrainingImageConfig",
     "registries are accessed with the logins of the server's config"},
    {"ResourceConfig.InstancePlacementConfig",
     "hosts are placed as near to each other as there is free capacity"},
    {"InputDataConfig[].DataSource.S3DataSource.ModelAccessConfig",
     "data of a bucket needs no licence to be accepted"},
    {"DebugHookConfig", "tensors are not collected; a script may save them to /opt/ml/output/data"},
    {"ProfilerConfig",
     "jobs are not profiled; `trainyard top` and CloudWatch have the usage of each host",
     "ProfilerConfig.DisableProfiler"},
    {"ProfilerRuleConfigurations", "no profiler rules are evaluated"},
    {"ExperimentConfig", "experiments are not recorded; tags and metric definitions are"},
    {"InfraCheckConfig.EnableInfraCheck", "`trainyard doctor` checks the machine, not each job"},
};

}  // namespace trainyard::api::sagemaker
