#include "domain/instance_type.hpp"

#include <algorithm>
#include <array>

namespace trainyard::domain {
namespace {

// From AWS's published tables. Accelerators that are no GPUs (Trainium) do not count as GPUs.
constexpr std::array kTypes = std::to_array<InstanceType>({
    // name, vCPU, GiB, GPUs
    {"ml.c4.2xlarge", 8, 15, 0},        {"ml.c4.4xlarge", 16, 30, 0},       {"ml.c4.8xlarge", 36, 60, 0},
    {"ml.c4.xlarge", 4, 7.5, 0},        {"ml.c5.18xlarge", 72, 144, 0},     {"ml.c5.2xlarge", 8, 16, 0},
    {"ml.c5.4xlarge", 16, 32, 0},       {"ml.c5.9xlarge", 36, 72, 0},       {"ml.c5.large", 2, 4, 0},
    {"ml.c5.xlarge", 4, 8, 0},          {"ml.c5n.18xlarge", 72, 192, 0},    {"ml.c5n.2xlarge", 8, 21, 0},
    {"ml.c5n.4xlarge", 16, 42, 0},      {"ml.c5n.9xlarge", 36, 96, 0},      {"ml.c5n.xlarge", 4, 10.5, 0},
    {"ml.c6i.12xlarge", 48, 96, 0},     {"ml.c6i.16xlarge", 64, 128, 0},    {"ml.c6i.24xlarge", 96, 192, 0},
    {"ml.c6i.2xlarge", 8, 16, 0},       {"ml.c6i.32xlarge", 128, 256, 0},   {"ml.c6i.4xlarge", 16, 32, 0},
    {"ml.c6i.8xlarge", 32, 64, 0},      {"ml.c6i.xlarge", 4, 8, 0},         {"ml.c7i.12xlarge", 48, 96, 0},
    {"ml.c7i.16xlarge", 64, 128, 0},    {"ml.c7i.24xlarge", 96, 192, 0},    {"ml.c7i.2xlarge", 8, 16, 0},
    {"ml.c7i.48xlarge", 192, 384, 0},   {"ml.c7i.4xlarge", 16, 32, 0},      {"ml.c7i.8xlarge", 32, 64, 0},
    {"ml.c7i.large", 2, 4, 0},          {"ml.c7i.xlarge", 4, 8, 0},         {"ml.g4dn.12xlarge", 48, 192, 4},
    {"ml.g4dn.16xlarge", 64, 256, 1},   {"ml.g4dn.2xlarge", 8, 32, 1},      {"ml.g4dn.4xlarge", 16, 64, 1},
    {"ml.g4dn.8xlarge", 32, 128, 1},    {"ml.g4dn.xlarge", 4, 16, 1},       {"ml.g5.12xlarge", 48, 192, 4},
    {"ml.g5.16xlarge", 64, 256, 1},     {"ml.g5.24xlarge", 96, 384, 4},     {"ml.g5.2xlarge", 8, 32, 1},
    {"ml.g5.48xlarge", 192, 768, 8},    {"ml.g5.4xlarge", 16, 64, 1},       {"ml.g5.8xlarge", 32, 128, 1},
    {"ml.g5.xlarge", 4, 16, 1},         {"ml.g6.12xlarge", 48, 192, 4},     {"ml.g6.16xlarge", 64, 256, 1},
    {"ml.g6.24xlarge", 96, 384, 4},     {"ml.g6.2xlarge", 8, 32, 1},        {"ml.g6.48xlarge", 192, 768, 8},
    {"ml.g6.4xlarge", 16, 64, 1},       {"ml.g6.8xlarge", 32, 128, 1},      {"ml.g6.xlarge", 4, 16, 1},
    {"ml.m4.10xlarge", 40, 160, 0},     {"ml.m4.16xlarge", 64, 256, 0},     {"ml.m4.2xlarge", 8, 32, 0},
    {"ml.m4.4xlarge", 16, 64, 0},       {"ml.m4.xlarge", 4, 16, 0},         {"ml.m5.12xlarge", 48, 192, 0},
    {"ml.m5.24xlarge", 96, 384, 0},     {"ml.m5.2xlarge", 8, 32, 0},        {"ml.m5.4xlarge", 16, 64, 0},
    {"ml.m5.large", 2, 8, 0},           {"ml.m5.xlarge", 4, 16, 0},         {"ml.m5d.12xlarge", 48, 192, 0},
    {"ml.m5d.16xlarge", 64, 256, 0},    {"ml.m5d.24xlarge", 96, 384, 0},    {"ml.m5d.2xlarge", 8, 32, 0},
    {"ml.m5d.4xlarge", 16, 64, 0},      {"ml.m5d.8xlarge", 32, 128, 0},     {"ml.m5d.large", 2, 8, 0},
    {"ml.m5d.xlarge", 4, 16, 0},        {"ml.m6i.12xlarge", 48, 192, 0},    {"ml.m6i.16xlarge", 64, 256, 0},
    {"ml.m6i.24xlarge", 96, 384, 0},    {"ml.m6i.2xlarge", 8, 32, 0},       {"ml.m6i.32xlarge", 128, 512, 0},
    {"ml.m6i.4xlarge", 16, 64, 0},      {"ml.m6i.8xlarge", 32, 128, 0},     {"ml.m6i.large", 2, 8, 0},
    {"ml.m6i.xlarge", 4, 16, 0},        {"ml.m7i.12xlarge", 48, 192, 0},    {"ml.m7i.16xlarge", 64, 256, 0},
    {"ml.m7i.24xlarge", 96, 384, 0},    {"ml.m7i.2xlarge", 8, 32, 0},       {"ml.m7i.48xlarge", 192, 768, 0},
    {"ml.m7i.4xlarge", 16, 64, 0},      {"ml.m7i.8xlarge", 32, 128, 0},     {"ml.m7i.large", 2, 8, 0},
    {"ml.m7i.xlarge", 4, 16, 0},        {"ml.p2.16xlarge", 64, 732, 16},    {"ml.p2.8xlarge", 32, 488, 8},
    {"ml.p2.xlarge", 4, 61, 1},         {"ml.p3.16xlarge", 64, 488, 8},     {"ml.p3.2xlarge", 8, 61, 1},
    {"ml.p3.8xlarge", 32, 244, 4},      {"ml.p3dn.24xlarge", 96, 768, 8},   {"ml.p4d.24xlarge", 96, 1152, 8},
    {"ml.p4de.24xlarge", 96, 1152, 8},  {"ml.p5.48xlarge", 192, 2048, 8},   {"ml.p5.4xlarge", 16, 256, 1},
    {"ml.p5e.48xlarge", 192, 2048, 8},  {"ml.p5en.48xlarge", 192, 2048, 8}, {"ml.r5.12xlarge", 48, 384, 0},
    {"ml.r5.16xlarge", 64, 512, 0},     {"ml.r5.24xlarge", 96, 768, 0},     {"ml.r5.2xlarge", 8, 64, 0},
    {"ml.r5.4xlarge", 16, 128, 0},      {"ml.r5.8xlarge", 32, 256, 0},      {"ml.r5.large", 2, 16, 0},
    {"ml.r5.xlarge", 4, 32, 0},         {"ml.r5d.12xlarge", 48, 384, 0},    {"ml.r5d.16xlarge", 64, 512, 0},
    {"ml.r5d.24xlarge", 96, 768, 0},    {"ml.r5d.2xlarge", 8, 64, 0},       {"ml.r5d.4xlarge", 16, 128, 0},
    {"ml.r5d.8xlarge", 32, 256, 0},     {"ml.r5d.large", 2, 16, 0},         {"ml.r5d.xlarge", 4, 32, 0},
    {"ml.r7i.12xlarge", 48, 384, 0},    {"ml.r7i.16xlarge", 64, 512, 0},    {"ml.r7i.24xlarge", 96, 768, 0},
    {"ml.r7i.2xlarge", 8, 64, 0},       {"ml.r7i.48xlarge", 192, 1536, 0},  {"ml.r7i.4xlarge", 16, 128, 0},
    {"ml.r7i.8xlarge", 32, 256, 0},     {"ml.r7i.large", 2, 16, 0},         {"ml.r7i.xlarge", 4, 32, 0},
    {"ml.t3.2xlarge", 8, 32, 0},        {"ml.t3.large", 2, 8, 0},           {"ml.t3.medium", 2, 4, 0},
    {"ml.t3.xlarge", 4, 16, 0},         {"ml.trn1.2xlarge", 8, 32, 0},      {"ml.trn1.32xlarge", 128, 512, 0},
    {"ml.trn1n.32xlarge", 128, 512, 0},
});
static_assert(std::ranges::is_sorted(kTypes, {}, &InstanceType::name),
              "find_instance_type searches by halves");

}  // namespace

std::span<const InstanceType> instance_types() { return kTypes; }

std::optional<InstanceType> find_instance_type(std::string_view name) {
  const auto found = std::ranges::lower_bound(kTypes, name, {}, &InstanceType::name);
  if (found == kTypes.end() || found->name != name) return std::nullopt;
  return *found;
}

}  // namespace trainyard::domain
