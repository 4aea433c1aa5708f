// Formats the shell scripts that inspect and change a machine. A script comes by standard input and
// runs as root, so nothing of it, no key in particular, is an argument of a process.
//
// What is done to a machine is noted there, in kDirectory: the digest of each file that was
// written, and a copy of the file that it replaced. Undoing reads these notes.
//
// Threads: pure functions. Every word in a script is a constant, or quoted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainyard::cluster_setup {

// Notes, the record, and the state of Slurm's daemons.
inline constexpr const char* kDirectory = "/var/lib/trainyard-cluster";
inline constexpr std::string_view kInspectionBegin = "trainyard-machine 1";
inline constexpr std::string_view kInspectionEnd = "end";

inline constexpr const char* kSlurmConf = "/etc/slurm/slurm.conf";
inline constexpr const char* kCgroupConf = "/etc/slurm/cgroup.conf";
inline constexpr const char* kGresConf = "/etc/slurm/gres.conf";
inline constexpr const char* kMungeKey = "/etc/munge/munge.key";
inline constexpr const char* kProgramDirectory = "/opt/trainyard/bin";
// Trainyard's programs that run on nodes.
const std::vector<std::string>& node_programs();

const std::vector<std::string>& all_services();  // munge, slurmctld, slurmd
// Every machine has these Debian packages; the controller also has slurmctld.
const std::vector<std::string>& node_packages();
inline constexpr const char* kControllerPackage = "slurmctld";

struct FileToWrite {
  std::string path;
  std::string content;
  std::string owner = "root:root";
  std::string mode = "0644";
  std::vector<std::string> services;  // must be restarted when the file has changed
};

std::string inspection_script();
// Makes the directory for notes, and notes the cluster, which services ran and which logs existed.
std::string prepare_script(std::string_view cluster);
std::string install_script(const std::vector<std::string>& packages);
// Replaces the file, with a copy of what was there before the first time. A program that reads it
// meanwhile sees the old or the new content, whole.
std::string write_script(const FileToWrite& file);
// Makes a munge key of 1024 random bytes.
std::string make_key_script(const std::vector<std::string>& services);
// Prints the munge key as base64.
std::string read_key_script();
std::string record_script(std::string_view record);
// Starts the service again, now and at each boot, and waits until it answers.
std::string restart_script(std::string_view service);
// Waits until Slurm can use the node. Prints its state if that takes too long.
std::string await_node_script(std::string_view node);
// Drains the node. If jobs run there, they are cancelled (`force`), or the node is resumed and the
// script fails.
std::string drain_script(std::string_view node, bool force);
// Stops Slurm and munge, restores or removes every file that was written, unless it has changed
// since, and removes the notes. Prints "kept PATH" for each file that has changed.
std::string undo_script();
// Prints Slurm's nodes for read_node_status().
std::string status_script();

}  // namespace trainyard::cluster_setup
