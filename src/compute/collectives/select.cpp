#include "collectives/select.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <limits>
#include <map>

#include "base/check.hpp"

namespace trainyard::collectives {
namespace {

using plan::Algorithm;
using plan::Operation;

constexpr size_t kNoEnd = std::numeric_limits<size_t>::max();
constexpr Operation kOperations[] = {
    Operation::allreduce, Operation::reduce_scatter, Operation::all_gather,
    Operation::broadcast, Operation::reduce,         Operation::gather,
    Operation::scatter,   Operation::all_to_all,     Operation::barrier};

// The second-level cache of a core holds two chunks of this size for each rank that has a piece of
// the chunk.
constexpr size_t kLocalChunkBytes = size_t{128} << 10;
// The outbox of the sender holds two chunks of an allreduce and the results of a third at the same
// time.
constexpr size_t kDirectChunkBytesMax = size_t{1} << 20;
// Large enough to amortise system calls, small enough that adding overlaps with sending.
constexpr size_t kNetworkChunkBytes = size_t{256} << 10;

struct Placement {
  int ranks = 1;
  int hosts = 1;
  int local = 1;  // ranks on the fullest host

  explicit Placement(std::span<const int> hosts_by_rank) : ranks(int(hosts_by_rank.size())) {
    std::map<int, int> count;
    for (const int host : hosts_by_rank) local = std::max(local, ++count[host]);
    hosts = int(count.size());
  }
};

size_t chunk_bytes_for(Operation operation, Algorithm algorithm, const Placement& place) {
  const bool shared = place.hosts == 1;
  switch (algorithm) {
    case Algorithm::direct:
      // A chunk of an allreduce has a piece for each rank; a chunk of a block belongs to one rank.
      return std::min((shared ? 2 * kLocalChunkBytes : kNetworkChunkBytes) *
                          (operation == Operation::allreduce ? size_t(place.ranks) : 1),
                      kDirectChunkBytesMax);
    case Algorithm::ring:
    case Algorithm::tree:
      return shared ? kLocalChunkBytes : kNetworkChunkBytes;
    case Algorithm::one_shot:
      return shared ? 2 * kLocalChunkBytes : kNetworkChunkBytes;
    default:
      return 0;
  }
}

// Returns the modelled time. Sending to all ranks is one copy in shared memory, and one per rank
// over a network.
double seconds_on(Operation operation, Algorithm algorithm, double bytes, int ranks, bool shared,
                  const LinkCosts& link, double reduce_seconds) {
  if (ranks == 1) return 0;
  plan::Plan shape;
  shape.operation = operation;
  shape.algorithm = algorithm;
  shape.ranks = ranks;
  shape.elements = size_t(ranks) * 1024;  // divides evenly; scaled below
  std::vector<plan::Range> blocks;
  for (int rank = 0; rank < ranks; ++rank)
    blocks.push_back(plan::piece(shape.elements, rank, ranks));
  if (operation != Operation::allreduce) shape.blocks = blocks;
  const plan::Cost cost = plan::cost(shape);
  const double scale = bytes / double(shape.elements);
  double sent = double(cost.elements_sent) * scale;
  double messages = double(cost.latencies);
  // A rank that sends to many peers pays for each message, although the messages travel
  // concurrently.
  if (algorithm == Algorithm::one_shot || algorithm == Algorithm::direct)
    messages += 0.2 * double(ranks - 2);
  if (shared && operation == Operation::allreduce) {
    // Data for all ranks is written once; results of other ranks are copied out.
    if (algorithm == Algorithm::one_shot || algorithm == Algorithm::direct) sent = bytes;
    // Reading cache lines of another core costs as much as writing them. In one_shot every rank
    // reads everything.
    const double others = double(ranks - 1);
    sent += bytes * (algorithm == Algorithm::one_shot ? others * 1.25 : 2 * others / double(ranks));
  }
  return messages * link.latency_seconds + sent * link.seconds_per_byte +
         double(cost.elements_reduced) * scale * reduce_seconds;
}

std::string time_text(double seconds) {
  char text[32];
  if (seconds < 1e-3) {
    std::snprintf(text, sizeof text, "%.2g us", seconds * 1e6);
  } else {
    std::snprintf(text, sizeof text, "%.3g ms", seconds * 1e3);
  }
  return text;
}

std::string size_text(size_t bytes) {
  if (bytes == kNoEnd) return "";
  for (const auto& [unit, letter] :
       {std::pair{size_t{1} << 30, 'G'}, {size_t{1} << 20, 'M'}, {size_t{1} << 10, 'K'}}) {
    if (bytes >= unit && bytes % unit == 0) return std::to_string(bytes / unit) + letter;
  }
  return std::to_string(bytes);
}

Result<size_t> parse_size(std::string_view text) {
  size_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit(read.ptr, size_t(text.data() + text.size() - read.ptr));
  const int shift = unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : unit.empty() ? 0 : -1;
  if (read.ec != std::errc{} || shift < 0 || number > kNoEnd >> 31) {
    return invalid("invalid size '" + std::string(text) +
                   "': write bytes, or a number with K, M or G");
  }
  return number << shift;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return parts;
}

bool serves(Operation operation, Algorithm algorithm, bool many_hosts) {
  if (algorithm == Algorithm::hierarchical) return operation == Operation::allreduce && many_hosts;
  return plan::exists(operation, algorithm);
}

// Returns the best allreduce between hosts within a hierarchical one, and its time.
std::pair<double, Algorithm> between_hosts(double bytes, const Placement& place,
                                           const Costs& costs) {
  std::pair<double, Algorithm> best{std::numeric_limits<double>::infinity(), Algorithm::ring};
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::halving_doubling}) {
    const double seconds = seconds_on(Operation::allreduce, algorithm, bytes, place.hosts, false,
                                      costs.between, costs.reduce_seconds_per_byte);
    best = std::min(best, {seconds, algorithm}, [](auto& a, auto& b) { return a.first < b.first; });
  }
  return best;
}

