// Lists AWS's instance types (ml.m5.large) with their vCPUs, memory and GPUs, from AWS's published
// tables.
//
// Threads: pure functions.
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
// Returns false if SageMaker offers the type only for other uses, so CreateTrainingJob rejects it.
bool is_for_training(const InstanceType& type);

}  // namespace trainyard::domain
