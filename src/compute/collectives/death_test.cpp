// Kills a rank before each of its steps, in every plan. All other ranks must fail with its name,
// and none may wait forever.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <thread>

#include "collectives/testing/cases.hpp"
#include "collectives/testing/circle.hpp"
#include "collectives/testing/groups.hpp"
#include "collectives/testing/transports.hpp"
#include "collectives/transport/shm/shm_transport.hpp"

namespace trainyard::collectives {
namespace {

using namespace testing;

// -- in one thread: every plan, every rank, every step

// The parts of an operation that one rank executes in its buffers.
using Parts = std::vector<Circle::Part>;
using PartsOf = std::function<Parts(int rank, Bytes& buffer)>;

enum class Haste {
  ahead,
  behind
};  // whether the killed rank runs before the others, or only when none of them can make progress

// Executes an operation in which the killed rank dies after a number of steps, or after all steps;
// the other ranks then call a barrier.
class Accident {
 public:
  Accident(int ranks, int failed_rank, size_t steps, Haste haste)
      : failed_rank_(failed_rank),
        haste_(haste),
        workspaces_(size_t(ranks)),
        barriers_(size_t(ranks)),
        left_(steps) {
    for (auto& transport : connect_in_memory(ranks)) transports_.push_back(std::move(transport));
    auto& transport = transports_[size_t(failed_rank)];
    transport = std::make_unique<MortalTransport>(std::move(transport), [this] {
      died_early_ = died_early_ || left_ == 0;
      return left_ == 0 ? false : (--left_, true);
    });
  }

  // Returns true if the rank died before it had finished. `buffers` are by rank, and `expected` is
  // their content after an operation that succeeds.
  bool happen(const PartsOf& parts_of, std::vector<Bytes> buffers,
              const std::vector<Bytes>& expected) {
    const int ranks = int(transports_.size());
    for (int rank = 0; rank < ranks; ++rank) {
      Member member;
      member.parts = parts_of(rank, buffers[size_t(rank)]);
      member.operation_parts = member.parts.size();
      if (rank != failed_rank_) {
        Plan barrier = plan_of({Operation::barrier, Algorithm::tree, 0}, rank, ranks, 0, {});
        std::byte* const bytes = barriers_[size_t(rank)].data();
        member.parts.push_back(
            {barrier, {}, Buffers{bytes, 0, bytes, 0, Type::u8, Reduction::sum, 0}});
      }
      members_.push_back(std::move(member));
    }
    constexpr int iterations_max = 10'000;
    for (int iteration = 0; iteration < iterations_max; ++iteration) {
      if (haste_ == Haste::ahead) go(failed_rank_);
      bool moving = true;
      while (moving) {
        moving = false;
        for (int k = 0; k < ranks; ++k) {
          const int rank = iteration % 2 == 0 ? k : ranks - 1 - k;
          if (rank != failed_rank_) moving = go(rank) || moving;
        }
      }
      if (haste_ == Haste::behind) go(failed_rank_);
      if (std::all_of(members_.begin(), members_.end(),
                      [](const Member& each) { return each.ended(); })) {
        check(buffers, expected);
        return died_early_;
      }
    }
    ADD_FAILURE() << "a rank waits forever";
    return false;
  }

 private:
  struct Member {
    Parts parts;
    size_t operation_parts = 0;  // the rest is the barrier
    size_t position = 0;
    std::unique_ptr<collectives::Run> run;
    std::string error;
    bool ended() const { return !error.empty() || position == parts.size(); }
  };

  // Returns true if the rank reached its next part or its end.
  bool go(int rank) {
    Member& member = members_[size_t(rank)];
    if (member.ended()) return false;
    const Circle::Part& part = member.parts[member.position];
    const Tag tag{member.position < member.operation_parts ? 1u : 2u, 7};
    if (!member.run)
      member.run =
          std::make_unique<collectives::Run>(part.plan, part.team, tag, part.buffers,
                                             workspaces_[size_t(rank)], *transports_[size_t(rank)]);
    const auto advanced = member.run->advance();
    if (advanced && !*advanced) return false;
    if (!advanced) member.error = advanced.error().message;
    member.run.reset();
    if (advanced) ++member.position;
    // as at the end of a process
    if (rank == failed_rank_ && member.ended()) transports_[size_t(rank)].reset();
    return true;
  }

  void check(const std::vector<Bytes>& buffers, const std::vector<Bytes>& expected) const {
    const std::string verdict = "rank " + std::to_string(failed_rank_) + " exited";
    for (size_t rank = 0; rank < members_.size(); ++rank) {
      if (int(rank) == failed_rank_) continue;
      EXPECT_EQ(members_[rank].error, verdict) << "of rank " << rank;
      // Ranks that completed the operation have the right values.
      if (members_[rank].position >= members_[rank].operation_parts) {
        EXPECT_EQ(buffers[rank], expected[rank]) << "of rank " << rank;
      }
    }
  }

