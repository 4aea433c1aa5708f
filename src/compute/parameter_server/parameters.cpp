#include "parameter_server/parameters.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/check.hpp"
#include "parameter_server/mailbox.hpp"

namespace trainyard::parameter_server {
namespace {

// Returns the largest number of rows in one request: as many as fit into a message with their row
// numbers and fields.
uint64_t rows_of_message_max(uint32_t width) {
  return std::max<uint64_t>(1,
                            kValuesBytesMax / (uint64_t{width} * sizeof(float) + sizeof(uint64_t)));
}

struct JoinedGroup {
  Placement placement;
  std::vector<int> workers;
  std::unique_ptr<Mailbox> mailbox;
};

Result<Placement> checked(const collectives::Group& group, const Options& options) {
  const std::set<int> servers(options.servers.begin(), options.servers.end());
  if (servers.empty() || servers.size() != options.servers.size() || *servers.begin() < 0 ||
      *servers.rbegin() >= group.size() || int(servers.size()) == group.size())
    return invalid("invalid servers: they must be different ranks from 0 to " +
                   std::to_string(group.size() - 1) + ", and at least one rank must be a worker");
  for (const Table& table : options.tables) {
    if (table.width > kMessageBytesMax / (2 * sizeof(float)))
      return invalid("table '" + table.name + "': width " + std::to_string(table.width) +
                     " exceeds the maximum message size");
  }
  return Placement::make(options.tables, uint32_t(options.servers.size()));
}

// Compares the options of all ranks; every rank gets an error when they differ.
Result<JoinedGroup> join(collectives::Group& group, const Options& options) {
  auto placement = checked(group, options);
  std::string mine =
      placement ? std::to_string(placement->digest()) : "!" + placement.error().message;
  for (const int server : options.servers) mine += " " + std::to_string(server);
  mine += " " + std::to_string(int(options.consistency.kind)) + " " +
          std::to_string(options.consistency.staleness);
  const auto all = TRY(group.all_gather(mine));
  if (!placement) return std::move(placement).error();
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] == mine) continue;
    return invalid(
        "ranks " + std::to_string(rank) + " and " + std::to_string(group.rank()) +
        " have different tables, servers or consistency: they must be equal on all ranks");
  }
  std::vector<int> workers;
  for (int rank = 0; rank < group.size(); ++rank) {
    if (std::find(options.servers.begin(), options.servers.end(), rank) == options.servers.end())
      workers.push_back(rank);
  }
  auto mailbox = std::make_unique<Mailbox>(TRY(group.split_transport(0)));
  JoinedGroup joined{*std::move(placement), std::move(workers), std::move(mailbox)};
  return joined;
}

}  // namespace

Result<void> serve(collectives::Group& group, const Options& options) {
  JoinedGroup joined = TRY(join(group, options).in("parameter server"));
  const auto own = std::find(options.servers.begin(), options.servers.end(), group.rank());
  if (own == options.servers.end())
    return invalid("serve() on rank " + std::to_string(group.rank()) +
                   ", which is not one of the servers");
  ServerState state(joined.placement, uint32_t(own - options.servers.begin()),
                    uint32_t(joined.workers.size()), options.consistency);
  std::vector<int> present = joined.workers;  // workers that have not left
  while (!present.empty()) {
    auto received = TRY(joined.mailbox->receive(present).in("parameter server"));
    const auto worker =
        uint32_t(std::lower_bound(joined.workers.begin(), joined.workers.end(), received.from) -
                 joined.workers.begin());
    auto request = decode_request(received.text);
    if (!request) return std::move(request).error().in("rank " + std::to_string(received.from));
    const bool leaves = std::holds_alternative<Leave>(*request);
    for (Outgoing& each : state.handle(worker, *std::move(request)))
      joined.mailbox->send(joined.workers[each.worker], encode(each.answer));
    if (leaves) std::erase(present, received.from);
  }
  return joined.mailbox->flush().in("parameter server");
}

Result<std::unique_ptr<Worker>> Worker::join(collectives::Group& group, const Options& options) {
  JoinedGroup joined = TRY(parameter_server::join(group, options).in("parameter server"));
  if (std::find(joined.workers.begin(), joined.workers.end(), group.rank()) == joined.workers.end())
    return invalid("Worker::join() on rank " + std::to_string(group.rank()) +
                   ", which is a server");
  return std::unique_ptr<Worker>(
      new Worker(std::move(joined.placement), options.servers, std::move(joined.mailbox)));
}

Worker::Worker(Placement placement, std::vector<int> servers, std::unique_ptr<Mailbox> mailbox)
    : placement_(std::move(placement)),
      servers_(std::move(servers)),
      mailbox_(std::move(mailbox)) {}
Worker::~Worker() = default;

