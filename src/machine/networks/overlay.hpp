// Joins the bridges of one gang on several machines into one network, by VXLAN.
//
//   node n1                            node n2
//   host ── bridge ty.. ── vxlan tx.. ════ vxlan tx.. ── bridge ty.. ── host
//
// Each machine sends frames for MAC addresses that it has not seen yet to all others, and learns
// from the answers. Frames travel unencrypted in UDP packets to port 4789, which firewalls between
// machines must allow. The hosts' interfaces get a smaller MTU, so that a frame fits into a packet.
//
// Threads: callable from anywhere. Errors: not_found (`ip` or another program is missing, or a name
// has no address), internal (a program failed, for example without root: its output is the reason).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "networks/subnet.hpp"

namespace trainyard::networks {

inline constexpr std::string_view kOverlayPrefix = "tx";

struct Overlay {
  std::string name;         // of the VXLAN interface: at most 15 characters
  std::string bridge;       // an existing one, to which the interface is attached
  uint32_t id = 0;          // the VXLAN network identifier, equal on all machines: below 2^24
  Address own_address = 0;  // this machine's, as the others reach it
  std::vector<Address> peers;
  std::vector<std::string> links;            // the bridge's interfaces to this machine's hosts
  std::vector<std::string> namespace_files;  // of the same hosts
};

// Makes the interface, attaches it and sets the hosts' MTU. On error the interface is removed.
Result<void> make_overlay(const Overlay& overlay);
// Removes the interface, if it exists.
void remove_overlay(const std::string& name);

// Returns the input of `ip -batch -` that makes the interface. Pure.
std::string overlay_text(const Overlay& overlay);

// Returns the IPv4 address of a machine's name, or parses `name` as an IPv4 address.
Result<Address> resolve_address(const std::string& name);

}  // namespace trainyard::networks