// The time for which a rank keeps its core during an operation of few bytes, including the switch
// to the next rank; measured with eight ranks on two cores.
constexpr double kSwitchSeconds = 3e-6;

LinkCosts local_costs(const Costs& costs) {
  LinkCosts local = costs.local;
  local.latency_seconds += kSwitchSeconds * double(costs.ranks_per_core - 1);
  return local;
}

}  // namespace

double modelled_seconds(Operation operation, Algorithm algorithm, size_t bytes,
                        std::span<const int> hosts, const Costs& costs) {
  const Placement place(hosts);
  const auto size = double(bytes);
  const double reduce_seconds = costs.reduce_seconds_per_byte;
  if (algorithm != Algorithm::hierarchical) {
    const bool shared = place.hosts == 1;
    return seconds_on(operation, algorithm, size, place.ranks, shared,
                      shared ? local_costs(costs) : costs.between, reduce_seconds) *
           // The ranks of a host share its network link.
           (shared || algorithm == Algorithm::ring ? 1.0 : double(place.local));
  }
  return seconds_on(Operation::reduce_scatter, Algorithm::direct, size, place.local, true,
                    costs.local, reduce_seconds) +
         between_hosts(size, place, costs).first +
         seconds_on(Operation::all_gather, Algorithm::direct, size, place.local, true, costs.local,
                    reduce_seconds);
}

