// Tests members that join and leave over real connections.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <future>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "collectives/transport/tcp/frame.hpp"
#include "membership/member.hpp"
#include "membership/service.hpp"
#include "membership/wire.hpp"

namespace trainyard::membership {
namespace {

std::unique_ptr<Service> serve(Limits limits) {
  auto service = Service::start({{"127.0.0.1", 0}, "open sesame", limits});
  EXPECT_TRUE(service);
  return std::move(service).value();
}

Result<std::unique_ptr<Member>> member_of(const Service& service, const std::string& name,
                                          const std::string& secret = "open sesame") {
  return Member::connect(
      {.service = {"127.0.0.1", service.port()}, .secret = secret, .name = name, .host = "here"});
}

// Simulates a training that counts the steps of all ranks, and returns to the last commit when a
// step fails.
struct Trainer {
  std::vector<int> sizes;           // the number of ranks in each generation
  std::vector<std::string> errors;  // why the generations ended
  float total = 0;                  // committed
};

// Trains until `steps` are committed; disconnects after `dies_after` steps of its own.
Trainer train(const Service& service, const std::string& name, int steps, int dies_after = -1) {
  Trainer trainer;
  auto member = member_of(service, name);
  if (!member) return trainer;
  std::string complaint;
  for (int own = 0;;) {
    const auto assignment = (*member)->next(complaint, 1min);
    if (!assignment) {
      trainer.errors.push_back(assignment.error().message);
      return trainer;
    }
    complaint.clear();
    auto group = (*member)->join({.peer_timeout = 20s, .group = {.deterministic = true}});
    if (!group) {
      complaint = group.error().message;
      continue;
    }
    trainer.sizes.push_back((*group)->size());
    // Sends the state to new members.
    if (auto sent = (*group)->broadcast(std::as_writable_bytes(std::span(&trainer.total, 1)), 0);
        !sent) {
      complaint = sent.error().message;
      continue;
    }
    for (;;) {
      if (int(trainer.total) >= steps) {
        (*member)->done();
        return trainer;
      }
      if (own++ == dies_after) return trainer;
      float step[] = {1, (*member)->changed().added ? 1.0f : 0.0f};
      if (auto reduced = (*group)->allreduce(std::span(step), collectives::Reduction::maximum);
          !reduced) {
        complaint = reduced.error().message;
        trainer.errors.push_back(complaint);
        break;
      }
      trainer.total += step[0];
      if (step[1] > 0) break;  // all ranks see it in the same step
      std::this_thread::sleep_for(1ms);
    }
  }
}

TEST(Elastic, SurvivorsContinueFromTheLastCommitAndANewMemberJoins) {
  const auto service = serve({.ranks_min = 2, .ranks_max = 3});
  for (const char* name : {"a", "b", "c"}) service->expect(name);
  auto a = std::async([&] { return train(*service, "a", 400); });
  auto b = std::async([&] { return train(*service, "b", 400); });
  auto c = std::async([&] { return train(*service, "c", 400, 20); });
  c.get();
  auto d = std::async([&] { return train(*service, "d", 400); });
  const Trainer first = a.get(), second = b.get(), last = d.get();
  EXPECT_EQ(first.total, 400);
  EXPECT_EQ(second.total, 400);
  EXPECT_EQ(last.total, 400) << "it got the state of the others";
  EXPECT_EQ(first.sizes.front(), 3);
  EXPECT_EQ(first.sizes.back(), 3) << "d has joined";
  ASSERT_FALSE(first.errors.empty());
  EXPECT_NE(first.errors.front().find("rank"), std::string::npos) << first.errors.front();
  bool named = false;
  while (const auto news = service->next(0ms))
    named |= news->kind == News::Kind::lost && news->name == "c";
  EXPECT_TRUE(named);
}

TEST(Elastic, FewerMembersThanTheMinimumWait) {
  const auto service = serve({.ranks_min = 2, .ranks_max = 2});
  auto a = std::async([&] { return train(*service, "a", 100); });
  auto b = std::async([&] { return train(*service, "b", 100, 10); });
  b.get();
  // The single member waits.
  std::string missing;
  for (int attempt = 0; attempt < 2000 && missing.find("1 of at least 2") == std::string::npos;
       ++attempt) {
    std::this_thread::sleep_for(5ms);
    missing = service->missing();
  }
  EXPECT_NE(missing.find("1 of at least 2"), std::string::npos) << missing;
  auto c = std::async([&] { return train(*service, "c", 100); });
  EXPECT_EQ(a.get().total, 100);
  EXPECT_EQ(c.get().total, 100);
}

TEST(Elastic, AMemberThatIsLostBeforeTheJoinDoesNotDelayOthers) {
  const auto service = serve({.ranks_min = 1, .ranks_max = 3});
  for (const char* name : {"a", "b"}) service->expect(name);
  auto vanishing = member_of(*service, "b");
  ASSERT_TRUE(vanishing);
  auto a = std::async([&] { return train(*service, "a", 5); });
  ASSERT_TRUE((*vanishing)->next({}, 1min));
  vanishing->reset();
  const Trainer trainer = a.get();
  EXPECT_EQ(trainer.total, 5);
  EXPECT_EQ(trainer.sizes, std::vector<int>{1});
}

TEST(Elastic, AMemberThatReturnsBeforeTheJoinDoesNotDelayOthers) {
  const auto service = serve({.ranks_min = 2, .ranks_max = 2});
  auto a = member_of(*service, "a"), b = member_of(*service, "b");
  ASSERT_TRUE(a && b);
  auto first = std::async([&] { return (*a)->next({}, 1min); });
  ASSERT_TRUE((*b)->next({}, 1min));
  ASSERT_TRUE(first.get());
  auto back = std::async([&] { return (*b)->next("other failure", 1min); });
  const auto joined = (*a)->join({});
  ASSERT_FALSE(joined);
  EXPECT_NE(joined.error().message.find("other failure"), std::string::npos)
      << joined.error().message;
  ASSERT_TRUE((*a)->next(joined.error().message, 1min));
  ASSERT_TRUE(back.get());
  auto other = std::async([&] { return (*b)->join({}); });
  EXPECT_TRUE((*a)->join({})) << "losses of the last generation do not affect this one";
  EXPECT_TRUE(other.get());
}

TEST(Elastic, RejectsAMemberWithAnotherSecret) {
  const auto service = serve({});
  auto intruder = member_of(*service, "x", "wrong");
  ASSERT_TRUE(intruder);
  const auto assignment = (*intruder)->next({}, 1min);
  ASSERT_FALSE(assignment);
  EXPECT_NE(assignment.error().message.find("secret"), std::string::npos)
      << assignment.error().message;
  EXPECT_FALSE(service->next(50ms)) << "no member applied";
}

TEST(Elastic, AMemberReportsTheEndOfItsService) {
  auto service = serve({.ranks_min = 2, .ranks_max = 2});
  auto member = member_of(*service, "a");
  ASSERT_TRUE(member);
  auto assignment = std::async([&] { return (*member)->next({}, 1min); });
  ASSERT_TRUE(service->next(10s)) << "the member applied";
  service.reset();
  const auto answer = assignment.get();
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("service"), std::string::npos) << answer.error().message;
}

TEST(Elastic, ADismissedMemberGetsAnError) {
  const auto service = serve({.ranks_min = 1, .ranks_max = 2, .settle_max = 200ms});
  for (const char* name : {"a", "b"}) service->expect(name);
  auto a = member_of(*service, "a"), b = member_of(*service, "b");
  ASSERT_TRUE(a && b);
  auto first = std::async([&] { return (*a)->next({}, 1min); });
  ASSERT_TRUE((*b)->next({}, 1min));
  ASSERT_TRUE(first.get());
  ASSERT_TRUE((*a)->next("it failed", 1min)) << "alone";
  const auto refused = (*b)->next({}, 1min);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Kind::denied);
}

