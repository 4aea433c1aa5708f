// Tests groups whose ranks die, hang, leave or disagree, or whose peers are unauthenticated.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <latch>
#include <set>

#include "collectives/testing/groups.hpp"
#include "collectives/transport/tcp/tcp_transport.hpp"

namespace trainyard::collectives {
namespace {

using namespace testing;

TEST(Group, RanksInDifferentOperationsReportAConflict) {
  run_ranks_over_tcp(2, [](Group& group) {
    std::vector<float> values(4, 1.0f);
    const auto result =
        group.rank() == 0 ? group.allreduce(values) : group.allreduce(values, Reduction::maximum);
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message.find("same order"), std::string::npos)
        << result.error().message;
  });
}

TEST(Group, OtherRanksReportWhyARankAbandonedTheGroup) {
  const auto play = [](Group& group) {
    // otherwise other ranks might get the message while they still join
    Result<void> result = group.barrier();
    if (group.rank() == 1) return group.abandon("the disk is on fire");
    std::vector<float> values(1000, 1.0f);
    if (result) result = group.allreduce(values);
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message.find("rank 1"), std::string::npos) << result.error().message;
    EXPECT_NE(result.error().message.find("the disk is on fire"), std::string::npos)
        << result.error().message;
  };
  for (const LinkKind links : {LinkKind::tcp, LinkKind::shared}) run_ranks(links, 3, play);
  run_ranks_in_memory(3, play);
}

