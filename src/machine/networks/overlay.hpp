// Connects the bridges of one gang on several machines to one network, by VXLAN.
//
//   node n1                            node n2
//   host ── bridge ty.. ── vxlan tx.. ════ vxlan tx.. ── bridge ty.. ── host
//
// Each machine sends frames for unknown MAC addresses to all others, and learns from the answers.
// Frames are sent unencrypted (tunnel.hpp encrypts what is in them) in UDP packets to kOverlayPort,
// which firewalls between the machines must allow. The interfaces of the hosts get a smaller MTU,
// so that a frame fits in a packet.
//
// Threads: callable from anywhere. Errors: not_found (`ip` or another program is missing, or a name
// has no address), internal (a program failed, for example without root; the message has its
// output).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "networks/subnet.hpp"

namespace trainyard::networks {

inline constexpr std::string_view kOverlayPrefix = "tx";
inline constexpr int kOverlayPort = 4789;  // UDP, the one that IANA assigned to VXLAN

struct Overlay {
  std::string name;         // name of the VXLAN interface: at most 15 characters
  std::string bridge;       // existing bridge to which the interface is attached
  uint32_t id = 0;          // the VXLAN network identifier, equal on all machines: below 2^24
  Address own_address = 0;  // address by which the other machines reach this one
  std::vector<Address> peers;
  std::vector<std::string> links;            // the bridge's interfaces to hosts on this machine
  std::vector<std::string> namespace_files;  // namespaces of the same hosts
  std::string interface = "eth0";            // in these namespaces: the ends of `links`
};

// Makes the interface, attaches it and sets the MTU of the hosts. On error removes the interface.
Result<void> make_overlay(const Overlay& overlay);
// Removes the interface, if it exists.
void remove_overlay(const std::string& name);

// Returns the input of `ip -batch -` that makes the interface. Pure.
std::string overlay_text(const Overlay& overlay);

// Returns the IPv4 address of a machine by its name; `name` may itself be an IPv4 address.
Result<Address> resolve_address(const std::string& name);

}  // namespace trainyard::networks
