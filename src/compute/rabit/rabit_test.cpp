// Compares the topology with rabit's own tracker, decodes valid and damaged first messages, and
// tests trackers with correct workers, workers that stop, and workers that violate the protocol.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <map>
#include <set>
#include <thread>

#include "os/files.hpp"
#include "os/machine_clock.hpp"
#include "rabit/topology.hpp"
#include "rabit/tracker.hpp"
#include "rabit/worker_message.hpp"

namespace trainyard::rabit {
namespace {

// -- topology

struct KnownLinks {
  int workers, rank, parent;
  std::vector<int> neighbours;
};

TEST(Topology, MatchesRabitsTracker) {
  const KnownLinks known[] = {
      {1, 0, -1, {}}, {2, 0, -1, {1}},    {2, 1, 0, {0}},       {3, 0, -1, {1, 2}},
      {3, 1, 0, {0}}, {3, 2, 0, {0}},     {5, 0, -1, {1, 4}},   {5, 1, 0, {0, 2, 3}},
      {5, 4, 0, {0}}, {7, 0, -1, {1, 6}}, {7, 1, 0, {0, 2, 3}}, {7, 6, 0, {0, 4, 5}},
  };
  for (const KnownLinks& each : known) {
    const RankLinks links = topology(each.workers)[size_t(each.rank)];
    EXPECT_EQ(links.parent, each.parent) << each.workers << " " << each.rank;
    EXPECT_EQ(links.neighbours, each.neighbours) << each.workers << " " << each.rank;
  }
}

TEST(Topology, IsOneTreeAndOneRing) {
  for (int workers = 1; workers <= 200; ++workers) {
    const auto all = topology(workers);
    ASSERT_EQ(all.size(), size_t(workers));
    size_t edges = 0;
    for (int rank = 0; rank < workers; ++rank) {
      const RankLinks& links = all[size_t(rank)];
      edges += links.neighbours.size();
      EXPECT_EQ(links.next, (rank + 1) % workers);
      EXPECT_EQ(all[size_t(links.next)].previous, rank);
      EXPECT_EQ(links.parent == -1, rank == 0);
      for (const int peer : links.neighbours) {
        const auto& back = all[size_t(peer)].neighbours;
        EXPECT_NE(std::find(back.begin(), back.end(), rank), back.end());
      }
      int above = rank, steps = 0;  // every rank reaches the root
      while (above != 0 && steps++ < workers) above = all[size_t(above)].parent;
      EXPECT_EQ(above, 0);
    }
    EXPECT_EQ(edges, 2 * size_t(workers - 1));
  }
}

// -- first messages

TEST(WorkerMessage, IsDecodedInPiecesOfAnySize) {
  const WorkerMessage messages[] = {{-1, -1, "algo-1", Command::start, ""},
                                    {3, 4, "NULL", Command::recover, ""},
                                    {0, -1, "a", Command::print, "[0]\ttrain-auc:0.5\n"},
                                    {9999, 10'000, "", Command::shutdown, ""}};
  for (const WorkerMessage& message : messages) {
    const std::string bytes = encode(message) + "rest";
    for (size_t step = 1; step <= bytes.size(); ++step) {
      WorkerMessageDecoder decoder;
      std::optional<WorkerMessage> found;
      size_t at = 0;
      for (; at < bytes.size() && !found; at += step) {
        auto pushed = decoder.push(std::string_view(bytes).substr(at, step));
        ASSERT_TRUE(pushed) << pushed.error().message;
        found = *std::move(pushed);
      }
      ASSERT_TRUE(found);
      EXPECT_EQ(encode(*found), encode(message));
      EXPECT_EQ(decoder.rest(), std::string_view("rest").substr(0, decoder.rest().size()));
    }
  }
}

TEST(WorkerMessage, RejectsInvalidMessages) {
  const std::string magic = encode_integer(kMagic), none = encode_integer(-1);
  const std::pair<std::string, const char*> wrong[] = {
      {encode_integer(0x99ff), "invalid magic number 39423"},
      {"GET / HTTP/1.1\r\n", "invalid magic number"},
      {magic + encode_integer(-2) + none, "rank: -2 is out of range"},
      {magic + encode_integer(10'000) + none, "rank: 10000 is out of range"},
      {magic + none + encode_integer(0), "world size: 0 is out of range"},
      {magic + none + encode_integer(INT32_MAX), "world size: 2147483647 is out of range"},
      {magic + none + none + encode_integer(-1), "task id: a length of -1 is not from 0 to 1024"},
      {magic + none + none + encode_integer(1025), "task id: a length of 1025"},
      {magic + none + none + encode_text("x") + encode_integer(17), "command: a length of 17"},
      {magic + none + none + encode_text("x") + encode_text("stop"), "unknown command 'stop'"},
      {magic + none + none + encode_text("x") + encode_text("print") + encode_integer(1 << 20),
       "text: a length of 1048576"},
  };
  for (const auto& [bytes, text] : wrong) {
    WorkerMessageDecoder decoder;
    const auto pushed = decoder.push(bytes);
    ASSERT_FALSE(pushed) << text;
    EXPECT_EQ(pushed.error().kind, Kind::corrupt);
    EXPECT_NE(pushed.error().message.find(text), std::string::npos) << pushed.error().message;
  }
}

// -- trackers

constexpr const char* kAddress = "127.0.0.1";

// A worker's end of the protocol, with blocking calls.
class Peer {
 public:
  explicit Peer(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_port = htons(port);
    ::inet_pton(AF_INET, kAddress, &there.sin_addr);
    const timeval limit{60, 0};
    ::setsockopt(socket_.descriptor(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    EXPECT_EQ(::connect(socket_.descriptor(), reinterpret_cast<sockaddr*>(&there), sizeof there),
              0);
  }
  void send(std::string_view bytes) {
    EXPECT_EQ(::send(socket_.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              ssize_t(bytes.size()));
  }
  void start(const std::string& task_id) { send(encode({-1, -1, task_id, Command::start, ""})); }
  std::string receive(size_t count) {
    std::string bytes(count, '\0');
    size_t at = 0;
    while (at < count) {
      const ssize_t got = ::recv(socket_.descriptor(), bytes.data() + at, count - at, 0);
      if (got <= 0) return "";
      at += size_t(got);
    }
    return bytes;
  }
  int32_t integer() {
    const std::string bytes = receive(sizeof(int32_t));
    int32_t value = INT32_MIN;  // at the end of the connection
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  bool is_closed() { return receive(1).empty(); }
  void close() { socket_.close(); }

 private:
  os::File socket_;
};

struct Joined {
  int32_t rank = -1, parent = -1, size = -1;
  std::set<int32_t> known, expected_links;
  int32_t expected = -1;
};

// Runs a worker's protocol up to its port. The port is only a number, since workers do not connect
// to each other here.
Joined join(uint16_t port, const std::string& task_id, int32_t own_port) {
  Peer peer(port);
  peer.start(task_id);
  Joined joined;
  EXPECT_EQ(peer.integer(), kMagic);
  joined.rank = peer.integer();
  joined.parent = peer.integer();
  joined.size = peer.integer();
  for (int32_t left = peer.integer(); left > 0; --left)
    joined.expected_links.insert(peer.integer());
  for (int i = 0; i < 2; ++i)
    if (const int32_t link = peer.integer(); link >= 0) joined.expected_links.insert(link);
  peer.send(encode_integer(0));
  const int32_t count = peer.integer();
  joined.expected = peer.integer();
  for (int32_t i = 0; i < count; ++i) {
    EXPECT_EQ(peer.receive(size_t(peer.integer())), kAddress);
    const int32_t there = peer.integer();
    const int32_t rank = peer.integer();
    EXPECT_EQ(there, 1000 + rank);
    joined.known.insert(rank);
  }
  peer.send(encode_integer(0) + encode_integer(own_port + joined.rank));
  return joined;
}

Result<std::unique_ptr<Tracker>> tracker_for(int workers, os::MachineClock& clock,
                                             Duration join_deadline = 60s) {
  TrackerOptions options;
  options.endpoint = {kAddress, 0};
  options.workers = workers;
  options.join_deadline = join_deadline;
  options.message_timeout = 60s;
  return Tracker::start(std::move(options), clock);
}

TEST(Tracker, GivesRanksInTheOrderOfTaskIdsAndConnectsAll) {
  os::MachineClock clock;
  for (const int workers : {1, 2, 3, 12}) {
    auto tracker = tracker_for(workers, clock);
    ASSERT_TRUE(tracker) << tracker.error().message;
    std::vector<Joined> joined(static_cast<size_t>(workers));
    std::vector<std::thread> threads;
    for (int i = workers - 1; i >= 0; --i)
      threads.emplace_back([&, i] {
        joined[size_t(i)] = join((*tracker)->port(), "algo-" + std::to_string(i + 1), 1000);
      });
    for (auto& thread : threads) thread.join();
    size_t known = 0, expected = 0, links = 0;
    for (int i = 0; i < workers; ++i) {
      const Joined& each = joined[size_t(i)];
      EXPECT_EQ(each.rank, i);
      EXPECT_EQ(each.size, workers);
      known += each.known.size();
      expected += size_t(each.expected);
      links += each.expected_links.size();
      EXPECT_EQ(each.known.size() + size_t(each.expected), each.expected_links.size());
      for (const int32_t rank : each.known) EXPECT_LT(rank, each.rank);
    }
    EXPECT_EQ(known, expected);
    EXPECT_EQ(known + expected, links);
    for (int i = 0; i < workers; ++i) {
      Peer peer((*tracker)->port());
      peer.send(encode({i, workers, "algo-" + std::to_string(i + 1), Command::shutdown, ""}));
    }
    const auto done = (*tracker)->wait();
    EXPECT_TRUE(done) << done.error().message;
  }
}

TEST(Tracker, PrintsAndIgnoresUnknownPeers) {
  os::MachineClock clock;
  std::vector<std::string> lines;
  TrackerOptions options;
  options.endpoint = {kAddress, 0};
  options.print = [&](std::string_view line) { lines.emplace_back(line); };
  auto tracker = Tracker::start(std::move(options), clock);
  ASSERT_TRUE(tracker) << tracker.error().message;
  const uint16_t port = (*tracker)->port();
  Peer silent(port), wrong(port), large(port), other_size(port);
  wrong.send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(wrong.is_closed());
  large.send(encode_integer(kMagic) + encode_integer(-1) + encode_integer(-1) +
             encode_integer(INT32_MAX));
  EXPECT_EQ(large.integer(), INT32_MIN);
  other_size.send(encode({-1, 7, "x", Command::start, ""}));
  EXPECT_EQ(other_size.integer(), kMagic);
  EXPECT_TRUE(other_size.is_closed());
  Peer printer(port);
  printer.send(encode({0, -1, "x", Command::print, "[0]\ttrain-auc:1\n"}));
  EXPECT_EQ(printer.integer(), kMagic);
  EXPECT_TRUE(printer.is_closed());
  EXPECT_EQ(join(port, "x", 1000).rank, 0);
  Peer late(port);  // all ranks are taken
  late.start("y");
  EXPECT_EQ(late.integer(), kMagic);
  EXPECT_TRUE(late.is_closed());
  Peer end(port);
  end.send(encode({0, 1, "x", Command::shutdown, ""}));
  const auto done = (*tracker)->wait();
  EXPECT_TRUE(done) << done.error().message;
  EXPECT_EQ(lines, std::vector<std::string>{"[0]\ttrain-auc:1"});
}

// Starts algo-1, which follows the protocol, and algo-2, which calls plays() after it received its
// links. Returns the error.
std::string failure_of(const std::function<void(Peer&)>& plays) {
  os::MachineClock clock;
  auto tracker = tracker_for(2, clock);
  EXPECT_TRUE(tracker);
  std::thread good([&] { join((*tracker)->port(), "algo-1", 1000); });
  Peer bad((*tracker)->port());
  bad.start("algo-2");
  for (int i = 0; i < 8; ++i) bad.integer();  // magic, rank, parent, size, count, link, ring
  plays(bad);
  const auto done = (*tracker)->wait();
  good.join();
  return done ? "" : done.error().message;
}

TEST(Tracker, AStartedWorkerThatFailsIsNamed) {
  EXPECT_EQ(failure_of([](Peer& peer) { peer.close(); }),
            "worker algo-2 at 127.0.0.1: closed its connection while an integer was read");
  EXPECT_EQ(failure_of([](Peer& peer) { peer.send(encode_integer(2)); }),
            "worker algo-2 at 127.0.0.1: sent an invalid number of connections: 2");
  EXPECT_EQ(failure_of([](Peer& peer) { peer.send(encode_integer(-1)); }),
            "worker algo-2 at 127.0.0.1: sent an invalid number of connections: -1");
  EXPECT_EQ(failure_of([](Peer& peer) { peer.send(encode_integer(1) + encode_integer(7)); }),
            "worker algo-2 at 127.0.0.1: is connected to a rank that is not its neighbour");
  EXPECT_EQ(failure_of([](Peer& peer) {
              peer.send(encode_integer(0) + encode_integer(0) + encode_integer(70'000));
            }),
            "worker algo-2 at 127.0.0.1: sent an invalid port: 70000");
  EXPECT_EQ(failure_of([](Peer& peer) {
              for (int i = 0; i < 10; ++i) peer.send(encode_integer(0) + encode_integer(1));
            }),
            "worker algo-2 at 127.0.0.1: could not connect to its neighbours");
}

TEST(Tracker, ARecoveryEndsTheTraining) {
  os::MachineClock clock;
  auto tracker = tracker_for(1, clock);
  ASSERT_TRUE(tracker);
  EXPECT_EQ(join((*tracker)->port(), "algo-1", 1000).rank, 0);
  Peer peer((*tracker)->port());
  peer.send(encode({0, 1, "algo-1", Command::recover, ""}));
  EXPECT_EQ((*tracker)->wait().error().message,
            "worker algo-1 at 127.0.0.1 lost its connections: another worker of the training has "
            "ended");
}

TEST(Tracker, MissingWorkersAreCounted) {
  os::MachineClock clock;
  auto tracker = tracker_for(3, clock, 1s);
  ASSERT_TRUE(tracker);
  Peer one((*tracker)->port());
  one.start("algo-1");
  EXPECT_EQ(one.integer(), kMagic);
  const auto done = (*tracker)->wait();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "1 of 3 workers started within 1 s: algo-1");
  EXPECT_TRUE(one.is_closed());
}

TEST(Tracker, StopsAndRejectsWrongOptions) {
  os::MachineClock clock;
  auto tracker = tracker_for(2, clock);
  ASSERT_TRUE(tracker);
  (*tracker)->stop();
  EXPECT_EQ((*tracker)->wait().error().kind, Kind::cancelled);
  EXPECT_FALSE(tracker_for(0, clock));
  EXPECT_FALSE(tracker_for(kWorkersMax + 1, clock));
}

}  // namespace
}  // namespace trainyard::rabit