Result<std::vector<Worker::RowRequest>> Worker::requests_for(uint32_t table,
                                                             std::span<const uint64_t> rows,
                                                             bool all, size_t values) const {
  if (table >= placement_.tables().size()) return invalid("unknown table " + std::to_string(table));
  const Table& of = placement_.tables()[table];
  const uint64_t count = all ? of.rows : rows.size();
  if (values / of.width != count || values % of.width != 0) {
    return invalid("table '" + of.name + "': " + std::to_string(values) + " values for " +
                   std::to_string(count) + " rows of width " + std::to_string(of.width));
  }
  std::vector<RowRequest> requests;
  if (all) {
    for (const Slice& slice : placement_.of_table(table))
      requests.push_back(
          {slice.server, {table, slice.begin, slice.end - slice.begin, {}}, {slice.begin}});
    return requests;
  }
  const uint64_t rows_max = rows_of_message_max(of.width);
  std::map<uint32_t, size_t> open;  // by server, the request to which its next row is added
  for (uint64_t i = 0; i < rows.size(); ++i) {
    if (rows[i] >= of.rows)
      return invalid("table '" + of.name + "': row " + std::to_string(rows[i]) +
                     " not found; it has " + std::to_string(of.rows) + " rows");
    const uint32_t server = placement_.slice_of(table, rows[i]).server;
    auto found = open.find(server);
    if (found == open.end() || requests[found->second].at.size() == rows_max) {
      open[server] = requests.size();
      requests.push_back({server, {table, 0, 0, {}}, {}});
      found = open.find(server);
    }
    requests[found->second].rows.named.push_back(rows[i]);
    requests[found->second].at.push_back(i);
  }
  return requests;
}

template <class Message>
Result<void> Worker::send_values(const std::vector<RowRequest>& requests,
                                 std::span<const float> values) {
  for (const RowRequest& request : requests) {
    const uint32_t width = placement_.tables()[request.rows.table].width;
    Message message;
    message.rows = request.rows;
    const uint64_t rows_each = request.rows.named.empty() ? request.rows.count : 1;
    for (const uint64_t at : request.at)
      message.values += bytes_of(values.subspan(size_t(at * width), size_t(rows_each * width)));
    mailbox_->send(servers_[request.server], encode(Request(std::move(message))));
  }
  return mailbox_->flush();
}

Result<void> Worker::fetch(const std::vector<RowRequest>& requests, std::span<float> values) {
  for (const RowRequest& request : requests)
    mailbox_->send(servers_[request.server], encode(Request(Pull{request.rows})));
  // Each server answers in the order of its requests.
  for (const RowRequest& request : requests) {
    const uint32_t width = placement_.tables()[request.rows.table].width;
    const Answer answer = TRY(receive_answer(request.server));
    const auto* found = std::get_if<Values>(&answer);
    const uint64_t rows_each = request.rows.named.empty() ? request.rows.count : 1;
    const size_t bytes_each = size_t(rows_each * width) * sizeof(float);
    if (!found || found->values.size() != request.at.size() * bytes_each)
      return corrupt("rank " + std::to_string(servers_[request.server]) +
                     " answered with other rows than were requested");
    for (size_t i = 0; i < request.at.size(); ++i) {
      read_values(std::string_view(found->values).substr(i * bytes_each, bytes_each),
                  values.subspan(size_t(request.at[i] * width), size_t(rows_each * width)));
    }
  }
  return ok();
}

Result<Answer> Worker::receive_answer(uint32_t server) {
  const int rank = servers_[server];
  const auto received = TRY(mailbox_->receive(std::span(&rank, 1)));
  auto answer = TRY(decode_answer(received.text).in("rank " + std::to_string(rank)));
  if (const auto* refused = std::get_if<Refused>(&answer))
    return invalid("rank " + std::to_string(rank) + " refused the request: " + refused->why);
  return answer;
}

Result<void> Worker::assign(uint32_t table, std::span<const float> values) {
  return send_values<Assign>(TRY(requests_for(table, {}, true, values.size())), values)
      .in("assigning");
}
Result<void> Worker::push(uint32_t table, std::span<const float> gradient) {
  return send_values<Push>(TRY(requests_for(table, {}, true, gradient.size())), gradient)
      .in("pushing");
}
Result<void> Worker::push(uint32_t table, std::span<const uint64_t> rows,
                          std::span<const float> gradient) {
  return send_values<Push>(TRY(requests_for(table, rows, false, gradient.size())), gradient)
      .in("pushing");
}
Result<void> Worker::pull(uint32_t table, std::span<float> values) {
  return fetch(TRY(requests_for(table, {}, true, values.size())), values).in("pulling");
}
Result<void> Worker::pull(uint32_t table, std::span<const uint64_t> rows, std::span<float> values) {
  return fetch(TRY(requests_for(table, rows, false, values.size())), values).in("pulling");
}

Result<void> Worker::end_round() {
  for (const int server : servers_) mailbox_->send(server, encode(Request(Tick{round_})));
  for (uint32_t server = 0; server < servers_.size(); ++server) {
    const Answer answer = TRY(receive_answer(server).in("round " + std::to_string(round_)));
    const auto* proceed = std::get_if<Proceed>(&answer);
    if (!proceed || proceed->round != round_ + 1)
      return corrupt("rank " + std::to_string(servers_[server]) +
                     " answered for a round other than " + std::to_string(round_ + 1));
  }
  ++round_;
  return ok();
}

Result<void> Worker::leave() {
  for (const int server : servers_) mailbox_->send(server, encode(Request(Leave{})));
  return mailbox_->flush().in("leaving");
}

}  // namespace trainyard::parameter_server
