// An ordinary user's enclosure: namespaces in which he is root over ids of his own, and what makes them last.
//
//   this machine's namespaces     the enclosure: a user and a mount namespace, a network namespace for all bridges
//   keeper ───────── holds ─────► DIR/run          a tmpfs; for root of the machine that is /run/trainyard
//     └ slirp4netns ─ serves ───► DIR/run/network  the namespace of the bridges, with a way out, or none
//   server  ────── enters ──────► the same code as for root; its sockets stay in this machine's network
//   agents ──── are started ────► each the first process of a PID namespace: what it started ends with it
//
// The first server of a directory makes it, the next one enters what is there. The keeper ends it, and with it every
// interface, mount and firewall rule, once neither a server nor an agent is in it: each holds a lock on DIR/lock, which
// the kernel takes away however they end. Nothing of it is left on the machine but files in DIR.
//
// Inside, id 0 is the user, and the ids above are those that /etc/subuid and /etc/subgid give him. Without them there
// is id 0 alone.
//
// Threads: enter.. and settle.. before there are others; the rest from anywhere. Errors: denied (this machine does not
// let ordinary users make namespaces, in words).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::containers {

// Ids that a user may give to what he starts: from /etc/subuid or /etc/subgid.
struct IdGrant {
  uint32_t first = 0;
  uint32_t count = 0;
};
// Pure: the user's lines of such a file, in their order; by name or by number.
std::vector<IdGrant> parse_id_grants(std::string_view text, std::string_view name, uint32_t number);
// Pure: the triples (inside, outside, count) of a map in which 0 is `own` and the rest the grants, as newuidmap takes
// them.
std::vector<std::string> id_map_words(uint32_t own, const std::vector<IdGrant>& grants);

// Of this machine or of namespaces.
bool is_root();
// Requires: not root. Afterwards it is, inside. What was started before goes on outside.
Result<void> enter_rootless_sandbox(const std::string& directory);
// The same for who only looks: namespaces that end with this process.
Result<void> enter_temporary_rootless_sandbox();
// An agent's own part, at its start: keeps the enclosure as long as it lives, and sees the processes of its own PID
// namespace only. Harmless where there is no enclosure.
Result<void> settle_in_rootless_sandbox();

// Whether those of an image's user are among our ids. Errors: denied, with what an ordinary user needs for more.
Result<void> check_ids(uint32_t user, uint32_t group);

// Whether this process is in one.
bool in_rootless_sandbox();
// Where what does not outlast a boot lies: /run/trainyard, or the enclosure's own.
std::string run_directory();
// The network namespace that has the bridges; "" = this machine's own, which we are in.
std::string network_of_bridges();
// Why no job reaches the outside, in words; "" when they do.
std::string why_no_way_out();
// The name server of the way out, which asks this machine's; "" where there is none.
std::string rootless_sandbox_name_server();

}  // namespace trainyard::containers
