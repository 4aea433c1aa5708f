// Tests whole negotiators. Each rank has a thread, which submits in its own order.
#include "gradients/fusion/negotiator.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <numeric>

#include "base/random.hpp"
#include "base/thread_safety.hpp"
#include "collectives/testing/groups.hpp"
#include "gradients/testing/negotiators.hpp"

namespace trainyard::gradients {
namespace {

using collectives::testing::endpoints;
using collectives::testing::LinkKind;
using testing::expect_done;
using testing::expect_failed;
using testing::reduce_request;
using testing::run_negotiators;

TEST(Negotiator, SumsTensorsInAnyOrderOfSubmission) {
  for (const int ranks : {1, 2, 3, 5}) {
    run_negotiators(ranks, [&](Negotiator& negotiator) {
      SeededRandom random(uint64_t(negotiator.rank()) + 7);
      constexpr size_t tensors = 40;
      for (int step = 0; step < 5; ++step) {
        std::vector<std::vector<float>> values;
        for (size_t i = 0; i < tensors; ++i)
          values.emplace_back(i * 13, float(negotiator.rank() + 1) * float(i + 1));
        std::vector<size_t> order(tensors);
        std::iota(order.begin(), order.end(), size_t{0});
        for (size_t i = tensors; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
        std::vector<Handle> handles;
        for (const size_t i : order)
          handles.push_back(
              negotiator.submit(reduce_request("tensor " + std::to_string(i), values[i])));
        for (Handle& handle : handles) expect_done(handle);
        const float sum = float(ranks * (ranks + 1) / 2);
        for (size_t i = 0; i < tensors; ++i)
          EXPECT_EQ(values[i], std::vector<float>(i * 13, sum * float(i + 1)));
      }
      const auto counters = negotiator.counters();
      EXPECT_EQ(counters.tensors, 5 * tensors);
      EXPECT_EQ(counters.cached_tensors, 4 * tensors);
    });
  }
}

// Runs over shared memory, where the fusion buffer is registered, and over TCP.
TEST(Negotiator, SeveralThreadsMaySubmitAtOnce) {
  constexpr int ranks = 3, threads_count = 4, steps = 10, tensors = 6;
  for (const LinkKind links : {LinkKind::shared, LinkKind::tcp}) {
    collectives::testing::run_owning_ranks(
        links, ranks, [&](std::unique_ptr<collectives::Group> group) {
          auto negotiator = Negotiator::start(std::move(group));
          ASSERT_TRUE(negotiator) << negotiator.error().message;
          std::atomic<int> completed = 0;
          std::vector<std::thread> threads;
          for (int thread = 0; thread < threads_count; ++thread) {
            threads.emplace_back([&, thread] {
              for (int step = 0; step < steps; ++step) {
                std::vector<std::vector<float>> values(
                    tensors, std::vector<float>(3000, float(step + thread)));
                std::vector<Handle> handles;
                for (size_t i = 0; i < tensors; ++i) {
                  Request request =
                      reduce_request(std::to_string(thread) + " " + std::to_string(i), values[i]);
                  request.on_done = [&completed](const Result<Outcome>& outcome) {
                    completed += outcome ? 1 : 0;
                  };
                  handles.push_back((*negotiator)->submit(std::move(request)));
                }
                for (Handle& handle : handles) expect_done(handle);
                EXPECT_EQ(values, std::vector(tensors, std::vector<float>(
                                                           3000, float(ranks * (step + thread)))));
              }
            });
          }
          for (auto& thread : threads) thread.join();
          EXPECT_EQ(completed, threads_count * steps * tensors);
        });
  }
}

TEST(Negotiator, FusesLargeTensorsInSharedMemory) {
  constexpr size_t elements = 700'000;
  for (const LinkKind links : {LinkKind::shared, LinkKind::tcp}) {
    collectives::testing::run_owning_ranks(
        links, 3, [&](std::unique_ptr<collectives::Group> group) {
          auto negotiator =
              Negotiator::start(std::move(group), {.fused_tensor_bytes_max = 4 << 20});
          ASSERT_TRUE(negotiator) << negotiator.error().message;
          for (int step = 0; step < 3; ++step) {
            std::vector<float> first(elements), second(elements + 1);
            for (size_t i = 0; i < elements; ++i)
              first[i] = second[i] = float(i % 1000) + float((*negotiator)->rank());
            auto handles = (*negotiator)
                               ->submit_together({reduce_request("first", first),
                                                  reduce_request("second", second)});
            for (Handle& handle : handles) expect_done(handle);
            for (size_t i = 0; i < elements; ++i) {
              ASSERT_EQ(first[i], 3 * float(i % 1000) + 3) << i;
              ASSERT_EQ(second[i], first[i]) << i;
            }
          }
        });
  }
}

void play_every_operation(Negotiator& negotiator) {
  const int ranks = negotiator.size();
  const int rank = negotiator.rank();
  const auto members = size_t(ranks);
  // Rank r contributes r + 1 rows of two; the output is allocated when the sizes are known.
  std::vector<int32_t> rows(2 * size_t(rank + 1), rank);
  std::vector<int32_t> gathered;
  Request gather{.name = "gather", .operation = Operation::all_gather};
  gather.input = collectives::buffer_view(std::span(rows));
  gather.shape = {size_t(rank + 1), 2};
  gather.allocate = [&](size_t elements, const Outcome&) {
    gathered.resize(elements);
    return gathered.data();
  };

  std::vector<double> parameters(5, rank == ranks - 1 ? 3.5 : 0);
  Request broadcast{.name = "broadcast", .operation = Operation::broadcast};
  broadcast.output = collectives::buffer_view(std::span(parameters));
  broadcast.root = ranks - 1;

  // There is one row more than ranks: rank 0 gets two.
  std::vector<float> whole(3 * (members + 1), 2);
  std::vector<float> own(rank == 0 ? 6 : 3);
  Request scatter{.name = "scatter", .operation = Operation::reduce_scatter};
  scatter.input = collectives::buffer_view(std::span(whole));
  scatter.output = collectives::buffer_view(std::span(own));
  scatter.shape = {members + 1, 3};
  scatter.postscale = 0.5;

  // Rank r sends p rows with the value r to rank p.
  std::vector<int64_t> mine(members * (members - 1) / 2, rank);
  std::vector<int64_t> theirs;
  Request exchange{.name = "exchange", .operation = Operation::all_to_all};
  exchange.input = collectives::buffer_view(std::span(mine));
  exchange.allocate = [&](size_t elements, const Outcome&) {
    theirs.resize(elements);
    return theirs.data();
  };
  for (size_t peer = 0; peer < members; ++peer) exchange.splits.push_back(peer);

  std::vector<Handle> handles{
      negotiator.submit(gather), negotiator.submit(broadcast), negotiator.submit(scatter),
      negotiator.submit(exchange),
      negotiator.submit({.name = "barrier", .operation = Operation::barrier})};
  for (Handle& handle : handles) expect_done(handle);

  std::vector<int32_t> all;
  for (int peer = 0; peer < ranks; ++peer) all.insert(all.end(), 2 * size_t(peer + 1), peer);
  EXPECT_EQ(gathered, all);
  EXPECT_EQ(handles[0].wait()->rows.back(), uint64_t(ranks));
  EXPECT_EQ(parameters, std::vector<double>(5, 3.5));
  EXPECT_EQ(own, std::vector<float>(own.size(), float(ranks)));
  std::vector<int64_t> expected;
  for (int peer = 0; peer < ranks; ++peer) expected.insert(expected.end(), size_t(rank), peer);
  EXPECT_EQ(theirs, expected);
}

TEST(Negotiator, SupportsEveryOperation) {
  for (const int ranks : {1, 2, 3, 5}) {
    run_negotiators(ranks, [](Negotiator& negotiator) {
      for (int step = 0; step < 3; ++step) play_every_operation(negotiator);
    });
  }
}

TEST(Negotiator, NamesTheDifferenceBetweenRequestsOfOneName) {
  run_negotiators(3, [](Negotiator& negotiator) {
    std::vector<float> values(negotiator.rank() == 1 ? 7 : 6, 1.0f), fine(3, 1.0f);
    Handle wrong = negotiator.submit(reduce_request("layer1.weight", values));
    Handle right = negotiator.submit(reduce_request("layer2.weight", fine));
    expect_failed(
        wrong,
        "layer1.weight: the ranks do not agree: shape is [6] on ranks 0 and 2, [7] on rank 1");
    expect_done(right);
    EXPECT_EQ(fine, std::vector<float>(3, 3.0f));
    // The name can be submitted again. A shape that changes on all ranks is a new tensor.
    for (const size_t size : {6, 6, 9, 9, 6}) {
      values.assign(size, 1.0f);
      Handle again = negotiator.submit(reduce_request("layer1.weight", values));
      expect_done(again);
      EXPECT_EQ(values, std::vector<float>(size, 3.0f));
    }
    // A single rank changes the shape of a tensor that all ranks know.
    values.assign(negotiator.rank() == 2 ? 5 : 6, 1.0f);
    Handle changed = negotiator.submit(reduce_request("layer1.weight", values));
    expect_failed(changed, "[5] on rank 2");
  });
}

TEST(Negotiator, RejectsANameThatIsOutstanding) {
  run_negotiators(2, [](Negotiator& negotiator) {
    std::vector<float> first(4, 1.0f), second(4, 1.0f);
    if (negotiator.rank() == 1) {
      // The other rank submits both requests first; otherwise the second name would be a new one
      // each time.
      EXPECT_TRUE(negotiator.submit({.name = "go", .operation = Operation::barrier}).wait());
    }
    Handle one = negotiator.submit(reduce_request("twice", first));
    if (negotiator.rank() == 0) {
      Handle two = negotiator.submit(reduce_request("twice", second));
      EXPECT_TRUE(two.refused() && two.done()) << "before any other rank receives it";
      expect_failed(two, "twice: a tensor of this name was submitted already");
      // When a group contains a name twice, or an outstanding name, none of it is submitted and no
      // name is taken.
      for (const char* name : {"other", "twice"}) {
        for (Handle& each : negotiator.submit_together(
                 {reduce_request("other", second), reduce_request(name, second)})) {
          EXPECT_TRUE(each.refused());
          expect_failed(each, std::string(name) + ": a tensor of this name");
        }
      }
      EXPECT_TRUE(negotiator.submit({.name = "go", .operation = Operation::barrier}).wait());
    }
    EXPECT_FALSE(one.refused());
    expect_done(one);
    for (const char* name : {"twice", "other"}) {
      Handle again = negotiator.submit(reduce_request(name, first));
      expect_done(again);
    }
  });
}

TEST(Negotiator, FailsInvalidRequestsAtOnce) {
  run_negotiators(1, [](Negotiator& negotiator) {
    std::vector<float> values(4, 1.0f), others(3);
    int completed = 0;
    const auto count = [&](const Result<Outcome>& outcome) { completed += outcome ? 100 : 1; };
    Request request = reduce_request("", values);
    request.on_done = count;
    Handle handle = negotiator.submit(request);
    expect_failed(handle, "the request has no name");
    request.name = "x";
    request.shape = {3, 2};
    handle = negotiator.submit(request);
    expect_failed(handle, "does not match the buffer's 4 elements");
    request.shape.clear();
    request.output = collectives::buffer_view(std::span(others));
    handle = negotiator.submit(request);
    expect_failed(handle, "differ in size");
    request.output = request.input.data
                         ? collectives::BufferView{values.data(), 4, collectives::Type::f32}
                         : collectives::BufferView{};
    EXPECT_TRUE(handle.refused());
    request.set = 4;
    handle = negotiator.submit(request);
    expect_failed(handle, "unknown process set 4");
    EXPECT_EQ(completed, 4);
    EXPECT_FALSE(negotiator.add_set({0, 3}));
    EXPECT_FALSE(negotiator.remove_set(0));
  });
}

TEST(Negotiator, CarriesOutAGroupWhenAllMembersAreSubmitted) {
  run_negotiators(2, [](Negotiator& negotiator) {
    for (int step = 0; step < 3; ++step) {
      std::vector<std::vector<float>> values(3, std::vector<float>(4, 1.0f));
      std::vector<Request> requests;
      for (size_t i = 0; i < 3; ++i)
        requests.push_back(reduce_request("member " + std::to_string(i), values[i],
                                          collectives::Reduction::average));
      const auto before = negotiator.counters().collectives;
      auto handles = negotiator.submit_together(std::move(requests));
      for (Handle& handle : handles) expect_done(handle);
      EXPECT_EQ(values, std::vector(3, std::vector<float>(4, 1.0f)));
      EXPECT_EQ(negotiator.counters().collectives, before + 1);
    }
    // One member that differs fails all.
    std::vector<float> first(4), second(negotiator.rank() == 0 ? 2 : 3);
    auto handles = negotiator.submit_together(
        {reduce_request("member 0", first), reduce_request("member 1", second)});
    for (Handle& handle : handles)
      expect_failed(handle, "group 'member 0': member 1: the ranks do not agree");
    // So does a member that another rank does not know.
    auto unlike =
        negotiator.submit_together({reduce_request("member 0", first),
                                    reduce_request(negotiator.rank() == 0 ? "a" : "b", first)});
    for (Handle& handle : unlike) expect_failed(handle, "in it");
  });
}

TEST(Negotiator, SetsOfRanksAreIndependent) {
  run_negotiators(4, [](Negotiator& negotiator) {
    const int rank = negotiator.rank();
    const auto odd = negotiator.add_set({3, 1});
    const auto even = negotiator.add_set({0, 2});
    ASSERT_TRUE(odd && even);
    EXPECT_EQ(negotiator.members_of(*odd), (std::vector<int>{1, 3}));
    const int mine = rank % 2 == 1 ? *odd : *even;
    for (int step = 0; step < 3; ++step) {
      std::vector<float> values(10, float(rank)), all(10, float(rank)), root(3, float(rank));
      Request request = reduce_request("values", values);
      request.set = mine;
      Request broadcast{.name = "root", .operation = Operation::broadcast};
      broadcast.output = collectives::buffer_view(std::span(root));
      broadcast.root = 2 + rank % 2;
      broadcast.set = mine;
      std::vector<Handle> handles{negotiator.submit(request),
                                  negotiator.submit(reduce_request("values", all)),
                                  negotiator.submit(broadcast)};
      for (Handle& handle : handles) expect_done(handle);
      EXPECT_EQ(values, std::vector<float>(10, rank % 2 == 1 ? 4.0f : 2.0f));
      EXPECT_EQ(all, std::vector<float>(10, 6.0f));
      EXPECT_EQ(root, std::vector<float>(3, float(2 + rank % 2)));
    }
    Request intruder{.name = "barrier", .operation = Operation::barrier};
    intruder.set = rank % 2 == 1 ? *even : *odd;
    Handle refused = negotiator.submit(intruder);
    expect_failed(refused, "does not belong to process set");
    EXPECT_TRUE(negotiator.remove_set(*odd));
    EXPECT_TRUE(negotiator.members_of(*odd).empty());
  });
}

TEST(Negotiator, ReportsAndFailsATensorThatSomeRanksDoNotSubmit) {
  Mutex mutex;
  std::string reports;
  Options options;
  options.stall_report_after = 30ms;
  options.stall_fail_after = 120ms;
  options.on_stall = [&](const std::string& report) {
    const MutexLock lock(mutex);
    reports += report;
  };
  std::atomic<int> given_up = 0;
  run_negotiators(
      3,
      [&](Negotiator& negotiator) {
        std::vector<float> values(4, 1.0f);
        if (negotiator.rank() != 1) {
          Handle handle = negotiator.submit(reduce_request("layer1.weight", values));
          const auto outcome = handle.wait();
          ASSERT_FALSE(outcome);
          EXPECT_EQ(outcome.error().kind, Kind::unavailable);
          EXPECT_NE(outcome.error().message.find("layer1.weight: waits for rank 1"),
                    std::string::npos)
              << outcome.error().message;
        }
        // Nothing else fails. Rank 1 waits until the others have given up, or its barrier would
        // stall too.
        ++given_up;
        for (int i = 0; i < 3000 && given_up < 3; ++i) std::this_thread::sleep_for(10ms);
        EXPECT_TRUE(negotiator.submit({.name = "barrier", .operation = Operation::barrier}).wait());
      },
      options);
  EXPECT_NE(reports.find("layer1.weight waits for rank 1"), std::string::npos) << reports;
  EXPECT_NE(reports.find("ranks 0 and 2 submitted it"), std::string::npos) << reports;
}

TEST(Negotiator, EndsOnAllRanksWhenOneStops) {
  run_negotiators(3, [](Negotiator& negotiator) {
    std::vector<float> values(4, 1.0f);
    if (negotiator.rank() == 2) return negotiator.stop();
    Handle handle = negotiator.submit(reduce_request("never", values));
    const auto outcome = handle.wait();
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().kind, Kind::cancelled);
    EXPECT_NE(outcome.error().message.find("allreduce of never: rank 2 stopped"), std::string::npos)
        << outcome.error().message;
    Handle late = negotiator.submit(reduce_request("later", values));
    expect_failed(late, "rank 2 stopped");
    EXPECT_TRUE(negotiator.outstanding().empty());
  });
}

TEST(Negotiator, FusesAdaptiveSumsButCombinesEachTensorSeparately) {
  run_negotiators(2, [](Negotiator& negotiator) {
    const bool first = negotiator.rank() == 0;
    std::vector<float> orthogonal{first ? 1.0f : 0.0f, first ? 0.0f : 2.0f}, equal(3, 4.0f);
    std::vector<Request> requests{reduce_request("orthogonal", orthogonal),
                                  reduce_request("equal", equal)};
    for (Request& request : requests) request.operation = Operation::adasum;
    auto handles = negotiator.submit_together(requests);
    for (Handle& handle : handles) expect_done(handle);
    EXPECT_EQ(orthogonal, (std::vector<float>{1, 2}));
    EXPECT_EQ(equal, std::vector<float>(3, 4.0f));
    EXPECT_EQ(negotiator.counters().collectives, 1u);
  });
}

// The killed rank is a process, so that it dies between two cycles or within one, without a
// message.
TEST(Negotiator, FailsOutstandingTensorsWithTheNameOfAKilledRank) {
  constexpr int ranks = 3;
  constexpr int failed_rank = 1;
  for (const LinkKind links : {LinkKind::tcp, LinkKind::shared}) {
    const auto all = endpoints(ranks);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto group =
          collectives::join_over_tcp(collectives::testing::options(all, failed_rank, links));
      if (!group) _exit(1);
      auto negotiator = Negotiator::start(std::move(*group));
      if (!negotiator) _exit(2);
      std::vector<float> values(100'000, 1.0f);
      if (!(*negotiator)->submit(reduce_request("first", values)).wait()) _exit(3);
      raise(SIGKILL);
    }
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      if (rank == failed_rank) continue;
      threads.emplace_back([&, rank] {
        auto group = collectives::join_over_tcp(collectives::testing::options(all, rank, links));
        ASSERT_TRUE(group) << group.error().message;
        auto negotiator = Negotiator::start(std::move(*group));
        ASSERT_TRUE(negotiator) << negotiator.error().message;
        std::vector<float> first(100'000, 1.0f), second(50, 1.0f), third(50, 1.0f);
        std::vector<Handle> handles;
        handles.push_back((*negotiator)->submit(reduce_request("first", first)));
        handles.push_back((*negotiator)->submit(reduce_request("layer2.weight", second)));
        handles.push_back((*negotiator)->submit(reduce_request("layer3.weight", third)));
        for (const char* name : {"layer2.weight", "layer3.weight"}) {
          const auto outcome = handles[name == std::string("layer2.weight") ? 1 : 2].wait();
          ASSERT_FALSE(outcome);
          EXPECT_EQ(outcome.error().kind, Kind::unavailable);
          EXPECT_NE(outcome.error().message.find(name), std::string::npos)
              << outcome.error().message;
          EXPECT_NE(outcome.error().message.find("rank 1"), std::string::npos)
              << outcome.error().message;
        }
        (void)handles[0].wait();  // may succeed, if the others finish it before they notice the end
        Handle late = (*negotiator)->submit(reduce_request("late", second));
        expect_failed(late, "rank 1");
      });
    }
    for (auto& thread : threads) thread.join();
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  }
}

TEST(Negotiator, CompressedSumsEqualSumsOfTheNarrowTypes) {
  for (const auto kind : {Compression::Kind::f16, Compression::Kind::bf16}) {
    run_negotiators(2, [&](Negotiator& negotiator) {
      std::vector<float> values{1.0f, 1.0f / 3, -2.5f, 1e-3f}, other(5, 0.25f);
      std::vector<std::vector<float>> sources{values, other};
      std::vector<Handle> handles;
      std::vector<Request> requests;
      for (auto* each : {&values, &other}) {
        Request request = reduce_request("t" + std::to_string(each->size()), *each,
                                         collectives::Reduction::average);
        request.compression.kind = kind;
        requests.push_back(request);
      }
      handles = negotiator.submit_together(requests);
      for (Handle& handle : handles) expect_done(handle);
      const float precision = kind == Compression::Kind::f16 ? 0x1p-11f : 0x1p-8f;
      for (size_t i = 0; i < values.size(); ++i)
        EXPECT_NEAR(values[i], sources[0][i], std::abs(sources[0][i]) * precision);
      EXPECT_EQ(other, sources[1]);
    });
  }
}

TEST(Negotiator, StoresErrorsOfCompressedTensorsByName) {
  for (const Compression compression :
       {Compression{Compression::Kind::int8}, {Compression::Kind::low_rank, 2}}) {
    run_negotiators(3, [&](Negotiator& negotiator) {
      std::vector<double> given(96), got(96);
      for (int step = 0; step < 20; ++step) {
        std::vector<float> matrix(96), vector(33, float(step));
        for (size_t i = 0; i < matrix.size(); ++i)
          matrix[i] = float((i * 7 + size_t(step)) % 11) - 5 + float(negotiator.rank());
        for (size_t i = 0; i < matrix.size(); ++i)
          given[i] += double(matrix[i]) - negotiator.rank() + 1;
        Request first = reduce_request("matrix", matrix, collectives::Reduction::average),
                second = reduce_request("vector", vector);
        first.shape = {12, 8};
        first.compression = second.compression = compression;
        std::vector<Handle> handles{negotiator.submit(first), negotiator.submit(second)};
        for (Handle& handle : handles) expect_done(handle);
        for (size_t i = 0; i < matrix.size(); ++i) got[i] += double(matrix[i]);
        for (const float value : vector)
          EXPECT_NEAR(value, 3.0f * float(step), 0.05f * float(step) + 0.1f);
      }
      // The error of int8 is a 127th of a value of 6; low_rank sends 2 of the 8 directions of the
      // matrix at a time.
      const double owed = compression.kind == Compression::Kind::int8 ? 0.1 : 6.0 * 8;
      for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], given[i], owed);
    });
  }
}

