// Lists AWS's instance types: processors, memory and GPUs of a name like ml.m5.large, from the published
// tables.
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
// Nothing when the name is not in the table.
std::optional<InstanceType> find_instance_type(std::string_view name);

}  // namespace trainyard::domain
