// Makes and enters an ordinary user's sandbox: namespaces in which the user is root over the user's
// own ids.
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
// The first server of a directory makes it, the next one enters it. The namespace holder ends it,
// and with it every interface, mount and firewall rule, once neither a server nor an agent is in
// it: each holds a lock on DIR/lock, which the kernel releases however they end. Only files in DIR
// remain on the machine.
//
// In the sandbox, id 0 is the user, and the ids above are those that /etc/subuid and /etc/subgid
// grant. Without a grant there is id 0 alone.
//
// Threads: enter.. and settle.. before there are others; the rest from anywhere. Errors: denied
// (this machine does not let ordinary users make namespaces; the message says what to change).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::containers {

// Ids that a user may use for processes: from /etc/subuid or /etc/subgid.
struct IdGrant {
  uint32_t first = 0;
  uint32_t count = 0;
};
// Parses the user's lines of such a file, in their order; by name or by number. Pure.
std::vector<IdGrant> parse_id_grants(std::string_view text, std::string_view name, uint32_t number);
// Returns the triples (inside, outside, count) of a map in which 0 is `own` and the rest the
// grants, in the form of newuidmap's arguments. Pure.
std::vector<std::string> id_map_arguments(uint32_t own, const std::vector<IdGrant>& grants);

// True for root of this machine or of namespaces.
bool is_root();
// Requires: not root. Afterwards the process is root, in the sandbox. Processes started before stay
// outside.
Result<void> enter_rootless_sandbox(const std::string& directory);
// Does the same for a process that only inspects: the namespaces end with this process.
Result<void> enter_temporary_rootless_sandbox();
// Prepares an agent, at its start: it keeps the sandbox as long as it lives, and sees the processes
// of its own PID namespace only. Harmless without a sandbox.
Result<void> settle_in_rootless_sandbox();

// Checks that the sandbox has the ids of an image's user. Errors: denied, with what an ordinary
// user needs for more.
Result<void> check_ids(uint32_t user, uint32_t group);

// True if this process is in a sandbox.
bool in_rootless_sandbox();
// The directory of state that does not outlast a boot: /run/trainyard, or the sandbox's own.
std::string run_directory();
// The network namespace with the bridges; "" = this machine's own, in which the process is.
std::string network_of_bridges();
// The reason why jobs have no egress; "" when they have it.
std::string why_no_egress();
// The name server of the sandbox's egress, which queries this machine's; "" where there is none.
std::string rootless_sandbox_name_server();

}  // namespace trainyard::containers
