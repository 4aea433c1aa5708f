// HostOrder is the server's order to the program that runs one host of a gang on a node
// (host_run.hpp): the agent's order, and the host's network. It is a part of the job's script,
// arrives at the program's standard input, and contains secrets.
//
// Threads: pure. Errors: invalid.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "launch/local/plan.hpp"

namespace trainyard::launch {

// The orders of the largest jobs have some hundred kilobytes.
inline constexpr size_t kHostOrderBytesMax = 8 << 20;

struct HostOrder {
  // The attempt, and the part of its network on this node: its hosts and gateway there. Namespace
  // files are relative to the directory of the mark.
  Record record;
  std::string mark;
  size_t member = 0;  // the index in record.network.hosts of the host to run
  domain::HostIndex host = 0;
  std::string node_directory;  // each node has its own directory below
  networks::Egress egress;
  bool names_by_machine = true;  // true: the host may use the node's name servers
  // The addresses or names of this node and of the gang's other nodes; no peers: it has one node.
  std::string own_address;
  std::vector<std::string> peers;
  std::string host_table;
  std::map<std::string, std::string> environment;  // the agent's
  int64_t gpus = 0;
  std::string order;  // the content of the order file
  // idle_max: how long the agent waits for another attempt after this one; 0: it does not wait.
  // time_limit: the time limit of the allocation, from its start.
  Duration idle_max{}, time_limit{};
  uint32_t served = 0;  // attempts that ran in the allocation before this one
  // The Unix account as which the host runs, without root's rights; "": root.
  std::string user;
  uint32_t user_id = 0;
  // By host of the gang: where it receives encrypted datagrams on its node, "NODE:PORT". Empty: the
  // nodes are joined by VXLAN, or there is only one.
  std::vector<std::string> endpoints;
};

// Returns true if the next host, alone on its node, can use the bridge and firewall of the previous
// one, with a new namespace: the orders have equal network settings.
bool has_same_network(const HostOrder& previous, const HostOrder& next);

std::string to_text(const HostOrder& order);  // returns one line
Result<HostOrder> read_host_order(std::string_view text);

// Holds the orders of a gang's hosts in a shorter form: each has the names of all hosts, so that
// their size together is the square of the number of hosts. What all orders have is stored once.
struct SplitOrders {
  std::string shared;            // one line
  std::vector<std::string> own;  // by index of the order: one line
};
inline constexpr const char* kSharedOrderFile = "shared";  // next to the files of own parts
SplitOrders split_orders(const std::vector<HostOrder>& orders);
Result<HostOrder> join_order(std::string_view shared, std::string_view own);

}  // namespace trainyard::launch
