// Joins the bridges of one gang on several machines into one network, by VXLAN.
//
//   node n1                            node n2
//   host ── bridge ty.. ── vxlan tx.. ════ vxlan tx.. ── bridge ty.. ── host
//
// Each machine sends frames for addresses that it has not seen yet to all others, and learns from
// the answers. Frames travel in clear in UDP packets to port 4789, which firewalls between the
// machines must allow. The hosts' interfaces get a smaller MTU, so that a frame fits into a packet.
//
// Threads: callable from anywhere. Errors: denied (no right, or the program `ip` is missing),
// not_found (a name without an address), internal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "networks/subnet.hpp"

namespace trainyard::networks {

inline constexpr std::string_view kOverlayPrefix = "tx";

struct Overlay {
  std::string name;    // of the interface: at most 15 characters
  std::string bridge;  // that exists
  uint32_t id = 0;     // of the network, on all machines: below 2^24
  Address own = 0;     // the address of this machine that the others know
  std::vector<Address> peers;
  std::vector<std::string> links;            // of the hosts on this machine, at the bridge
  std::vector<std::string> namespace_files;  // of the same hosts
};

// On error nothing of it is left.
Result<void> make_overlay(const Overlay& overlay);
// Harmless when it does not exist.
void remove_overlay(const std::string& name);

// Returns the input of `ip -batch -` that makes it. Pure.
std::string overlay_text(const Overlay& overlay);

// Returns the IPv4 address of a name, or of an address in text.
Result<Address> resolve_address(const std::string& name);

}  // namespace trainyard::networks
