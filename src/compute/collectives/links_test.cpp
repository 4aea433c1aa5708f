// Tests links between ranks that share no memory: connections made on demand, several sockets, IPv4
// and IPv6 addresses, hosts on different networks, encryption.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/thread_safety.hpp"
#include "collectives/testing/cases.hpp"
#include "collectives/testing/groups.hpp"
#include "collectives/transport/tcp/addresses.hpp"
#include "collectives/transport/tcp/tcp_transport.hpp"

namespace trainyard::collectives {
namespace {

using namespace testing;
using Adjust = std::function<void(TcpOptions&)>;

void over_links(std::vector<Endpoint> all, const Adjust& adjust,
                const std::function<void(Group&)>& play) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < int(all.size()); ++rank) {
    threads.emplace_back([&, rank] {
      auto mine = options(all, rank, LinkKind::tcp);
      adjust(mine);
      auto group = join_over_tcp(mine);
      ASSERT_TRUE(group) << group.error().message;
      play(**group);
    });
  }
  for (auto& thread : threads) thread.join();
}

// Sends a message between every two ranks, and checks a sum.
void talk_to_everyone(Group& group, size_t elements) {
  const auto ranks = size_t(group.size());
  const auto rank = size_t(group.rank());
  std::vector<int64_t> mine(ranks * elements);
  std::vector<int64_t> theirs(ranks * elements);
  for (size_t peer = 0; peer < ranks; ++peer) {
    for (size_t i = 0; i < elements; ++i)
      mine[peer * elements + i] = int64_t(rank * 1000 + peer * 10 + i);
  }
  expect_ok(
      group.run(calls::all_to_all(buffer_view(std::span(mine)), buffer_view(std::span(theirs)))));
  for (size_t peer = 0; peer < ranks; ++peer) {
    for (size_t i = 0; i < elements; ++i)
      ASSERT_EQ(theirs[peer * elements + i], int64_t(peer * 1000 + rank * 10 + i))
          << peer << " " << i;
  }
  std::vector<float> values(elements * 3 + 1, float(rank + 1));
  expect_ok(group.allreduce(values));
  EXPECT_EQ(values, std::vector<float>(elements * 3 + 1, float(ranks * (ranks + 1) / 2)));
}

TEST(Links, NeighboursAreAPowerOfTwoApartInBothDirections) {
  for (int ranks = 1; ranks <= 65; ++ranks) {
    for (int a = 0; a < ranks; ++a) {
      EXPECT_EQ(are_neighbours(a, (a + 1) % ranks, ranks), ranks > 1);
      for (int b = 0; b < ranks; ++b)
        EXPECT_EQ(are_neighbours(a, b, ranks), are_neighbours(b, a, ranks));
    }
  }
  int neighbours = 0;
  for (int peer = 1; peer < 64; ++peer) neighbours += are_neighbours(0, peer, 64);
  EXPECT_EQ(neighbours, 11);
  for (int a = 0; a < 5; ++a) {
    for (int b = 0; b < a; ++b) EXPECT_TRUE(are_neighbours(a, b, 5));
  }
}

TEST(Links, OtherRanksConnectOnFirstUse) {
  over_links(
      endpoints(9), [](TcpOptions&) {},
      [](Group& group) {
        ASSERT_FALSE(are_neighbours(0, 3, 9));
        float value = 7;
        // One pair in which the earlier rank sends, and one in which the later rank sends. Other
        // ranks do something else.
        if (group.rank() == 0) expect_ok(group.send(3, buffer_view(std::span(&value, 1))));
        if (group.rank() == 3) expect_ok(group.receive(0, buffer_view(std::span(&value, 1))));
        if (group.rank() == 5) expect_ok(group.send(2, buffer_view(std::span(&value, 1))));
        if (group.rank() == 2) expect_ok(group.receive(5, buffer_view(std::span(&value, 1))));
        expect_ok(group.barrier());
        talk_to_everyone(group, 100);
      });
}

// The killed rank is a process, so that it dies without a message to any rank.
TEST(Links, RanksNameADeadRankToWhichTheyWereNeverConnected) {
  constexpr int ranks = 9;
  constexpr int failed_rank = 3;
  const auto all = endpoints(ranks);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto group = join_over_tcp(options(all, failed_rank, LinkKind::tcp));
    if (!group || !(*group)->barrier()) _exit(1);
    raise(SIGKILL);
  }
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == failed_rank) continue;
    threads.emplace_back([&, rank] {
      auto group = join_over_tcp(options(all, rank, LinkKind::tcp));
      ASSERT_TRUE(group) << group.error().message;
      Result<void> result;
      for (int step = 0; step < 100 && result; ++step) result = (*group)->barrier();
      ASSERT_FALSE(result);
      EXPECT_NE(result.error().message.find("rank 3 ("), std::string::npos)
          << result.error().message;
    });
  }
  for (auto& thread : threads) thread.join();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
}