  const int failed_rank_;
  const Haste haste_;
  std::vector<Workspace> workspaces_;
  std::vector<std::array<std::byte, 2>> barriers_;
  std::vector<std::unique_ptr<Transport>> transports_;
  std::vector<Member> members_;
  size_t left_;
  bool died_early_ = false;
};

// Returns the number of steps before which a rank could die.
size_t kill_everyone_everywhere(int ranks, const PartsOf& parts_of,
                                const std::vector<Bytes>& buffers) {
  Circle circle(ranks);
  std::vector<Bytes> expected = buffers;
  circle.run([&](int rank) { return parts_of(rank, expected[size_t(rank)]); });
  size_t deaths = 0;
  for (const Haste haste : {Haste::ahead, Haste::behind}) {
    for (int failed_rank = 0; failed_rank < ranks; ++failed_rank) {
      size_t steps = 0;
      for (bool was_step = true; was_step; deaths += was_step) {
        Accident accident(ranks, failed_rank, steps, haste);
        was_step = accident.happen(parts_of, buffers, expected);
        if (::testing::Test::HasFailure()) {
          ADD_FAILURE() << "rank " << failed_rank << " died after " << steps << " steps, "
                        << (haste == Haste::ahead ? "ahead of" : "behind") << " the others";
          return deaths;
        }
        ++steps;
      }
    }
  }
  return deaths;
}

Buffers whole(Bytes& buffer, Type type = Type::f32) {
  return {buffer.data(), 0, buffer.data(), 0, type, Reduction::sum, 0};
}

TEST(Death, AllRanksNameTheOneThatDiesBeforeAnyStepOfAPlan) {
  size_t deaths = 0;
  for (const int ranks : {2, 3, 4, 5, 8}) {
    const size_t elements = size_t(ranks) * 2 + 3;
    const auto blocks = uneven_blocks(ranks, elements);
    std::vector<Bytes> scratch(size_t(ranks), Bytes(2));  // the bytes of a barrier have no meaning
    for (const Case& one : all_cases()) {
      const PartsOf parts_of = [&](int rank, Bytes& buffer) -> Parts {
        const bool barrier = one.operation == Operation::barrier;
        return {{plan_of(one, rank, ranks, barrier ? 0 : elements, blocks),
                 {},
                 barrier ? whole(scratch[size_t(rank)], Type::u8) : whole(buffer)}};
      };
      deaths +=
          kill_everyone_everywhere(ranks, parts_of, awkward_inputs(Type::f32, ranks, elements));
      if (HasFailure()) FAIL() << name_of(one, ranks, elements);
    }
  }
  EXPECT_GT(deaths, 10'000u) << "otherwise this test has little value";
}

TEST(Death, AllRanksNameTheOneThatDiesBeforeAnyStepOfABlockExchange) {
  for (const int ranks : {2, 3, 5, 8}) {
    // The input is the first half of the buffer, the output the second half.
    std::vector<Range> blocks;
    for (int rank = 0; rank < ranks; ++rank)
      blocks.push_back({size_t(rank) * 2, size_t(rank) * 2 + 2});
    const size_t elements = size_t(ranks) * 2;
    const PartsOf parts_of = [&](int rank, Bytes& buffer) -> Parts {
      Plan plan = plan_of({Operation::all_to_all, Algorithm::direct, 0}, rank, ranks, elements, {});
      plan.blocks = plan.received_blocks = blocks;
      Buffers buffers = whole(buffer);
      buffers.output += elements * sizeof(float);
      return {{plan, {}, buffers}};
    };
    EXPECT_GT(
        kill_everyone_everywhere(ranks, parts_of, awkward_inputs(Type::f32, ranks, 2 * elements)),
        0u);
    if (HasFailure()) FAIL() << ranks << " ranks";
  }
}

TEST(Death, AllRanksNameTheOneThatDiesBeforeAnyStepOfAHierarchicalPlan) {
  for (const std::vector<int>& hosts :
       {std::vector<int>{0, 0, 1, 1}, {0, 1, 0, 1, 0, 1}, {0, 0, 1}, {0, 0, 0, 1, 1, 2}}) {
    const int ranks = int(hosts.size());
    const size_t elements = 19;
    for (const Algorithm between : {Algorithm::ring, Algorithm::halving_doubling}) {
      std::vector<std::vector<plan::Stage>> stages;
      for (int rank = 0; rank < ranks; ++rank)
        stages.push_back(plan::hierarchical(rank, hosts, elements, 5, between, 4));
      const PartsOf parts_of = [&](int rank, Bytes& buffer) {
        Parts parts;
        for (const plan::Stage& stage : stages[size_t(rank)]) {
          Buffers buffers = whole(buffer);
          buffers.output += stage.begin * sizeof(float);
          buffers.input = buffers.output;
          parts.push_back({stage.plan, stage.team, buffers});
        }
        return parts;
      };
      EXPECT_GT(
          kill_everyone_everywhere(ranks, parts_of, awkward_inputs(Type::f32, ranks, elements)),
          0u);
      if (HasFailure()) FAIL() << ranks << " ranks, " << to_string(between) << " between the hosts";
    }
  }
}

// -- processes that are killed, over sockets and shared memory

enum class Memory { ordinary, registered };

struct Scene {
  std::string plan;
  LinkKind links;
  Memory memory;
};

constexpr int kRanks = 4;
constexpr size_t kElements = 30'000;  // several chunks for some plans, one for others

Result<std::unique_ptr<Group>> join(const Scene& scene, const TcpOptions& options,
                                    std::function<bool()> lives = {}) {
  std::unique_ptr<Transport> transport;
  auto tcp = TRY(connect_tcp(options));
  if (scene.links == LinkKind::shared) {
    transport = TRY(ShmTransport::make(std::move(tcp), std::make_shared<RegisteredMemory>()));
  } else {
    transport = std::move(tcp);
  }
  if (lives) transport = std::make_unique<MortalTransport>(std::move(transport), std::move(lives));
  if (std::string_view(scene.plan) == "hierarchical")
    transport =
        std::make_unique<TransportOnHosts>(std::move(transport), std::vector<int>{0, 0, 1, 1});
  GroupOptions group = options.group;
  group.plans = "allreduce=" + std::string(scene.plan) + "/32K:0-";
  return Group::make(std::move(transport), group);
}

Result<void> work(Group& group, Memory memory) {
  std::vector<float> ordinary(kElements, 1.0f);
  std::span<float> values = ordinary;
  if (memory == Memory::registered) {
    const auto registered = TRY(group.allocate(kElements * sizeof(float)));
    values = {reinterpret_cast<float*>(registered.data()), kElements};
    std::fill(values.begin(), values.end(), 1.0f);
  }
  auto result = group.run(calls::allreduce(buffer_view(values), {.name = "layer1"}));
  if (result) result = group.barrier();
  if (memory == Memory::registered) group.free(std::as_writable_bytes(values));
  return result;
}

// Kills the process of a rank before its step number `steps`. Returns false if the rank has fewer
// steps.
bool kill_a_process(const Scene& scene, int failed_rank, size_t steps) {
  const auto all = endpoints(kRanks);
  auto* const survived = static_cast<std::atomic<bool>*>(::mmap(nullptr, sizeof(std::atomic<bool>),
                                                                PROT_READ | PROT_WRITE,
                                                                MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const pid_t child = fork();
  if (child == 0) {
    size_t left = steps;
    bool mortal = false;  // deaths while others join have another message (group_failure_test.cpp)
    auto group = join(scene, options(all, failed_rank, scene.links),
                      [&] { return !mortal || left-- > 0 || raise(SIGKILL); });
    if (!group || !(*group)->barrier()) _exit(1);
    mortal = true;
    std::vector<float> values(kElements, 1.0f);
    if (!work(**group, scene.memory)) _exit(2);
    *survived = true;
    raise(SIGKILL);
  }
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank == failed_rank) continue;
    threads.emplace_back([&, rank] {
      auto group = join(scene, options(all, rank, scene.links));
      ASSERT_TRUE(group) << group.error().message;
      Result<void> result = (*group)->barrier();
      for (int operation = 0; operation < 3 && result; ++operation)
        result = work(**group, scene.memory);
      ASSERT_FALSE(result);
      const std::string& why = result.error().message;
      EXPECT_EQ(result.error().kind, Kind::unavailable) << why;
      EXPECT_TRUE(why.ends_with(" during allreduce of 'layer1'") ||
                  why.ends_with(" during barrier"))
          << why;
      EXPECT_NE(why.find("rank " + std::to_string(failed_rank) + " ("), std::string::npos) << why;
      EXPECT_EQ(why.find("nothing from"), std::string::npos)
          << "the death is detected, without a timeout: " << why;
    });
  }
  for (auto& thread : threads) thread.join();
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  const bool died_early = !*survived;
  ::munmap(survived, sizeof(std::atomic<bool>));
  return died_early;
}

TEST(Death, AllRanksNameTheProcessKilledBeforeAnyStep) {
  for (const auto& [links, memory] : {std::pair{LinkKind::tcp, Memory::ordinary},
                                      {LinkKind::shared, Memory::ordinary},
                                      {LinkKind::shared, Memory::registered}}) {
    auto plans = allreduce_plans();
    plans.emplace_back("hierarchical");
    for (const std::string& plan : plans) {
      const Scene scene{plan, links, memory};
      // Each rank is killed in turn, at every step of the plan, until none of them has such a step.
      int survivors = 0;
      size_t steps = 0;
      for (; survivors < kRanks; ++steps) {
        const int failed_rank = int(steps % kRanks);
        survivors = kill_a_process(scene, failed_rank, steps) ? 0 : survivors + 1;
        if (HasFailure())
          FAIL() << plan << ", rank " << failed_rank << " killed after " << steps << " steps";
      }
      EXPECT_GT(steps, 8u) << plan;
    }
  }
}

}  // namespace
}  // namespace trainyard::collectives
