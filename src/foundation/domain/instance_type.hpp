// Lists AWS's instance types (ml.m5.large) with their processors, memory and GPUs, from AWS's
// published tables.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace trainyard::domain {

struct InstanceType {
  std::string_view name;  // "ml.m5.large"
  uint32_t cpus;          // vCPU
  double memory_gib;
  uint32_t gpus;
};

std::span<const InstanceType> instance_types();  // ordered by name
// Returns nullopt for an unknown name.
std::optional<InstanceType> find_instance_type(std::string_view name);
// False: SageMaker has it for other uses only, and CreateTrainingJob rejects it.
bool is_for_training(const InstanceType& type);

}  // namespace trainyard::domain