TEST(Links, RanksNameARankThatLeftToWhichTheyWereNeverConnected) {
  // The higher rank connects, so its connection is refused. The lower rank has to probe.
  for (const auto& [leaver, other] : {std::pair(0, 6), std::pair(6, 0)}) {
    ASSERT_FALSE(are_neighbours(leaver, other, 9));
    std::atomic<int> gone = 0;
    over_links(
        endpoints(9), [](TcpOptions&) {},
        [&, leaver = leaver, other = other](Group& group) {
          const auto met = group.barrier();
          // The other ranks may learn of it while they are still in the barrier.
          if (group.rank() != leaver && group.rank() != other) return;
          expect_ok(met);
          if (group.rank() == leaver) {
            ++gone;
            return;
          }
          while (gone == 0) std::this_thread::yield();
          float value = 1;
          const auto result = group.receive(leaver, buffer_view(std::span(&value, 1)));
          ASSERT_FALSE(result);
          const std::string& why = result.error().message;
          EXPECT_NE(why.find("rank " + std::to_string(leaver) + " ("), std::string::npos) << why;
          EXPECT_TRUE(why.ends_with(") exited during receive from rank " + std::to_string(leaver)))
              << why;
        });
  }
}

TEST(Links, LargeMessagesUseSeveralSockets) {
  for (const int sockets : {2, 5}) {
    over_links(
        endpoints(3), [&](TcpOptions& options) { options.sockets_per_peer = sockets; },
        [](Group& group) {
          for (const size_t elements : {1u, 10'000u, 40'001u}) talk_to_everyone(group, elements);
        });
  }
}

// Completes the sends and receives that were posted to a transport.
void finish(Transport& transport) {
  while (!transport.all_sent() || !transport.all_received()) {
    expect_ok(transport.advance());
    if (!transport.all_sent() || !transport.all_received()) expect_ok(transport.wait());
  }
}

TEST(Links, CountTheirBytesAndBusyTime) {
  const auto all = endpoints(2);
  constexpr size_t kBytes = 4 << 20;
  std::thread receiver([&] {
    const auto transport = connect_tcp(options(all, 1, LinkKind::tcp));
    ASSERT_TRUE(transport) << transport.error().message;
    std::vector<std::byte> bytes(kBytes);
    for (uint64_t round = 1; round <= 2; ++round) {
      (*transport)->receive_into(0, {round, 1}, bytes);
      finish(**transport);
      (*transport)->send(std::vector<int>{0}, {round, 2}, std::span(bytes).first(1));
      finish(**transport);
    }
  });
  const auto transport = connect_tcp(options(all, 0, LinkKind::tcp));
  ASSERT_TRUE(transport) << transport.error().message;
  const std::vector<std::byte> bytes(kBytes);
  const auto now = std::chrono::steady_clock::now();
  EXPECT_TRUE((*transport)->link_loads(now - std::chrono::hours(1)).empty()) << "nothing was sent";
  std::vector<LinkLoad> loads;
  for (uint64_t round = 1; round <= 2; ++round) {
    std::byte reply;
    (*transport)->send(std::vector<int>{1}, {round, 1}, bytes);
    (*transport)->receive_into(1, {round, 2}, std::span(&reply, 1));
    finish(**transport);
    const auto measured = (*transport)->link_loads(now + round * std::chrono::hours(1));
    ASSERT_EQ(measured.size(), 1u);
    loads.push_back(measured[0]);
  }
  EXPECT_EQ(loads[0].peer, 1);
  EXPECT_GE(loads[0].bytes, kBytes);
  EXPECT_GE(loads[1].bytes, 2 * kBytes);
  EXPECT_GE(loads[1].busy, loads[0].busy);
  const auto again = (*transport)->link_loads(now);
  EXPECT_EQ(again[0].bytes, loads[1].bytes) << "the last measurement is recent";
  receiver.join();
}

