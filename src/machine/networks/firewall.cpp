#include "networks/firewall.hpp"

#include <netinet/in.h>

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstddef>
#include <optional>

#include "base/text.hpp"
#include "networks/network.hpp"
#include "os/files.hpp"
#include "os/process.hpp"

namespace trainyard::networks {
namespace {

// the link-local range, with addresses at which clouds provide a machine's keys
constexpr std::string_view kLinkLocal = "169.254.0.0/16";

// the comment that marks Trainyard's rules in chains of other programs
constexpr std::string_view kForeignMark = "trainyard's bridges";

// Prefix of the chains of ufw, whose policy an administrator has chosen. (Docker sets the policy
// itself.)
constexpr std::string_view kUfwChains = "jump ufw-";

// Returns the rules of iptables' FORWARD with their handles; "": there is no such chain.
Result<std::string> foreign_forwarding() {
  const auto listed =
      TRY(os::run({{"nft", "-a", "list", "chain", "ip", "filter", "FORWARD"}, {}, "", "", 60s}));
  return listed.code == 0 ? listed.output : std::string();
}

std::string comment_text(const std::string& text) {
  std::string comment;
  for (const char byte : text.substr(0, 120))
    comment += byte == '"' || byte == '\\' || byte < ' ' ? '_' : byte;
  return comment;
}

// the name of the set that counts connections by source address
constexpr const char* kConnectionsSet = "connections";

constexpr int kKernelReplySecondsMax = 10;  // the kernel answers at once
constexpr size_t kTableNameBytesMax = 256;  // nft's limit

// Returns the start of a network's table, up to the forward chain: this machine accepts only
// replies, and traffic of other programs is not affected. `sources` is the number of addresses
// whose connections are counted; 0: they are not counted separately.
std::string table_head(const std::string& table, const std::string& ours,
                       const std::string& comment, uint64_t sources) {
  std::string text = "table inet " + table + " {\n";
  text += "  comment \"" + comment_text(comment) + "\"\n";
  if (sources > 0)
    text += "  set " + std::string(kConnectionsSet) +
            " {\n    type ipv4_addr; flags dynamic; size " + std::to_string(sources) + ";\n  }\n";
  text += "  chain input {\n    type filter hook input priority filter; policy accept;\n";
  text += "    iifname != " + ours + " accept\n";
  text += "    ct state established,related accept\n";
  text += "    drop\n  }\n";
  text += "  chain forward {\n    type filter hook forward priority filter; policy accept;\n";
  text += "    iifname != " + ours + " oifname != " + ours + " accept\n";
  return text;
}

// Returns nullopt if the kernel did not say whether there is such a table.
std::optional<bool> kernel_has_table(const std::string& name) {
  const os::File socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER));
  const timeval limit{kKernelReplySecondsMax, 0};
  if (!socket ||
      ::setsockopt(socket.descriptor(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0 ||
      name.size() >= kTableNameBytesMax)
    return std::nullopt;
  // The request consists of a header, nfgenmsg, and one attribute, the name.
  struct {
    nlmsghdr header;
    nfgenmsg family;
    nlattr attribute;
    char name[kTableNameBytesMax];
  } request = {};
  request.attribute.nla_type = NFTA_TABLE_NAME;
  request.attribute.nla_len = uint16_t(sizeof(nlattr) + name.size() + 1);
  name.copy(request.name, kTableNameBytesMax - 1);
  request.family.nfgen_family = NFPROTO_INET;
  request.family.version = NFNETLINK_V0;
  request.header.nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETTABLE;
  request.header.nlmsg_flags = NLM_F_REQUEST;
  request.header.nlmsg_len =
      uint32_t(offsetof(decltype(request), attribute)) + NLA_ALIGN(request.attribute.nla_len);
  alignas(NLMSG_ALIGNTO) char reply[4096];
  if (::send(socket.descriptor(), &request, request.header.nlmsg_len, 0) < 0) return std::nullopt;
  const ssize_t got = ::recv(socket.descriptor(), reply, sizeof reply, 0);
  const auto* answer = reinterpret_cast<const nlmsghdr*>(reply);
  if (got < ssize_t(sizeof(nlmsghdr))) return std::nullopt;
  if (answer->nlmsg_type != NLMSG_ERROR) return true;
  if (got < ssize_t(NLMSG_LENGTH(sizeof(nlmsgerr)))) return std::nullopt;
  const auto* error = static_cast<const nlmsgerr*>(NLMSG_DATA(answer));
  return error->error == -ENOENT ? std::optional(false) : std::nullopt;
}

// Deletes a table whether or not there is one.
std::string deletion_of(const std::string& table) {
  return "add table inet " + table + "\ndelete table inet " + table + "\n";
}

}  // namespace

Result<void> run_nft(const std::string& text) {
  auto done = os::run_or_fail({{"nft", "-f", "-"}, {}, text, "", 60s});
  if (done) return ok();
  if (done.error().kind == Kind::not_found)
    return denied("making a job's network: nft is not on PATH; install the package nftables");
  Error error = std::move(done).error();
  // nft has no exit code for a missing table.
  if (error.message.find("Operation not permitted") != std::string::npos) error.kind = Kind::denied;
  return std::move(error).in("setting up the firewall");
}

Result<void> set_table(const std::string& name, const std::string& definition) {
  // A transaction that deletes a table waits until no packet is in its rules, some 20 ms.
  const bool known_absent = kernel_has_table(name) == false;
  return run_nft((known_absent ? "" : deletion_of(name)) + definition);
}

std::string firewall_text(const PrivateNetwork& network) {
  const std::string ours = "\"" + network.bridge + "\"";
  std::string text = table_head(network.table, ours, network.comment, 0);
  text += "    iifname " + ours + " oifname " + ours + " accept\n";
  if (!network.isolated) {
    text += "    oifname " + ours + " ct state established,related accept\n";
    text += "    oifname " + ours + " drop\n";
    text += "    ip saddr != " + network.subnet.text() + " drop\n";
    text += "    meta nfproto ipv6 drop\n";
    text += "    oifname \"" + std::string(kBridgePrefix) + "*\" drop\n";
    text += "    ip daddr { " + network.pool.text() + ", " + std::string(kLinkLocal);
    for (const Address address : network.machine_addresses) text += ", " + to_text(address);
    text += " } drop\n";
    text += egress_text(network.egress, "") + "  }\n";
    text +=
        "  chain postrouting {\n    type nat hook postrouting priority srcnat; policy accept;\n";
    text += "    ip saddr " + network.subnet.text() + " oifname != " + ours + " masquerade\n  }\n";
  } else {
    text += "    drop\n  }\n";
  }
  text += "}\n";
  return text;
}

std::string firewall_text(const DirectFirewall& firewall) {
  const std::string ours = "\"" + firewall.links + "*\"";
  std::string text = table_head(firewall.table, ours, firewall.comment, firewall.pool.size());
  text += "    oifname " + ours + " ct state established,related accept\n";
  text += "    oifname " + ours + " drop\n";
  text += "    meta nfproto ipv6 drop\n";
  // Packets on a link from addresses other than that of its host are forged.
  text += "    fib saddr . iif oif missing drop\n";
  text += "    oifname \"" + std::string(kBridgePrefix) + "*\" drop\n";
  text += "    ip daddr { " + firewall.pool.text() + ", " + std::string(kLinkLocal) + " } drop\n";
  text += egress_text(firewall.egress, kConnectionsSet) + "  }\n";
  text += "  chain postrouting {\n    type nat hook postrouting priority srcnat; policy accept;\n";
  text += "    ip saddr " + firewall.pool.text() + " oifname != \"" + std::string(kBridgePrefix) +
          "*\" masquerade\n  }\n";
  return text + "}\n";
}

Result<void> make_firewall(const DirectFirewall& firewall) {
  return set_table(firewall.table, firewall_text(firewall));
}

bool has_firewall_table(const std::string& name) { return kernel_has_table(name).value_or(false); }

Result<void> remove_firewall_tables_here(const std::vector<std::string>& names) {
  if (names.empty()) return ok();
  std::string text;
  for (const auto& name : names) text += deletion_of(name);
  return run_nft(text);
}

Result<bool> let_through_foreign_forwarding() {
  // filters of other programs are in another namespace
  if (containers::in_rootless_sandbox()) return false;
  const std::string rules = TRY(foreign_forwarding());
  if (rules.find("policy drop") == std::string::npos ||
      rules.find(kForeignMark) != std::string::npos)
    return false;
  if (rules.find(kUfwChains) != std::string::npos)
    return denied(
        "making a job's network: ufw drops forwarded packets; allow them by "
        "'ufw route allow from POOL', with the pool of [network]");
  const std::string ours = "\"" + std::string(kBridgePrefix) + "*\" accept comment \"" +
                           std::string(kForeignMark) + "\"\n";
  // Appends the rules, so that they override only the policy of the chain, and not earlier rules.
  TRY(run_nft("add rule ip filter FORWARD iifname " + ours + "add rule ip filter FORWARD oifname " +
              ours));
  return true;
}

Result<void> stop_foreign_forwarding() {
  if (containers::in_rootless_sandbox()) return ok();
  std::string text;
  const std::string rules = TRY(foreign_forwarding());
  for (const auto line : split(rules, '\n')) {
    const size_t handle = line.rfind("# handle ");
    if (line.find(kForeignMark) == std::string_view::npos || handle == std::string_view::npos)
      continue;
    text +=
        "delete rule ip filter FORWARD handle " + std::string(trim(line.substr(handle + 9))) + "\n";
  }
  if (text.empty()) return ok();
  auto removed = run_nft(text);
  if (removed) return ok();
  // Another process may have removed the same rules meanwhile.
  const auto left = foreign_forwarding();
  return left && left->find(kForeignMark) == std::string::npos ? ok() : removed;
}

Result<std::vector<std::string>> firewall_tables_named(std::string_view prefix) {
  const std::string text = TRY(in_network_of_bridges<std::string>([] {
    return os::run_or_fail({{"nft", "list", "tables"}, {}, "", "", 60s});
  }));
  std::vector<std::string> names;
  for (const auto line : split(text, '\n')) {
    const auto words = split(trim(line), ' ');  // table inet NAME
    if (words.size() == 3 && words[1] == "inet" && words[2].starts_with(prefix))
      names.emplace_back(words[2]);
  }
  return names;
}

Result<void> remove_firewall_tables(const std::vector<std::string>& names) {
  return in_network_of_bridges<void>([&] { return remove_firewall_tables_here(names); });
}

}  // namespace trainyard::networks
