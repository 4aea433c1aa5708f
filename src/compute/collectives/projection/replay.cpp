#include "collectives/projection/replay.hpp"

#include <algorithm>
#include <queue>

#include "base/check.hpp"

namespace trainyard::collectives::projection {
namespace {

using plan::Action;

constexpr size_t kElementBytes = 4;  // gradients are float32
// A message on a shared incoming link is split into parts of at least kPartBytesMin, and at most
// kPartsMax parts.
constexpr size_t kPartBytesMin = 64 << 10;
constexpr size_t kPartsMax = 16;

// The messages of one rank, in order: their arrival times, and the number of messages that were
// requested.
struct Arrivals {
  int from = 0;
  size_t first = 0;  // number of the message of times[0]
  std::vector<double> times;
  size_t requested = 0;

  const double* find(size_t number) const {
    return number - first < times.size() ? &times[number - first] : nullptr;
  }
  void forget(size_t number) {
    const size_t through = number + 1 - first;
    if (through < times.size() && through < 256) return;  // amortises the moves of erase()
    times.erase(times.begin(), times.begin() + long(through));
    first += through;
  }
};

struct Waited {
  int from = 0;
  size_t number = 0;
  size_t bytes = 0;
};

struct Rank {
  double now = 0;
  std::vector<plan::Stage> stages;
  size_t stage = 0;
  size_t round = 0;
  size_t rounds = 0;
  plan::Steps steps;
  size_t position = 0;
  std::vector<Waited> kept;      // messages of this round that will be reduced
  std::vector<Waited> received;  // the others
  std::vector<Arrivals> arrivals;
  Waited missing;  // the message for which a waiting rank waits
  bool waits = false;
};

// One direction of a host's link, as a token bucket: `free` is the time at which it would be idle
// if it passed no bursts.
struct LinkDirection {
  double free = 0;

  // Returns when the first and the last byte of a message pass, if the message begins to arrive at
  // `now`.
  std::pair<double, double> pass(double now, double wire, double burst) {
    const double first = std::max(now, free - burst);
    free = std::max(free, now) + wire;
    return {first, std::max(first, free - burst)};
  }
};

struct HostTimes {
  LinkDirection out;
  LinkDirection in;
  std::vector<double> processors_free;
};

// A part of a message in transit between two hosts; it queues at the incoming link of the receiver.
struct Flight {
  int from = 0;
  int to = 0;
  double wire = 0;
  double last = 0;    // earliest time at which its last byte can arrive
  bool ends = false;  // the last part of the message
};

class Replay {
 public:
  Replay(const Choice& choice, size_t bytes, const Cluster& cluster) : cluster_(cluster) {
    const auto ranks = cluster.hosts.size();
    CHECK(choice.operation == plan::Operation::allreduce, "only allreduce is projected");
    const size_t elements = (bytes + kElementBytes - 1) / kElementBytes;
    std::vector<int> local(size_t(*std::max_element(cluster.hosts.begin(), cluster.hosts.end())) +
                           1);
    for (const int host : cluster.hosts) ++local[size_t(host)];
    hosts_.resize(local.size());
    for (size_t host = 0; host < local.size(); ++host)
      hosts_[host].processors_free.resize(
          size_t(cluster.processors > 0 ? cluster.processors : local[host]));
    ranks_.resize(ranks);
    for (size_t rank = 0; rank < ranks; ++rank) {
      if (choice.algorithm == plan::Algorithm::hierarchical) {
        ranks_[rank].stages = plan::hierarchical(int(rank), cluster.hosts, elements,
                                                 choice.chunk_bytes / kElementBytes, choice.between,
                                                 choice.between_chunk_bytes / kElementBytes);
        for (auto& stage : ranks_[rank].stages) stage.plan.blocks = stage.storage;
      } else {
        plan::Stage stage;
        stage.plan.operation = choice.operation;
        stage.plan.algorithm = choice.algorithm;
        stage.plan.rank = int(rank);
        stage.plan.ranks = int(ranks);
        stage.plan.elements = elements;
        stage.plan.chunk_elements = choice.chunk_bytes / kElementBytes;
        ranks_[rank].stages.push_back(std::move(stage));
      }
    }
  }