TEST(Links, EveryPlanGivesTheSameSumsOnSeveralSockets) {
  for (const std::string& plan : allreduce_plans()) {
    over_links(
        endpoints(4),
        [&](TcpOptions& options) {
          options.sockets_per_peer = 3;
          options.group.plans = "allreduce=" + plan + ":0-";
        },
        [](Group& group) {
          std::vector<float> values(300'007);
          for (size_t i = 0; i < values.size(); ++i)
            values[i] = float(i % 1000) * float(group.rank() + 1);
          expect_ok(group.allreduce(values));
          for (size_t i = 0; i < values.size(); ++i)
            ASSERT_EQ(values[i], float(i % 1000) * 10) << i;
        });
  }
}

TEST(Links, ReportDifferentNumbersOfSockets) {
  const auto all = endpoints(2);
  std::thread first([&] {
    auto mine = options(all, 0, LinkKind::tcp);
    mine.join_deadline = 500ms;
    EXPECT_FALSE(join_over_tcp(mine));
  });
  auto other = options(all, 1, LinkKind::tcp);
  other.sockets_per_peer = 2;
  other.join_deadline = 10s;
  const auto refused = join_over_tcp(other);
  first.join();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("sockets"), std::string::npos) << refused.error().message;
  other.sockets_per_peer = 0;
  EXPECT_EQ(join_over_tcp(other).error().kind, Kind::invalid);
}

TEST(Links, SupportIpv6Addresses) {
  if (!listen_at({"::1", 0}, 1)) GTEST_SKIP() << "this machine has no IPv6";
  std::vector<Endpoint> all;
  std::vector<Socket> held;
  for (int rank = 0; rank < 3; ++rank) {
    auto listener = listen_at({"::1", 0}, 1);
    ASSERT_TRUE(listener);
    all.push_back({"::1", *port_of(*listener)});
    held.push_back(*std::move(listener));
  }
  EXPECT_EQ(text_of(all[0]), "[::1]:" + std::to_string(all[0].port));
  held.clear();
  over_links(
      all, [](TcpOptions&) {},
      [](Group& group) {
        talk_to_everyone(group, 10);
        // The parts of the group connect to the same addresses.
        auto part = group.split(group.rank() == 1 ? -1 : 0);
        ASSERT_TRUE(part) << part.error().message;
        if (*part) talk_to_everyone(**part, 10);
      });
}

TEST(Links, ConnectToTheFirstAddressThatAnswers) {
  // An address without a route, a name that cannot be resolved, and the right address.
  std::vector<Endpoint> all(3);
  std::vector<Socket> held;
  for (Endpoint& each : all) {
    each.host = "240.0.0.1,no-such-host.invalid,127.0.0.1";
    held.push_back(*listen_at(each, 1));
    each.port = *port_of(held.back());
  }
  held.clear();
  EXPECT_EQ(hosts_of(all[0]).size(), 3u);
  over_links(
      all, [](TcpOptions&) {}, [](Group& group) { talk_to_everyone(group, 10); });
}

// Forwards the connections to rank 0 and records their bytes.
class Relay {
 public:
  explicit Relay(const Endpoint& behind)
      : behind_(behind), listener_(*listen_at({"127.0.0.1", 0}, 16)) {
    thread_ = std::thread([this] { run(); });
  }
  ~Relay() {
    ending_ = true;
    thread_.join();
  }
  Endpoint place() const { return {"127.0.0.1", *port_of(listener_)}; }
  std::string seen() const {
    const MutexLock lock(mutex_);
    return seen_;
  }

 private:
  void run() {
    std::vector<std::pair<int, int>> pairs;
    while (!ending_) {
      const int accepted = ::accept4(listener_.descriptor(), nullptr, nullptr, SOCK_NONBLOCK);
      if (accepted >= 0) {
        const auto address = *resolve(behind_);
        const int onward = ::socket(AF_INET, SOCK_STREAM, 0);
        if (::connect(onward, address[0].get(), address[0].length) == 0) {
          pairs.emplace_back(accepted, onward);
        } else {
          ::close(accepted);
          ::close(onward);
        }
      }
      for (auto& [a, b] : pairs) {
        for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
          char bytes[65536];
          const ssize_t got = ::recv(from, bytes, sizeof bytes, MSG_DONTWAIT);
          if (got == 0) ::shutdown(to, SHUT_WR);
          if (got <= 0) continue;
          for (ssize_t sent = 0; sent < got;) {
            const ssize_t more = ::send(to, bytes + sent, size_t(got - sent), MSG_NOSIGNAL);
            if (more < 0 && errno != EAGAIN) break;
            if (more > 0) sent += more;
          }
          const MutexLock lock(mutex_);
          seen_.append(bytes, size_t(got));
        }
      }
      ::poll(nullptr, 0, 1);
    }
    for (auto& [a, b] : pairs) {
      ::close(a);
      ::close(b);
    }
  }

  const Endpoint behind_;
  Socket listener_;
  std::atomic<bool> ending_ = false;
  std::thread thread_;
  mutable Mutex mutex_;
  std::string seen_ GUARDED_BY(mutex_);
};

