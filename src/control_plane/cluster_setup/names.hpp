// Checks names that come from the command line or from other machines, and quotes words for a
// shell.
//
// Threads: pure functions. Errors: invalid, naming the text.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace trainyard::cluster_setup {

inline constexpr size_t kDestinationBytesMax = 286;  // a user's name, @, and a DNS name
inline constexpr size_t kNameBytesMax = 63;          // the limit of host names in DNS

// Accepts "host" and "user@host", where host is a name, an alias of ssh's configuration or an IPv4
// address. It never begins with "-", so ssh does not take it for an option.
Result<void> check_destination(std::string_view destination);
// Accepts letters, digits and "-", not at the beginning: names of hosts, which become names of
// Slurm's nodes, and names of clusters.
bool is_plain_name(std::string_view name);
// Returns true if a node of Slurm may have this name: plain, and without a meaning of its own.
bool is_node_name(std::string_view name);
bool is_ipv4(std::string_view text);
// Returns true for "/etc/slurm/slurm.conf" and the like: absolute, of letters, digits and "._-/".
bool is_plain_path(std::string_view path);

// Quotes a word for a POSIX shell, whatever it contains. Requires: no NUL.
std::string shell_word(std::string_view word);

}  // namespace trainyard::cluster_setup
