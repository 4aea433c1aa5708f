// Makes and enters the sandbox of an ordinary user: namespaces in which the user is root over the
// user's own ids.
//
//   this machine's namespaces     the sandbox: a user and a mount namespace, a network namespace
//                                 for all bridges
//   holder ───────── holds ─────► DIR/run          a tmpfs; for root of the machine that is
//     │                                            /run/trainyard
//     └ slirp4netns ─ serves ───► DIR/run/network  the namespace of the bridges, with or without
//                                                  egress (the holder starts it again whenever it
//                                                  ends)
//   server  ────── enters ──────► the same code as for root; its sockets stay in this machine's
//                                 network
//   agents ──── are started ────► each the first process of a PID namespace: its children end
//                                 with it
//
// The first server of a directory makes the sandbox; later servers enter it. Servers and agents
// hold a lock on DIR/lock, which the kernel releases even if they are killed. Once no process holds
// it, the namespace holder ends, and with it the sandbox and its interfaces, mounts and firewall
// rules. Only files in DIR remain on the machine.
//
// In the sandbox, id 0 is the user, and higher ids are those that /etc/subuid and /etc/subgid
// grant. Without a grant there is only id 0.
//
// Threads: enter_..() and settle_..() before other threads start; other functions from anywhere.
// Errors: denied (this machine does not permit ordinary users to make namespaces; the message has
// the remedy).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::containers {

// A range of ids that a user may use for processes, from /etc/subuid or /etc/subgid.
struct IdGrant {
  uint32_t first = 0;
  uint32_t count = 0;
};
// Returns the ranges of a user, by name or number, in the order of the lines of such a file. Pure.
std::vector<IdGrant> parse_id_grants(std::string_view text, std::string_view name, uint32_t number);
// Returns a map as arguments of newuidmap: triples (inside, outside, count). Id 0 is mapped to
// `own`, and higher ids to the grants. Pure.
std::vector<std::string> id_map_arguments(uint32_t own, const std::vector<IdGrant>& grants);

// Returns true for root of this machine or of a namespace.
bool is_root();
// Moves this process into the sandbox of a directory, where it is root. Processes that it started
// before stay outside. Requires: not root.
Result<void> enter_rootless_sandbox(const std::string& directory);
// Moves this process into a new sandbox that ends with it, for processes that only inspect the
// machine.
Result<void> enter_temporary_rootless_sandbox();
// Prepares an agent at its start: the sandbox exists while the agent runs, and the agent sees only
// the processes of its own PID namespace. Does nothing outside of a sandbox.
Result<void> settle_in_rootless_sandbox();

// Checks that the sandbox has the ids of an image's user. Errors: denied, with the remedy for an
// ordinary user.
Result<void> check_ids(uint32_t user, uint32_t group);

// Returns true if this process is in a sandbox.
bool in_rootless_sandbox();
// Returns the directory of state until the next boot: /run/trainyard, or a directory of the
// sandbox.
std::string run_directory();
// Returns the network namespace with the bridges; "": that of this process.
std::string network_of_bridges();
// Returns the reason why jobs have no egress; "": they have egress.
std::string why_no_egress();
// Returns the address of the name server of the sandbox's egress, which queries those of this
// machine; "": there is none.
std::string rootless_sandbox_name_server();

}  // namespace trainyard::containers