bool can_encrypt() { return bool(TlsKey::make("x")); }

TEST(Encryption, HidesMessagesFromAProxyBetweenTheRanks) {
  if (!can_encrypt()) GTEST_SKIP() << "this machine has no OpenSSL";
  const std::string message = "the gradients of the third layer";
  for (const bool encrypt : {false, true}) {
    auto all = endpoints(2);
    Relay relay(all[0]);
    std::thread first([&] {
      auto mine = options(all, 0, LinkKind::tcp);
      mine.encrypt = encrypt;
      auto group = join_over_tcp(mine);
      ASSERT_TRUE(group) << group.error().message;
      const auto said = (*group)->all_gather(std::string_view(message));
      EXPECT_TRUE(said);
    });
    auto seen_by_second = all;
    seen_by_second[0] = relay.place();
    auto mine = options(seen_by_second, 1, LinkKind::tcp);
    mine.encrypt = encrypt;
    auto group = join_over_tcp(mine);
    ASSERT_TRUE(group) << group.error().message;
    const auto said = (*group)->all_gather(std::string_view(message));
    ASSERT_TRUE(said);
    EXPECT_EQ((*said)[0], message);
    group->reset();
    first.join();
    EXPECT_EQ(relay.seen().find(message) == std::string::npos, encrypt);
    EXPECT_EQ(relay.seen().find("TYR4") == std::string::npos, encrypt);
    EXPECT_GT(relay.seen().size(), message.size());
  }
}

TEST(Encryption, EncryptedGroupsWorkLikePlainGroups) {
  if (!can_encrypt()) GTEST_SKIP() << "this machine has no OpenSSL";
  over_links(
      endpoints(6),
      [](TcpOptions& options) {
        options.encrypt = true;
        options.sockets_per_peer = 2;
      },
      [](Group& group) {
        for (const size_t elements : {1u, 30'001u}) talk_to_everyone(group, elements);
        auto part = group.split(group.rank() % 2);
        ASSERT_TRUE(part) << part.error().message;
        talk_to_everyone(**part, 1000);
      });
}

TEST(Encryption, OtherRanksReportWhyARankAbandonedTheGroup) {
  if (!can_encrypt()) GTEST_SKIP() << "this machine has no OpenSSL";
  over_links(
      endpoints(3), [](TcpOptions& options) { options.encrypt = true; },
      [](Group& group) {
        Result<void> result = group.barrier();
        if (group.rank() == 1) return group.abandon("the disk is on fire");
        std::vector<float> values(1'000'000, 1.0f);
        if (result) result = group.allreduce(values);
        ASSERT_FALSE(result);
        EXPECT_NE(result.error().message.find("rank 1"), std::string::npos)
            << result.error().message;
      });
}

TEST(Encryption, RejectsPeersWithoutTheSecretOrWithoutEncryption) {
  if (!can_encrypt()) GTEST_SKIP() << "this machine has no OpenSSL";
  const auto all = endpoints(2);
  std::thread first([&] {
    auto mine = options(all, 0, LinkKind::tcp);
    mine.encrypt = true;
    const auto group = join_over_tcp(mine);
    EXPECT_TRUE(group) << group.error().message;
  });
  auto other = options(all, 1, LinkKind::tcp);
  other.encrypt = true;
  other.shared_value = "another job";
  const auto intruder = join_over_tcp(other);
  ASSERT_FALSE(intruder);
  EXPECT_EQ(intruder.error().kind, Kind::conflict) << intruder.error().message;
  other = options(all, 1, LinkKind::tcp);
  other.join_deadline = 300ms;
  EXPECT_FALSE(join_over_tcp(other));
  other.encrypt = true;
  other.shared_value = "";
  EXPECT_EQ(join_over_tcp(other).error().kind, Kind::invalid);
  // The rejected peers do not affect the waiting rank.
  auto right = options(all, 1, LinkKind::tcp);
  right.encrypt = true;
  EXPECT_TRUE(join_over_tcp(right));
  first.join();
}

}  // namespace
}  // namespace trainyard::collectives