  // Returns the time of one more operation. Earlier operations may have used up the bursts of the
  // links.
  double seconds() {
    const double began = end_;
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      ranks_[rank].now = began;
      ranks_[rank].stage = 0;
      begin_stage(ranks_[rank]);
      put(began, int(rank));
    }
    while (!due_.empty()) {
      const int index = due_.top().index;
      const double time = due_.top().time;
      due_.pop();
      if (index < 0) {
        land(size_t(-index - 1), time);
        continue;
      }
      Rank& rank = ranks_[size_t(index)];
      while (advance(index, rank)) {
        if (!due_.empty() && due_.top().time < rank.now) {
          put(rank.now, index);
          break;
        }
      }
      end_ = std::max(end_, rank.now);
    }
    for (const Rank& rank : ranks_)
      CHECK(!rank.waits && rank.stage == rank.stages.size(),
            "every rank receives the messages for which it waits");
    return end_ - began;
  }

 private:
  void begin_stage(Rank& rank) {
    for (; rank.stage < rank.stages.size(); ++rank.stage) {
      rank.rounds = plan::rounds(rank.stages[rank.stage].plan);
      rank.round = 0;
      if (rank.rounds == 0) continue;
      begin_round(rank);
      return;
    }
  }

  void begin_round(Rank& rank) {
    rank.steps.clear();
    rank.position = 0;
    plan::add_round(rank.stages[rank.stage].plan, rank.round, rank.steps);
  }

  static int rank_of(const Rank& rank, int member) {
    const auto& team = rank.stages[rank.stage].team;
    return team.empty() ? member : team[size_t(member)];
  }

  int host_of(int rank) const { return cluster_.hosts[size_t(rank)]; }

  // Executes one step of a rank. Returns false when the rank waits or is done.
  bool advance(int index, Rank& rank) {
    if (rank.stage == rank.stages.size()) return false;
    if (rank.position < rank.steps.size()) {
      if (!carry_out(index, rank, rank.steps[rank.position])) return false;
      ++rank.position;
      return true;
    }
    while (!rank.received.empty()) {
      const Waited received = rank.received.back();
      if (!arrived(rank, received)) return false;
      rank.received.pop_back();
      if (host_of(received.from) == host_of(index))
        occupy_processor(index, rank, double(received.bytes) * cluster_.local.seconds_per_byte);
    }
    if (++rank.round < rank.rounds) {
      begin_round(rank);
    } else {
      ++rank.stage;
      begin_stage(rank);
    }
    return true;
  }

  bool carry_out(int index, Rank& rank, const plan::Step& step) {
    const size_t bytes = step.range.size() * kElementBytes;
    switch (step.action) {
      case Action::send:
        send(index, rank, step.peer, bytes);
        return true;
      case Action::receive:
        rank.kept.push_back(expect(rank, rank_of(rank, step.peer), bytes));
        return true;
      case Action::receive_into:
        rank.received.push_back(expect(rank, rank_of(rank, step.peer), bytes));
        return true;
      case Action::reduce:
        for (size_t k = 0; k < step.operands; ++k)
          if (!arrived(rank, rank.kept[k])) return false;
        rank.kept.erase(rank.kept.begin(), rank.kept.begin() + step.operands);
        occupy_processor(index, rank,
                         double(bytes) * step.operands * cluster_.reduce_seconds_per_byte);
        return true;
    }
    return true;
  }

  // -- messages

  void send(int index, Rank& rank, int peer, size_t bytes) {
    if (peer != plan::kAllRanks) {
      const int to = rank_of(rank, peer);
      if (host_of(to) == host_of(index)) copy_out(index, rank, bytes);
      deliver(index, rank, to, bytes);
      return;
    }
    const plan::Plan& plan = rank.stages[rank.stage].plan;
    bool copied = false;  // a message to all ranks of a host is written once
    // The kernel would interleave these messages. Here they follow each other, and each rank begins
    // with another peer.
    for (int k = 1; k < plan.ranks; ++k) {
      const int member = (plan.rank + k) % plan.ranks;
      const int to = rank_of(rank, member);
      if (host_of(to) == host_of(index) && !copied) {
        copied = true;
        copy_out(index, rank, bytes);
      }
      deliver(index, rank, to, bytes);
    }
  }

  void copy_out(int index, Rank& rank, size_t bytes) {
    occupy_processor(index, rank, double(bytes) * cluster_.local.seconds_per_byte);
  }

