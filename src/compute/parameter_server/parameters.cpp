#include "parameter_server/parameters.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/check.hpp"
#include "parameter_server/mail.hpp"

namespace trainyard::parameter_server {
namespace {

// Rows in one request: as many as fit a message, with room for names and fields.
uint64_t rows_of_message_max(uint32_t width) {
  return std::max<uint64_t>(1, values_bytes_max / (uint64_t{width} * sizeof(float) + sizeof(uint64_t)));
}

struct Joined {
  Placement placement;
  std::vector<int> workers;
  std::unique_ptr<Mail> mail;
};

Result<Placement> checked(const collectives::Group& group, const Options& options) {
  const std::set<int> servers(options.servers.begin(), options.servers.end());
  if (servers.empty() || servers.size() != options.servers.size() || *servers.begin() < 0 ||
      *servers.rbegin() >= group.size() || int(servers.size()) == group.size())
    return invalid("servers are some, but not all, of the ranks 0 to " + std::to_string(group.size() - 1));
  for (const Table& table : options.tables) {
    if (table.width > message_bytes_max / (2 * sizeof(float)))
      return invalid("a row of table '" + table.name + "' fits no message");
  }
  return Placement::make(options.tables, uint32_t(options.servers.size()));
}

// Everyone has the same tables, or everyone hears who has not.
Result<Joined> join(collectives::Group& group, const Options& options) {
  auto placement = checked(group, options);
  std::string mine = placement ? std::to_string(placement->digest()) : "!" + placement.error().message;
  for (const int server : options.servers) mine += " " + std::to_string(server);
  mine += " " + std::to_string(int(options.consistency.kind)) + " " +
          std::to_string(options.consistency.staleness);
  const auto all = TRY(group.all_gather(mine));
  if (!placement) return std::move(placement).error();
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] == mine) continue;
    return invalid("rank " + std::to_string(rank) + " has other tables, servers or rules than rank " +
                   std::to_string(group.rank()));
  }
  std::vector<int> workers;
  for (int rank = 0; rank < group.size(); ++rank) {
    if (std::find(options.servers.begin(), options.servers.end(), rank) == options.servers.end())
      workers.push_back(rank);
  }
  auto mail = std::make_unique<Mail>(TRY(group.split_transport(0)));
  Joined joined{*std::move(placement), std::move(workers), std::move(mail)};
  return joined;
}

}  // namespace

Result<void> serve(collectives::Group& group, const Options& options) {
  Joined joined = TRY(join(group, options).in("parameter server"));
  const auto place = std::find(options.servers.begin(), options.servers.end(), group.rank());
  if (place == options.servers.end())
    return invalid("rank " + std::to_string(group.rank()) + " is no server");
  Keeper keeper(joined.placement, uint32_t(place - options.servers.begin()), uint32_t(joined.workers.size()),
                options.consistency);
  std::vector<int> heard = joined.workers;  // who has not left
  while (!heard.empty()) {
    auto letter = TRY(joined.mail->receive(heard).in("parameter server"));
    const auto worker = uint32_t(std::lower_bound(joined.workers.begin(), joined.workers.end(), letter.from) -
                                 joined.workers.begin());
    auto request = decode_request(letter.text);
    if (!request) return std::move(request).error().in("rank " + std::to_string(letter.from));
    const bool leaves = std::holds_alternative<Leave>(*request);
    for (Outgoing& each : keeper.heard(worker, *std::move(request)))
      joined.mail->send(joined.workers[each.worker], encode(each.answer));
    if (leaves) std::erase(heard, letter.from);
  }
  return joined.mail->flush().in("parameter server");
}

Result<std::unique_ptr<Worker>> Worker::join(collectives::Group& group, const Options& options) {
  Joined joined = TRY(parameter_server::join(group, options).in("parameter server"));
  if (std::find(joined.workers.begin(), joined.workers.end(), group.rank()) == joined.workers.end())
    return invalid("rank " + std::to_string(group.rank()) + " is a server");
  return std::unique_ptr<Worker>(
      new Worker(std::move(joined.placement), options.servers, std::move(joined.mail)));
}

Worker::Worker(Placement placement, std::vector<int> servers, std::unique_ptr<Mail> mail)
    : placement_(std::move(placement)), servers_(std::move(servers)), mail_(std::move(mail)) {}
Worker::~Worker() = default;