Table Table::made_from(const Costs& costs, std::span<const int> hosts) {
  const Placement place(hosts);
  Table table;
  table.has_many_hosts_ = place.hosts > 1;
  table.ranks_ = place.ranks;
  constexpr size_t smallest = 64;
  constexpr size_t largest = size_t{1} << 30;
  for (const Operation operation : kOperations) {
    for (size_t bytes = smallest; bytes <= largest; bytes *= 2) {
      std::vector<std::pair<double, Algorithm>> times;
      for (int i = 0; i <= int(Algorithm::hierarchical); ++i) {
        const auto algorithm = Algorithm(i);
        if (!serves(operation, algorithm, place.hosts > 1)) continue;
        if (algorithm == Algorithm::hierarchical && place.local == 1)
          continue;  // equals the ring, but slower
        times.emplace_back(modelled_seconds(operation, algorithm, bytes, hosts, costs), algorithm);
      }
      std::stable_sort(times.begin(), times.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
      Choice row;
      row.operation = operation;
      row.bytes_end = bytes == largest ? kNoEnd : bytes * 2;
      row.algorithm = times[0].second;
      row.chunk_bytes = chunk_bytes_for(operation, row.algorithm, place);
      if (row.algorithm == Algorithm::hierarchical) {
        row.chunk_bytes = kLocalChunkBytes;
        row.between = between_hosts(double(bytes), place, costs).second;
        row.between_chunk_bytes = kNetworkChunkBytes;
      }
      row.reason = "at " + size_text(bytes) + ": " + time_text(times[0].first);
      if (times.size() > 1)
        row.reason +=
            "; " + std::string(to_string(times[1].second)) + " " + time_text(times[1].first);
      if (row.algorithm == Algorithm::hierarchical)
        row.reason += "; between the hosts " + std::string(to_string(row.between));
      auto& rows = table.rows_;
      if (!rows.empty() && rows.back().operation == operation &&
          rows.back().algorithm == row.algorithm && rows.back().between == row.between) {
        rows.back().bytes_end = row.bytes_end;
      } else {
        rows.push_back(std::move(row));
      }
    }
  }
  return table;
}

const Choice& Table::choose(Operation operation, size_t bytes) const {
  const auto row = std::find_if(rows_.begin(), rows_.end(), [&](const Choice& each) {
    return each.operation == operation && (bytes < each.bytes_end || each.bytes_end == kNoEnd);
  });
  CHECK(row != rows_.end(), "every operation has rows for all sizes");
  return *row;
}

Result<void> Table::override_with(std::string_view text, PlanScope scope) {
  for (const std::string_view line : split(text, ';')) {
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos)
      return invalid("'" + std::string(line) + "': write OPERATION=PLAN:FROM-TO,PLAN:FROM-");
    const auto operation = plan::operation_named(line.substr(0, equals));
    if (!operation)
      return invalid("unknown operation '" + std::string(line.substr(0, equals)) + "'");
    for (const std::string_view part : split(line.substr(equals + 1), ',')) {
      const size_t colon = part.find(':');
      const size_t dash = part.find('-', colon == std::string_view::npos ? 0 : colon);
      if (colon == std::string_view::npos || dash == std::string_view::npos)
        return invalid("'" + std::string(part) + "': write PLAN:FROM-TO");
      const std::string_view name = part.substr(0, std::min(colon, part.find('/')));
      const auto algorithm = plan::algorithm_named(name);
      if (scope == PlanScope::of_the_whole && algorithm == Algorithm::hierarchical &&
          !has_many_hosts_)
        continue;
      if (!algorithm || !serves(*operation, *algorithm, has_many_hosts_)) {
        return invalid("unknown plan '" + std::string(name) + "' for " +
                       std::string(to_string(*operation)) +
                       (algorithm == Algorithm::hierarchical ? " on one host" : ""));
      }
      const size_t begin = TRY(parse_size(part.substr(colon + 1, dash - colon - 1)));
      const std::string_view end = part.substr(dash + 1);
      Choice row;
      row.operation = *operation;
      row.bytes_end = end.empty() ? kNoEnd : TRY(parse_size(end));
      if (row.bytes_end <= begin)
        return invalid("'" + std::string(part) + "' ends before it begins");
      row.algorithm = *algorithm;
      Placement place{std::span<const int>()};
      place.ranks = ranks_;
      place.hosts = has_many_hosts_ ? 2 : 1;
      row.chunk_bytes = chunk_bytes_for(*operation, *algorithm, place);
      if (*algorithm == Algorithm::hierarchical) {
        row.chunk_bytes = kLocalChunkBytes;
        row.between_chunk_bytes = kNetworkChunkBytes;
      }
      if (name.size() < colon)
        row.chunk_bytes = TRY(parse_size(part.substr(name.size() + 1, colon - name.size() - 1)));
      row.reason = "requested: " + std::string(part);
      put_row(std::move(row), begin);
    }
  }
  return ok();
}

void Table::put_row(Choice row, size_t begin) {
  std::vector<Choice> rows;
  size_t from = 0;
  bool placed = false;
  for (const Choice& old : rows_) {
    if (old.operation != row.operation) {
      rows.push_back(old);
      from = 0;
      continue;
    }
    // Keeps the parts of the old row before and after the new one.
    if (from < begin) {
      rows.push_back(old);
      rows.back().bytes_end = std::min(old.bytes_end, begin);
    }
    if (!placed && old.bytes_end > begin) {
      rows.push_back(row);
      placed = true;
    }
    if (old.bytes_end > row.bytes_end || (old.bytes_end == kNoEnd && row.bytes_end != kNoEnd))
      rows.push_back(old);
    from = old.bytes_end;
  }
  rows_ = std::move(rows);
}

std::string Table::text() const {
  std::string text;
  const Choice* before = nullptr;
  for (const Choice& row : rows_) {
    const bool first = before == nullptr || before->operation != row.operation;
    text += std::string(to_string(row.operation)) + "=" + std::string(to_string(row.algorithm)) +
            ":" + (first ? "0" : size_text(before->bytes_end)) + "-" + size_text(row.bytes_end) +
            "  # " + row.reason + "\n";
    before = &row;
  }
  return text;
}

}  // namespace trainyard::collectives