TEST(Group, KeepsTheFirstErrorAlthoughAnotherRankHadAnswered) {
  // The values of rank 1 have arrived and wait for those of rank 2, which never come. In one
  // process a rank may still read the values of another after a failure: they outlive all calls.
  std::vector<float> all_values[2][2] = {
      {std::vector<float>(100, 1.0f), std::vector<float>(50'000, 1.0f)},
      {std::vector<float>(100, 1.0f), std::vector<float>(50'000, 1.0f)}};
  const auto play = [&](std::unique_ptr<Group> group) {
    if (group->rank() == 2) return;
    for (int call = 0; call < 3; ++call) {
      for (auto& values : all_values[group->rank()]) {
        const auto result = group->allreduce(values);
        ASSERT_FALSE(result);
        EXPECT_NE(result.error().message.find("rank 2"), std::string::npos)
            << result.error().message;
      }
    }
  };
  for (const LinkKind links : {LinkKind::tcp, LinkKind::shared}) run_owning_ranks(links, 3, play);
  run_owning_ranks_in_memory(3, play);
}

TEST(Group, NamesAKilledRankOnAllOthers) {
  constexpr int ranks = 4;
  constexpr int failed_rank = 2;
  const auto all = endpoints(ranks);
  // The killed rank is a process, so that it dies in the middle of a sum, without a message.
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto group = join_over_tcp(options(all, failed_rank));
    if (!group) _exit(1);
    std::vector<float> values(100000, 1.0f);
    for (int step = 0; step < 3; ++step) {
      if (!(*group)->allreduce(values)) _exit(2);
    }
    raise(SIGKILL);
    _exit(3);
  }
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == failed_rank) continue;
    threads.emplace_back([&, rank] {
      auto group = join_over_tcp(options(all, rank));
      ASSERT_TRUE(group) << group.error().message;
      std::vector<float> values(100000, 1.0f);
      // The killed rank takes part in three sums. The others may notice its death at the end of the
      // third.
      Result<void> result;
      for (int step = 0; step < 4 && result; ++step) result = (*group)->allreduce(values);
      ASSERT_FALSE(result);
      EXPECT_EQ(result.error().kind, Kind::unavailable);
      EXPECT_NE(result.error().message.find("rank 2 ("), std::string::npos)
          << result.error().message;
      EXPECT_NE(result.error().message.find("lost connection to rank 2 ("), std::string::npos)
          << result.error().message;
      // The first error is returned again.
      EXPECT_FALSE((*group)->barrier());
    });
  }
  for (auto& thread : threads) thread.join();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

// Dies without a message after this time, at any point: SIGALRM kills a process that does not
// handle it.
[[noreturn]] void work_until_death(const TcpOptions& options, int microseconds) {
  auto group = join_over_tcp(options);
  if (!group) _exit(1);
  const itimerval until{{0, 0}, {0, microseconds}};
  setitimer(ITIMER_REAL, &until, nullptr);
  std::vector<float> values(50'000, 1.0f);
  for (;;) {
    if (!(*group)->allreduce(values) || !(*group)->barrier()) _exit(2);
  }
}

TEST(Group, NamesTheTensorAndARankThatDiesAnywhere) {
  constexpr int ranks = 3;
  for (const LinkKind links : {LinkKind::tcp, LinkKind::shared}) {
    for (int trial = 0; trial < 8; ++trial) {
      const int failed_rank = trial % ranks;
      const auto all = endpoints(ranks);
      const pid_t child = fork();
      ASSERT_GE(child, 0);
      if (child == 0) work_until_death(options(all, failed_rank, links), 1 + trial * 700);
      std::vector<std::thread> threads;
      for (int rank = 0; rank < ranks; ++rank) {
        if (rank == failed_rank) continue;
        threads.emplace_back([&, rank] {
          auto group = join_over_tcp(options(all, rank, links));
          std::string why;
          if (group) {
            std::vector<float> values(50'000, 1.0f);
            for (;;) {
              auto result = (*group)->run(
                  calls::allreduce(buffer_view(std::span(values)), {.name = "layer1"}));
              if (result) result = (*group)->barrier();
              if (result) continue;
              why = result.error().message;
              EXPECT_EQ(result.error().kind, Kind::unavailable) << why;
              EXPECT_TRUE(why.ends_with(" during allreduce of 'layer1'") ||
                          why.ends_with(" during barrier"))
                  << why;
              break;
            }
          } else {
            why = group.error().message;  // it died while the others were still joining
          }
          EXPECT_NE(why.find("rank " + std::to_string(failed_rank) + " ("), std::string::npos)
              << why;
        });
      }
      for (auto& thread : threads) thread.join();
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      EXPECT_TRUE(WIFSIGNALED(status)) << status;
    }
  }
}

TEST(Group, SharedMemoryLeavesNothingInTheFileSystem) {
  const auto files = [] {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
      names.insert(entry.path().filename());
    return names;
  };
  run_ranks(LinkKind::shared, 2, [&](Group& group) {
    const auto memory = group.allocate(1 << 20);
    ASSERT_TRUE(memory);
    // Other programs may have files there. Files of this library would have these names.
    for (const std::string& name : files())
      for (const char* part : {"ranks", "buffer", "in-place"})
        EXPECT_EQ(name.find(std::string("trainyard-") + part), std::string::npos) << name;
    group.free(*memory);
  });
}

TEST(Group, TimesOutOnARankThatSendsNothing) {
  for (const LinkKind links : {LinkKind::tcp, LinkKind::shared}) {
    const auto all = endpoints(2);
    std::atomic<bool> given_up = false;
    std::thread silent([&] {
      auto group = join_over_tcp(options(all, 1, links));
      ASSERT_TRUE(group) << group.error().message;
      while (!given_up) std::this_thread::yield();
    });
    auto waiting_options = options(all, 0, links);
    waiting_options.peer_timeout = 200ms;
    auto group = join_over_tcp(waiting_options);
    ASSERT_TRUE(group) << group.error().message;
    std::thread onlooker([&] {
      // Reads the stall report of the waiting rank.
      std::string stall_report;
      while (!given_up && stall_report.empty()) stall_report = (*group)->current_operation();
      EXPECT_TRUE(given_up || stall_report.find("barrier") != std::string::npos) << stall_report;
    });
    const auto result = (*group)->barrier();
    given_up = true;
    silent.join();
    onlooker.join();
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message.find("nothing from rank 1"), std::string::npos)
        << result.error().message;
  }
}

// A live rank that gets no processor within this time would be reported as dead.
constexpr Duration kPeerTimeout = 15s;

// Runs an allreduce on every rank but one. It takes so long that some ranks send and some wait.
void expect_all_to_name(int failed_rank, const std::vector<Endpoint>& all, LinkKind links,
                        const std::string& plan, const std::function<void()>& when_ended) {
  std::latch ended(std::ptrdiff_t(all.size()) - 1);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < int(all.size()); ++rank) {
    if (rank == failed_rank) continue;
    threads.emplace_back([&, rank] {
      auto waiting_options = options(all, rank, links);
      waiting_options.peer_timeout = kPeerTimeout;
      waiting_options.group.plans = "allreduce=" + plan + ":0-";
      auto group = join_over_tcp(waiting_options);
      if (!group) {
        ADD_FAILURE() << group.error().message;
        ended.count_down();  // no rank waits for this one
        return;
      }
      std::vector<float> values(2'000'000, 1.0f);
      Result<void> result = ok();
      while (result) result = (*group)->allreduce(values);
      EXPECT_NE(
          result.error().message.find("nothing from rank " + std::to_string(failed_rank) + " ("),
          std::string::npos)
          << plan << ", rank " << rank << ": " << result.error().message;
      // In shared memory the others may still read the buffers of this rank.
      ended.arrive_and_wait();
    });
  }
  for (auto& thread : threads) thread.join();
  when_ended();
}

struct PlanOverTransport {
  LinkKind links;
  const char* plan;
  int ranks;
};

// Runs concurrently, since each run waits for a timeout.
void for_each_at_once(const std::vector<PlanOverTransport>& rows,
                      const std::function<void(size_t row)>& test) {
  std::vector<std::thread> threads;
  for (size_t row = 0; row < rows.size(); ++row) threads.emplace_back(test, row);
  for (auto& thread : threads) thread.join();
}

TEST(Group, AllRanksNameTheOneThatNeverCallsTheOperation) {
  std::vector<PlanOverTransport> rows;
  for (const LinkKind links : {LinkKind::tcp, LinkKind::shared})
    for (const auto& [plan, ranks] : {std::pair{"ring", 5}, std::pair{"tree", 5},
                                      std::pair{"halving_doubling", 8}, std::pair{"direct", 5}})
      rows.push_back({links, plan, ranks});
  std::vector<std::vector<Endpoint>> all;
  for (const auto& row : rows) all.push_back(endpoints(row.ranks));
  for_each_at_once(rows, [&](size_t row) {
    const auto& [links, plan, ranks] = rows[row];
    std::latch given_up(1);
    std::thread late([&, links = links, plan = plan] {
      auto mine = options(all[row], 2, links);
      mine.group.plans = "allreduce=" + std::string(plan) + ":0-";
      auto group = join_over_tcp(mine);
      ASSERT_TRUE(group) << group.error().message;
      given_up.wait();
    });
    expect_all_to_name(2, all[row], links, plan, [&] { given_up.count_down(); });
    late.join();
  });
}

// Stops itself at some point of an allreduce.
[[noreturn]] void work_until_stopped(const TcpOptions& options) {
  auto group = join_over_tcp(options);
  if (!group) _exit(1);
  signal(SIGALRM, [](int) { raise(SIGSTOP); });
  const itimerval until{{0, 0}, {0, 30'000}};
  setitimer(ITIMER_REAL, &until, nullptr);
  std::vector<float> values(2'000'000, 1.0f);
  while ((*group)->allreduce(values)) continue;
  _exit(2);
}

TEST(Group, AllRanksNameTheOneThatIsStoppedDuringTheOperation) {
  const std::vector<PlanOverTransport> rows = {{LinkKind::tcp, "halving_doubling", 4},
                                               {LinkKind::tcp, "direct", 4},
                                               {LinkKind::shared, "ring", 4},
                                               {LinkKind::shared, "tree", 4}};
  std::vector<std::vector<Endpoint>> all;
  std::vector<pid_t> children;  // forked before there are threads
  for (const auto& [links, plan, ranks] : rows) {
    auto mine = options(all.emplace_back(endpoints(ranks)), 1, links);
    mine.group.plans = "allreduce=" + std::string(plan) + ":0-";
    children.push_back(fork());
    ASSERT_GE(children.back(), 0);
    if (children.back() == 0) work_until_stopped(mine);
  }
  for_each_at_once(rows, [&](size_t row) {
    expect_all_to_name(1, all[row], rows[row].links, rows[row].plan,
                       [&] { kill(children[row], SIGKILL); });
    int status = 0;
    ASSERT_EQ(waitpid(children[row], &status, 0), children[row]);
    EXPECT_TRUE(WIFSIGNALED(status)) << status;
  });
}

TEST(Group, AWaitCanBeCancelled) {
  const auto all = endpoints(2);
  auto cancelled_options = options(all, 0);
  cancelled_options.cancelled = [] { return true; };
  const auto group = join_over_tcp(cancelled_options);
  ASSERT_FALSE(group);
  EXPECT_EQ(group.error().kind, Kind::cancelled);
}

TEST(Rendezvous, NamesARankThatNeverJoins) {
  const auto all = endpoints(3);
  for (const int rank : {0, 1}) {
    auto hasty_options = options(all, rank);
    hasty_options.join_deadline = 200ms;
    const auto group = join_over_tcp(hasty_options);
    ASSERT_FALSE(group);
    EXPECT_EQ(group.error().kind, Kind::unavailable);
    EXPECT_NE(group.error().message.find(rank == 0 ? "rank 1 (" : "rank 0 ("), std::string::npos)
        << group.error().message;
  }
}

TEST(Rendezvous, RejectsARankOfAnotherJob) {
  const auto all = endpoints(2);
  std::thread first([&] {
    const auto group = join_over_tcp(options(all, 0));
    EXPECT_TRUE(group) << group.error().message;
  });
  auto foreign = options(all, 1);
  foreign.shared_value = "another job";
  const auto refused = join_over_tcp(foreign);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Kind::conflict);
  EXPECT_NE(refused.error().message.find("another job"), std::string::npos);
  // The unauthenticated peer has not disturbed the waiting rank.
  EXPECT_TRUE(join_over_tcp(options(all, 1)));
  first.join();
}

TEST(Rendezvous, UnauthenticatedPeersDoNotDisturbTheGroup) {
  const auto all = endpoints(2);
  std::thread first([&] {
    const auto group = join_over_tcp(options(all, 0));
    EXPECT_TRUE(group) << group.error().message;
  });
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(all[0].port);
  inet_pton(AF_INET, all[0].host.c_str(), &address.sin_addr);
  std::vector<int> intruders;
  for (const std::string_view bytes : {"GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n", ""}) {
    for (int tries = 0; tries < 100000; ++tries) {
      const int intruder = socket(AF_INET, SOCK_STREAM, 0);
      if (connect(intruder, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
        (void)!write(intruder, bytes.data(), bytes.size());
        intruders.push_back(intruder);
        break;
      }
      close(intruder);
    }
  }
  EXPECT_EQ(intruders.size(), 2u);
  EXPECT_TRUE(join_over_tcp(options(all, 1)));
  first.join();
  for (const int intruder : intruders) close(intruder);
}

// Acts as rank 1 of two: knows the secret, proves its membership, and then sends arbitrary bytes.
class Impostor {
 public:
  explicit Impostor(const Endpoint& first) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(first.port);
    inet_pton(AF_INET, first.host.c_str(), &address.sin_addr);
    for (int tries = 0; tries < 100000; ++tries) {
      socket_ = Socket(socket(AF_INET, SOCK_STREAM, 0));
      if (connect(socket_.descriptor(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
        return;
    }
    ADD_FAILURE() << "no listener";
  }
  // Exchanges hellos and proofs. What follows shows whether the other side accepted this rank.
  void prove_membership(const std::string& secret) {
    const Hello mine{1, 2, {7}};
    send_bytes(encode(mine));
    const auto theirs =
        decode_hello(receive_bytes(kFrameHeaderBytes + 32).substr(kFrameHeaderBytes));
    ASSERT_TRUE(theirs);
    (void)receive_bytes(kFrameHeaderBytes + 32);
    send_bytes(encode_proof(prove(secret, mine, *theirs)));
  }
  void send_bytes(std::string_view bytes) {
    EXPECT_EQ(write(socket_.descriptor(), bytes.data(), bytes.size()), ssize_t(bytes.size()));
  }
  std::string receive_bytes(size_t bytes) {
    std::string received(bytes, '\0');
    EXPECT_EQ(recv(socket_.descriptor(), received.data(), bytes, MSG_WAITALL), ssize_t(bytes));
    return received;
  }
  bool was_closed() {
    char byte;
    return recv(socket_.descriptor(), &byte, 1, 0) <= 0;
  }

 private:
  Socket socket_;
};

std::string text_of(const HeaderBytes& header) {
  return std::string(reinterpret_cast<const char*>(header.data()), header.size());
}

TEST(Garbage, AMemberThatSendsGarbageFailsTheGroupByName) {
  const struct {
    std::string bytes;
    Kind kind;
  } rows[] = {
      {std::string(100, 'x'), Kind::corrupt},
      {encode(Hello{1, 2, {}}), Kind::corrupt},
      {encode(Failed{9, "rank 9 is not"}), Kind::corrupt},
      {encode(Failed{1, "my disk is full"}), Kind::unavailable},
      {text_of(encode(FrameHeader{FrameKind::data, {0, 12345}, 1})) + "x", Kind::conflict},
      {text_of(encode(FrameHeader{FrameKind::data, {0, 0}, ~uint64_t{0}})), Kind::conflict},
      {text_of(encode(FrameHeader{FrameKind::goodbye, {}, 0})), Kind::unavailable},
      {text_of(encode(FrameHeader{FrameKind::waiting, {2, 0}, 0})), Kind::corrupt},
      {"TYR4", Kind::unavailable},  // then the peer is gone
  };
  for (const auto& row : rows) {
    const auto all = endpoints(2);
    std::thread honest([&] {
      auto group = join_over_tcp(options(all, 0, LinkKind::tcp));
      // Fails while the ranks join, or in the first operation.
      const Result<void> result = group ? (*group)->barrier() : Result<void>(group.error());
      ASSERT_FALSE(result);
      EXPECT_EQ(result.error().kind, row.kind) << result.error().message;
      EXPECT_NE(result.error().message.find("rank 1"), std::string::npos) << result.error().message;
    });
    {
      Impostor impostor(all[0]);
      impostor.prove_membership("group_test");
      impostor.send_bytes(row.bytes);
    }
    honest.join();
  }
}

TEST(Garbage, AnInvalidProofClosesOnlyItsConnection) {
  const auto all = endpoints(2);
  std::thread honest([&] {
    const auto group = join_over_tcp(options(all, 0, LinkKind::tcp));
    EXPECT_TRUE(group) << group.error().message;
  });
  Impostor impostor(all[0]);
  impostor.prove_membership("what the secret is not");
  EXPECT_TRUE(impostor.was_closed());
  EXPECT_TRUE(join_over_tcp(options(all, 1, LinkKind::tcp)));
  honest.join();
}

TEST(Rendezvous, RejectsInvalidOptions) {
  EXPECT_EQ(join_over_tcp({}).error().kind, Kind::invalid);
  EXPECT_EQ(join_over_tcp({.endpoints = {{"localhost", 1}}, .rank = 1}).error().kind,
            Kind::invalid);
  EXPECT_EQ(
      join_over_tcp(
          {.endpoints = {{"localhost", 1}}, .rank = 0, .shared_value = std::string(1000, 'x')})
          .error()
          .kind,
      Kind::invalid);
}

}  // namespace
}  // namespace trainyard::collectives