// -- connections that end within a frame

std::string frame_of(const Message& message) {
  const std::string payload = encode(message);
  const collectives::HeaderBytes header = collectives::encode(
      collectives::FrameHeader{collectives::FrameKind::data, {}, payload.size()});
  return std::string(reinterpret_cast<const char*>(header.data()), header.size()) + payload;
}

Message came() { return messages::Came{Applicant{.name = "a", .host = "here"}}; }

void send_bytes(int descriptor, std::string_view bytes) {
  ASSERT_EQ(::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL), ssize_t(bytes.size()));
}

// Both ends of a connection.
struct Wires {
  Wires() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    service.emplace(collectives::Socket(ends[0]), "open sesame", Wire::Side::service);
    member.emplace(collectives::Socket(ends[1]), "open sesame", Wire::Side::member);
  }
  void prove() {
    for (int exchanges = 0; exchanges < 3; ++exchanges) {
      EXPECT_TRUE(member->exchange());
      EXPECT_TRUE(service->exchange());
    }
    ASSERT_TRUE(member->proved() && service->proved());
  }
  std::optional<Wire> service, member;
};

TEST(MembershipWire, APeerThatClosesWithinItsHelloHasEnded) {
  Wires wires;
  send_bytes(wires.member->descriptor(), "ten bytes.");
  wires.member.reset();
  const auto received = wires.service->exchange();
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().kind, Kind::unavailable);
}

TEST(MembershipWire, CompleteMessagesAreReturnedBeforeTheEnd) {
  Wires wires;
  wires.prove();
  const std::string frame = frame_of(came());
  send_bytes(wires.member->descriptor(), frame + frame.substr(0, frame.size() / 2));
  wires.member.reset();
  const auto received = wires.service->exchange();
  ASSERT_TRUE(received);
  ASSERT_EQ(received->size(), 1u);
  EXPECT_TRUE(received->front() == came());
  const auto after = wires.service->exchange();
  ASSERT_FALSE(after);
  EXPECT_EQ(after.error().kind, Kind::unavailable);
}

TEST(Elastic, AMemberThatClosesWithinAFrameIsLost) {
  const auto service = serve({.ranks_min = 2, .ranks_max = 2});
  collectives::Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(service->port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(
      ::connect(socket.descriptor(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
      0);
  std::optional<Wire> member;
  member.emplace(std::move(socket), "open sesame", Wire::Side::member);
  while (!member->proved()) ASSERT_TRUE(member->exchange());
  member->send(came());
  while (member->wants_to_write()) ASSERT_TRUE(member->exchange());
  const auto first = service->next(1min);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->kind, News::Kind::came);
  send_bytes(member->descriptor(), frame_of(came()).substr(0, 40));
  member.reset();
  const auto second = service->next(1min);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->kind, News::Kind::lost);
  EXPECT_EQ(second->name, "a");
}

}  // namespace
}  // namespace trainyard::membership
