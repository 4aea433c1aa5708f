#include "networks/overlay.hpp"

#include "base/text.hpp"
#include "os/process.hpp"

namespace trainyard::networks {
namespace {

// an Ethernet packet of 1,500 bytes, minus the headers of VXLAN, UDP, IP and the inner frame
constexpr int kMtu = 1450;

Result<void> ip(std::vector<std::string> arguments, const std::string& input = "") {
  os::Command command;
  command.arguments = std::move(arguments);
  command.input = input;
  TRY(os::run_or_fail(command));
  return {};
}

}  // namespace

std::string overlay_text(const Overlay& overlay) {
  const std::string mtu = " mtu " + std::to_string(kMtu);
  std::string text = "link add " + overlay.name + mtu + " type vxlan id " +
                     std::to_string(overlay.id) + " local " + to_text(overlay.own_address) +
                     " dstport " + std::to_string(kOverlayPort) + "\n";
  for (const auto& link : overlay.links) text += "link set " + link + mtu + "\n";
  return text + "link set " + overlay.name + " master " + overlay.bridge + " up\n";
}

Result<void> make_overlay(const Overlay& overlay) {
  const auto make = [&]() -> Result<void> {
    TRY(ip({"ip", "-batch", "-"}, overlay_text(overlay)));
    for (const Address peer : overlay.peers)
      TRY(ip({"bridge", "fdb", "append", "00:00:00:00:00:00", "dev", overlay.name, "dst",
              to_text(peer)}));
    for (const auto& file : overlay.namespace_files)
      TRY(ip({"nsenter", "--net=" + file, "ip", "link", "set", overlay.interface, "mtu",
              std::to_string(kMtu)}));
    return {};
  };
  auto made = make();
  if (!made) remove_overlay(overlay.name);
  return made;
}

void remove_overlay(const std::string& name) { (void)ip({"ip", "link", "delete", name}); }

Result<Address> resolve_address(const std::string& name) {
  if (auto address = parse_address(name)) return address;
  os::Command command;
  command.arguments = {"getent", "ahostsv4", name};
  const auto found = TRY(os::run(command));
  const auto first = split(trim(found.output), ' ')[0];
  if (found.code != 0 || first.empty())
    return not_found("the node " + name + " has no IPv4 address here");
  return parse_address(first);
}

}  // namespace trainyard::networks