Result<std::vector<Worker::Ask>> Worker::asks(uint32_t table, std::span<const uint64_t> rows, bool all,
                                              size_t values) const {
  if (table >= placement_.tables().size()) return invalid("there is no table " + std::to_string(table));
  const Table& of = placement_.tables()[table];
  const uint64_t count = all ? of.rows : rows.size();
  if (values / of.width != count || values % of.width != 0) {
    return invalid("table '" + of.name + "': " + std::to_string(values) + " numbers for " +
                   std::to_string(count) + " rows of " + std::to_string(of.width));
  }
  std::vector<Ask> asks;
  if (all) {
    for (const Slice& slice : placement_.of_table(table))
      asks.push_back({slice.server, {table, slice.begin, slice.end - slice.begin, {}}, {slice.begin}});
    return asks;
  }
  const uint64_t rows_max = rows_of_message_max(of.width);
  std::map<uint32_t, size_t> open;  // by server, the ask that takes its next row
  for (uint64_t i = 0; i < rows.size(); ++i) {
    if (rows[i] >= of.rows) return invalid("table '" + of.name + "' has no row " + std::to_string(rows[i]));
    const uint32_t server = placement_.slice_of(table, rows[i]).server;
    auto place = open.find(server);
    if (place == open.end() || asks[place->second].at.size() == rows_max) {
      open[server] = asks.size();
      asks.push_back({server, {table, 0, 0, {}}, {}});
      place = open.find(server);
    }
    asks[place->second].rows.named.push_back(rows[i]);
    asks[place->second].at.push_back(i);
  }
  return asks;
}

template <class Message>
Result<void> Worker::tell(const std::vector<Ask>& asks, std::span<const float> values) {
  for (const Ask& ask : asks) {
    const uint32_t width = placement_.tables()[ask.rows.table].width;
    Message message;
    message.rows = ask.rows;
    const uint64_t rows_each = ask.rows.named.empty() ? ask.rows.count : 1;
    for (const uint64_t at : ask.at)
      message.values += bytes_of(values.subspan(size_t(at * width), size_t(rows_each * width)));
    mail_->send(servers_[ask.server], encode(Request(std::move(message))));
  }
  return mail_->flush();
}

Result<void> Worker::fetch(const std::vector<Ask>& asks, std::span<float> values) {
  for (const Ask& ask : asks) mail_->send(servers_[ask.server], encode(Request(Pull{ask.rows})));
  // Each server answers in the order of our requests.
  for (const Ask& ask : asks) {
    const uint32_t width = placement_.tables()[ask.rows.table].width;
    const Answer answer = TRY(hear(ask.server));
    const auto* found = std::get_if<Values>(&answer);
    const uint64_t rows_each = ask.rows.named.empty() ? ask.rows.count : 1;
    const size_t bytes_each = size_t(rows_each * width) * sizeof(float);
    if (!found || found->values.size() != ask.at.size() * bytes_each)
      return corrupt("rank " + std::to_string(servers_[ask.server]) +
                     " answers with other rows than were asked for");
    for (size_t i = 0; i < ask.at.size(); ++i) {
      read_values(std::string_view(found->values).substr(i * bytes_each, bytes_each),
                  values.subspan(size_t(ask.at[i] * width), size_t(rows_each * width)));
    }
  }
  return ok();
}

Result<Answer> Worker::hear(uint32_t server) {
  const int rank = servers_[server];
  const auto letter = TRY(mail_->receive(std::span(&rank, 1)));
  auto answer = TRY(decode_answer(letter.text).in("rank " + std::to_string(rank)));
  if (const auto* refused = std::get_if<Refused>(&answer))
    return invalid("rank " + std::to_string(rank) + " refuses: " + refused->why);
  return answer;
}

Result<void> Worker::assign(uint32_t table, std::span<const float> values) {
  return tell<Assign>(TRY(asks(table, {}, true, values.size())), values).in("assigning");
}
Result<void> Worker::push(uint32_t table, std::span<const float> gradient) {
  return tell<Push>(TRY(asks(table, {}, true, gradient.size())), gradient).in("pushing");
}
Result<void> Worker::push(uint32_t table, std::span<const uint64_t> rows, std::span<const float> gradient) {
  return tell<Push>(TRY(asks(table, rows, false, gradient.size())), gradient).in("pushing");
}
Result<void> Worker::pull(uint32_t table, std::span<float> values) {
  return fetch(TRY(asks(table, {}, true, values.size())), values).in("pulling");
}
Result<void> Worker::pull(uint32_t table, std::span<const uint64_t> rows, std::span<float> values) {
  return fetch(TRY(asks(table, rows, false, values.size())), values).in("pulling");
}

Result<void> Worker::end_round() {
  for (const int server : servers_) mail_->send(server, encode(Request(Tick{round_})));
  for (uint32_t server = 0; server < servers_.size(); ++server) {
    const Answer answer = TRY(hear(server).in("round " + std::to_string(round_)));
    const auto* proceed = std::get_if<Proceed>(&answer);
    if (!proceed || proceed->round != round_ + 1)
      return corrupt("rank " + std::to_string(servers_[server]) + " is in another round");
  }
  ++round_;
  return ok();
}

Result<void> Worker::leave() {
  for (const int server : servers_) mail_->send(server, encode(Request(Leave{})));
  return mail_->flush().in("leaving");
}

}  // namespace trainyard::parameter_server