TEST(Negotiator, ReportsTheEventsOfATensor) {
  Mutex mutex;
  std::vector<Event> events;
  Options options;
  options.on_event = [&](const Event& event) {
    const MutexLock lock(mutex);
    events.push_back(event);
  };
  run_negotiators(
      1,
      [](Negotiator& negotiator) {
        std::vector<float> first(3), second(4);
        auto handles = negotiator.submit_together(
            {reduce_request("first", first), reduce_request("second", second)});
        for (Handle& handle : handles) expect_done(handle);
      },
      options);
  std::vector<std::pair<Phase, std::string>> seen;
  for (const Event& event : events) {
    seen.emplace_back(event.phase, event.name);
    EXPECT_LE(event.begin, event.end);
  }
  const std::vector<std::pair<Phase, std::string>> expected{
      {Phase::negotiate, "first"}, {Phase::negotiate, "second"},  {Phase::copy_in, "first"},
      {Phase::copy_in, "second"},  {Phase::communicate, "first"}, {Phase::communicate, "second"},
      {Phase::copy_out, "first"},  {Phase::copy_out, "second"},   {Phase::cycle, ""}};
  EXPECT_EQ(seen, expected);
}

TEST(Negotiator, TunedSettingsReachAllRanks) {
  Options options;
  options.autotune = true;
  options.settings = {.fusion_bytes = 1 << 20, .cycle_microseconds = 300};
  run_negotiators(
      2,
      [&](Negotiator& negotiator) {
        const Settings first = negotiator.settings();
        EXPECT_EQ(first, options.settings);
        EXPECT_EQ(negotiator.tuning(), negotiator.rank() == 0);
        // After a window the given settings become the nearest powers of two.
        constexpr int steps_max = 100'000;
        std::vector<float> values(1000, 1.0f);
        for (int step = 0; step < steps_max; ++step) {
          Handle handle =
              negotiator.submit(reduce_request("values", values, collectives::Reduction::average));
          expect_done(handle);
          float changed = negotiator.settings() == first ? 0 : 1;
          ASSERT_TRUE(negotiator
                          .submit([&] {
                            Request request = reduce_request("changed", values);
                            request.input = request.output = {&changed, 1, collectives::Type::f32};
                            return request;
                          }())
                          .wait());
          if (changed == 2) break;
        }
        EXPECT_EQ(negotiator.settings(), (Settings{1 << 20, 250}));
      },
      options);
}

}  // namespace
}  // namespace trainyard::gradients
