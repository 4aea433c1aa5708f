// decoder: src/control_plane/cluster_setup/machine_facts.cpp
//
// Parses any bytes as what a machine prints: an inspection, the cluster's record, the list of
// nodes. What is read must be safe in Slurm's files and in scripts, and the plan made of it must be
// the same each time.
#include <cstdint>

#include "base/check.hpp"
#include "cluster_setup/cluster_record.hpp"
#include "cluster_setup/machine_facts.hpp"
#include "cluster_setup/names.hpp"
#include "cluster_setup/node_status.hpp"
#include "cluster_setup/plan.hpp"
#include "cluster_setup/slurm_files.hpp"

using namespace trainyard;
using namespace trainyard::cluster_setup;

namespace {

void check_facts(const MachineFacts& facts) {
  CHECK(is_plain_name(facts.hostname), "a host's name is plain");
  CHECK(facts.cpus > 0 && facts.memory_mib > 0, "amounts are positive");
  CHECK(facts.gpus.size() <= size_t(kGpusMax), "GPUs have a limit");
  for (const auto& [path, digest] : facts.files)
    CHECK(is_plain_path(path) && digest.size() == 64, "paths are plain");
  Candidate controller;
  controller.facts = facts;
  const auto first = plan(std::nullopt, {controller}, {});
  const auto second = plan(std::nullopt, {controller}, {});
  CHECK(bool(first) == bool(second), "plans are repeatable");
  if (!first) return;
  CHECK(first->steps.size() == second->steps.size(), "plans are repeatable");
  const auto again = read_cluster_record(to_text(first->record));
  CHECK(again && *again == first->record, "a record is read as it was written");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto facts = read_machine_facts(text)) check_facts(*facts);
  if (const auto record = read_cluster_record(text)) {
    CHECK(read_cluster_record(to_text(*record)), "a record is read as it was written");
    const std::string conf = slurm_conf(*record) + gres_conf(*record);
    CHECK(conf.find('\0') == std::string::npos && conf.find('\\') == std::string::npos,
          "files have no special characters");
  }
  if (const auto nodes = read_node_status(text))
    for (const auto& node : *nodes) CHECK(is_node_name(node.name), "each has a name");
  (void)check_destination(text);
  return 0;
}