  void deliver(int from, Rank& sender, int to, size_t bytes) {
    if (host_of(from) == host_of(to))
      return arrive(from, to, sender.now + cluster_.local.latency_seconds);
    sender.now += cluster_.message_seconds;
    const size_t parts = std::clamp(bytes / kPartBytesMin, size_t{1}, kPartsMax);
    const double wire = double(bytes) * cluster_.between.seconds_per_byte / double(parts);
    const double latency = cluster_.between.latency_seconds;
    for (size_t part = 1; part <= parts; ++part) {
      const auto [first, last] = hosts_[size_t(host_of(from))].out.pass(sender.now, wire, burst_);
      if (free_flights_.empty()) {
        free_flights_.push_back(flights_.size());
        flights_.emplace_back();
      }
      const size_t flight = free_flights_.back();
      free_flights_.pop_back();
      flights_[flight] = {from, to, wire, last + latency, part == parts};
      put(first + latency, -int(flight) - 1);
    }
  }

  // Parts of messages from several hosts interleave on the incoming link in the order of their
  // arrival.
  void land(size_t index, double now) {
    const Flight flight = flights_[index];
    free_flights_.push_back(index);
    LinkDirection& in = hosts_[size_t(host_of(flight.to))].in;
    const double there = std::max(flight.last, in.pass(now, flight.wire, burst_).second);
    if (flight.ends) arrive(flight.from, flight.to, there);
  }

  void arrive(int from, int to, double there) {
    Rank& receiver = ranks_[size_t(to)];
    Arrivals& arrivals = arrivals_from(receiver, from);
    arrivals.times.push_back(there);
    if (receiver.waits && receiver.missing.from == from && arrivals.find(receiver.missing.number)) {
      receiver.waits = false;
      receiver.now = std::max(receiver.now, there);
      put(receiver.now, to);
    }
  }

  Waited expect(Rank& rank, int from, size_t bytes) {
    return {from, arrivals_from(rank, from).requested++, bytes};
  }

  // Advances the rank to the arrival of the message; returns false when the message has not
  // arrived, and the rank waits.
  bool arrived(Rank& rank, const Waited& waited) {
    Arrivals& arrivals = arrivals_from(rank, waited.from);
    const double* time = arrivals.find(waited.number);
    if (time == nullptr) {
      // A forgotten message has already advanced the time of the rank.
      if (waited.number < arrivals.first) return true;
      rank.missing = waited;
      rank.waits = true;
      return false;
    }
    rank.now = std::max(rank.now, *time);
    arrivals.forget(waited.number);
    return true;
  }

  static Arrivals& arrivals_from(Rank& rank, int from) {
    for (auto& each : rank.arrivals)
      if (each.from == from) return each;
    rank.arrivals.push_back({from, 0, {}, 0});
    return rank.arrivals.back();
  }

  void occupy_processor(int index, Rank& rank, double seconds) {
    auto& free = hosts_[size_t(host_of(index))].processors_free;
    const auto first = std::min_element(free.begin(), free.end());
    rank.now = std::max(rank.now, *first) + seconds;
    *first = rank.now;
  }

  // Events of the same time run in the order in which they were added, so the result is
  // deterministic.
  struct Due {
    double time = 0;
    uint64_t number = 0;
    int index = 0;  // a rank, or -1 - the index of a flight
    bool operator>(const Due& other) const {
      return time != other.time ? time > other.time : number > other.number;
    }
  };
  void put(double time, int index) { due_.push({time, numbers_++, index}); }

  const Cluster& cluster_;
  const double burst_ = cluster_.burst_bytes * cluster_.between.seconds_per_byte;
  std::vector<Rank> ranks_;
  std::vector<HostTimes> hosts_;
  std::vector<Flight> flights_;
  std::vector<size_t> free_flights_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  uint64_t numbers_ = 0;
  double end_ = 0;
};

}  // namespace

std::vector<int> hosts_of(int ranks, int local) {
  std::vector<int> hosts(static_cast<size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) hosts[size_t(rank)] = rank / local;
  return hosts;
}

double allreduce_seconds(const Choice& choice, size_t bytes, const Cluster& cluster) {
  if (cluster.hosts.size() < 2 || bytes == 0) return 0;
  Replay replay(choice, bytes, cluster);
  double seconds = replay.seconds();
  if (cluster.burst_bytes > 0)
    for (int more = 0; more < 2; ++more) seconds = replay.seconds();
  return seconds;
}

}  // namespace trainyard::collectives::projection
