// Makes facts of machines for tests.
#pragma once

#include <string>

#include "base/sha256.hpp"
#include "base/text.hpp"
#include "cluster_setup/machine_facts.hpp"
#include "cluster_setup/scripts.hpp"

namespace trainyard::cluster_setup {

inline std::string digest_of(const std::string& text) { return to_hex(bytes_of(sha256(text))); }

// A machine without any package of ours, as after the installation of Debian.
inline MachineFacts plain_machine(const std::string& name, int number) {
  MachineFacts facts;
  facts.hostname = name;
  facts.system = "debian 12";
  facts.systemd = true;
  facts.cpus = 16;
  facts.memory_mib = 64'000;
  facts.addresses = {"10.0.0." + std::to_string(number)};
  facts.seconds = 1'800'000'000;
  return facts;
}

// The output of an inspection, as the script prints it.
inline std::string inspection_of(const std::string& name, const std::string& more = "") {
  return "Welcome to " + name + "\n" + std::string(kInspectionBegin) + "\nhostname " + name +
         "\nsystem debian 12\nsystemd\ncpus 16\nmemory_kib 65843212\nseconds 1800000000\n"
         "address 10.0.0.2\n" +
         more + std::string(kInspectionEnd) + "\n";
}

}  // namespace trainyard::cluster_setup
